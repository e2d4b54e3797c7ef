"""Open watches: where each starts, what it has yet to send, and when it ends.

Watches that select the same, in the same representation and version, read one chain of
lines (a `WatchFeed`), matched and framed once, each at its own pace: a line lives until the
slowest of them has passed it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from dyninformer.testing.cluster.lists import ListOptions, Representation
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import Selection
from dyninformer.testing.cluster.watch_cache import (
    CacheEvent,
    TooOldError,
    WatchCache,
    WatchCaches,
    cold_cache,
    too_large,
)
from dyninformer.testing.messages import Headers
from dyninformer.testing.status import ApiError

_BEFORE_THE_END = (2.2, 1.1)  # seconds before a watch's timeout at which it gets a bookmark
_POLL = 0.1  # seconds between two looks whether a future resourceVersion has been reached

_HEADERS: Headers = (("Cache-Control", "no-cache, private"), ("Content-Type", "application/json"))


def open_watch(
    caches: WatchCaches,
    resource: Resource,
    namespace: str,
    options: ListOptions,
    representation: Representation,
) -> Watch:
    """A stream as ``options`` ask for it; raises the 429 of a cold cache."""
    if not caches.of(resource.collection).touch():
        raise cold_cache()
    return Watch(caches, resource, namespace, options, representation)


def _ignore() -> None:
    """No connection sends this watch yet."""


def _error_and_end(error: ApiError) -> Iterator[bytes | None]:
    line = json.dumps({"type": "ERROR", "object": error.body()}, separators=(",", ":"))
    return iter([line.encode() + b"\n", None])


class Watch:
    """A `messages.Stream`. What one watch of a view has rendered, no other renders again.

    First it sends its backlog (initial events, or the replay from a resourceVersion),
    made while it is taken; then the lines of its channel as they come.
    """

    headers = _HEADERS

    def __init__(
        self,
        caches: WatchCaches,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        representation: Representation,
    ) -> None:
        self.on_ready: Callable[[], None] = _ignore
        self.ended = False
        self._caches = caches
        self._cache = caches.of(resource.collection)
        self._resource = resource
        self._options = options
        self._representation = representation
        self._selection = Selection(namespace, options.labels, options.fields, options.shard)
        settings = caches.settings
        bounds = settings.slow_reader_events, settings.slow_reader_bytes
        channel = WatchFeed(self._cache, resource, representation, self._selection, bounds)
        self._channel = channel.shared()
        self.position: WatchLine = self._channel.tail
        self._end_line: WatchLine | None = None
        self._behind_since: float | None = None
        self._notified = True  # the first take has something to do
        self._is_first_line = representation.first_line_differs
        self._start_revision = 0
        self._opened = now = caches.clock.now()
        self._times_out = now + caches.timeout(options.timeout_seconds)
        self._waits_until: float | None = None
        self._backlog: Iterator[bytes | None] = iter(())
        self._bookmark_at: float | None = None
        self._schedule_bookmark(now)
        self._begin(now)

    # What the connection that sends it calls.

    @property
    def deadline(self) -> float | None:
        """The next moment at which the watch has something to do by itself."""
        if self.ended:
            return None
        if self._notified:
            return self._opened
        moments = [self._times_out]
        if self._bookmark_at is not None:
            moments.append(self._bookmark_at)
        if self._cache.ends_at is not None:
            moments.append(self._cache.ends_at)
        if self._waits_until is not None:
            moments.append(min(self._waits_until, self._caches.clock.now() + _POLL))
        return min(moments)

    def take(self, limit: int = 1 << 18) -> list[bytes]:
        """As `messages.Stream` says."""
        self._notified = False
        now = self._caches.clock.now()
        if self.ended or now >= self._times_out:
            self._end()
            return []
        if self._waits_until is not None and not self._still_waiting(now):
            self._waits_until = None
        out: list[bytes] = []
        if self._waits_until is None:
            full = self._take_backlog(out, limit) or self._take_lines(out, limit)
            if full:
                self._notified = True
            elif not self.ended:
                self._when_idle(out, now)
        return out

    def close(self) -> None:
        """As `messages.Stream` says."""
        self._end()

    # What the channel calls.

    def notify(self) -> None:
        """There is something new to take: wake the connection, once before each take."""
        if not self._notified:
            self._notified = True
            self.on_ready()

    def fall_behind(self) -> None:
        """Cut the reader off here if it has been behind for too long.

        Called with each line that it is further behind than a reader should be.
        """
        now = self._caches.clock.now()
        if self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= self._caches.settings.slow_reader_seconds:
            self._end_line = self._channel.tail
            self._channel.leave(self)

    # The beginning.

    def _begin(self, now: float) -> None:
        options, log = self._options, self._caches.log
        if options.timeout_seconds is not None and options.timeout_seconds < 0:
            self._end()
            return
        if options.send_initial_events:
            asked = options.revision
            if asked and asked > log.revision:
                self._waits_until = now + self._caches.settings.freshness_wait
            else:
                self._begin_with_everything()
        elif not options.revision:
            self._caches.progress()
            self._start_revision = self._cache.revision
        else:
            self._start_revision = options.revision
            self._backlog = self._replay(options.revision)
        if self._waits_until is None:
            self._channel.join(self)

    def _begin_with_everything(self) -> None:
        """Begin with the state now; RV unset or ahead of the cache makes it learn the newest."""
        cache, asked = self._cache, self._options.revision
        if asked is None or asked > cache.revision:
            self._caches.progress()
        self._start_revision = cache.revision
        self._backlog = self._initial(cache.revision)

    def _still_waiting(self, now: float) -> bool:
        """Whether the watch still waits for a resourceVersion of the future."""
        asked = self._options.revision or 0
        if asked <= self._caches.log.revision:
            self._channel = self._channel.shared()
            self.position = self._channel.tail
            self._begin_with_everything()
            self._channel.join(self)
            return False
        if self._waits_until is not None and now < self._waits_until:
            return True
        self._backlog = _error_and_end(too_large(asked, self._caches))
        return False

    def _initial(self, revision: int) -> Iterator[bytes | None]:
        found = self._caches.log.items(self._cache.collection, self._selection.namespace)
        matches, resource = self._selection.matches, self._resource
        everything = self._selection.everything
        return self._initial_lines(
            found if everything else [each for each in found if matches(each, resource)], revision
        )

    def _initial_lines(self, found: list[Version], revision: int) -> Iterator[bytes | None]:
        for version in found:
            yield self._rendered("ADDED", version)
        if self._options.initial_events_end:
            yield self._representation.bookmark(
                revision, self._resource, initial_end=True, first=self._take_first()
            )

    def _replay(self, revision: int) -> Iterator[bytes | None]:
        try:
            changes = self._cache.since(revision)
        except TooOldError as error:
            return _error_and_end(ApiError(410, "Expired", str(error)))
        events = [event for event in map(self._channel.event, changes) if event is not None]
        return (self._rendered(kind, version) for kind, version in events)

    # The lines.

    def _rendered(self, kind: str, version: Version) -> bytes | None:
        return self._representation.event(kind, version, self._resource, first=self._take_first())

    def _take_first(self) -> bool:
        first, self._is_first_line = self._is_first_line, False
        return first

    def _take_backlog(self, out: list[bytes], limit: int) -> bool:
        """Whether ``out`` is full; else the backlog is empty, or has ended the stream."""
        size = 0
        for line in self._backlog:
            if line is None:
                self._end()
                return False
            out.append(line)
            size += len(line)
            if size >= limit:
                return True
        return False

    def _take_lines(self, out: list[bytes], limit: int) -> bool:
        """Whether ``out`` is full before all lines of the channel were taken."""
        line, size = self.position, sum(map(len, out))
        while (
            not self.ended and line.next is not None and size < limit and line is not self._end_line
        ):
            line = line.next
            data = line.data
            if self._is_first_line and line.version is not None:
                data = self._rendered(line.kind, line.version)
            if data is None:
                self._end()
            elif line.version is None or line.version.revision > self._start_revision:
                out.append(data)
                size += len(data)
        self.position = line
        if self._channel.keeps_up(line):
            self._behind_since = None
        return not self.ended and line.next is not None and line is not self._end_line

    def _when_idle(self, out: list[bytes], now: float) -> None:
        """Everything has been taken: is it time to end, or for a bookmark?"""
        ends_at = self._cache.ends_at
        if self._end_line is not None or (ends_at is not None and now >= ends_at):
            self._end()
        elif self._bookmark_at is not None and now >= self._bookmark_at:
            self._schedule_bookmark(now)
            if self._cache.revision > self._start_revision:
                line = self._representation.bookmark(
                    self._cache.revision, self._resource, first=self._take_first()
                )
                if line is None:
                    self._end()
                else:
                    out.append(line)

    def _schedule_bookmark(self, now: float) -> None:
        settings = self._caches.settings
        if not self._options.allow_bookmarks or not settings.watch_cache:
            return
        last = (self._times_out - before for before in _BEFORE_THE_END)
        moments = [now + settings.bookmark_interval, *(each for each in last if each > now)]
        self._bookmark_at = min(moments)

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self._backlog = iter(())
            self._channel.leave(self)


class WatchLine:
    """One event of a view; ``data`` None ends the stream in its place."""

    __slots__ = ("count", "data", "kind", "next", "size", "version")

    def __init__(
        self, kind: str, version: Version | None, data: bytes | None, before: WatchLine | None
    ) -> None:
        self.kind = kind
        self.version = version
        self.data = data
        self.next: WatchLine | None = None
        self.count: int = 0 if before is None else before.count + 1
        """How many lines, and bytes, the chain held up to this one."""
        self.size: int = len(data or b"") + (0 if before is None else before.size)


class WatchFeed:
    """The chain of one view, and its readers. It registers itself while it has any."""

    def __init__(
        self,
        cache: WatchCache,
        resource: Resource,
        representation: Representation,
        selection: Selection,
        bounds: tuple[int, int],
    ) -> None:
        self.cache = cache
        self.tail = WatchLine("", None, None, None)
        self._resource = resource
        self._representation = representation
        self._selection = selection
        self._max_count, self._max_size = bounds
        self._readers: dict[Watch, None] = {}

    @property
    def _key(self) -> tuple[Resource, Representation, Selection]:
        return self._resource, self._representation, self._selection

    def shared(self) -> WatchFeed:
        """The channel of an equal view that already has readers, else this one."""
        found = self.cache.listeners.get(self._key)
        return found if isinstance(found, WatchFeed) else self

    def join(self, reader: Watch) -> None:
        """``reader`` gets every line from now on."""
        self.cache.listeners[self._key] = self
        self._readers[reader] = None

    def leave(self, reader: Watch) -> None:
        """Idempotent. The last one out ends the channel."""
        if self._readers.pop(reader, reader) is None and not self._readers:
            del self.cache.listeners[self._key]

    def keeps_up(self, position: WatchLine) -> bool:
        """Whether a reader there has fallen behind no further than it may."""
        tail = self.tail
        return (
            tail.count - position.count <= self._max_count
            and tail.size - position.size <= self._max_size
        )

    def event(self, change: CacheEvent) -> tuple[str, Version] | None:
        """The type and the object that this view shows of a change; None if it shows nothing."""
        version, previous = change.version, change.previous
        matches, resource = self._selection.matches, self._resource
        was = previous is not None and matches(previous, resource)
        if version.deleted:
            return ("DELETED", version) if was else None
        if matches(version, resource):
            return ("MODIFIED" if was else "ADDED"), version
        return ("DELETED", change.left) if was else None

    def changed(self, change: CacheEvent) -> None:
        """Frame the change, if the view shows it, and notify the readers."""
        event = self.event(change)
        if event is None:
            return
        kind, version = event
        data = self._representation.event(kind, version, self._resource)
        line = WatchLine(kind, version, data, self.tail)
        self.tail.next = self.tail = line
        for reader in tuple(self._readers):
            reader.notify()
            if not self.keeps_up(reader.position):
                reader.fall_behind()

    def ending(self) -> None:
        """The cache ends its watches: their deadlines have moved."""
        for reader in tuple(self._readers):
            reader.notify()
