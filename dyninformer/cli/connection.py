"""From a command's options to a cluster: a factory, synced informers, and notices when the connection is lost."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TextIO, TypeAlias

from dyninformer.cli.errors import UNREACHABLE, WRONG_USAGE, CommandError
from dyninformer.discovery import ResolvedResource
from dyninformer.display.text import visible
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.resource import GroupVersionResource
from dyninformer.watching.status import InformerState, InformerStatus, InformerTrouble

# ----------------------------------------------------------------------------------------
# How far a large first list has come, on stderr, where somebody looks at it.


Refresh: TypeAlias = Callable[[], None]


@contextmanager
def shown_while_syncing(factory: DynamicSharedInformerFactory, where: TextIO) -> Iterator[Refresh]:
    """A bar per resource that is still read, drawn anew at each call of what this yields.

    Only on a terminal; it goes when all is read. A bar without a known end moves to and fro.
    """
    if not where.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
    )
    with Progress(*columns, console=Console(file=where), transient=True) as progress:
        tasks = {
            gvr: progress.add_task(f"reading {gvr}", total=None)
            for gvr, status in factory.status().items()
            if not status.synced
        }

        def refresh() -> None:
            for gvr, status in factory.status().items():
                if gvr not in tasks:
                    continue
                if status.synced:
                    progress.update(tasks[gvr], completed=status.objects, total=status.objects)
                else:
                    progress.update(tasks[gvr], completed=status.listed, total=status.expected)

        yield refresh


# ----------------------------------------------------------------------------------------
# Says on stderr when the cluster is out of reach, since when, and when it is back.


Statuses: TypeAlias = Mapping[GroupVersionResource, InformerStatus]
Say: TypeAlias = Callable[[str], object]
Lost: TypeAlias = dict[GroupVersionResource, datetime]
Names: TypeAlias = list[str]

_TROUBLE = {
    InformerState.BACKING_OFF: "disconnected since",
    InformerState.ABSENT: "not served since",  # its CRD was deleted
}


class ConnectionNotices:
    """Compares how informers stand with how they stood; for one thread.

    Resources that are lost for one reason, or come back together, are one line.
    """

    def __init__(self, status: Callable[[], Statuses], say: Say) -> None:
        self._status = status
        self._say = say
        self._lost: Lost = {}

    def look(self) -> None:
        """Say what is news since the last look."""
        statuses = self._status()
        lost: dict[tuple[str, str], Names] = {}
        back: dict[str, Names] = {}
        for gvr, status in statuses.items():
            if status.state in _TROUBLE and gvr not in self._lost:
                self._lost[gvr] = _since(status)
                lost.setdefault((lost_since(status), status.reason), []).append(gvr.group_resource)
            elif status.state is InformerState.WATCHING and gvr in self._lost:
                since = self._lost.pop(gvr)
                back.setdefault(_clock(since), []).append(gvr.group_resource)
        for gone in self._lost.keys() - statuses.keys():
            del self._lost[gone]  # its CRD is gone, and it is followed no more
        for (what, reason), names in lost.items():
            self._say(f"{_now()} {what}: {', '.join(names)}: {visible(reason)}")
        for moment, names in back.items():
            self._say(f"{_now()} connected again: {', '.join(names)}, away since {moment}")


def lost_since(status: InformerStatus) -> str:
    """What is wrong, and since when; nothing if the informer is watching, or about to.

    >>> lost_since(InformerStatus(state=InformerState.WATCHING))
    ''
    """
    words = _TROUBLE.get(status.state)
    return f"{words} {_clock(_since(status))}" if words else ""


def _since(status: InformerStatus) -> datetime:
    """The last time that the server said anything; of what it does not serve, since it said so."""
    if status.state is InformerState.ABSENT and status.since is not None:
        return status.since
    return status.last_contact or status.since or datetime.now().astimezone()


def _clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")


def _now() -> str:
    return _clock(datetime.now().astimezone())


# ----------------------------------------------------------------------------------------
# From a command's arguments to a cluster: the factory, the namespaces, a synced informer.


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
