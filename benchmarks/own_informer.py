"""dyninformer itself, as its users use it, taken through the phases of measuring.py."""

from __future__ import annotations

import sys

from kubernetes.client import ApiClient, Configuration

from benchmarks.measuring import Cache, Handler, run
from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.types import Object

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
ISSUERS = GroupVersionResource("cert-manager.io", "v1", "issuers")
INDEXERS = {"by-issuer": ".spec.issuerRef.name", "by-secret": ".spec.secretName"}


class Informer(Cache):
    """A factory with one informer."""

    def __init__(self, url: str) -> None:
        self.factory = DynamicSharedInformerFactory(ApiClient(Configuration(host=url)))

    def connect(self) -> None:
        """Sync a collection that is empty."""
        self.factory.for_resource(ISSUERS, indexers=INDEXERS)
        self.factory.sync(timeout=30)

    def sync(self, handler: Handler) -> None:
        """Sync all certificates."""
        certificates = self.factory.for_resource(CERTIFICATES, indexers=INDEXERS)
        certificates.informer.add_event_handler(on_update=handler.on_update)
        self.factory.sync(timeout=600)
        self.lister = certificates.lister

    def get(self, namespace: str, name: str) -> Object:
        """A dict of one's own."""
        return self.lister.get(name, namespace)

    def get_shared(self, namespace: str, name: str) -> Object:
        """The dict of all who only read."""
        return self.lister.get(name, namespace, shared=True)

    def count_of_index(self, issuer: str) -> int:
        """How many have it."""
        return len(self.lister.by_index("by-issuer", issuer))


if __name__ == "__main__":
    url, _, *numbers = sys.argv[1:]  # the server says whether it streams lists
    run(Informer(url), *map(int, numbers))
