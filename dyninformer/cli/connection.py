"""From a command's options to a cluster: synced informers, and notices of a lost connection."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, TypeAlias, get_args

import typer

from dyninformer.cli import completion
from dyninformer.cli.arguments import objects_option
from dyninformer.cli.errors import UNREACHABLE, WRONG_USAGE, CommandError, in_a_shell
from dyninformer.cli.global_flags import GlobalFlags, parameters
from dyninformer.cli.terminal import canvas, say
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display.text import visible
from dyninformer.errors import UnauthorizedError, UnreachableError
from dyninformer.resource import GroupVersionResource
from dyninformer.types import ListKeys
from dyninformer.watching.status import InformerState, InformerStatus, InformerTrouble

if TYPE_CHECKING:
    from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
    from dyninformer.watching.brief import BriefSource
    from dyninformer.watching.client import Source

Command: TypeAlias = Callable[..., None]
Say: TypeAlias = Callable[[str], object]
Resources: TypeAlias = list[ResolvedResource]
Statuses: TypeAlias = Mapping[GroupVersionResource, InformerStatus]

LOOK_SECONDS: Final = 0.2
"""Between two looks of a command at the connection, at its reader, and for a signal."""
SILENT_SECONDS: Final = 25.0
"""After which a server that has said nothing is called silent; it is asked then whether it is there
(S35). Where nothing happens, it says so about once a minute."""

_OBJECTS_OPTIONS: Final = frozenset({"namespace", "all_namespaces", "selector", "field_selector"})
# What stays the same however often one tries, and the code that a command then ends with.
_LASTING: Final = {
    InformerTrouble.UNAUTHORIZED: UNREACHABLE,
    InformerTrouble.FORBIDDEN: UNREACHABLE,
    InformerTrouble.BAD_REQUEST: WRONG_USAGE,
}
_LOST: Final = {
    InformerState.BACKING_OFF: "disconnected since",
    InformerState.ABSENT: "not served since",  # its CRD was deleted
}


@dataclass(frozen=True, kw_only=True)
class Target(GlobalFlags):
    """Which objects, and in which cluster: the options of `with_target`."""

    selector: Annotated[
        str | None,
        objects_option(
            "-l", "--selector", metavar="LABELS", help="Labels: app=shop,tier in (web,api)."
        ),
    ] = None
    field_selector: Annotated[
        str | None,
        objects_option(
            metavar="FIELDS", help="Fields that the server can select on: metadata.name=shop."
        ),
    ] = None

    contexts: Annotated[
        list[str] | None,
        typer.Option(
            "--contexts",
            metavar="PATTERN",
            rich_help_panel="Which cluster",
            help="All contexts that fit: 'eu-*', several with commas, or repeated.",
            autocompletion=completion.contexts,
        ),
    ] = None
    all_contexts: Annotated[
        bool,
        typer.Option(
            "--all-contexts", rich_help_panel="Which cluster", help="All contexts there are."
        ),
    ] = False

    @property
    def several(self) -> bool:
        """More than one cluster may be meant."""
        return bool(self.contexts) or self.all_contexts

    def namespaces(self, default: str) -> list[str]:
        """Where to look: as kubectl does, in the context's namespace unless told otherwise."""
        if self.all_namespaces:
            return [""]
        if self.namespace:
            return [name.strip() for name in self.namespace.split(",")]
        return [default]

    @contextmanager
    def connected(self) -> Iterator[Cluster]:
        """The cluster, for as long as the command runs."""
        from dyninformer.factory import DynamicSharedInformerFactory  # noqa: PLC0415 - it is heavy

        source = self.source()
        _say_doubt(source.doubt)
        with DynamicSharedInformerFactory(source) as factory:
            discovery = Discovery(source, patience=self.request_timeout)
            yield Cluster(self, discovery, factory.namespace, factory)

    def asked_briefly(self) -> BriefSource | Source:
        """The server, for few requests."""
        source = self.brief_source()
        _say_doubt(source.doubt)
        return source


def saying(cluster: str, say: Say = say) -> Say:
    """What says a line with the cluster's name before it; the same as before without a name."""
    return (lambda line: say(f"{visible(cluster)}: {line}")) if cluster else say


def _say_doubt(doubt: str) -> None:
    """A word about what is wrong with the way to the server, if anything is."""
    if doubt:
        say(f"warning: {visible(doubt)}")


