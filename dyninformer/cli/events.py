"""Events as they come: which are shown, and in which form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol

from dyninformer.cli.connection import spread_over_namespaces, standing
from dyninformer.cli.errors import OUT_OF_TIME, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.sources import Sources, TimedEvent, received_events
from dyninformer.cli.terminal import Screen, StatusLine, say
from dyninformer.cli.where import Filter
from dyninformer.delivery.changes import Change
from dyninformer.delivery.events import Event, EventType
from dyninformer.display import forms
from dyninformer.display.columns import Columns, row, widest_row
from dyninformer.display.diff import ADDED as PLUS
from dyninformer.display.diff import REMOVED as MINUS
from dyninformer.display.diff import diff_lines
from dyninformer.display.neat import neat
from dyninformer.display.table import Table
from dyninformer.display.text import Line, visible
from dyninformer.jsonpath import Projection, index_text
from dyninformer.resource import GroupVersionResource
from dyninformer.types import ListKeys, Object
from dyninformer.waiting import Met

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
COLOURS: Final = {ADDED: "green", MODIFIED: "yellow", DELETED: "red"}

_TYPES: Final = {
    EventType.ADDED: ADDED,
    EventType.UPDATED: MODIFIED,
    EventType.DELETED: DELETED,
}
_SIGNS: Final = {PLUS: "green", MINUS: "red"}
_SETTLED_SECONDS: Final = 1.0  # more resources may follow those that are being read
_TIME: Final = "%H:%M:%S"
_STEP: Final = 8  # by which a column grows when a longer cell comes
_GENERATION: Final = ".metadata.generation"
_PATHS: Final = 3  # that a row names of what changed; --diff shows all
_MISSED: Final = "nobody saw when, so this may not be its last state"


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event as it is shown, in the words of the watch protocol and of kubectl."""

    when: datetime
    type: str
    event: Event
    object: Object
    changes: list[Change]
    """What an update changed: path by path, or the given paths' values as text."""
    values: list[str]
    """What the given paths find now."""
    cluster: str = ""
    """Where, if it may be one of several."""

    @property
    def missed(self) -> bool:
        """A deletion that was missed."""
        return self.type == DELETED and self.event.final_state_unknown

    @property
    def full_name(self) -> str:
        """``certificate.cert-manager.io/shop``."""
        kind = str(self.object.get("kind") or self.event.gvr.resource)
        return forms.as_name(self.object, kind, self.event.gvr.group)


class EventFilter:
    """Selects events by ``--where``, ``--on`` and ``--no-initial``.

    An object that comes to fit, or no longer fits, is shown as ADDED or DELETED. ``list_keys``
    says what a schema declares about the elements of lists; it is asked once for each resource.
    """

    def __init__(
        self,
        fits: Filter,
        paths: Sequence[str] = (),
        *,
        initial: bool,
        list_keys: Callable[[GroupVersionResource], ListKeys] | None = None,
    ) -> None:
        self.paths = paths
        self._list_keys = cache(list_keys or (lambda _: {}))
        self._fits = fits
        self._projection = Projection(paths) if paths else None
        self._initial = initial

    def shown(self, received: TimedEvent) -> ShownEvent | None:
        """Return the event as it is shown; None if the options leave it out."""
        if received.existing and not self._initial:
            return None
        return self.selected(received)

    def selected(self, received: TimedEvent) -> ShownEvent | None:
        """Do the same, and keep the events that ``--no-initial`` leaves out."""
        event = received.event
        type_ = watch_type(event, self._fits)
        if type_ is None:
            return None
        values = self._texts(event.object)
        changes: list[Change] = []
        if type_ == MODIFIED:
            changes = (
                self._changes(event.old, values)
                if self._projection
                else event.changes(keys=self._list_keys(event.gvr))
            )
            if self._projection and not changes:
                return None
        when, cluster = received.when, received.cluster
        return ShownEvent(when, type_, event, event.object, changes, values, cluster)

    def fits(self, event: Event) -> bool:
        """There is an object now, and it is one of those that are watched."""
        return event.type is not EventType.DELETED and self._fits(event.object)

    def _texts(self, obj: Object | None) -> list[str]:
        """The paths' values, each as one text."""
        if self._projection is None or obj is None:
            return []
        return [
            ",".join(text for each in values if (text := index_text(each)) is not None)
            for values in self._projection.rows(obj)
        ]

    def _changes(self, old: Object | None, values: list[str]) -> list[Change]:
        return [
            Change(path.strip("{}"), before or None, now or None)
            for path, before, now in zip(self.paths, self._texts(old), values, strict=True)
            if before != now
        ]


