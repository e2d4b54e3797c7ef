"""One state that an object had, and when it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dyninformer.checked import checked_texts
from dyninformer.delivery.changes import Differences, differences
from dyninformer.delivery.events import EventType
from dyninformer.pickling import NotPickled
from dyninformer.printable import printable
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown, ShownCollection
from dyninformer.store import history
from dyninformer.store.codec import Codec, Entry
from dyninformer.types import Key, ListKeys, Object


class Told(NamedTuple):
    """How a version came, beside its object."""

    type: EventType
    time: datetime | None
    initial: bool = False
    final_state_unknown: bool = False


class OfObject(NotPickled, Shown):
    """What is told of one object: it says of which."""

    __slots__ = ()
    _key: Key

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of a cluster-scoped object."""
        return self._key

    @property
    def namespace(self) -> str:
        """The object's namespace, "" if it is cluster-scoped."""
        return self._key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The object's name."""
        return self._key.rpartition("/")[2]


class Version(OfObject):
    """A state of an object, from a history or a recording. Frozen.

    ``object`` is decoded when it is first asked for, and is the caller's own.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     with open_informer("ns", client=server.client(), history=20) as namespaces:
    ...         labels = {"metadata": {"labels": {"a": "b"}}}
    ...         _ = namespaces.patch("default", None, labels, wait=True)
    ...         for version in namespaces.informer.history("default"):
    ...             print(version.type, version.initial, [each.path for each in version.changes()])
    ADDED True []
    UPDATED False ['.metadata.labels.a']
    """

    __slots__ = ("_before", "_codec", "_entry", "_gvr", "_key", "_object", "_told")
    send_instead = "version.object, which is a dict,"

    def __init__(
        self,
        store: tuple[GroupVersionResource, Codec],
        key: Key,
        entry: Entry,
        told: Told,
        before: Entry | None = None,
    ) -> None:
        """``before`` is the state before it, where that is known."""
        self._gvr, self._codec = store
        self._key = key
        self._entry = entry
        self._told = told
        self._before = before
        self._object: Object | None = None

    @property
    def type(self) -> EventType:
        """ADDED, UPDATED or DELETED."""
        return self._told.type

    @property
    def time(self) -> datetime | None:
        """When it was heard of, by this machine's clock; of a recording, by the recorder's.

        None if that is not kept any more: all versions of the object had been let go.
        """
        return self._told.time

    @property
    def gvr(self) -> GroupVersionResource:
        """The resource."""
        return self._gvr

    @property
    def object(self) -> Object:
        """The object as it was then; of a deletion, its last known state."""
        if self._object is None:
            self._object = self._codec.decode(self._entry)
        return self._object

    @property
    def resource_version(self) -> str:
        """The resourceVersion of ``object``, as the server sent it."""
        return self._codec.identity(self._entry).version

    @property
    def initial(self) -> bool:
        """It was there already when what is kept of its history, or the recording, begins."""
        return self._told.initial

    @property
    def final_state_unknown(self) -> bool:
        """Whether the deletion was missed, so that ``object`` may not be its last state."""
        return self._told.final_state_unknown

    @property
    def recreated(self) -> bool:
        """Another object of the same name than before, deleted and created again."""
        if self._before is None:
            return False
        identity = self._codec.identity
        return identity(self._before).is_of_another_object(identity(self._entry))

    def changes(self, ignore: Iterable[str] = (), *, keys: ListKeys | None = None) -> Differences:
        """What this version changed, path by path, as `Event.changes`.

        Empty for one that was added or deleted, and where the version before it is not kept.
        """
        ignored = checked_texts("ignore", ignore, "paths")
        if self._before is None or self._told.type is not EventType.UPDATED:
            return []
        decode = self._codec.decode
        return differences(decode(self._before), decode(self._entry), ignored, keys)

    def __repr__(self) -> str:
        time = f" {self.time.isoformat(' ', 'seconds')}" if self.time else ""
        return f"<Version {self.type} {printable(self._key)}{time}>"


class Versions(ShownCollection, list[Version]):
    """The versions of one object, oldest first: a list, shown as a table. Not for import."""


_TYPES: Final = (EventType.ADDED, EventType.UPDATED, EventType.DELETED)


def versions_of(
    gvr: GroupVersionResource, key: Key, codec: Codec, kept: Sequence[history.Kept]
) -> Versions:
    """What a history holds of a key."""
    found = Versions()
    before = None
    for each in kept:
        told = Told(
            _TYPES[each.kind & 3],
            datetime.fromtimestamp(each.time, UTC) if each.time else None,
            initial=bool(each.kind & history.INITIAL),
            final_state_unknown=bool(each.kind & history.MISSED),
        )
        found.append(Version((gvr, codec), key, each.entry, told, before))
        before = each.entry
    return found
