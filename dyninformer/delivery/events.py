"""What a handler hears: one change of one object, decoded when it is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from dyninformer.checked import checked_texts
from dyninformer.delivery.changes import Differences, differences
from dyninformer.delivery.queue import Step
from dyninformer.errors import EventTypeWarning
from dyninformer.pickling import NotPickled
from dyninformer.printable import printable
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec, Entry
from dyninformer.store.decide import Delta
from dyninformer.types import ListKeys, Object


class EventType(StrEnum):
    """What happened to an object. A member compares equal to its text.

    >>> EventType.ADDED == "ADDED"
    True

    What the API server and kubectl call MODIFIED is UPDATED here, client-go's word. A comparison
    with ``"MODIFIED"``, or with a word in lower case, is false, and warns: EventTypeWarning.
    """

    ADDED = "ADDED"
    """It is new to the handler."""
    UPDATED = "UPDATED"
    DELETED = "DELETED"
    """It is gone, or no longer matches the handler's filter."""
    SYNC = "SYNC"
    """A resync: nothing changed."""

    # Not equal to "MODIFIED", too: what is equal must have one hash, or it would not be found in
    # a set or a dict that has that word.

    def __eq__(self, other: object) -> bool:
        equal = str.__eq__(self, other)
        if equal is False:
            _warn_of_other_words(other)
        return equal

    def __ne__(self, other: object) -> bool:
        differs = str.__ne__(self, other)
        if differs is True:
            _warn_of_other_words(other)
        return differs

    __hash__ = str.__hash__


_WORDS: Final = {"MODIFIED": EventType.UPDATED, **{each.value: each for each in EventType}}
_OTHER_WORDS: Final = {
    "MODIFIED": EventType.UPDATED,
    **{other: each for word, each in _WORDS.items() for other in (word.lower(), word.title())},
}


def _warn_of_other_words(other: object) -> None:
    if type(other) is str and other in _OTHER_WORDS:
        warnings.warn(
            f"an event's type is compared with {other!r}, which it never is: say "
            f"{_OTHER_WORDS[other].value!r}, or EventType.{_OTHER_WORDS[other].name}",
            EventTypeWarning,
            stacklevel=3,
        )


class Event(NotPickled, Shown):
    """One change, frozen. Two events are equal only if they are the same.

    ``object`` and ``old`` are decoded when they are first asked for, and belong to the handler:
    changing them changes nothing else. What is not used is not decoded.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     event = next(namespaces.informer.events())
    ...     print(event.type, event.gvr, event.key, event.initial, event.object["kind"])
    ADDED namespaces.v1 default True Namespace
    """

    __slots__ = ("_cluster", "_codec", "_gvr", "_now", "_object", "_old", "_step", "_type", "_was")
    send_instead = "event.object, which is a dict,"

    def __init__(
        self,
        gvr: GroupVersionResource,
        codec: Codec,
        step: Delta,
        decoded: Object | None = None,
        cluster: str = "",
    ) -> None:
        self._gvr = gvr
        self._cluster = cluster
        self._codec = codec
        self._step = step
        self._object = decoded
        self._old: Object | None = None
        self._now: Entry
        self._was: Entry | None = None
        if step.new is None:
            assert step.old is not None  # noqa: S101 - no change is without both
            self._type = EventType.DELETED
            last = step.last if type(step) is Step else None
            self._now = step.old if last is None else last
        elif step.old is None:
            self._type = EventType.ADDED
            self._now = step.new
        else:
            sync = type(step) is Step and step.sync
            self._type = EventType.SYNC if sync else EventType.UPDATED
            self._now = step.new
            self._was = step.old

    @property
    def type(self) -> EventType:
        """What happened to the object."""
        return self._type

    @property
    def gvr(self) -> GroupVersionResource:
        """The resource."""
        return self._gvr

    @property
    def cluster(self) -> str:
        """The object's cluster, by its name in the `Fleet`; "" outside of a fleet."""
        return self._cluster

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of a cluster-scoped object."""
        return self._step.key

    @property
    def namespace(self) -> str:
        """The object's namespace, "" if it is cluster-scoped."""
        return self._step.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The object's name."""
        return self._step.key.rpartition("/")[2]

    @property
    def object(self) -> Object:
        """The object as it is now; its last known state if it is gone."""
        if self._object is None:
            self._object = self._codec.decode(self._now)
        return self._object

    @property
    def old(self) -> Object | None:
        """Its state before an update or a resync; None if it is new or gone."""
        if self._old is None and self._was is not None:
            self._old = self._codec.decode(self._was)
        return self._old

    @property
    def initial(self) -> bool:
        """Whether it was there when the handler was added, or when the informer started."""
        return self._step.initial and self._type is EventType.ADDED

    @property
    def final_state_unknown(self) -> bool:
        """Whether the deletion was missed, so that ``object`` may not be its last state."""
        return self._step.final_state_unknown

    @property
    def recreated(self) -> bool:
        """Whether an update is to another object of the same name, deleted and created again."""
        step = self._step
        if self._was is None:
            return False
        if type(step) is Step and step.uids_unknown:
            identity = self._codec.identity
            return identity(self._was).is_of_another_object(identity(self._now))
        return step.recreated

    @property
    def resource_version(self) -> str:
        """The resourceVersion of ``object``, as the server sent it."""
        return self._codec.identity(self._now).version

    def changes(self, ignore: Iterable[str] = (), *, keys: ListKeys | None = None) -> Differences:
        """What an update changed, path by path; empty for the other types.

        ``metadata.managedFields`` and ``metadata.resourceVersion`` are left out, and so are the
        paths in ``ignore`` with all below them; ``[*]`` in one stands for any element of a list.
        What the handler did to ``object`` and ``old`` does not count.

        Elements of a list are compared by what tells them apart: ``name``, ``type`` or another
        field, else their order. ``keys`` are those that a CRD declares, as
        ``factory.discovery.list_keys(event.gvr)`` has them.
        """
        ignored = checked_texts("ignore", ignore, "paths")
        if self._type is not EventType.UPDATED or self._was is None:
            return []
        decode = self._codec.decode
        return differences(decode(self._was), decode(self._now), ignored, keys)

    def __repr__(self) -> str:
        where = f"{self._cluster} " if self._cluster else ""
        return f"<Event {self._type} {where}{self._gvr} {printable(self._step.key)}>"
