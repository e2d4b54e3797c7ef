"""``wait``: until objects, which need not exist yet, meet conditions."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias

import typer

from dyninformer.cli import arguments, completion
from dyninformer.cli.arguments import Names, named_objects, seconds
from dyninformer.cli.connection import ConnectionNotices, Target
from dyninformer.cli.errors import OUT_OF_TIME, WRONG_USAGE, CommandError
from dyninformer.conditions import Met, met_when
from dyninformer.delivery.events import Event, EventType
from dyninformer.discovery import ResolvedResource
from dyninformer.display.forms import as_name
from dyninformer.display.text import visible, visible_lines
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer

# ----------------------------------------------------------------------------------------
# The objects that a wait is for, and which of them have met its conditions.


Object: TypeAlias = dict[str, Any]
Keys: TypeAlias = list[str]
NameIterator: TypeAlias = Iterator[str]
Lines: TypeAlias = list[str]
Conditions: TypeAlias = Sequence[Met]


@dataclass
class ResourceWait:
    """The objects of one resource. ``keys`` are those named; None is all that there are.

    An object that has met the conditions once counts from then on, as in kubectl. Belongs to
    one thread; only ``events`` is filled by others.
    """

    resource: ResolvedResource
    informer: GenericInformer
    keys: Keys | None
    conditions: Conditions
    met: set[str] = field(default_factory=set)

    def subscribe(self, events: queue.SimpleQueue[tuple[ResourceWait, Event]]) -> None:
        """Have every change put into a queue."""
        self.informer.informer.add_event_handler(
            on_event=lambda event: events.put((self, event)), name="wait"
        )

    def look(self) -> NameIterator:
        """Take what is held now; the names of those that meet the conditions for the first time."""
        for key in self._candidates():
            yield from self._take(key, self.informer.informer.store.get_by_key(key))

    def take(self, event: Event) -> NameIterator:
        """Take a change; the name of the object if it meets the conditions for the first time."""
        if self.keys is None or event.key in self.keys:
            gone = event.type is EventType.DELETED
            yield from self._take(event.key, None if gone else event.object)

    @property
    def all_met(self) -> bool:
        """Every one has met them, and there is at least one, unless none is what is wanted."""
        candidates = self._candidates()
        return self.met.issuperset(candidates) and bool(candidates or self._none_wanted)

    @property
    def any_met(self) -> bool:
        """One has met them, or there is none and that is what is wanted."""
        return bool(self.met) or (self._none_wanted and not self._candidates())

    def missing(self) -> Lines:
        """Of each that has not met them, what there is instead."""
        candidates = self._candidates()
        if not candidates:
            return [f"{self.resource.group_resource}: there is no such object"]
        return [
            f"{self._name(key)}{_inside(key)}: {visible(self._lack(key))}"
            for key in candidates
            if key not in self.met
        ]

    def _take(self, key: str, obj: Object | None) -> NameIterator:
        if key not in self.met and self._meets(obj):
            self.met.add(key)
            yield self._name(key)

    def _meets(self, obj: Object | None) -> bool:
        return all(each(obj) for each in self.conditions)

    @property
    def _none_wanted(self) -> bool:
        return self._meets(None)

    def _candidates(self) -> Keys:
        if self.keys is not None:
            return self.keys
        return sorted(self.informer.lister.keys())

    def _lack(self, key: str) -> str:
        obj = self.informer.informer.store.get_by_key(key)
        return (
            "; ".join(dict.fromkeys(each.found(obj) for each in self.conditions if not each(obj)))
            or "it meets the conditions only now"
        )

    def _name(self, key: str) -> str:
        name = {"metadata": {"name": key.rpartition("/")[2]}}
        return as_name(name, self.resource.kind, self.resource.gvr.group)


def _inside(key: str) -> str:
    namespace = key.rpartition("/")[0]
    return f" in {namespace}" if namespace else ""


# ----------------------------------------------------------------------------------------
# ``wait``: until objects, which need not exist yet, meet conditions.


All: TypeAlias = list[ResourceWait]
Words: TypeAlias = list[str]
Events: TypeAlias = "queue.SimpleQueue[tuple[Awaited, Event]]"

_ASK_SECONDS = 0.5  # between two looks for a CRD that does not exist yet
_LOOK_SECONDS = 0.25  # between two looks at the connection
_SYNC_SECONDS = 30.0  # for the first state, where the wait itself has no time or no end


def command(
    objects: Annotated[
        Words,
        typer.Argument(
            metavar="RESOURCE[/NAME]...",
            help="TYPE/NAME, several; or TYPE and names; or TYPE with --all, --any or -l.",
            show_default=False,
            autocompletion=completion.resources,
        ),
    ],
    *,
    conditions: Annotated[
        Words,
        typer.Option(
            "--for",
            metavar="CONDITION",
            help="condition=Ready, condition=Ready=False, jsonpath={.status.phase}=Running, "
            "jsonpath={.status.replicas}>=3 (also !=, <, <=, >), create, delete. Several must "
            "all be met.",
            show_default=False,
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
            help="30, 30s, 5m or 1h30m; 0 looks once, a negative one waits for ever.",
        ),
    ] = "30s",
    namespace: arguments.Namespace = None,
    all_namespaces: arguments.AllNamespaces = False,
    selector: arguments.Selector = "",
    field_selector: arguments.FieldSelector = "",
    kubeconfig: arguments.Kubeconfig = None,
    context: arguments.Context = None,
) -> None:
    """Wait until objects meet a condition.

    Neither the objects nor their CRD need exist yet. An object that has met the conditions
    once counts from then on. Numbers and quantities are compared by what they are worth.

    Exit codes: 0 all have met them, or with `--any` one has; 4 the time is over, and stderr says
    what each lacks; 2 wrong usage; 3 the server cannot be reached or refuses; 130 interrupted.

    For example:

    ```console
    $ dyninformer wait certificate/shop -n prod --for create
    $ dyninformer wait cert shop mail -n prod --for 'jsonpath={.spec.secretName}'
    $ dyninformer wait certificates --all -A --for 'jsonpath={.metadata.generation}>=1'
    $ dyninformer wait certificates --any -n prod --for 'jsonpath={.spec.issuerRef.name}!=ca'
    $ dyninformer wait certificate/old -n prod --for delete --timeout 1m
    ```
    """
    tests = [met_when(each) for each in conditions]
    wanted = named_objects(objects)
    length = seconds(timeout)
    until = time.monotonic() + (length if length >= 0 else math.inf)
    selected = everything or one_of or bool(selector) or bool(field_selector)
    for resource, names in wanted.items():
        _check(resource, names, selected=selected, narrowed=bool(selector or field_selector))
    target = Target(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        all_namespaces=all_namespaces,
        selector=selector,
        field_selector=field_selector,
        timeout=length if length > 0 else _SYNC_SECONDS,
    )
    patient = not any(each(None) for each in tests)  # a misspelled resource is not "deleted"
    with target.connected() as factory:
        events: Events = queue.SimpleQueue()
        together: dict[ResolvedResource, Names] = {}  # cert/shop certificates/mail: one informer
        for resource, names in wanted.items():
            found = _resolved(target, factory, resource, until if patient else 0.0)
            together.setdefault(found, []).extend(names)
        awaited = [
            _resource_wait(target, factory, found, list(dict.fromkeys(names)), tests)
            for found, names in together.items()
        ]
        for each in awaited:
            each.subscribe(events)
        target.sync(factory)
        _wait(factory, awaited, events, until, one_of=one_of)


def _check(resource: str, names: Names, *, selected: bool, narrowed: bool) -> None:
    if names and narrowed:
        raise CommandError("give names or a selector, not both", code=WRONG_USAGE)
    if not names and not selected:
        raise CommandError(
            f"{resource}: which ones? Give names, --all, --any or -l", code=WRONG_USAGE
        )


def _resolved(
    target: Target, factory: DynamicSharedInformerFactory, resource: str, until: float
) -> ResolvedResource:
    """The resource, as soon as the server has it."""
    told = False
    while True:
        try:
            return target.resolved(factory, resource)
        except UnknownResourceError as error:
            if time.monotonic() >= until:
                if told:
                    raise CommandError(f"timed out: {error}", code=OUT_OF_TIME) from None
                raise
            if not told:
                typer.echo(f"waiting for it to exist: {visible_lines(str(error))}", err=True)
                told = True
        factory.wait(min(_ASK_SECONDS, max(0.0, until - time.monotonic())))
        factory.discovery.invalidate()


def _resource_wait(
    target: Target,
    factory: DynamicSharedInformerFactory,
    resource: ResolvedResource,
    names: Names,
    tests: Conditions,
) -> ResourceWait:
    if names and resource.namespaced and target.all_namespaces:
        raise CommandError(
            "names are of one namespace: give -n, or --all instead of names", code=WRONG_USAGE
        )
    if len(names) == 1:  # the server need not send all the others
        target = replace(target, field_selector=f"metadata.name={names[0]}")
    keys = [
        f"{namespace}/{name}" if namespace else name
        for namespace in target.namespaces_of(factory, resource)
        for name in names
    ]
    return ResourceWait(resource, target.informer(factory, resource), keys or None, tests)


def _wait(
    factory: DynamicSharedInformerFactory,
    awaited: All,
    events: Events,
    until: float,
    *,
    one_of: bool,
) -> None:
    notices = ConnectionNotices(factory.status, lambda line: typer.echo(line, err=True))
    for each in awaited:
        for name in each.look():
            typer.echo(f"{name} condition met")
    while not _done(awaited, one_of=one_of):
        left = until - time.monotonic()
        if left <= 0:
            raise CommandError(_missing(awaited, one_of=one_of), code=OUT_OF_TIME)
        notices.look()
        try:
            each, event = events.get(timeout=min(left, _LOOK_SECONDS))
        except queue.Empty:
            continue
        for name in each.take(event):
            typer.echo(f"{name} condition met")


def _done(awaited: All, *, one_of: bool) -> bool:
    if one_of:
        return any(each.any_met for each in awaited)
    return all(each.all_met for each in awaited)


def _missing(awaited: All, *, one_of: bool) -> str:
    lines = [line for each in awaited if one_of or not each.all_met for line in each.missing()]
    head = "timed out; none has met the condition:" if one_of else "timed out; still missing:"
    return "\n  ".join([head, *lines])
