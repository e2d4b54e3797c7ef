"""One multi-version log: every write of every resource is a revision, readers are cursors.

The log is etcd's part of the cluster and knows nothing of HTTP, watches or time.
It is owned by one thread: the one that runs the server (or the test that steps it).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from dyninformer.errors import DynInformerError

Object = dict[str, Any]
_by_revision = attrgetter("revision")


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
    ``previous`` is the live state this write replaced, and is let go at compaction.
    ``encoded`` keeps the bytes of each representation, so that an event is framed
    once for all who watch it; its keys belong to the representations.
    """

    collection: GroupResource
    key: Key
    revision: int
    object: Object
    deleted: bool = False
    previous: Version | None = None
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class _Collection:
    live: dict[Key, Version] = field(default_factory=dict)
    paths: list[tuple[str, Key]] = field(default_factory=list)
    history: list[Version] = field(default_factory=list)
    listeners: list[Callable[[Version], None]] = field(default_factory=list)


class Log:
    """All that was ever written, back to the last compaction."""

    def __init__(self, revision: int = 1) -> None:
        self.revision = revision
        self.compacted = 0
        self._collections: dict[GroupResource, _Collection] = {}

    def append(self, collection: GroupResource, key: Key, obj: Object | None) -> Version:
        """Write ``obj`` under ``key`` (None deletes) and tell who listens.

        The log sets metadata.resourceVersion on a shallow copy; ``obj`` itself stays
        the caller's but must not be changed afterwards.
        """
        room = self._room(collection)
        previous = room.live.get(key)
        content = obj if obj is not None else (previous.object if previous else None)
        if content is None:
            raise KeyError(key)
        self.revision += 1
        stamped = {
            **content, "metadata": {**content["metadata"], "resourceVersion": str(self.revision)}
        }  # fmt: skip
        version = Version(collection, key, self.revision, stamped, obj is None, previous)
        room.history.append(version)
        entry = (key.path, key)
        if obj is None:
            del room.live[key]
            del room.paths[bisect_left(room.paths, entry)]
        else:
            room.live[key] = version
            if previous is None:
                insort(room.paths, entry)
        for listener in tuple(room.listeners):
            listener(version)
        return version

    def advance(self) -> int:
        """A revision that touches no object that is served (leases, events of others)."""
        self.revision += 1
        return self.revision

    def get(self, collection: GroupResource, key: Key) -> Version | None:
        """The live version of one object."""
        return self._room(collection).live.get(key)

    def items(
        self, collection: GroupResource, namespace: str = "", *, at: int | None = None
    ) -> list[Version]:
        """The live versions in etcd's order, of one namespace or all; ``at`` an older revision.

        Raises CompactedError when ``at`` lies before the last compaction.
        """
        room = self._room(collection)
        if at is None or at >= self.revision:
            live, paths = room.live, room.paths
        else:
            live = self._as_of(room, at)
            paths = sorted((key.path, key) for key in live)
        if namespace:
            low = bisect_left(paths, (f"{namespace}/",))
            high = bisect_left(paths, (f"{namespace}0",))  # "0" follows "/"
            paths = paths[low:high]
        return [live[key] for _, key in paths]

    def since(self, collection: GroupResource, revision: int) -> list[Version]:
        """Every write above ``revision``, in order; CompactedError if some are gone."""
        if revision < self.compacted:
            raise CompactedError(revision)
        history = self._room(collection).history
        return history[bisect_right(history, revision, key=_by_revision) :]

    def compact(self, revision: int) -> None:
        """Forget what only readers of revisions before ``revision`` could ask for."""
        revision = min(revision, self.revision)
        self.compacted = max(self.compacted, revision)
        for room in self._collections.values():
            cut = bisect_right(room.history, revision, key=_by_revision)
            for version in room.history[:cut]:
                version.previous = None
            del room.history[:cut]

    def listen(
        self, collection: GroupResource, listener: Callable[[Version], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with each later write of a collection; returns the way to stop it."""
        listeners = self._room(collection).listeners
        listeners.append(listener)

        def stop() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return stop

    def collections(self) -> Iterator[GroupResource]:
        """The collections that hold an object now."""
        return (name for name, room in self._collections.items() if room.live)

    def _room(self, collection: GroupResource) -> _Collection:
        return self._collections.setdefault(collection, _Collection())

    def _as_of(self, room: _Collection, at: int) -> dict[Key, Version]:
        if at < self.compacted:
            raise CompactedError(at)
        live = dict(room.live)
        newer = room.history[bisect_right(room.history, at, key=_by_revision) :]
        for version in reversed(newer):
            if version.previous is None:
                live.pop(version.key, None)
            else:
                live[version.key] = version.previous
        return live
