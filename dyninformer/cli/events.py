"""The events of resources and wildcards: received, filtered, and shown as they come."""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from dyninformer.cli.arguments import named_objects
from dyninformer.cli.connection import (
    LOOK_SECONDS,
    Cluster,
    ConnectionNotices,
    Say,
    is_wildcard,
    standing,
)
from dyninformer.cli.errors import OUT_OF_TIME, WRONG_USAGE, CommandError
from dyninformer.cli.output import Form
from dyninformer.cli.terminal import Screen, StatusLine, say
from dyninformer.cli.where import Filter
from dyninformer.delivery.changes import Change
from dyninformer.delivery.events import Event, EventType
from dyninformer.discovery import ResolvedResource
from dyninformer.display import forms
from dyninformer.display.columns import Columns, custom_columns, row, widest_row
from dyninformer.display.diff import ADDED as PLUS
from dyninformer.display.diff import REMOVED as MINUS
from dyninformer.display.diff import diff_lines, short_path
from dyninformer.display.neat import neat
from dyninformer.display.table import Table
from dyninformer.display.text import Line, visible
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.follow import Follower
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


class TimedEvent(NamedTuple):
    """An event, and when it came."""

    when: datetime
    event: Event
    existing: bool
    """It tells of what was there when the command began."""


class EventSource:
    """The events of everything that a command listens to. Its methods are for one thread.

    ``wanted`` are names by resource; no names: all objects. Resources are given in any spelling,
    several with commas. If there is a wildcard among them, or the full name of a resource that is
    not there yet, all are followed, as CRDs come and go.
    """

    def __init__(self, cluster: Cluster, wanted: Mapping[str, Sequence[str]]) -> None:
        self._cluster = cluster
        self._events: queue.SimpleQueue[tuple[datetime, Event]] = queue.SimpleQueue()
        self._taken: deque[tuple[datetime, Event]] = deque()  # from the queue, and not yet got
        self._follower: Follower | None = None
        self._first: set[GroupVersionResource] | None = None
        self._known: set[GroupVersionResource] = set()
        self._reason = ""
        self.resources: list[ResolvedResource] = []
        """What was named without wildcards, and is there."""
        self.patterns: list[str] = []
        self._absent: list[str] = []
        self._names: dict[GroupVersionResource, set[str]] = {}
        self._informers: list[GenericInformer] = []
        for words, names in wanted.items():
            for word in dict.fromkeys(filter(None, words.split(","))):
                self._add(word, names)
        if self.patterns and self._names:
            raise CommandError(
                "names are of resources that are there: leave wildcards, and what is not there "
                "yet, out",
                code=WRONG_USAGE,
            )

    def _add(self, word: str, names: Sequence[str]) -> None:
        if is_wildcard(word):
            self.patterns.append(word)
            return
        try:
            found = self._cluster.resolve_all(word)
        except UnknownResourceError as error:
            self.patterns.append(_full_name(word, error))
            self._absent.append(str(error))
            return
        for each in found:
            if each not in self.resources:
                self.resources.append(each)
            if names:
                self._names.setdefault(each.gvr, set()).update(names)

    def objects(self) -> Iterator[Object]:
        """What is there of what was named without wildcards, once it has begun."""
        for informer in self._informers:
            names = self._names.get(informer.gvr)
            for obj in informer.lister:
                if names is None or obj["metadata"]["name"] in names:
                    yield obj

    def missing(self) -> list[str]:
        """The names that were given and are not there, as TYPE/NAME."""
        there = {(obj.get("kind"), obj["metadata"]["name"]) for obj in self.objects()}
        return [
            f"{each.gvr.resource}/{name}"
            for each in self.resources
            for name in sorted(self._names.get(each.gvr, ()))
            if (each.kind, name) not in there
        ]

    @property
    def resource(self) -> ResolvedResource | None:
        """The resource, if there is exactly one, and none can follow."""
        return self.resources[0] if len(self.resources) == 1 and not self.patterns else None

    def begin(self, say: Say) -> None:
        """Start, and return when the first state is there.

        Raises:
            CommandError: The server refuses it.
        """
        if self.patterns:
            self._follow(say)
            return
        cluster = self._cluster
        self._informers = [self._informer(each) for each in self.resources]
        cluster.sync()
        self._first = {each.gvr for each in self._informers}
        registrations = [
            each.informer.add_event_handler(on_event=self._put, name="watch")
            for each in self._informers
        ]
        for registration in registrations:  # the first state is ready, however short the watch is
            registration.wait_for_sync(cluster.target.request_timeout)

    @property
    def followed(self) -> list[GroupVersionResource]:
        """What is listened to now, sorted."""
        return sorted(self._known or self._first or ())

    def get(self, timeout: float) -> TimedEvent | None:
        """The next event; None if none comes in time."""
        if self._taken:
            return self._timed(*self._taken.popleft())
        try:
            return self._timed(*self._events.get(timeout=max(0.0, timeout)))
        except queue.Empty:
            return None

    def waiting(self) -> Iterator[TimedEvent]:
        """What has come already, and `get` will bring next."""
        for _ in range(self._events.qsize()):
            self._taken.append(self._events.get())
        return (self._timed(*each) for each in self._taken)

    def _timed(self, when: datetime, event: Event) -> TimedEvent:
        existing = event.initial and (self._first is None or event.gvr in self._first)
        return TimedEvent(when, event, existing)

    def look(self, say: Say) -> None:
        """Say which resources are followed now and were not before, and which no longer."""
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
        target, factory = self._cluster.target, self._cluster.factory
        names = [f"{each.gvr.group_version}/{each.gvr.resource}" for each in self.resources]
        follower = factory.follow(
            *self.patterns,
            *names,
            on_event=self._put,
            namespaces=self._cluster.namespaces,
            label_selector=target.selector or None,
            field_selector=target.field_selector or None,
        )
        until = time.monotonic() + target.request_timeout
        settled = math.inf
        while not follower.has_synced() and not follower.reason:
            now = time.monotonic()
            settled = min(settled, now) if _only_refused_left(factory) else math.inf
            if now >= until or now - settled >= _SETTLED_SECONDS:
                break  # what there is is shown, and the rest is tried again and again
            factory.wait(LOOK_SECONDS)
        self._follower = follower
        self._known = set(follower.resources())
        self._first = set(self._known)
        for absence in self._absent:
            say(f"{visible(absence)} The command waits for it.")
        if not self._known and not self._absent and not follower.reason:
            say(f"nothing is there yet that matches {visible(' '.join(self.patterns))}")

    def _informer(self, resource: ResolvedResource) -> GenericInformer:
        names = self._names.get(resource.gvr, set())
        # The server need not send all the others.
        only = f"metadata.name={next(iter(names))}" if len(names) == 1 else None
        return self._cluster.informer(resource, field_selector=only)

    def _put(self, event: Event) -> None:
        """On the informer's threads."""
        names = self._names.get(event.gvr)
        if names is None or event.name in names:
            self._events.put((datetime.now().astimezone(), event))