def with_target(*left_out: str, unused: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Replace a command's parameter ``target`` by the options that make one.

    Which objects are meant stands in the place of ``target``, which cluster at the end.
    ``left_out`` are the options that a command does not have, or has in a form of its own;
    ``unused`` those that mean nothing to it, and are taken as kubectl takes them.
    """
    options = [
        _hidden(each) if each.name in unused else each
        for each in parameters(Target)
        if each.name not in left_out
    ]
    objects = [each for each in options if each.name in _OBJECTS_OPTIONS]
    cluster = [each for each in options if each.name not in _OBJECTS_OPTIONS]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **given: Any) -> None:
            target = Target(**{each.name: given.pop(each.name) for each in options})
            command(*args, target=target, **given)

        own = list(inspect.signature(command, eval_str=True).parameters.values())
        at = [each.name for each in own].index("target")
        parameters = [*own[:at], *objects, *own[at + 1 :], *cluster]
        # typer reads a command's options from its signature.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _hidden(option: inspect.Parameter) -> inspect.Parameter:
    kind, shown = get_args(option.annotation)
    hidden = copy(shown)
    hidden.hidden = True
    return option.replace(annotation=Annotated[kind, hidden])


@dataclass(frozen=True)
class Server:
    """An API server, and the objects there that a command is about."""

    target: Target
    discovery: Discovery
    context_namespace: str
    """That of the kubeconfig's context."""

    def resolve(self, resource: str) -> ResolvedResource:
        """What the server calls a resource."""
        return self.discovery.resolve(resource)

    def resolve_all(self, words: str) -> Resources:
        """Each resource of a list with commas: by any spelling, by category, or by wildcard.

        A category stands for what is in it even if a resource has that name too, as in kubectl.
        """
        found: dict[ResolvedResource, None] = {}
        for word in filter(None, words.split(",")):
            several = [each for each in self.discovery.resources() if _stands_for(word, each)]
            if not several and is_wildcard(word):
                raise CommandError(f"no resource fits {word}", code=WRONG_USAGE)
            found.update(dict.fromkeys(several or [self.resolve(word)]))
        return list(found)

    @property
    def namespaces(self) -> list[str]:
        """Where to look for what is namespaced; "" is everywhere."""
        return self.target.namespaces(self.context_namespace)

    @property
    def several_namespaces(self) -> bool:
        """Whether objects have to be shown with their namespace."""
        return self.namespaces == [""] or len(self.namespaces) > 1

    def list_keys(self, gvr: GroupVersionResource) -> ListKeys:
        """What tells elements of lists apart, as far as its CRD can be read now."""
        try:
            return self.discovery.list_keys(gvr)
        except (UnreachableError, UnauthorizedError):
            return {}

    def defaults(self, gvr: GroupVersionResource) -> Mapping[str, Any]:
        """What the server fills in, as far as its CRD can be read now."""
        try:
            return self.discovery.defaults(gvr)
        except (UnreachableError, UnauthorizedError):
            return {}

    def namespaces_of(self, resource: ResolvedResource) -> list[str]:
        """Where to look for a resource's objects."""
        return self.namespaces if resource.namespaced else [""]


def spread_over_namespaces(servers: Sequence[Server]) -> bool:
    """Whether the objects of all these have to be shown with their namespace."""
    several = any(each.several_namespaces for each in servers)
    return several or len({tuple(each.namespaces) for each in servers}) > 1


def is_wildcard(word: str) -> bool:
    """It stands for whatever resources it fits."""
    return any(character in word for character in "*?[")


def _stands_for(word: str, resource: ResolvedResource) -> bool:
    if "list" not in resource.verbs:
        return False
    if is_wildcard(word):
        return fnmatchcase(resource.group_resource, word)
    return word in resource.categories


@dataclass(frozen=True)
class Cluster(Server):
    """A server whose objects a command watches."""

    factory: DynamicSharedInformerFactory

    def informer(
        self, resource: ResolvedResource, *, field_selector: str | None = None
    ) -> GenericInformer:
        """The informer of these objects, not yet started."""
        return self.factory.for_resource(
            resource.gvr,
            namespaces=self.namespaces_of(resource),
            label_selector=self.target.selector or None,
            field_selector=field_selector or self.target.field_selector or None,
        )

    def sync(self) -> None:
        """Start, and wait for the first state; on a terminal, show how far it has come.

        What the server refuses is an error at once: another request would not help a command.
        """
        factory = self.factory
        deadline = time.monotonic() + self.target.request_timeout
        factory.start()
        alone = threading.current_thread() is threading.main_thread()
        with sync_progress(factory, sys.stderr if alone else None) as refresh:
            while not factory.wait_for_cache_sync(LOOK_SECONDS):
                refresh()
                self._fail_if_refused()
                if time.monotonic() >= deadline:
                    break
        factory.sync(0)

    def _fail_if_refused(self) -> None:
        for status in self.factory.status().values():
            if not status.synced and status.trouble in _LASTING:
                raise CommandError(status.reason, code=_LASTING[status.trouble])


@contextmanager
def sync_progress(
    factory: DynamicSharedInformerFactory, where: TextIO | None
) -> Iterator[Callable[[], None]]:
    """A bar per resource that is still read, drawn anew at each call of what this yields.

    Only on a terminal that can be drawn on; it goes when all is read. A bar without a known end
    moves to and fro. ``where`` is None if others draw, too.
    """
    console = None if where is None else canvas(where)
    if console is None:
        yield lambda: None
        return
    from rich.progress import (  # noqa: PLC0415 - only a terminal needs it
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
    with Progress(*columns, console=console, transient=True) as progress:
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


class ConnectionNotices:
    """Says when the cluster is out of reach, since when, and when it is back; for one thread.

    Resources that are lost for one reason, or come back together, are one line.
    """

    def __init__(self, status: Callable[[], Statuses], say: Say = say) -> None:
        self._status = status
        self._say = say
        self._lost: dict[GroupVersionResource, datetime] = {}

    def look(self) -> None:
        """Say what has changed since the last look."""
        statuses = self._status()
        lost: dict[tuple[str, str], list[str]] = {}
        back: dict[str, list[str]] = {}
        for gvr, status in statuses.items():
            if status.state in _LOST and gvr not in self._lost:
                self._lost[gvr] = _since(status)
                lost.setdefault((lost_since(status), status.reason), []).append(gvr.group_resource)
            elif status.state is InformerState.WATCHING and gvr in self._lost:
                since = self._lost.pop(gvr)
                back.setdefault(_clock(since), []).append(gvr.group_resource)
        for gone in self._lost.keys() - statuses.keys():
            del self._lost[gone]  # its CRD is gone, and it is no longer followed
        now = _clock(datetime.now().astimezone())
        for (what, reason), names in lost.items():
            self._say(f"{now} {what}: {', '.join(names)}: {visible(in_a_shell(reason))}")
        for moment, names in back.items():
            self._say(f"{now} connected again: {', '.join(names)}, away since {moment}")


def standing(statuses: Mapping[Any, InformerStatus], now: datetime) -> str:
    """How all of them stand with the server now, in a line: how old what is shown may be."""
    if not statuses:
        return ""
    known = [each.fresh_as_of for each in statuses.values()]
    moments = [each for each in known if each is not None]
    shown = f"as the server had it at {_clock(min(moments))}" if len(moments) == len(known) else ""
    waiting = [each for each in statuses.values() if not each.live]
    if waiting:
        there = [each for each in waiting if each.state is not InformerState.ABSENT]
        away = [each for each in there if each.state in _LOST or each.attempts]
        if away:
            words = f"server away since {_earliest(away)}"
        else:
            words = "reading" if there else f"not served since {_earliest(waiting)}"
    else:
        heard = max(_since(each) for each in statuses.values())
        silent = (now - heard).total_seconds() >= SILENT_SECONDS
        words = f"silent since {_clock(heard)}" if silent else "live"
    return f"{words}; {shown}" if shown else words


def _earliest(statuses: Sequence[InformerStatus]) -> str:
    return _clock(min(map(_since, statuses)))


def lost_since(status: InformerStatus) -> str:
    """What is wrong, and since when; nothing if the informer is watching, or about to.

    >>> lost_since(InformerStatus(state=InformerState.WATCHING))
    ''
    """
    words = _LOST.get(status.state)
    return f"{words} {_clock(_since(status))}" if words else ""


def _since(status: InformerStatus) -> datetime:
    """When the server last said anything; for a resource that it lacks, when it said so."""
    if status.state is InformerState.ABSENT and status.since is not None:
        return status.since
    return status.last_contact or status.since or datetime.now().astimezone()


def _clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")
