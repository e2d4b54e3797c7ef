"""What a handler hears: one change of one object, decoded when it is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.delivery.queue import Step
from dyninformer.resource import GroupVersionResource
from dyninformer.store.codec import Codec, Entry
from dyninformer.store.decide import Delta
from dyninformer.types import Object


class EventType(StrEnum):
    """What happened to an object. A member compares equal to its text.

    >>> EventType.ADDED == "ADDED"
    True
    """

    ADDED = "ADDED"
    """It is new to the handler."""
    UPDATED = "UPDATED"
    DELETED = "DELETED"
    """It is gone, or no longer matches the handler's filter."""
    SYNC = "SYNC"
    """A resync: nothing changed."""


class Event:
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

    __slots__ = ("_codec", "_gvr", "_now", "_object", "_old", "_step", "_type", "_was")

    def __init__(
        self,
        gvr: GroupVersionResource,
        codec: Codec,
        step: Delta,
        decoded: Object | None = None,
    ) -> None:
        self._gvr = gvr
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

    def changes(self, ignore: Iterable[str] = ()) -> Differences:
        """What an update changed, path by path; empty for the other types.

        ``metadata.managedFields`` and ``metadata.resourceVersion`` are left out, and so are the
        paths in ``ignore`` with all below them; ``[*]`` in one stands for any item of a list.
        What the handler did to ``object`` and ``old`` does not count.
        """
        if self._type is not EventType.UPDATED or self._was is None:
            return []
        decode = self._codec.decode
        return differences(decode(self._was), decode(self._now), ignore)

    def __repr__(self) -> str:
        return f"<Event {self._type} {self._gvr} {self._step.key}>"


Pairs: TypeAlias = list[tuple[str, Any, Any]]

BOOKKEEPING: Final = (".metadata.managedFields", ".metadata.resourceVersion")
"""What every write changes."""

_ABSENT: Final = object()
_SPECIAL = re.compile(r"[^\w/-]", re.ASCII)


class Change(NamedTuple):
    """One value that differs. ``path`` is a JSONPath in kubectl's dialect; None where absent.

    >>> str(Change(".spec.replicas", 1, 2).path)
    '.spec.replicas'
    """

    path: str
    old: Any
    new: Any


Differences: TypeAlias = list[Change]


def differences(old: Object, new: Object, ignore: Iterable[str] = ()) -> Differences:
    r"""The values that differ, in the order of the old object, then what is only in the new.

    List items are compared by place. ``ignore`` names paths that are left out with all below
    them; ``[*]`` in one is any item.

    >>> differences({"spec": {"n": 1, "x": [1]}}, {"spec": {"n": 2, "x": [1, 5]}})
    [Change(path='.spec.n', old=1, new=2), Change(path='.spec.x[1]', old=None, new=5)]
    >>> old, new = {"labels": {"a.b/c": "1"}}, {"labels": {"a.b/c": "2"}}
    >>> print(differences(old, new)[0].path)
    .labels.a\.b/c
    """
    ignored = _pattern(ignore)
    found: Differences = []
    waiting: Pairs = [("", old, new)]
    while waiting:  # no recursion: objects may be nested deeper than Python's calls
        path, before, after = waiting.pop()
        if path and ignored.fullmatch(path):
            continue
        if type(before) is type(after) and isinstance(before, (dict, list)):
            waiting.extend(reversed(list(_children(path, before, after))))
        elif before is not after and not _same(before, after):
            found.append(Change(path, _shown(before), _shown(after)))
    return found


def _children(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, list):
        for at in range(max(len(before), len(after))):
            yield (
                f"{path}[{at}]",
                before[at] if at < len(before) else _ABSENT,
                after[at] if at < len(after) else _ABSENT,
            )
        return
    for key in dict.fromkeys((*before, *after)):
        name = _SPECIAL.sub(r"\\\g<0>", key)
        yield f"{path}.{name}", before.get(key, _ABSENT), after.get(key, _ABSENT)


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but no true."""
    return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


def _pattern(ignore: Iterable[str]) -> re.Pattern[str]:
    given = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    spelled = ["." + path.strip("{}").removeprefix(".") for path in given]
    escaped = [re.escape(path).replace(r"\[\*\]", r"\[\d+\]") for path in (*BOOKKEEPING, *spelled)]
    return re.compile("|".join(escaped))
