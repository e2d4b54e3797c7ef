"""What an object that came does to what is held of its key: decided outside the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

import msgspec

from dyninformer.store.codec import (
    NO_STAMP,
    Codec,
    Entry,
    IndexRow,
    Stamp,
    follows,
    packed_identity,
    read,
    text,
)
from dyninformer.store.indexes import IndexFunctions
from dyninformer.store.receive import Received
from dyninformer.store.versions import older
from dyninformer.types import Key

WatchType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
WatchEvent: TypeAlias = tuple[WatchType, Received]


class Delta(msgspec.Struct, frozen=True, gc=False):
    """What became of one key. Added where there is no ``old``, deleted where there is no ``new``.

    The store tells it to its informer. It holds the store's own entries, and is nothing that the
    garbage collector looks at.
    """

    key: Key
    old: Entry | None
    new: Entry | None
    initial: bool = False
    """Part of the first state that a scope's store got."""
    final_state_unknown: bool = False
    """Found missing by a relist: ``old`` may not be the last state that the object had."""
    recreated: bool = False
    """The new object has another uid than the old."""
    came: float = 0.0
    """When a watch brought it, by the monotonic clock, if somebody measures that; else 0."""


Deltas: TypeAlias = Sequence[Delta]
"""Deltas in the order they are told. Those of a first state are made while one walks over them: to
keep the sequence is to keep the store's own entries and little more."""


class LiveDeltas(list[Delta]):
    """What watch events that came together changed, in their order: made, and told, at once."""


class InitialDeltas(Sequence[Delta]):
    """A first state as deltas, each made when it is asked for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """The mapping must not change any more."""
        self._entries = entries
        self._keys = tuple(entries)

    def __iter__(self) -> Iterator[Delta]:
        for key, entry in self._entries.items():
            yield Delta(key, None, entry, initial=True)

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, at: int) -> Delta: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Delta]: ...
    def __getitem__(self, at: int | slice) -> Delta | Sequence[Delta]:
        if isinstance(at, slice):
            return InitialDeltas({key: self._entries[key] for key in self._keys[at]})
        key = self._keys[at]
        return Delta(key, None, self._entries[key], initial=True)


class Write(msgspec.Struct, frozen=True, gc=False):
    """A delta and the index values before and after it, for the store to write.

    The two rows are one and the same list if no index changes, whatever is in it.
    """

    namespace: str
    delta: Delta
    old_row: IndexRow
    new_row: IndexRow


Writes: TypeAlias = list[Write]


class Decider:
    """Compares what came with what is held; immutable, for any thread."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def of_events(
        self,
        events: Iterable[WatchEvent],
        entry_of: Callable[[str, str], Entry | None],
        functions: IndexFunctions,
        came: float = 0.0,
    ) -> Writes:
        """What events that came together do, one after the other.

        ``entry_of`` gives the entry of a namespace and key. ``came`` is as a delta has it.
        """
        writes: Writes = []
        made: dict[str, Entry | None] = {}
        pack, stamp_of, no_values = self._codec.pack, functions.stamp, functions.no_values
        for type_, received in events:
            key, namespace, data = received.key, received.namespace, received.data
            current = made[key] if key in made else entry_of(namespace, key)
            if (
                current is not None
                and data is not None
                and type_ != "DELETED"
                and received.functions is functions
            ):
                stamp = stamp_of(received.uid, received.version, received.row)
                if follows(stamp, current):  # what nearly every event is, and `kept` would find
                    new = pack(data, received.identity, stamp)
                    delta = Delta(key, current, new, False, False, False, came)
                    writes.append(Write(namespace, delta, no_values, no_values))
                    made[key] = new
                    continue
            write = (
                self.removed(received, current, functions)
                if type_ == "DELETED"
                else self.kept(received, current, functions, live=True)
            )
            if write is not None:
                if came:
                    write = _came(write, came)
                writes.append(write)
                made[key] = write.delta.new
        return writes

    def kept(
        self, received: Received, current: Entry | None, functions: IndexFunctions, *, live: bool
    ) -> Write | None:
        """An object was added or changed. None if there is nothing to do.

        ``live``: it came as an event, so that it may be older than what is held (S30). A relist
        is the truth, as old as it may be.
        """
        data = received.data
        if current is None:
            if data is None:
                return None
            return self._added(received, data, functions)
        if data is None:
            return self._without(received, current, functions)
        stamp = _stamp(received, functions)
        recreated, row, old_row = False, functions.no_values, functions.no_values
        if not follows(stamp, current):
            plain = self._codec.plain(current)
            if plain == data and received.identity == packed_identity(current):
                return None
            uid, version, old_row = self._state_of(current, plain, functions)
            if live and older(received.version, version):
                return None
            if version == received.version and uid == received.uid and same_content(plain, data):
                return None
            recreated = bool(uid and received.uid and uid != received.uid)
            row = new_row(received, data, functions)
            if functions.only_paths and row == old_row:
                # There may be 100,000 such writes at once: they hold no values.
                row = old_row = functions.no_values
        new = self._codec.pack(data, received.identity, stamp)
        delta = Delta(received.key, current, new, recreated=recreated)
        return Write(received.namespace, delta, old_row, row)

    def _added(self, received: Received, data: bytes, functions: IndexFunctions) -> Write:
        entry = self._codec.pack(data, received.identity, _stamp(received, functions))
        delta = Delta(received.key, None, entry)
        row = new_row(received, data, functions)
        return Write(received.namespace, delta, functions.no_values, row)

    def _without(
        self, received: Received, current: Entry, functions: IndexFunctions
    ) -> Write | None:
        """Nothing of what was added or changed is kept (S17, S49).

        If the transform dropped it, what is held goes. If that failed, what is held stays as an
        older state of the same object. Were it another object, now gone, nobody would tell its end.
        """
        if not self.is_another(received, current):
            return None if received.failure else self.removed(received, current, functions)
        _, version, old_row = self._state_of(current, self._codec.plain(current), functions)
        if older(received.version, version):
            return None
        delta = Delta(received.key, current, None, final_state_unknown=True)
        return Write(received.namespace, delta, old_row, functions.no_values)

    def is_another(self, received: Received, current: Entry) -> bool:
        """What came is another object of the same name."""
        uid = self._codec.identity(current).uid
        return bool(uid and received.uid and uid != received.uid)

    def removed(
        self, received: Received, current: Entry | None, functions: IndexFunctions
    ) -> Write | None:
        """An object was deleted, or left the selection, or the transform dropped it (S6, S17)."""
        if current is None:
            return None
        uid, version, old_row = self._state_of(current, self._codec.plain(current), functions)
        if uid and received.uid and uid != received.uid:
            return None
        if older(received.version, version):
            return None
        return Write(
            received.namespace, Delta(received.key, current, None), old_row, functions.no_values
        )

    def missing(self, namespace: str, key: str, current: Entry, functions: IndexFunctions) -> Write:
        """A relist does not have an object that is held (S13)."""
        old_row = self._state_of(current, self._codec.plain(current), functions)[2]
        delta = Delta(key, current, None, final_state_unknown=True)
        return Write(namespace, delta, old_row, functions.no_values)

    def _state_of(
        self, current: Entry, plain: bytes, functions: IndexFunctions
    ) -> tuple[str, str, IndexRow]:
        head, row = functions.read_accepted(plain)
        uid, version = packed_identity(current) or (text(head[2]), text(head[3]))
        return uid, version, row

    def again(self, write: Write, functions: IndexFunctions) -> Write:
        """A write with the index values that other index functions give."""
        delta = write.delta
        old, new = delta.old, delta.new
        return Write(
            write.namespace,
            delta,
            functions.no_values
            if old is None
            else functions.read_accepted(self._codec.plain(old))[1],
            functions.no_values if new is None else functions.row_of(self._codec.plain(new)),
        )


