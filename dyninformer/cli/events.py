"""The events of resources and wildcards: in one queue, filtered, and as lines."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from dyninformer.cli.arguments import Filter
from dyninformer.cli.connection import Target
from dyninformer.cli.output import Form
from dyninformer.delivery.events import Change, Event, EventType
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display import forms
from dyninformer.display.columns import Columns, row
from dyninformer.display.diff import ADDED as PLUS
from dyninformer.display.diff import REMOVED as MINUS
from dyninformer.display.diff import diff_lines
from dyninformer.display.table import Table
from dyninformer.display.text import visible
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.follow import Follower
from dyninformer.resource import GroupVersionResource
from dyninformer.store.jsonpath import JSONPath, Projection, index_text

# ----------------------------------------------------------------------------------------
# The events of resources and wildcards, in one queue for the command's own thread.


Say: TypeAlias = Callable[[str], object]
Resources: TypeAlias = list[ResolvedResource]
Words: TypeAlias = Sequence[str]
Names: TypeAlias = list[str]
GVRs: TypeAlias = list[GroupVersionResource]

WILDCARDS: Final = frozenset("*?[")
_LOOK_SECONDS: Final = 0.1
_SETTLED_SECONDS: Final = 1.0  # more resources may follow those that are being read


class Received(NamedTuple):
    """An event, and when it was heard of."""

    when: datetime
    event: Event
    first: bool
    """It tells what was there when the command began."""


class EventSource:
    """What a watch listens to. Its methods are for one thread.

    Resources are given in any spelling, several with commas; with a wildcard among them, or a
    full name of what is not there yet, all are followed, as CRDs come and go.
    """

    def __init__(self, target: Target, factory: DynamicSharedInformerFactory, words: Words) -> None:
        self._target = target
        self._factory = factory
        self._events: queue.SimpleQueue[tuple[datetime, Event]] = queue.SimpleQueue()
        self._follower: Follower | None = None
        self._first: set[GroupVersionResource] | None = None
        self._known: set[GroupVersionResource] = set()
        self._reason = ""
        given = list(dict.fromkeys(part for word in words for part in word.split(",") if part))
        self.resources: Resources = []
        """What was named without wildcards, and is there."""
        self.patterns: Names = []
        self._absent: Names = []
        for each in given:
            if WILDCARDS.intersection(each):
                self.patterns.append(each)
                continue
            try:
                found = target.resolved(factory, each)
            except UnknownResourceError as error:
                self.patterns.append(_full_name(each, error))
                self._absent.append(str(error))
            else:
                if found not in self.resources:
                    self.resources.append(found)

    def begin(self, say: Say) -> None:
        """Start, and return when the first state is held; CommandError if that cannot be."""
        if self.patterns:
            self._follow(say)
            return
        informers = [self._target.informer(self._factory, each) for each in self.resources]
        self._target.sync(self._factory)
        self._first = {each.gvr for each in informers}
        registrations = [
            each.informer.add_event_handler(on_event=self._put, name="watch") for each in informers
        ]
        for registration in registrations:  # the first state lies ready, however long is watched
            registration.wait_for_sync(self._target.timeout)

    @property
    def followed(self) -> GVRs:
        """What is listened to now, sorted."""
        return sorted(self._known or self._first or ())

    def get(self, timeout: float) -> Received | None:
        """The next event; None if none comes in time."""
        try:
            when, event = self._events.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return None
        first = event.initial and (self._first is None or event.gvr in self._first)
        return Received(when, event, first)

    def look(self, say: Say) -> None:
        """Say what is followed now and was not before, and what no longer."""
        if self._follower is None:
            return
        followed = set(self._follower.resources())
        if self._first is not None:
            # What comes back comes with objects that were not there when the command began.
            self._first &= followed
        for sign, news in (("following", followed - self._known), ("gone", self._known - followed)):
            if news:
                say(f"{sign}: {', '.join(sorted(each.group_resource for each in news))}")
        self._known = followed
        if self._follower.reason != self._reason:
            self._reason = self._follower.reason
            if self._reason:
                say(visible(self._reason))

    def _follow(self, say: Say) -> None:
        target, factory = self._target, self._factory
        names = [f"{each.gvr.group_version}/{each.gvr.resource}" for each in self.resources]
        follower = factory.follow(
            *self.patterns,
            *names,
            on_event=self._put,
            namespaces=target.namespaces_in(factory),
            label_selector=target.selector or None,
            field_selector=target.field_selector or None,
        )
        until = time.monotonic() + target.timeout
        settled = math.inf
        while not follower.has_synced() and not follower.reason:
            now = time.monotonic()
            settled = min(settled, now) if _only_refused_left(factory) else math.inf
            if now >= until or now - settled >= _SETTLED_SECONDS:
                break  # what there is is shown, and the rest is tried again and again
            factory.wait(_LOOK_SECONDS)
        self._follower = follower
        self._known = set(follower.resources())
        self._first = set(self._known)
        for absence in self._absent:
            say(f"{visible(absence)} It is waited for.")
        if not self._known and not self._absent and not follower.reason:
            say(f"nothing is there yet that matches {visible(' '.join(self.patterns))}")

    def _put(self, event: Event) -> None:
        """On the informer's threads."""
        self._events.put((datetime.now().astimezone(), event))