def watch_type(event: Event, fits: Filter | None) -> str | None:
    """What an event is for a watch of the objects that fit; None if it is nothing."""
    if fits is None:
        return _TYPES.get(event.type)
    gone = event.type is EventType.DELETED
    obj, old = event.object, event.old
    was = obj if gone else old
    now = not gone and fits(obj)
    before = was is not None and fits(was)
    if now and before:
        return MODIFIED if event.type is EventType.UPDATED else None
    if now:
        return ADDED
    return DELETED if before else None


class EventFormat(Protocol):
    """How events are shown."""

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """Have what is shown in columns line up, though it will be shown one by one."""

    def lines(self, shown: ShownEvent) -> Iterator[Line]:
        """The lines of one event."""


class EventTable:
    """``watch``: a row per event, with the columns of the one resource, or with full names.

    With paths, those stand in place of the resource's columns, and their values are shown
    instead of what changed.
    """

    def __init__(
        self,
        form: Form,
        sources: Sources,
        paths: Sequence[str],
        *,
        show_headings: bool,
    ) -> None:
        self._paths = [path.strip("{}") for path in paths]
        cluster, source = sources[0]
        self._clusters = ["cluster"] if source.name else []
        self._columns: Columns | None = None
        resource = source.resource
        if resource is not None:
            columns = form.columns(cluster.discovery, resource, with_namespace=False)
            self._columns = columns[:1] if paths else columns
        spread = spread_over_namespaces([each for each, _ in sources])
        self._namespace = spread and (resource is None or resource.namespaced)
        where = ["namespace"] if self._namespace else []
        own = ["name"] if self._columns is None else [each.heading for each in self._columns]
        last = self._paths or ["changed"]
        self._table = Table(
            [*self._clusters, "time", "event", *where, *own, *last],
            show_headings=show_headings,
            step=_STEP,
        )
        aside = [""] * (2 + len(where) + len(self._clusters))
        self._table.make_room([[*aside, *widest_row(self._columns or ()), ""]])

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """For these rows, and for what their values may become."""
        self._table.make_room(map(self._cells, shown))

    def _cells(self, shown: ShownEvent) -> list[str]:
        cells = [shown.cluster] if self._clusters else []
        cells += [shown.when.strftime(_TIME), f"{shown.type:{len(MODIFIED)}}"]  # the longest
        if self._namespace:
            cells.append(shown.event.namespace)
        cells += [shown.full_name] if self._columns is None else row(self._columns, shown.object)
        return cells + (self._values(shown) if self._paths else [_changed(shown)])

    def lines(self, shown: ShownEvent) -> Iterator[Line]:
        """One row; before the first the headings."""
        cells = self._cells(shown)
        *headings, text = self._table.lines([cells])
        for heading in headings:
            yield Line(heading)
        start = text.find(f" {shown.type} ") + 1
        yield Line(text, COLOURS[shown.type], start, start + len(shown.type))

    def _values(self, shown: ShownEvent) -> list[str]:
        """What the paths find, after an arrow where they found something else before."""
        was = {change.path: change.old for change in shown.changes}
        return [
            f"{was[path] or '<none>'} -> {now or '<none>'}" if path in was else now
            for path, now in zip(self._paths, shown.values, strict=True)
        ]


def _changed(shown: ShownEvent) -> str:
    if shown.missed:
        return "missed"
    paths = [change.path for change in shown.changes]
    if len(paths) > 1 and _GENERATION in paths:
        paths.remove(_GENERATION)  # it only counts the others
    more = len(paths) - _PATHS
    named = ", ".join(paths[:_PATHS])
    return f"{named} and {more} more" if more > 0 else named


class EventDiffs:
    """``watch --diff``: a heading per event, and below it what an update changed."""

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """Do nothing: there are no columns."""

    def lines(self, shown: ShownEvent) -> Iterator[Line]:
        """The heading, and the diff."""
        inside = f" in {visible(shown.event.namespace)}" if shown.event.namespace else ""
        where = f"{visible(shown.cluster)} " if shown.cluster else ""
        head = f"{where}{shown.when.strftime(_TIME)} {shown.type}"
        note = f" ({_MISSED})" if shown.missed else ""
        start = len(head) - len(shown.type)
        text = f"{head} {shown.full_name}{inside}{note}"
        yield Line(text, COLOURS[shown.type], start, len(head))
        for sign, change in diff_lines(shown.changes):
            yield Line(f"  {sign} {change}", _SIGNS.get(sign, ""))


