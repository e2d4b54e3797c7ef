"""What a command listens to: the events of resources and wildcards, of one cluster or several."""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from dyninformer.cli.arguments import named_objects
from dyninformer.cli.connection import (
    LOOK_SECONDS,
    Cluster,
    ConnectionNotices,
    Say,
    Target,
    is_wildcard,
    saying,
)
from dyninformer.cli.errors import WRONG_USAGE, CommandError
from dyninformer.cli.terminal import say
from dyninformer.delivery.events import Event
from dyninformer.discovery import ResolvedResource
from dyninformer.discovery.known import Known
from dyninformer.display.text import visible
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import DynamicSharedInformerFactory, GenericInformer
from dyninformer.follow import Follower
from dyninformer.jsonpath import JSONPath
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.types import Object

_SETTLED_SECONDS: Final = 1.0  # more resources may follow those that are being read


Received: TypeAlias = "queue.SimpleQueue[tuple[datetime, Event, EventSource]]"


class TimedEvent(NamedTuple):
    """An event, and when it came."""

    when: datetime
    event: Event
    existing: bool
    """It tells of what was there when the command began."""
    cluster: str = ""
    """Where, if it may be one of several."""


class EventSource:
    """The events of everything that a command listens to. Its methods are for one thread.

    ``wanted`` are names by resource; no names: all objects. Resources are given in any spelling,
    several with commas. If there is a wildcard among them, or the full name of a resource that is
    not there yet, all are followed, as CRDs come and go.
    """

    def __init__(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Sequence[str]],
        *,
        name: str = "",
        events: Received | None = None,
    ) -> None:
        """Of several clusters each has a ``name``, and all put their events into one queue."""
        self._cluster = cluster
        self.name = name
        self._events: Received = queue.SimpleQueue() if events is None else events
        self._taken: deque[tuple[datetime, Event, EventSource]] = deque()  # and not yet got
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

    def known(self) -> Iterator[tuple[Known, GenericLister]]:
        """What is known of each resource that was named without wildcards, and its objects."""
        for informer in self._informers:
            yield informer.lister.held.known, informer.lister

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

    def waiting(self, order: Sequence[EventSource]) -> Iterator[TimedEvent]:
        """What has come already, and `get` will bring next: one source after the other."""
        come = [self._events.get() for _ in range(self._events.qsize())]
        self._taken.extend(sorted(come, key=lambda each: order.index(each[2])))
        return (self._timed(*each) for each in self._taken)

    @staticmethod
    def _timed(when: datetime, event: Event, source: EventSource) -> TimedEvent:
        first = source._first
        existing = event.initial and (first is None or event.gvr in first)
        return TimedEvent(when, event, existing, source.name)

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
            self._events.put((datetime.now().astimezone(), event, self))


Sources: TypeAlias = list[tuple[Cluster, EventSource]]


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


@contextmanager
def listening(
    target: Target,
    wanted: Callable[[Cluster], Mapping[str, Sequence[str]]],
    check: Callable[[EventSource], object],
) -> Iterator[tuple[Sources, int]]:
    """Each cluster with its events, which have begun; the exit code of those that are left out.

    ``wanted`` are names by resource; ``check`` raises what cannot be shown of that, before anything
    is read. Clusters that are left out are named on stderr.
    """

    def begun(cluster: Cluster, name: str, events: Received | None, say: Say) -> EventSource:
        source = EventSource(cluster, wanted(cluster), name=name, events=events)
        check(source)
        source.begin(say)
        return source

    if not target.several:
        with target.connected() as cluster:
            yield [(cluster, begun(cluster, "", None, say))], 0
        return
    from dyninformer.cli.contexts import connected, targets  # noqa: PLC0415 - one does without

    together: Received = queue.SimpleQueue()

    def prepare(name: str, cluster: Cluster) -> tuple[Cluster, EventSource]:
        return cluster, begun(cluster, name, together, saying(name))

    with connected(targets(target), prepare) as outcomes:
        yield list(outcomes.done.values()), outcomes.code


def say_unknown_paths(sources: Sources, paths: Sequence[str | JSONPath]) -> None:
    """Warn of paths that no object can have. What wildcards follow is not judged."""
    if not paths or any(each.patterns for _, each in sources):
        return
    from dyninformer.cli.where import unknown_paths  # noqa: PLC0415 - few commands read a path

    for line in unknown_paths([pair for _, each in sources for pair in each.known()], paths):
        say(visible(line))


def received_events(
    clusters: Sources,
    length: float,
    look: Callable[[], None] | None = None,
    say: Say = say,
) -> Iterator[TimedEvent | None]:
    """Each event until the time is over, and None now and then if none comes.

    Meanwhile it is said what becomes of the connection. What was there at the beginning comes
    whole, however short the time is; a stream of changes without a pause ends in time.
    """
    looks: list[Callable[[], None]] = []
    for cluster, each in clusters:
        tell = saying(each.name, say)
        looks += [ConnectionNotices(cluster.factory.status, tell).look, partial(each.look, tell)]
    source = clusters[0][1]  # their queue is one
    until, looked = time.monotonic() + length, -math.inf
    while True:
        now = time.monotonic()
        if now - looked >= LOOK_SECONDS:
            looked = now
            for look_at in looks:
                look_at()
            if look is not None:
                look()
        received = source.get(min(LOOK_SECONDS, until - now))
        yield received
        if time.monotonic() >= until and (received is None or not received.existing):
            return
