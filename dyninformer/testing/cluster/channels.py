"""The lines of a view of a collection: matched, framed and kept once for all its watches.

Watches that select the same, in the same representation and version, read one chain of
lines, each at its own pace: a line lives until the slowest of them has passed it.
"""

from __future__ import annotations

from typing import Protocol

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.representation import Representation
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import Selection
from dyninformer.testing.cluster.watch_cache import Change, WatchCache


class Line:
    """One event of a view; ``data`` None ends the stream in its place."""

    __slots__ = ("count", "data", "kind", "next", "size", "version")

    def __init__(
        self, kind: str, version: Version | None, data: bytes | None, before: Line | None
    ) -> None:
        self.kind = kind
        self.version = version
        self.data = data
        self.next: Line | None = None
        self.count: int = 0 if before is None else before.count + 1
        """How many lines, and bytes, the chain held up to this one."""
        self.size: int = len(data or b"") + (0 if before is None else before.size)


class Reader(Protocol):
    """A watch, as its channel sees it."""

    position: Line

    def told(self) -> None:
        """There is something new to take."""

    def behind(self) -> None:
        """It is further behind than a reader should be; called with each further line."""


Readers = dict[Reader, None]


class Channel:
    """The chain of one view, and who reads it. It registers itself while it has readers."""

    def __init__(
        self,
        cache: WatchCache,
        resource: Resource,
        representation: Representation,
        selection: Selection,
        bounds: tuple[int, int],
    ) -> None:
        self.cache = cache
        self.tail = Line("", None, None, None)
        self._resource = resource
        self._representation = representation
        self._selection = selection
        self._max_count, self._max_size = bounds
        self._readers: Readers = {}

    @property
    def _key(self) -> tuple[Resource, Representation, Selection]:
        return self._resource, self._representation, self._selection

    def shared(self) -> Channel:
        """The channel of an equal view that is already read, else this one."""
        found = self.cache.listeners.get(self._key)
        return found if isinstance(found, Channel) else self

    def join(self, reader: Reader) -> None:
        """``reader`` hears of every line from now on."""
        self.cache.listeners[self._key] = self
        self._readers[reader] = None

    def leave(self, reader: Reader) -> None:
        """Idempotent. The last one out ends the channel."""
        if self._readers.pop(reader, reader) is None and not self._readers:
            del self.cache.listeners[self._key]

    def keeps_up(self, position: Line) -> bool:
        """Whether a reader there is no further behind than it should be."""
        tail = self.tail
        return (
            tail.count - position.count <= self._max_count
            and tail.size - position.size <= self._max_size
        )

    def event(self, change: Change) -> tuple[str, Version] | None:
        """What a change is to this view: None if it is nothing."""
        version, previous = change.version, change.previous
        matches, resource = self._selection.matches, self._resource
        was = previous is not None and matches(previous, resource)
        if version.deleted:
            return ("DELETED", version) if was else None
        if matches(version, resource):
            return ("MODIFIED" if was else "ADDED"), version
        return ("DELETED", change.left) if was else None

    def changed(self, change: Change) -> None:
        """Frame the change, if the view shows it, and tell the readers."""
        event = self.event(change)
        if event is None:
            return
        kind, version = event
        data = self._representation.event(kind, version, self._resource)
        line = Line(kind, version, data, self.tail)
        self.tail.next = self.tail = line
        for reader in tuple(self._readers):
            reader.told()
            if not self.keeps_up(reader.position):
                reader.behind()

    def ending(self) -> None:
        """The cache ends its watches: their deadlines have moved."""
        for reader in tuple(self._readers):
            reader.told()