def object_format(
    form: Form, sources: Sources, *, events: bool, show_headings: bool
) -> ObjectTable | ObjectTexts:
    """How objects are shown as ``get`` shows them; ``events`` adds what happened to them."""
    cluster, source = sources[0]
    if not form.is_tabular:
        return ObjectTexts(form, cluster.defaults, events=events)
    if source.resource is None:
        columns = form.own_columns()
    else:
        several = spread_over_namespaces([each for each, _ in sources])
        columns = form.columns(cluster.discovery, source.resource, with_namespace=several)
    return ObjectTable(
        form, columns, events=events, show_headings=show_headings, with_cluster=bool(source.name)
    )


class ObjectTable:
    """Rows as ``get`` shows them, in a table that grows; ``events`` adds what happened."""

    def __init__(
        self,
        form: Form,
        columns: Columns,
        *,
        events: bool,
        show_headings: bool,
        with_cluster: bool = False,
    ) -> None:
        self._columns = columns
        self._events = events
        self._with_cluster = with_cluster
        headings = [each.heading for each in columns]
        if events:
            headings.insert(0, "event")
        if with_cluster:
            headings.insert(0, "cluster")
        self._table = form.table(headings, show_headings=show_headings)
        if events:
            self._table.make_room([(*[""] * with_cluster, MODIFIED, "")])  # the longest

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """Line up what is there already, though it comes object by object."""
        self._table.make_room(map(self._cells, shown))

    def _cells(self, shown: ShownEvent) -> list[str]:
        cells = row(self._columns, shown.object)
        if self._events:
            cells.insert(0, shown.type)
        return [shown.cluster, *cells] if self._with_cluster else cells

    def lines(self, shown: ShownEvent) -> Iterator[Line]:
        """One row."""
        for text in self._table.lines([self._cells(shown)]):
            yield Line(text)


class ObjectTexts:
    """The object itself in a form for programs, or the event as the watch protocol has it."""

    def __init__(
        self,
        form: Form,
        defaults: Callable[[GroupVersionResource], Mapping[str, Any]],
        *,
        events: bool,
    ) -> None:
        self._form = form
        self._defaults = cache(defaults)
        self._events = events
        self._separated = False

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """Do nothing: there are no columns."""

    def lines(self, shown: ShownEvent) -> Iterator[Line]:
        """The text of one event."""
        if self._form.kind == "name":
            name = f"{visible(shown.cluster)} {shown.full_name}".lstrip()
            yield Line(f"{shown.type}   {name}" if self._events else name)
            return
        if self._form.kind == "neat":
            obj = neat(shown.object, self._defaults(shown.event.gvr))
        else:
            obj = forms.without_managed_fields(shown.object)
        value = {"type": shown.type, "object": obj} if self._events else obj
        if shown.cluster and self._form.kind in ("json", "yaml", "ndjson"):
            value = {"cluster": shown.cluster, **(value if self._events else {"object": obj})}
        if self._form.kind in ("yaml", "neat") and self._separated:
            yield Line("---")
        self._separated = True
        if shown.cluster and self._form.kind == "neat":
            yield Line(f"# cluster: {visible(shown.cluster)}")
        text = self._form.text([value], one=True)
        if shown.cluster and self._form.template is not None:
            text = f"{visible(shown.cluster)}\t{text}"
        yield Line(text)


def show_events(
    clusters: Sources,
    events: EventFilter,
    form: EventFormat,
    *,
    act: Callable[[ShownEvent], None] | None = None,
    met: Met | None = None,
    length: float = math.inf,
) -> None:
    """Show events until the time is over, or an object meets what is waited for."""
    screen, status = Screen(), StatusLine()

    def look() -> None:
        screen.check_reader()
        found = {
            (source.name, gvr): each
            for cluster, source in clusters
            for gvr, each in cluster.factory.status().items()
        }
        status.show(standing(found, datetime.now().astimezone()))

    def note(line: str) -> None:
        status.clear()
        say(line)

    sources = [source for _, source in clusters]
    # Objects that --no-initial leaves out may change later, in columns that are wide enough.
    there = (events.selected(each) for each in sources[0].waiting(sources) if each.existing)
    form.make_room(each for each in there if each is not None)
    try:
        for received in received_events(clusters, length, look, note):
            if received is None:
                continue
            shown = events.shown(received)
            if shown is not None:
                status.clear()
                screen.show(form.lines(shown))
                if act is not None:
                    act(shown)
            event = received.event
            if met is not None and events.fits(event) and met(event.object):
                return
    finally:
        status.clear()
    if met is not None:
        raise CommandError("timed out: no object has met --until", code=OUT_OF_TIME)
