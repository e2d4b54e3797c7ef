"""One multi-version log: every write of every resource is a revision, readers are cursors.

The log is etcd's part of the cluster and knows nothing of HTTP, watches or time.
It is owned by one thread: the one that runs the server (or the test that steps it).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from dyninformer.errors import DynInformerError
from dyninformer.types import Object

_by_revision = attrgetter("revision")
_CONTENTS_KEPT = 8  # per collection: a few clients paging at once, each at its own revision


class GroupResource(NamedTuple):
    """A collection, whatever the version it is read in."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class Key(NamedTuple):
    """An object's place in its collection; ``namespace`` is "" for cluster-scoped objects."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The key as etcd orders it: ``-`` sorts before ``/``, so this is not tuple order."""
        return f"{self.namespace}/{self.name}"


class CompactedError(DynInformerError):
    """The revision asked for is older than what the log still holds."""


@dataclass(slots=True, eq=False)
class Version:
    """One write of one object.

    ``object`` is never changed after it is appended; for a delete it is the last
    stored state with the delete's resourceVersion, as the real server sends it.
    ``previous`` is the live state this write replaced, and is dropped at compaction.
    ``encoded`` keeps the bytes of each representation, so that an event is framed
    once for all its watches; its keys belong to the representations.
    """

    collection: GroupResource
    key: Key
    revision: int
    object: Object
    deleted: bool = False
    previous: Version | None = None
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


class Contents:
    """A collection as it was at one revision, in etcd's order. Shared: never changed."""

    __slots__ = ("paths", "versions")

    def __init__(self, paths: list[str], versions: list[Version]) -> None:
        self.paths = paths
        self.versions = versions

    def bounds(self, namespace: str = "") -> tuple[int, int]:
        """The slice of one namespace, or of all."""
        if not namespace:
            return 0, len(self.paths)
        low = bisect_left(self.paths, f"{namespace}/")
        return low, bisect_left(self.paths, f"{namespace}0", low)  # "0" follows "/"

    def position(self, path: str) -> int:
        """Where a read that goes on from ``path`` begins."""
        return bisect_left(self.paths, path)