def watched(cluster: Cluster, words: Sequence[str]) -> dict[str, list[str]]:
    """What is to be listened to, of ``TYPE...``, ``TYPE NAME...`` or ``TYPE/NAME...``.

    Words behind the first are names where none of them is a resource.
    """
    if any(names for word in words for names in named_objects([word]).values()):
        return named_objects(words)
    first, *others = words
    unknown = [word for word in others if not _may_be_resource(cluster, word)]
    if others and unknown == others:
        return {first: list(dict.fromkeys(others))}
    return {word: [] for word in words}


def _may_be_resource(cluster: Cluster, words: str) -> bool:
    for word in filter(None, words.split(",")):
        try:
            if is_wildcard(word) or cluster.resolve_all(word):
                return True
        except UnknownResourceError as error:
            try:
                return bool(_full_name(word, error))
            except UnknownResourceError:
                return False
    return False


def _full_name(word: str, error: UnknownResourceError) -> str:
    """The pattern of a resource that may come later; the error if it is not named in full."""
    try:
        gvr = GroupVersionResource.parse(word)
    except ValueError:
        raise error from None
    return f"{gvr.group_version}/{gvr.resource}"


def _only_refused_left(factory: DynamicSharedInformerFactory) -> bool:
    """There is something that is not read yet, and all of it has failed already."""
    left = [each for each in factory.status().values() if not each.synced]
    return bool(left) and all(each.attempts for each in left)


