"""A whole state of one scope, built apart and swapped in at once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from dyninformer.store.codec import SAMPLE_SIZE, Entry
from dyninformer.store.decide import Decider, Delta, Deltas, InitialDeltas, Write, Writes, new_row
from dyninformer.store.indexes import enter_rows
from dyninformer.store.memory import FREED, give_back_memory
from dyninformer.types import Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dyninformer.store.codec import IndexRow, Stamp
    from dyninformer.store.indexes import IndexList
    from dyninformer.store.receive import Received
    from dyninformer.store.snapshot import ByNamespace
    from dyninformer.store.store import Store

_WORTH_IT: Final = 10_000
"""Objects that came new by one relist, after which what was freed is given back at once."""


class Relist:
    """A scope's new state, next to the old one. For one thread, the scope's reflector.

    What is equal to what is held (S14) is only marked as present; the rest is packed and kept
    here, with its indexes. To throw it away, drop it: nothing of the store has changed before
    `swap`.
    """

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        self._scope = scope
        self._decider = Decider(store.codec)
        self._present: set[Key] = set()  # held, and to stay as it is
        self._failed: dict[Key, str] = {}  # on what the transform failed, and why
        self._gone: set[Key] = set()  # held, and said to be gone or not wanted
        self._deletes_missing = True
        self._new: dict[Key, Entry] = {}  # in list order: what is not held, and what changes
        self._updates: dict[Key, Write] = {}  # of those, what changes
        self._plain: set[Key] = set()  # of those, what was packed without a dictionary
        self._size = 0  # once it is swapped in
        self._index_anew()

    def add(self, several: Iterable[Received]) -> None:
        """Take objects of the new state; of two of one key the later counts.

        A batch of what is new, as all is at first, goes a shorter way.
        """
        if self._store.codec.wants_sample:
            for received in several:
                self._add_one(received)
            return
        new, functions = self._new, self._functions
        # Only this thread adds to the scope: what is empty stays so.
        entry_of = self._store.entries.get_of if self._store.entries.count else None
        fresh: dict[Key, bytes] = {}
        rows: list[IndexRow] = []
        stamps: list[Stamp] = []
        for received in several:
            key, data = received.key, received.data
            if (
                data is None
                or received.identity is not None
                or received.functions is not functions
                or key in new
                or key in fresh
                or key in self._failed
                or (entry_of is not None and entry_of(received.namespace, key) is not None)
            ):
                self._add_fresh(fresh, rows, stamps)
                fresh, rows, stamps = {}, [], []
                self._add_one(received)
            else:
                row = received.row
                fresh[key] = data
                rows.append(row)
                stamps.append(functions.stamp(received.uid, received.version, row))
        self._add_fresh(fresh, rows, stamps)

    def _add_one(self, received: Received) -> None:
        key = received.key
        if key in self._new:
            self._take_back(key)
        current, data = self._store.entries.get_of(received.namespace, key), received.data
        if self._failed:
            self._failed.pop(key, None)
        if data is None:
            if received.failure:
                self._failed[key] = received.failure
            if received.failure and current and not self._decider.is_another(received, current):
                self.keep(key)
            else:
                self._drop(key, current)
            return
        if current is None:
            self._new[key] = self._store.codec.pack(data, received.identity)
            enter_rows(self._indexes, [key], [new_row(received, data, self._functions)])
        elif not self._compare(received, current):
            return
        if self._store.codec.wants_sample:
            self._plain.add(key)
            if len(self._new) >= SAMPLE_SIZE:
                self._learn()

    def _add_fresh(
        self, fresh: dict[Key, bytes], rows: list[IndexRow], stamps: list[Stamp]
    ) -> None:
        """Take what is held nowhere, by key, and its index values."""
        packed = self._store.codec.pack_all(fresh.values(), stamps)
        self._new.update(zip(fresh, packed, strict=True))
        enter_rows(self._indexes, tuple(fresh), rows)

    def remove(self, received: Received) -> None:
        """Take back an object: a streaming list told of its deletion."""
        self._failed.pop(received.key, None)
        if received.key in self._new:
            self._take_back(received.key)
        self._drop(received.key, self._store.entries.get(received.key))

    def keep(self, key: Key) -> None:
        """Count a key as present, in whatever state is held: its object is unusable (S32)."""
        if key not in self._new and self._store.entries.get(key) is not None:
            self._present.add(key)
            self._gone.discard(key)

    def keep_all(self) -> None:
        """Let this list delete nothing: it has an object whose key cannot be read (S32)."""
        self._deletes_missing = False

    def swap(
        self, first: bool, among: frozenset[Key] = frozenset(), version: str = ""
    ) -> Sequence[Delta]:
        """Make it the store's state of the scope, in one section, and tell the changes.

        Deletes come first, as of unknown final state (S13), then the rest in list order (S8).
        ``first``: the changes are the scope's initial ones. ``version`` is the one of which it is
        the state. After that the relist is used up.
        Returned are the changes ``among`` these keys.
        """
        found = self._swap(first, among, version)
        self._size, added = len(self), len(self._new)
        self._new, self._updates, self._present = {}, {}, set()
        if added >= _WORTH_IT:
            give_back_memory()
        else:
            FREED.note()
        return found

    def _swap(self, first: bool, among: frozenset[Key], version: str) -> Sequence[Delta]:
        store = self._store
        self._pack_plain()
        while True:
            if self._functions is not store.entries.functions:
                self._index_again()
            deletes = self._deletes()
            deltas = self._deltas(deletes, first)
            added = self._added()
            with store.lock:
                if self._functions is not store.entries.functions:
                    continue  # an index was added in between
                for write in deletes:
                    store.entries.write(write)
                for write in self._updates.values():
                    store.entries.write(write)
                store.entries.adopt(added, self._indexes)
                store.untransformed.replace(self._scope, self._failed)
                store.versions[self._scope] = version
                if deltas:
                    store.on_changes(deltas)
            break
        store.count(deltas)
        store.repacking.look_at_held()
        return [delta for delta in deltas if delta.key in among] if among else ()

    def __len__(self) -> int:
        """The number of objects in the new state, as far as it is known yet."""
        return self._size or len(self._present) + len(self._new)

    def _compare(self, received: Received, current: Entry) -> bool:
        """Take an object of a held key; whether it is another than the held one."""
        key = received.key
        self._gone.discard(key)
        write = self._decider.kept(received, current, self._functions, live=False)
        if write is None or write.delta.new is None:
            self._present.add(key)
            return False
        self._present.discard(key)
        self._updates[key] = write
        self._new[key] = write.delta.new
        return True

    def _drop(self, key: Key, current: Entry | None) -> None:
        self._present.discard(key)
        if current is not None:
            self._gone.add(key)

    def _take_back(self, key: str) -> None:
        entry = self._new.pop(key)
        self._plain.discard(key)
        if self._updates.pop(key, None) is None:
            row = self._functions.read_accepted(self._store.codec.plain(entry))[1]
            for index, values in zip(self._indexes, row, strict=True):
                index.replace(key, values, ())

    def _deletes(self) -> Writes:
        """The writes for what is held and not in the new state."""
        entries = self._store.entries.by_namespace
        namespaces = [self._scope] if self._scope else list(entries)
        writes: Writes = []
        for namespace in namespaces:
            # Only this thread adds and removes keys of the scope: it may walk without the lock.
            for key, entry in entries.get(namespace, {}).items():
                if key in self._present or key in self._new:
                    continue
                if key in self._gone or self._deletes_missing:
                    write = self._decider.missing(namespace, key, entry, self._functions)
                    writes.append(write)
        return writes

    def _deltas(self, deletes: Writes, first: bool) -> Deltas:
        if first and not deletes and not self._updates:
            return InitialDeltas(self._new)
        deltas: list[Delta] = [write.delta for write in deletes]
        for key, entry in self._new.items():
            write = self._updates.get(key)
            deltas.append(Delta(key, None, entry, initial=first) if write is None else write.delta)
        return deltas

    def _added(self) -> ByNamespace:
        """What is not held yet, as the store keeps it."""
        added: ByNamespace = {}
        for key, entry in self._new.items():
            if key not in self._updates:
                added.setdefault(key.rpartition("/")[0], {})[key] = entry
        return added

    # Indexes.

    def _index_anew(self) -> None:
        self._functions = self._store.entries.functions
        self._indexes: IndexList = self._functions.new_indexes()

    def _index_again(self) -> None:
        """The store's index functions are others by now: ask those."""
        self._index_anew()
        plain = self._store.codec.plain
        for key, entry in self._new.items():
            if key not in self._updates:
                enter_rows(self._indexes, [key], [self._functions.row_of(plain(entry))])
        for key, write in self._updates.items():
            self._updates[key] = self._decider.again(write, self._functions)

    # Compression.

    def _learn(self) -> None:
        self._store.repacking.learn(lambda: list(islice(self._new.values(), SAMPLE_SIZE)))
        self._pack_plain()

    def _pack_plain(self) -> None:
        """Pack again what came before there was a dictionary."""
        if self._store.codec.wants_sample:
            return
        for key in self._plain:
            entry = self._store.codec.repacked(self._new[key])
            self._new[key] = entry
            write = self._updates.get(key)
            if write is not None:
                delta = msgspec.structs.replace(write.delta, new=entry)
                self._updates[key] = msgspec.structs.replace(write, delta=delta)
        self._plain.clear()
