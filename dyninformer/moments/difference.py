"""What differs between two snapshots: objects that came, went, and changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dyninformer.checked import checked_texts
from dyninformer.delivery.changes import Differences, differences
from dyninformer.moments.version import OfObject
from dyninformer.pickling import NotPickled
from dyninformer.printable import counted, printable
from dyninformer.resource import GroupVersionResource, of_secrets
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec, Entry
from dyninformer.store.decide import same_content
from dyninformer.store.snapshot import Rows, View
from dyninformer.types import ListKeys, Object

if TYPE_CHECKING:
    import pandas

    from dyninformer.moments.snapshot import Snapshot

Packed: TypeAlias = tuple[Codec, Entry]
ObjectDifferences: TypeAlias = "list[ObjectDifference]"

_COLUMNS: Final = ("type", "namespace", "name", "path", "old", "new")
_BOOKKEEPING: Final = ("managedFields", "resourceVersion")
_SHOWN_OBJECTS: Final = 20
_SHOWN_CHANGES: Final = 10
_SHOWN_VALUE: Final = 100  # characters


class ObjectDifference(OfObject):
    """An object that differs between two snapshots: it came, went, or changed. Frozen.

    ``old`` and ``new`` are decoded when they are first asked for, and are the caller's own.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     before = namespaces.snapshot()
    ...     wanted = {"kind": "Namespace", "metadata": {"name": "shop"}}
    ...     _ = namespaces.apply(wanted, wait=True)
    ...     for came in namespaces.snapshot().diff(before).added:
    ...         print(came.type, came.key, came.old, came.new["kind"])
    ADDED shop None Namespace
    """

    __slots__ = ("_declared", "_gvr", "_key", "_new", "_now", "_old", "_was")
    send_instead = "the object's .old and .new, which are dicts,"

    def __init__(
        self,
        gvr: GroupVersionResource,
        key: str,
        was: Packed | None,
        now: Packed | None,
        declared: Callable[[], ListKeys] = dict,
    ) -> None:
        self._gvr = gvr
        self._key = key
        self._declared = declared
        self._was = was
        self._now = now
        self._old: Object | None = None
        self._new: Object | None = None

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self._gvr

    @property
    def type(self) -> str:
        """ADDED, REMOVED or CHANGED."""
        return "ADDED" if self._was is None else "REMOVED" if self._now is None else "CHANGED"

    @property
    def old(self) -> Object | None:
        """The object as it was before; None if it was not there."""
        if self._old is None and self._was is not None:
            self._old = _decoded(self._was)
        return self._old

    @property
    def new(self) -> Object | None:
        """The object as it was after; None if it was gone."""
        if self._new is None and self._now is not None:
            self._new = _decoded(self._now)
        return self._new

    @property
    def recreated(self) -> bool:
        """Another object of the same name: it was deleted and created again in between."""
        if self._was is None or self._now is None:
            return False
        (codec, was), (other, now) = self._was, self._now
        return codec.identity(was).is_of_another_object(other.identity(now))

    def changes(self, ignore: Iterable[str] = (), *, keys: ListKeys | None = None) -> Differences:
        """What differs in it, path by path, as `Event.changes`; empty if it came or went.

        Elements of lists are told apart by the keys that the CRD declares, if no others are given.
        """
        ignored = checked_texts("ignore", ignore, "paths")
        if self._was is None or self._now is None:
            return []
        by = self._declared() if keys is None else keys
        return differences(_decoded(self._was), _decoded(self._now), ignored, by)

    def __repr__(self) -> str:
        return f"<ObjectDifference {self.type} {printable(self._key)}>"


class Difference(NotPickled, Shown):
    """What differs between two snapshots of one collection. Frozen; false if nothing does.

    ``str()`` of it is a summary, iterating gives all `ObjectDifference` objects.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     before = namespaces.snapshot()
    ...     patch = {"metadata": {"labels": {"a": "b"}}}
    ...     _ = namespaces.patch("default", None, patch, wait=True)
    ...     difference = namespaces.snapshot().diff(before)
    >>> print(len(difference), [each.key for each in difference.changed], difference.rows())
    ... # doctest: +NORMALIZE_WHITESPACE
    1 ['default'] [{'type': 'CHANGED', 'namespace': '', 'name': 'default',
                    'path': '.metadata.labels.a', 'old': None, 'new': 'b'}]
    """

    send_instead = "difference.rows(), which are dicts,"

    def __init__(self, before: Snapshot, after: Snapshot, was: View, now: View) -> None:
        self.before = before
        """The earlier snapshot."""
        self.after = after
        """The later one."""
        self.added: ObjectDifferences = []
        """Objects that came."""
        self.removed: ObjectDifferences = []
        """Objects that went."""
        self.changed: ObjectDifferences = []
        """Objects that are not as they were."""
        old, new = was.codec, now.codec
        declared = cache(self._list_keys)
        for key, entry in now.items():
            held = was.get(key)
            if held is None:
                self.added.append(ObjectDifference(self.gvr, key, None, (new, entry)))
            elif held is not entry and not _same(old, held, new, entry):
                self.changed.append(
                    ObjectDifference(self.gvr, key, (old, held), (new, entry), declared)
                )
        if len(was) + len(self.added) > len(now):
            for key, held in was.items():
                if now.get(key) is None:
                    self.removed.append(ObjectDifference(self.gvr, key, (old, held), None))

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self.after.gvr

    def rows(self) -> Rows:
        """A row for each change of a field, and one for each object that came or went."""
        rows: Rows = []
        for each in self:
            told: list[tuple[Any, ...]] = [*each.changes()] or [(None, None, None)]
            head = (each.type, each.namespace, each.name)
            rows += [dict(zip(_COLUMNS, (*head, *change), strict=True)) for change in told]
        return rows

    def to_frame(self) -> pandas.DataFrame:
        """`rows` as a pandas DataFrame; needs the extra ``notebook``."""
        return frame_of(self.rows(), _COLUMNS)

    def __iter__(self) -> Iterator[ObjectDifference]:
        return chain(self.added, self.removed, self.changed)

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)

    def _list_keys(self) -> ListKeys:
        """Of the earlier one where the later one does not know: perhaps a file has it."""
        later, earlier = (each.held.known for each in (self.after, self.before))
        return later.declared().list_keys or earlier.declared().list_keys

    def __repr__(self) -> str:
        return f"<Difference of {self.gvr}: {self._counts()}>"

    def __str__(self) -> str:
        lines = [f"{self.gvr}, {_moment(self.before)} to {_moment(self.after)}: {self._counts()}"]
        shown = _unshown if of_secrets(self.gvr) else _value
        signs = {"ADDED": "+", "REMOVED": "-", "CHANGED": "~"}
        for each in islice(self, _SHOWN_OBJECTS):
            note = " (another object of this name)" if each.recreated else ""
            lines.append(f"{signs[each.type]} {printable(each.key)}{note}")
            found = each.changes()
            for path, old, new in found[:_SHOWN_CHANGES]:
                lines.append(f"    {printable(path)}: {shown(old)} -> {shown(new)}")
            if len(found) > _SHOWN_CHANGES:
                lines.append(f"    ... {counted(len(found) - _SHOWN_CHANGES, 'more change')} of it")
        if len(self) > _SHOWN_OBJECTS:
            lines.append(f"... {counted(len(self) - _SHOWN_OBJECTS, 'more object')}")
        return "\n".join(lines)

    def _counts(self) -> str:
        return f"{len(self.added)} added, {len(self.removed)} removed, {len(self.changed)} changed"


def _decoded(packed: Packed) -> Object:
    codec, entry = packed
    return codec.decode(entry)


def _same(codec: Codec, was: Entry, other: Codec, now: Entry) -> bool:
    """Two entries of one key say the same; they are not one and the same.

    What was compressed meanwhile, or comes from a file, has other bytes.
    """
    before, after = codec.plain(was), other.plain(now)
    if before == after and was[0] != 1 and now[0] != 1:
        return True
    identity, newer = codec.identity(was), other.identity(now)
    if identity.is_of_another_object(newer):
        return False
    if identity.version == newer.version:
        return same_content(before, after)
    old, new = codec.decode(was), other.decode(now)
    for each in (old, new):
        metadata = each["metadata"]
        for field in _BOOKKEEPING:
            metadata.pop(field, None)
    # The comparison of dicts is quick, and nearly always says that they differ. Where it says that
    # they are equal it may have taken a boolean for a number.
    return old == new and not differences(old, new)


def frame_of(rows: Rows, columns: Iterable[str]) -> pandas.DataFrame:
    """Rows as a DataFrame that has these columns, also without a row."""
    try:
        import pandas  # noqa: PLC0415 - an extra: only its users pay for the import
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'dyninformer[notebook]'") from error
    return pandas.DataFrame(rows, columns=[*columns], dtype=object)


def _moment(snapshot: Snapshot) -> str:
    told = printable(snapshot.resource_version)
    version = f" (version {told})" if told else ""
    return f"{snapshot.time.isoformat(' ', 'seconds')}{version}"


def _value(value: Any) -> str:
    text = printable("(none)" if value is None else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}..."


def _unshown(value: Any) -> str:
    """Of a Secret: what is printed may be kept and passed on."""
    return "(none)" if value is None else "(not shown)"
