"""Several resources in one factory, each with namespaces, selectors and options of its own.

``resources={...}`` says for each resource what to watch of it, as controller-runtime's ByObject
does in Go: namespaces, label and field selectors, metadata alone, what to cut away
before an object is kept. Whatever is left out here falls back to the factory's own arguments.

    python examples/per_resource_selectors.py --namespaces prod,staging --issuer letsencrypt
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress

from dyninformer import (
    CacheSyncError,
    DynamicSharedInformerFactory,
    Event,
    GroupVersionResource,
    ResourceOptions,
    strip,
)

log = logging.getLogger("example")

Watched = dict[GroupVersionResource, ResourceOptions]

PODS = GroupVersionResource("", "v1", "pods")
SECRETS = GroupVersionResource("", "v1", "secrets")
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
IPAM_BLOCKS = GroupVersionResource("crd.projectcalico.org", "v1", "ipamblocks")


def what_to_watch(namespaces: Sequence[str], issuer: str) -> Watched:
    """One entry per resource."""
    return {
        # Only pods that run, in these namespaces, without the bulk of their metadata.
        PODS: ResourceOptions(
            namespaces=namespaces,
            field_selector="status.phase=Running",
            transform=strip("metadata.managedFields"),
        ),
        # Which TLS secrets there are: the API server sends metadata only, so no key is read.
        SECRETS: ResourceOptions(
            namespaces=namespaces, field_selector="type=kubernetes.io/tls", metadata_only=True
        ),
        # The certificates of one issuer: CRDs say which of their fields can be selected.
        CERTIFICATES: ResourceOptions(
            namespaces=namespaces, field_selector=f"spec.issuerRef.name={issuer}"
        ),
        # A cluster-scoped resource: all of them, told again every half minute.
        IPAM_BLOCKS: ResourceOptions(resync=30),
    }


def show(event: Event) -> None:
    """One handler can hear of all resources: ``event.gvr`` tells which it is."""
    log.info("%-8s %-13s %s", event.type, event.gvr.resource, event.key)


def main() -> None:
    """Show what is there, and what changes until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--namespaces", default="default", help="with commas between them")
    parser.add_argument("--issuer", default="letsencrypt", help="whose certificates")
    parser.add_argument("--seconds", type=float, help="how long to watch; until Ctrl-C if left out")
    arguments = parser.parse_args()
    # Handlers run on threads of their own: logging keeps their lines apart, print would not.
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    log.setLevel(logging.INFO)

    watched = what_to_watch(arguments.namespaces.split(","), arguments.issuer)
    with DynamicSharedInformerFactory(resources=watched) as factory:
        told = [
            factory.for_resource(gvr).informer.add_event_handler(on_event=show) for gvr in watched
        ]
        try:
            factory.sync(timeout=30)
        except CacheSyncError as error:
            sys.exit(str(error))
        for registration in told:
            registration.wait_for_sync(timeout=30)
        for gvr in watched:
            log.info("%s: %d in the cache", gvr, len(factory.for_resource(gvr).lister))
        factory.wait(arguments.seconds)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