def received_events(
    cluster: Cluster,
    source: EventSource,
    length: float,
    look: Callable[[], None] | None = None,
    say: Say = say,
) -> Iterator[TimedEvent | None]:
    """Each event until the time is over, and None now and then if none comes.

    Meanwhile it is said what becomes of the connection. What was there at the beginning comes
    whole, however short the time is; a stream of changes without a pause ends in time.
    """
    notices = ConnectionNotices(cluster.factory.status, say)
    until, looked = time.monotonic() + length, -math.inf
    while True:
        now = time.monotonic()
        if now - looked >= LOOK_SECONDS:
            looked = now
            notices.look()
            source.look(say)
            if look is not None:
                look()
        received = source.get(min(LOOK_SECONDS, until - now))
        yield received
        if time.monotonic() >= until and (received is None or not received.existing):
            return


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
        """What is shown of an event; None if nothing is."""
        event = received.event
        if received.existing and not self._initial:
            return None
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
        return ShownEvent(received.when, type_, event, event.object, changes, values)

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
        cluster: Cluster,
        source: EventSource,
        paths: Sequence[str],
        *,
        show_headings: bool,
    ) -> None:
        self._paths = [path.strip("{}") for path in paths]
        self._columns: Columns | None = None
        resource = source.resource
        if resource is not None:
            columns = form.columns(cluster.discovery, resource, with_namespace=False)
            self._columns = columns[:1] if paths else columns
        self._namespace = cluster.several_namespaces and (resource is None or resource.namespaced)
        where = ["namespace"] if self._namespace else []
        own = ["name"] if self._columns is None else [each.heading for each in self._columns]
        last = self._paths or ["changed"]
        self._table = Table(
            ["time", "event", *where, *own, *last], show_headings=show_headings, step=_STEP
        )
        aside = [""] * (2 + len(where))
        self._table.make_room([[*aside, *widest_row(self._columns or ()), ""]])

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """For these rows, and for what their values may become."""
        self._table.make_room(map(self._cells, shown))

    def _cells(self, shown: ShownEvent) -> list[str]:
        cells = [shown.when.strftime(_TIME), f"{shown.type:{len(MODIFIED)}}"]  # the longest
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
        start = len(cells[0]) + 3
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
    paths = [short_path(change.path) for change in shown.changes]
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
        head = f"{shown.when.strftime(_TIME)} {shown.type}"
        note = f" ({_MISSED})" if shown.missed else ""
        start = len(head) - len(shown.type)
        text = f"{head} {shown.full_name}{inside}{note}"
        yield Line(text, COLOURS[shown.type], start, len(head))
        for sign, change in diff_lines(shown.changes):
            yield Line(f"  {sign} {change}", _SIGNS.get(sign, ""))


def object_format(
    form: Form, cluster: Cluster, source: EventSource, *, events: bool, show_headings: bool
) -> ObjectTable | ObjectTexts:
    """How objects are shown as ``get`` shows them; ``events`` adds what happened to them."""
    if not form.is_tabular:
        return ObjectTexts(form, cluster.defaults, events=events)
    resource = source.resource
    if form.argument:
        columns = custom_columns(form.argument)
    elif resource is None:
        raise CommandError("-o csv shows one resource: its columns", code=WRONG_USAGE)
    else:
        several = cluster.several_namespaces
        columns = form.columns(cluster.discovery, resource, with_namespace=several)
    return ObjectTable(form, columns, events=events, show_headings=show_headings)


class ObjectTable:
    """Rows as ``get`` shows them, in a table that grows; ``events`` adds what happened."""

    def __init__(self, form: Form, columns: Columns, *, events: bool, show_headings: bool) -> None:
        self._columns = columns
        self._events = events
        headings = [each.heading for each in columns]
        if events:
            headings.insert(0, "event")
        self._table = form.table(headings, show_headings=show_headings)
        if events:
            self._table.make_room([(MODIFIED, "")])  # the longest

    def make_room(self, shown: Iterable[ShownEvent]) -> None:
        """Line up what is there already, though it comes object by object."""
        self._table.make_room(map(self._cells, shown))

    def _cells(self, shown: ShownEvent) -> list[str]:
        cells = row(self._columns, shown.object)
        return [shown.type, *cells] if self._events else cells

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
            name = shown.full_name
            yield Line(f"{shown.type}   {name}" if self._events else name)
            return
        if self._form.kind == "neat":
            obj = neat(shown.object, self._defaults(shown.event.gvr))
        else:
            obj = forms.without_managed_fields(shown.object)
        value = {"type": shown.type, "object": obj} if self._events else obj
        if self._form.kind in ("yaml", "neat") and self._separated:
            yield Line("---")
        self._separated = True
        yield Line(self._form.text([value], one=True))


def show_events(
    cluster: Cluster,
    source: EventSource,
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
        status.show(standing(cluster.factory.status(), datetime.now().astimezone()))

    def note(line: str) -> None:
        status.clear()
        say(line)

    there = (events.shown(each) for each in source.waiting() if each.existing)
    form.make_room(each for each in there if each is not None)
    try:
        for received in received_events(cluster, source, length, look, note):
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