@dataclass(slots=True)
class _Collection:
    live: dict[str, Version] = field(default_factory=dict)
    """By path."""
    paths: list[str] = field(default_factory=list)
    history: list[Version] = field(default_factory=list)
    listeners: list[Callable[[Version], None]] = field(default_factory=list)
    contents: dict[int, Contents] = field(default_factory=dict)
    """By the revision of the last write they show; the least recently used first."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """All that a log held at one moment. It is never changed, and may be loaded many times.

    Not for import.
    """

    revision: int
    compacted: int
    collections: dict[GroupResource, tuple[dict[str, Version], list[str], list[Version]]]


class Log:
    """All that was ever written, back to the last compaction."""

    def __init__(self, revision: int = 1) -> None:
        self.revision = revision
        self.compacted = 0
        self._collections: dict[GroupResource, _Collection] = {}

    def append(self, collection: GroupResource, key: Key, obj: Object | None) -> Version:
        """Write ``obj`` under ``key`` (None deletes), and tell the listeners.

        The log sets metadata.resourceVersion on a shallow copy; ``obj`` itself stays
        the caller's but must not be changed afterwards.
        """
        stored = self._stored(collection)
        path = key.path
        previous = stored.live.get(path)
        content = obj if obj is not None else (previous.object if previous else None)
        if content is None:
            raise KeyError(key)
        self.revision += 1
        metadata = {**content["metadata"], "resourceVersion": str(self.revision)}
        written = {**content, "metadata": metadata}
        version = Version(collection, key, self.revision, written, obj is None, previous)
        stored.history.append(version)
        if obj is None:
            del stored.live[path]
            del stored.paths[bisect_left(stored.paths, path)]
        else:
            stored.live[path] = version
            if previous is None:
                insort(stored.paths, path)
        for listener in tuple(stored.listeners):
            listener(version)
        return version

    def advance(self) -> int:
        """A revision that touches no object that is served (leases, events of others)."""
        self.revision += 1
        return self.revision

    def get(self, collection: GroupResource, key: Key) -> Version | None:
        """The live version of one object."""
        return self._stored(collection).live.get(key.path)

    def items(
        self, collection: GroupResource, namespace: str = "", *, at: int | None = None
    ) -> list[Version]:
        """The live versions in etcd's order, of one namespace or all; ``at`` an older revision.

        Raises CompactedError when ``at`` lies before the last compaction.
        """
        found = self.contents(collection, at=at)
        low, high = found.bounds(namespace)
        return found.versions[low:high]

    def contents(self, collection: GroupResource, *, at: int | None = None) -> Contents:
        """The whole collection now, or ``at`` an older revision; the last few answers are kept.

        Raises CompactedError when ``at`` lies before the last compaction.
        """
        if at is not None and at < self.compacted:
            raise CompactedError(at)
        stored = self._stored(collection)
        count = len(stored.history)
        if at is not None:
            count = bisect_right(stored.history, at, key=_by_revision)
        shows = stored.history[count - 1].revision if count else 0
        found = stored.contents.pop(shows, None)
        if found is None:
            found = self._as_of(stored, count)
            if len(stored.contents) >= _CONTENTS_KEPT:
                del stored.contents[next(iter(stored.contents))]
        stored.contents[shows] = found
        return found

    def since(self, collection: GroupResource, revision: int) -> list[Version]:
        """Every write above ``revision``, in order; CompactedError if some are gone."""
        if revision < self.compacted:
            raise CompactedError(revision)
        history = self._stored(collection).history
        return history[bisect_right(history, revision, key=_by_revision) :]

    def compact(self, revision: int) -> None:
        """Forget what only readers of revisions before ``revision`` could ask for."""
        revision = min(revision, self.revision)
        self.compacted = max(self.compacted, revision)
        for stored in self._collections.values():
            cut = bisect_right(stored.history, revision, key=_by_revision)
            for version in stored.history[:cut]:
                version.previous = None
            del stored.history[:cut]
            stored.contents.clear()

    def image(self) -> Image:
        """All of it as it is now."""
        images = {
            name: (dict(stored.live), list(stored.paths), list(stored.history))
            for name, stored in self._collections.items()
        }
        return Image(self.revision, self.compacted, images)

    def load(self, image: Image) -> None:
        """Become what an image holds, of this log or another; listeners hear nothing of it.

        What has been compacted since the image was taken stays compacted.
        """
        self.revision = image.revision
        self.compacted = min(max(self.compacted, image.compacted), image.revision)
        for name in self._collections.keys() | image.collections.keys():
            stored = self._stored(name)
            live, paths, history = image.collections.get(name, ({}, [], []))
            cut = bisect_right(history, self.compacted, key=_by_revision)
            stored.live, stored.paths, stored.history = dict(live), list(paths), history[cut:]
            stored.contents.clear()

    def listen(
        self, collection: GroupResource, listener: Callable[[Version], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with each later write of a collection; returns the way to stop it."""
        listeners = self._stored(collection).listeners
        listeners.append(listener)

        def stop() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return stop

    def collections(self) -> Iterator[GroupResource]:
        """The collections that hold an object now."""
        return (name for name, stored in self._collections.items() if stored.live)

    def _stored(self, collection: GroupResource) -> _Collection:
        stored = self._collections.get(collection)
        if stored is None:
            stored = self._collections[collection] = _Collection()
        return stored

    def _as_of(self, stored: _Collection, count: int) -> Contents:
        """The state after the first ``count`` writes of the history."""
        newer = stored.history[count:]
        if not newer:
            return Contents(list(stored.paths), [stored.live[path] for path in stored.paths])
        live = dict(stored.live)
        for version in reversed(newer):
            if version.previous is None:
                live.pop(version.key.path, None)
            else:
                live[version.key.path] = version.previous
        paths = sorted(live)
        return Contents(paths, [live[path] for path in paths])