def _full_name(word: str, error: UnknownResourceError) -> str:
    """The pattern of what may come later; the error if that is not named in full."""
    try:
        gvr = GroupVersionResource.parse(word)
    except ValueError:
        raise error from None
    return f"{gvr.group_version}/{gvr.resource}"


def _only_refused_left(factory: DynamicSharedInformerFactory) -> bool:
    """What is not read yet has failed already, and some has."""
    statuses = factory.status().values()
    left = [each for each in statuses if not each.synced]
    return bool(left) and all(each.attempts for each in left)


# ----------------------------------------------------------------------------------------
# Which events a watch shows, and as what.


Object: TypeAlias = dict[str, Any]
Changes: TypeAlias = list[Change]
Texts: TypeAlias = list[str]
Paths: TypeAlias = Sequence[str]

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event as it is shown, in the words of the watch protocol and of kubectl."""

    when: datetime
    type: str
    event: Event
    object: Object
    changes: Changes
    """What an update changed: path by path, or the given paths' values as text."""
    values: Texts
    """What the given paths find now."""

    @property
    def missed(self) -> bool:
        """A deletion that nobody saw happen."""
        return self.type == DELETED and self.event.final_state_unknown


class EventFilter:
    """Chooses by ``--where``, ``--on`` and ``--no-initial``.

    An object that comes to fit, or no longer fits, is shown as ADDED or DELETED.
    """

    def __init__(self, fits: Filter, paths: Paths, *, initial: bool) -> None:
        self.paths = paths
        self._fits = fits
        self._projection = Projection(paths) if paths else None
        self._initial = initial

    def seen(self, watched: Received) -> ShownEvent | None:
        """What is shown of an event; None if nothing is."""
        event = watched.event
        if watched.first and not self._initial:
            return None
        type_ = watch_type(event, self._fits)
        if type_ is None:
            return None
        obj, old = event.object, event.old
        values = self._texts(obj)
        changes: Changes = []
        if type_ == MODIFIED:
            changes = self._changes(old, values) if self._projection else event.changes()
            if self._projection and not changes:
                return None
        return ShownEvent(watched.when, type_, event, obj, changes, values)

    def fits(self, event: Event) -> bool:
        """There is an object now, and it is one of those that are watched."""
        return event.type is not EventType.DELETED and self._fits(event.object)

    def _texts(self, obj: Object | None) -> Texts:
        """The paths' values, each as one text."""
        if self._projection is None or obj is None:
            return []
        return [
            ",".join(text for each in row if (text := index_text(each)) is not None)
            for row in self._projection.rows(obj)
        ]

    def _changes(self, old: Object | None, values: Texts) -> Changes:
        return [
            Change(path.strip("{}"), before or None, now or None)
            for path, before, now in zip(self.paths, self._texts(old), values, strict=True)
            if before != now
        ]


_TYPES: Final = {
    EventType.ADDED: ADDED,
    EventType.UPDATED: MODIFIED,
    EventType.DELETED: DELETED,
}


def watch_type(event: Event, fits: Filter | None) -> str | None:
    """What an event is to those who watch only the objects that fit; None if it is nothing."""
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


# ----------------------------------------------------------------------------------------
# An event as lines: a row of a table, a diff, or the object in a form for programs.


Lines: TypeAlias = "Iterator[Line]"
Cells: TypeAlias = list[str]

_TIME: Final = "%H:%M:%S"
COLOURS: Final = {ADDED: "green", MODIFIED: "yellow", DELETED: "red"}
_SIGNS: Final = {PLUS: "green", MINUS: "red"}
_GENERATION: Final = ".metadata.generation"
_PATHS: Final = 3  # that a row names of what changed; --diff shows all


class Line(NamedTuple):
    """Text that is safe to show, and the colour of a part of it on a terminal."""

    text: str
    colour: str = ""
    start: int = 0
    end: int | None = None


class EventFormat(Protocol):
    """Makes lines of events."""

    def lines(self, seen: ShownEvent) -> Lines:
        """The lines of one event."""


