"""One resource, started and synced: the door for scripts and notebooks."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer, Resource
from dyninformer.metrics import Metrics
from dyninformer.options import Namespaces

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

_EXIT_SECONDS: Final = 5.0


class OpenInformer(GenericInformer):
    """A started and synced informer with a factory of its own, which ends with it.

    `open_informer` gives it. After its end the lister still answers, from the last state.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     namespaces = open_informer("ns", client=server.client())
    ...     print(namespaces.close(), len(namespaces.lister))
    True 4
    """

    def __init__(self, factory: DynamicSharedInformerFactory, found: GenericInformer) -> None:
        super().__init__(found.informer)
        self._factory = factory

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings."""
        return self._factory.client

    def close(self, timeout: float | None = _EXIT_SECONDS) -> bool:
        """Stop it; reads go on working. Idempotent."""
        return self._factory.shutdown(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_informer(
    resource: Resource,
    *,
    client: DynamicClient | ApiClient | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: Namespaces | None = None,
    timeout: float | None = 30,
    metrics: Metrics | None = None,
    **options: Any,
) -> OpenInformer:
    """One resource, started and synced: the door for scripts and notebooks.

    ``options`` are those of `ResourceOptions`. CacheSyncError after ``timeout`` seconds
    says why it did not sync. Close it, or use it in a ``with``.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     sorted(namespaces.lister.keys())
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """
    factory = DynamicSharedInformerFactory(
        client, kubeconfig=kubeconfig, context=context, namespace=namespace, metrics=metrics
    )
    try:
        found = factory.for_resource(resource, **options)
        factory.sync(timeout)
    except BaseException:
        factory.shutdown(_EXIT_SECONDS)
        raise
    return OpenInformer(factory, found)
