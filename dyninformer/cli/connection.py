"""From a command's arguments to a cluster: the factory, the namespaces, a synced informer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from dyninformer.cli.failing import CommandError
from dyninformer.cli.progress import shown_while_syncing
from dyninformer.discovery import ResolvedResource
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer

Namespaces: TypeAlias = list[str]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Which cluster, and which objects there."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False
    selector: str = ""
    field_selector: str = ""
    timeout: float = 30.0

    @contextmanager
    def connected(self) -> Iterator[DynamicSharedInformerFactory]:
        """A factory, for as long as the command runs."""
        if self.namespace and self.all_namespaces:
            raise CommandError("give -n or -A, not both", code=2)
        kubeconfig = os.path.expanduser(self.kubeconfig) if self.kubeconfig else None
        with DynamicSharedInformerFactory(kubeconfig=kubeconfig, context=self.context) as factory:
            yield factory

    def resolved(self, factory: DynamicSharedInformerFactory, resource: str) -> ResolvedResource:
        """What the server calls the resource."""
        return factory.discovery.resolve(resource)

    def namespaces_of(
        self, factory: DynamicSharedInformerFactory, resource: ResolvedResource
    ) -> Namespaces:
        """Where to look: as kubectl does, in the context's namespace unless told otherwise."""
        if not resource.namespaced or self.all_namespaces:
            return [""]
        if self.namespace:
            return [name.strip() for name in self.namespace.split(",")]
        return [factory.namespace]

    def informer(
        self, factory: DynamicSharedInformerFactory, resource: ResolvedResource, **more: Any
    ) -> GenericInformer:
        """The informer of these objects, not yet started."""
        return factory.for_resource(
            resource.gvr,
            namespaces=self.namespaces_of(factory, resource),
            label_selector=self.selector or None,
            field_selector=self.field_selector or None,
            **more,
        )

    def sync(self, factory: DynamicSharedInformerFactory) -> None:
        """Start, and wait for the first state; on a terminal, show how far it has come."""
        factory.start()
        with shown_while_syncing(factory, sys.stderr):
            factory.sync(self.timeout)