def _came(write: Write, came: float) -> Write:
    """The write, with when it came."""
    delta = msgspec.structs.replace(write.delta, came=came)
    return msgspec.structs.replace(write, delta=delta)


def _stamp(received: Received, functions: IndexFunctions) -> Stamp:
    """The stamp of an object that is about to be packed."""
    if received.functions is not functions:
        return NO_STAMP
    return functions.stamp(received.uid, received.version, received.row)


def new_row(received: Received, data: bytes, functions: IndexFunctions) -> IndexRow:
    """The index values of an object, as these index functions give them."""
    return received.row if received.functions is functions else functions.row_of(data)


def same_content(held: bytes, came: bytes) -> bool:
    """Whether two objects' plain JSON says the same, in whatever order of keys.

    Values of different JSON types differ, ``true`` from ``1`` too. Whole and fractional numbers
    are compared by value.

    >>> same_content(b'{"a": 1, "b": 2}', b'{"b":2,"a":1.0}')
    True
    >>> same_content(b'{"a": 1}', b'{"a": true}')
    False
    """
    if held == came:
        return True
    try:
        left, right = read(held), read(came)
        # The comparison of dicts is fast and mostly says no; where it says yes it may have
        # taken a boolean for a number.
        return left == right and _same_types(left, right)
    except RecursionError:
        return False  # one update too many harms nobody


def _same_types(left: Any, right: Any) -> bool:
    """For two values that are equal: no boolean stands for a number."""
    if isinstance(left, dict):
        return all(_same_types(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)