class EventTable:
    """A table that grows by a row per event."""

    def __init__(self, headings: Cells, columns: Columns | None, paths: Paths, *, namespace: bool,
                 show_headings: bool) -> None:  # fmt: skip
        self._columns = columns
        self._paths = [path.strip("{}") for path in paths]
        self._namespace = namespace
        where = ["namespace"] if namespace else []
        own = headings if columns is not None else ["name"]
        last = self._paths or ["changed"]
        self._table = Table(["time", "event", *where, *own, *last], show_headings=show_headings)

    def lines(self, seen: ShownEvent) -> Lines:
        """One row; before the first the headings."""
        cells = [seen.when.strftime(_TIME), f"{seen.type:{len(MODIFIED)}}"]  # the longest
        if self._namespace:
            cells.append(seen.event.namespace)
        if self._columns is None:
            cells.append(full_name(seen))
        else:
            cells += row(self._columns, seen.object)
        cells += self._values(seen) if self._paths else [_changed(seen)]
        *headings, text = self._table.lines([cells])
        for heading in headings:
            yield Line(heading)
        start = len(cells[0]) + 3
        yield Line(text, COLOURS[seen.type], start, start + len(seen.type))

    def _values(self, seen: ShownEvent) -> Cells:
        """What the paths find, behind an arrow where it was something else."""
        was = {change.path: change.old for change in seen.changes}
        return [
            f"{was[path] or '<none>'} -> {now or '<none>'}" if path in was else now
            for path, now in zip(self._paths, seen.values, strict=True)
        ]


class EventDiffs:
    """A heading per event, and below it what an update changed."""

    def lines(self, seen: ShownEvent) -> Lines:
        """The heading, and the diff."""
        inside = f" in {visible(seen.event.namespace)}" if seen.event.namespace else ""
        head = f"{seen.when.strftime(_TIME)} {seen.type} "
        note = f" ({_MISSED})" if seen.missed else ""
        yield Line(
            f"{head}{full_name(seen)}{inside}{note}",
            COLOURS[seen.type],
            len(head) - len(seen.type) - 1,
            len(head) - 1,
        )
        for sign, text in diff_lines(seen.changes):
            yield Line(f"  {sign} {text}", _SIGNS.get(sign, ""))


class ObjectTexts:
    """The object itself, or the event as the watch protocol has it."""

    def __init__(self, form: Form, *, events: bool) -> None:
        self._form = form
        self._events = events
        self._path = JSONPath.template(form.argument) if form.kind == "jsonpath" else None
        self._before = ""

    def lines(self, seen: ShownEvent) -> Lines:
        """The text of one event."""
        obj = forms.without_managed_fields(seen.object)
        if self._form.kind == "name":
            text = full_name(seen)
            yield Line(f"{seen.type}   {text}" if self._events else text)
            return
        shown = {"type": seen.type, "object": obj} if self._events else obj
        if self._form.kind == "ndjson":
            yield Line(forms.as_ndjson(shown))
        elif self._form.kind == "json":
            yield Line(forms.as_json([shown], one=True))
        elif self._path is not None:
            yield Line(forms.as_jsonpath(self._path, [shown], one=True))
        else:
            if self._before:
                yield Line(self._before)
            self._before = "---"
            yield Line(forms.as_yaml([shown], one=True))


class ObjectTable:
    """Rows as get shows them, in a table that grows; ``events`` adds what happened."""

    def __init__(self, form: Form, columns: Columns, *, events: bool, show_headings: bool) -> None:
        self._columns = columns
        self._events = events
        headings = [each.heading for each in columns]
        if events:
            headings.insert(0, "event")
        self._table = form.rows(headings, show_headings=show_headings)
        if events:
            self._table.make_room([(MODIFIED, "")])  # the longest

    def make_room(self, objects: Iterable[Object]) -> None:
        """Line up what is there already, though it comes object by object."""
        event = [""] if self._events else []
        self._table.make_room([*event, *row(self._columns, obj)] for obj in objects)

    def lines(self, seen: ShownEvent) -> Lines:
        """One row."""
        cells = row(self._columns, seen.object)
        if self._events:
            cells.insert(0, seen.type)
        for text in self._table.lines([cells]):
            yield Line(text)


def rows(
    form: Form,
    discovery: Discovery,
    resource: ResolvedResource | None,
    paths: Paths,
    *,
    namespace: bool,
    show_headings: bool,
) -> EventTable:
    """A table for one resource, with its columns, or for several, with names that say which.

    With paths, those stand in place of the resource's columns.
    """
    columns: Columns | None = None
    if resource is not None:
        columns = form.columns(discovery, resource, with_namespace=False)
        columns = columns[:1] if paths else columns
    headings = [each.heading for each in columns or ()]
    return EventTable(headings, columns, paths, namespace=namespace, show_headings=show_headings)


def full_name(seen: ShownEvent) -> str:
    """``certificate.cert-manager.io/shop``."""
    kind = str(seen.object.get("kind") or seen.event.gvr.resource)
    return forms.as_name(seen.object, kind, seen.event.gvr.group)


_MISSED: Final = "nobody saw when, so this may not be its last state"


def _changed(seen: ShownEvent) -> str:
    if seen.missed:
        return "missed"
    paths = [change.path for change in seen.changes]
    if len(paths) > 1 and _GENERATION in paths:
        paths.remove(_GENERATION)  # it only counts the others
    more = len(paths) - _PATHS
    named = ", ".join(paths[:_PATHS])
    return f"{named} and {more} more" if more > 0 else named
