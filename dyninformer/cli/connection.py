"""From a command's arguments to a cluster: the factory, the namespaces, a synced informer."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from dyninformer.cli.failing import UNREACHABLE, WRONG_USAGE, CommandError
from dyninformer.cli.progress import shown_while_syncing
from dyninformer.discovery import ResolvedResource
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.watching.status import InformerTrouble

Namespaces: TypeAlias = list[str]

_LOOK_SECONDS: Final = 0.1
# What stays the same however often one asks, and the code that a command then ends with.
_LASTING: Final = {
    InformerTrouble.UNAUTHORIZED: UNREACHABLE,
    InformerTrouble.FORBIDDEN: UNREACHABLE,
    InformerTrouble.BAD_REQUEST: WRONG_USAGE,
}


class Placed(Protocol):
    """What knows the context's namespace: a factory, a source."""

    @property
    def namespace(self) -> str:
        """The context's namespace."""


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

    def __post_init__(self) -> None:
        if self.namespace and self.all_namespaces:
            raise CommandError("give -n or -A, not both", code=WRONG_USAGE)

    @property
    def kubeconfig_path(self) -> str | None:
        """The file that was named, where it is."""
        return os.path.expanduser(self.kubeconfig) if self.kubeconfig else None

    @contextmanager
    def connected(self) -> Iterator[DynamicSharedInformerFactory]:
        """A factory, for as long as the command runs."""
        # A command tells what is wrong itself: Python would print the log's warnings as well.
        logging.getLogger("dyninformer").addHandler(logging.NullHandler())
        with DynamicSharedInformerFactory(
            kubeconfig=self.kubeconfig_path, context=self.context
        ) as factory:
            yield factory

    def resolved(self, factory: DynamicSharedInformerFactory, resource: str) -> ResolvedResource:
        """What the server calls the resource."""
        return factory.discovery.resolve(resource)

    def namespaces_of(
        self, factory: DynamicSharedInformerFactory, resource: ResolvedResource
    ) -> Namespaces:
        """Where to look for a resource's objects."""
        return self.namespaces_in(factory) if resource.namespaced else [""]

    def namespaces_in(self, place: Placed) -> Namespaces:
        """Where to look: as kubectl does, in the context's namespace unless told otherwise."""
        if self.all_namespaces:
            return [""]
        if self.namespace:
            return [name.strip() for name in self.namespace.split(",")]
        return [place.namespace]

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
        """Start, and wait for the first state; on a terminal, show how far it has come.

        What the server refuses is an error at once: asking again would not help a command.
        """
        deadline = time.monotonic() + self.timeout
        factory.start()
        with shown_while_syncing(factory, sys.stderr) as refresh:
            while not factory.wait_for_cache_sync(_LOOK_SECONDS):
                refresh()
                _fail_if_refused(factory)
                if time.monotonic() >= deadline:
                    break
        factory.sync(0)


def _fail_if_refused(factory: DynamicSharedInformerFactory) -> None:
    for status in factory.status().values():
        if not status.synced and status.trouble in _LASTING:
            raise CommandError(status.reason, code=_LASTING[status.trouble])
