"""``wait``: until objects, which need not exist yet, meet conditions."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, TypeAlias

import typer

from dyninformer.cli import completion
from dyninformer.cli.arguments import named_objects, seconds
from dyninformer.cli.connection import (
    LOOK_SECONDS,
    Cluster,
    ConnectionNotices,
    Say,
    Target,
    saying,
    with_target,
)
from dyninformer.cli.errors import OUT_OF_TIME, WRONG_USAGE, CommandError
from dyninformer.cli.terminal import say
from dyninformer.cli.where import unknown_paths
from dyninformer.delivery.events import Event, EventType
from dyninformer.discovery import ResolvedResource
from dyninformer.display.forms import as_name
from dyninformer.display.text import visible, visible_lines
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import GenericInformer
from dyninformer.types import Object
from dyninformer.waiting import Met, met_when, paths_of

Events: TypeAlias = "queue.SimpleQueue[tuple[ResourceWait, Event]]"

_RESOLVE_SECONDS: Final = 0.5  # between two looks for a CRD that does not exist yet


@with_target()
def command(
    objects: Annotated[
        list[str],
        typer.Argument(
            metavar="RESOURCE[/NAME]...",
            help="TYPE/NAME, several; or TYPE and names; or TYPE with --all, --any or -l.",
            autocompletion=completion.objects,
        ),
    ],
    *,
    conditions: Annotated[
        list[str],
        typer.Option(
            "--for",
            metavar="CONDITION",
            autocompletion=completion.conditions,
            help="condition=Ready, condition=Ready=False, jsonpath={.status.phase}=Running, "
            "jsonpath={.status.replicas}>=3 (also !=, <, <=, >), create, delete. Several must "
            "all be met.",
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="All objects of the resource, and at least one.")
    ] = False,
    one_of: Annotated[
        bool, typer.Option("--any", help="One object that meets the conditions is enough.")
    ] = False,
    timeout: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="30, 30s, 5m or 1h30m; 0 looks once, a negative one waits forever.",
        ),
    ] = "30s",
    target: Target,
) -> None:
    """Wait until objects meet a condition.

    Neither the objects nor their CRD need exist yet. An object that has met the conditions
    once counts from then on. Numbers and quantities are compared by value.

    Exit codes: 0 all have met them, or with `--any` one has; 4 the time is over, and stderr says
    what each lacks; 2 wrong usage; 3 the server cannot be reached or refuses; 130 interrupted.

    For example:

    ```console
    $ dyninformer wait certificate/shop -n prod --for create
    $ dyninformer wait cert shop -n prod --for 'jsonpath={.spec.secretName}'
    $ dyninformer wait cert --all -A --for 'jsonpath={.metadata.generation}>=1'
    $ dyninformer wait cert --any -A --for 'jsonpath={.spec.secretName}!=old'
    $ dyninformer wait certificate/old -n prod --for delete --timeout 1m
    ```
    """
    parsed = [met_when(each) for each in conditions]
    wanted = named_objects(objects)
    length = seconds(timeout)
    until = time.monotonic() + (length if length >= 0 else math.inf)
    narrowed = bool(target.selector or target.field_selector)
    for resource, names in wanted.items():
        if names and narrowed:
            raise CommandError("give names or a selector, not both", code=WRONG_USAGE)
        if not (names or everything or one_of or narrowed):
            raise CommandError(
                f"{resource}: which ones? Give names, --all, --any or -l", code=WRONG_USAGE
            )
    if length > 0:  # else the first state has a time of its own
        target = replace(target, request_timeout=length)
    patient = not any(met(None) for met in parsed)  # a misspelled resource is not "deleted"
    events: Events = queue.SimpleQueue()

    def prepare(name: str, cluster: Cluster) -> tuple[Cluster, list[ResourceWait]]:
        together: dict[ResolvedResource, list[str]] = {}  # cert/shop certificates/mail: one
        for resource, names in wanted.items():
            found = _resolved(cluster, resource, until if patient else 0.0, saying(name))
            together.setdefault(found, []).extend(names)
        waits = [
            _resource_wait(cluster, found, list(dict.fromkeys(names)), parsed, name)
            for found, names in together.items()
        ]
        for each in waits:
            each.subscribe(events)
        cluster.sync()
        return cluster, waits

    if target.several:
        from dyninformer.cli.contexts import connected, targets  # noqa: PLC0415 - as elsewhere

        with connected(targets(target), prepare) as outcomes:
            waits = [each for _, found in outcomes.done.values() for each in found]
            clusters = {name: cluster for name, (cluster, _) in outcomes.done.items()}
            _wait(clusters, waits, events, until, one_of)
            outcomes.end() if not one_of else None
        return
    with target.connected() as cluster:
        _, waits = prepare("", cluster)
        _wait({"": cluster}, waits, events, until, one_of)


def _resolved(cluster: Cluster, resource: str, until: float, say: Say) -> ResolvedResource:
    """The resource, as soon as the server has it."""
    announced = False
    while True:
        try:
            return cluster.resolve(resource)
        except UnknownResourceError as error:
            if time.monotonic() >= until:
                if announced:
                    raise CommandError(f"timed out: {error}", code=OUT_OF_TIME) from None
                raise
            if not announced:
                say(f"waiting for it to exist: {visible_lines(str(error))}")
                announced = True
        cluster.factory.wait(min(_RESOLVE_SECONDS, max(0.0, until - time.monotonic())))
        cluster.discovery.invalidate()


def _resource_wait(
    cluster: Cluster,
    resource: ResolvedResource,
    names: list[str],
    conditions: list[Met],
    where: str,
) -> ResourceWait:
    if names and resource.namespaced and cluster.target.all_namespaces:
        raise CommandError(
            "names are of one namespace: give -n, or --all instead of names", code=WRONG_USAGE
        )
    only = f"metadata.name={names[0]}" if len(names) == 1 else None  # the others need not be sent
    keys = [
        f"{namespace}/{name}" if namespace else name
        for namespace in cluster.namespaces_of(resource)
        for name in names
    ]
    informer = cluster.informer(resource, field_selector=only)
    return ResourceWait(resource, informer, keys or None, conditions, where)


def _wait(
    clusters: dict[str, Cluster],
    waits: list[ResourceWait],
    events: Events,
    until: float,
    one_of: bool,
) -> None:
    notices = [
        ConnectionNotices(cluster.factory.status, saying(name))
        for name, cluster in clusters.items()
    ]
    for each in waits:
        for name in each.look():
            typer.echo(f"{name} condition met")

    def is_over() -> bool:
        return any(e.any_met for e in waits) if one_of else all(e.all_met for e in waits)

    if not is_over():
        _say_unknown_paths(waits)
    while not is_over():
        left = until - time.monotonic()
        if left <= 0:
            raise CommandError(_missing(waits, one_of=one_of), code=OUT_OF_TIME)
        for notice in notices:
            notice.look()
        try:
            each, event = events.get(timeout=min(left, LOOK_SECONDS))
        except queue.Empty:
            continue
        for name in each.take(event):
            typer.echo(f"{name} condition met")


def _say_unknown_paths(waits: list[ResourceWait]) -> None:
    """Warn of paths that no object can have: the wait would not end."""
    sources = [(each.informer.lister.held.known, each.informer.lister) for each in waits]
    paths = [path for met in waits[0].conditions for path in paths_of(met)]
    for line in unknown_paths(sources, paths):
        say(visible(line))


def _missing(waits: list[ResourceWait], *, one_of: bool) -> str:
    lines = [line for each in waits if one_of or not each.all_met for line in each.missing()]
    head = "timed out; none has met the condition:" if one_of else "timed out; still missing:"
    return "\n  ".join([head, *lines])


@dataclass
class ResourceWait:
    """The wait for objects of one resource. ``keys`` are those named; None is all that there are.

    An object that has met the conditions once counts from then on, as in kubectl. It belongs to
    one thread; only the queue of events is filled by others.
    """

    resource: ResolvedResource
    informer: GenericInformer
    keys: list[str] | None
    conditions: list[Met]
    cluster: str = ""
    """Where, if it may be one of several."""
    met: set[str] = field(default_factory=set)

    def subscribe(self, events: Events) -> None:
        """Have every change put into a queue."""
        self.informer.informer.add_event_handler(
            on_event=lambda event: events.put((self, event)), name="wait"
        )

    def look(self) -> Iterator[str]:
        """Take the objects as they are; the names of those that now meet the conditions."""
        for key in self._candidates():
            yield from self._take(key, self.informer.informer.store.get_by_key(key))

    def take(self, event: Event) -> Iterator[str]:
        """Take a change; the name of the object if it meets the conditions for the first time."""
        if self.keys is None or event.key in self.keys:
            gone = event.type is EventType.DELETED
            if event.recreated:  # deleted, and there is another one by now
                yield from self._take(event.key, None)
            yield from self._take(event.key, None if gone else event.object)

    @property
    def all_met(self) -> bool:
        """Every object has met them, and there is at least one, unless having none meets them."""
        candidates = self._candidates()
        return self.met.issuperset(candidates) and bool(candidates or self._meets(None))

    @property
    def any_met(self) -> bool:
        """One object has met them, or there is none and that meets them."""
        return bool(self.met) or (self._meets(None) and not self._candidates())

    def missing(self) -> list[str]:
        """What there is instead, for each object that has not met them."""
        candidates = self._candidates()
        if not candidates:
            where = f"{visible(self.cluster)} {self.resource.group_resource}".lstrip()
            return [f"{where}: there is no such object"]
        return [
            f"{self._name(key)}{_inside(key)}: {visible(self._found(key))}"
            for key in candidates
            if key not in self.met
        ]

    def _take(self, key: str, obj: Object | None) -> Iterator[str]:
        if key not in self.met and self._meets(obj):
            self.met.add(key)
            yield self._name(key)

    def _meets(self, obj: Object | None) -> bool:
        return all(met(obj) for met in self.conditions)

    def _candidates(self) -> list[str]:
        return sorted(self.informer.lister.keys()) if self.keys is None else self.keys

    def _found(self, key: str) -> str:
        obj = self.informer.informer.store.get_by_key(key)
        found = dict.fromkeys(met.found(obj) for met in self.conditions if not met(obj))
        return "; ".join(found) or "it meets the conditions only now"

    def _name(self, key: str) -> str:
        obj = {"metadata": {"name": key.rpartition("/")[2]}}
        name = as_name(obj, self.resource.kind, self.resource.gvr.group)
        return f"{visible(self.cluster)} {name}".lstrip()


def _inside(key: str) -> str:
    namespace = key.rpartition("/")[0]
    return f" in {namespace}" if namespace else ""
