"""A whole state of one scope, built apart and swapped in at once."""

from __future__ import annotations

from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from dyninformer.store.changes import Change, Changes, InitialChanges, Payload
from dyninformer.store.codec import SAMPLE_SIZE, Codec
from dyninformer.store.holdings import ByNamespace, Failed, Holdings, Indexes
from dyninformer.store.indexers import Row, enter_rows
from dyninformer.store.receiving import Received
from dyninformer.store.steps import Deciding, Step, Steps
from dyninformer.store.trimming import WORTH_IT, give_back_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Told: TypeAlias = list[Change]


class Owner(Protocol):
    """What a relist needs of its store."""

    codec: Codec
    lock: RLock
    holdings: Holdings
    failed: Failed

    def learn(self, sample: Callable[[], list[Payload]]) -> None:
        """Train the codec on the sample, unless that is done, and pack what is held again."""

    def tell(self, changes: Changes) -> None:
        """Tell the changes; called with the lock held."""

    def count(self, changes: Changes) -> None:
        """Count what was told; called without the lock."""


class Relist:
    """A scope's new state, next to the old one. For one thread, the scope's reflector.

    What is equal to what is held (S14) is only marked as present; the rest is packed and kept
    here, with its indexes. To throw it away, drop it: nothing of the store has changed before
    ``swap``.
    """

    def __init__(self, store: Owner, scope: str) -> None:
        self._store = store
        self._scope = scope
        self._deciding = Deciding(store.codec)
        self._present: set[str] = set()  # held, and to stay as it is
        self._failed: dict[str, str] = {}  # on what the transform failed, and why
        self._gone: set[str] = set()  # held, and said to be gone or not wanted
        self._deletes_missing = True
        self._new: dict[str, Payload] = {}  # in list order: what is not held, and what changes
        self._updates: dict[str, Step] = {}  # of those, what changes
        self._plain: set[str] = set()  # of those, what was packed without a dictionary
        self._size = 0  # once it is swapped in
        self._index_anew()

    def add(self, received: Received) -> None:
        """Take an object of the new state; of two of one key the later counts."""
        key = received.key
        if key in self._new:
            self._take_back(key)
        held, data = self._store.holdings.get_of(received.namespace, key), received.data
        if self._failed:
            self._failed.pop(key, None)
        if data is None:
            if received.failure:
                self._failed[key] = received.failure
            if received.failure and held and not self._deciding.is_another(received, held):
                self.keep(key)
            else:
                self._drop(key, held)
            return
        if held is None:
            self._new[key] = self._store.codec.pack(data, received.identity)
            indexing = self._indexing
            row = received.row if received.indexing is indexing else indexing.row_of(data)
            enter_rows(self._indexes, [key], [row])
        elif not self._compare(received, held):
            return
        if self._store.codec.wants_sample:
            self._plain.add(key)
            if len(self._new) >= SAMPLE_SIZE:
                self._learn()

    def add_all(self, several: Iterable[Received]) -> None:
        """``add`` for each of a batch; what is new, as all is at first, goes a shorter way."""
        if self._store.codec.wants_sample:
            for received in several:
                self.add(received)
            return
        new, indexing = self._new, self._indexing
        # Only this thread adds to the scope: what is empty stays so.
        held = self._store.holdings.get_of if self._store.holdings.count else None
        fresh: dict[str, bytes] = {}
        rows: list[Row] = []
        for received in several:
            key, data = received.key, received.data
            if (
                data is None
                or received.identity is not None
                or received.indexing is not indexing
                or key in new
                or key in fresh
                or (held is not None and held(received.namespace, key) is not None)
            ):
                self._add_fresh(fresh, rows)
                fresh, rows = {}, []
                self.add(received)
            else:
                fresh[key] = data
                rows.append(received.row)
        self._add_fresh(fresh, rows)

    def _add_fresh(self, fresh: dict[str, bytes], rows: list[Row]) -> None:
        """Take what is held nowhere, by key, and its index values."""
        self._new.update(zip(fresh, self._store.codec.pack_all(fresh.values()), strict=True))
        enter_rows(self._indexes, tuple(fresh), rows)

    def remove(self, received: Received) -> None:
        """Take back an object: a streaming list told of its deletion."""
        self._failed.pop(received.key, None)
        if received.key in self._new:
            self._take_back(received.key)
        self._drop(received.key, self._store.holdings.get(received.key))

    def keep(self, key: str) -> None:
        """Count a key as present, in whatever state is held: its object is unusable (S32)."""
        if key not in self._new and self._store.holdings.get(key) is not None:
            self._present.add(key)
            self._gone.discard(key)

    def keep_all(self) -> None:
        """Let this list delete nothing: it has an object whose key cannot be read (S32)."""
        self._deletes_missing = False

    def swap(self, first: bool) -> None:
        """Make it the store's state of the scope, in one section, and tell the changes.

        Deletes come first, as of unknown final state (S13), then the rest in list order (S8).
        ``first``: the changes are the scope's initial ones. After that the relist is used up.
        """
        self._swap(first)
        self._size, added = len(self), len(self._new)
        self._new, self._updates, self._present = {}, {}, set()
        if added >= WORTH_IT:
            give_back_memory()

    def _swap(self, first: bool) -> None:
        store = self._store
        self._pack_plain()
        while True:
            if self._indexing is not store.holdings.indexing:
                self._index_again()
            deletes = self._deletes()
            changes = self._changes(deletes, first)
            added = self._added()
            with store.lock:
                if self._indexing is not store.holdings.indexing:
                    continue  # an index was added in between
                for step in deletes:
                    store.holdings.make(step)
                for step in self._updates.values():
                    store.holdings.make(step)
                store.holdings.adopt(added, self._indexes)
                store.failed.replace(self._scope, self._failed)
                store.tell(changes)
            break
        store.count(changes)

    def __len__(self) -> int:
        """The number of objects in the new state, as far as it is known yet."""
        return self._size or len(self._present) + len(self._new)

    def _compare(self, received: Received, held: Payload) -> bool:
        """Take an object of a held key; whether it is another than the held one."""
        key = received.key
        self._gone.discard(key)
        step = self._deciding.kept(received, held, self._indexing, live=False)
        if step is None or step.change.new is None:
            self._present.add(key)
            return False
        self._present.discard(key)
        self._updates[key] = step
        self._new[key] = step.change.new
        return True

    def _drop(self, key: str, held: Payload | None) -> None:
        self._present.discard(key)
        if held is not None:
            self._gone.add(key)

    def _take_back(self, key: str) -> None:
        payload = self._new.pop(key)
        self._plain.discard(key)
        if self._updates.pop(key, None) is None:
            row = self._indexing.held(self._store.codec.plain(payload))[1]
            for index, values in zip(self._indexes, row, strict=True):
                index.replace(key, values, [])

    def _deletes(self) -> Steps:
        """The steps for what is held and not in the new state."""
        entries = self._store.holdings.entries
        namespaces = [self._scope] if self._scope else list(entries)
        steps: Steps = []
        for namespace in namespaces:
            # Only this thread adds and removes keys of the scope: it may walk without the lock.
            for key, held in entries.get(namespace, {}).items():
                if key in self._present or key in self._new:
                    continue
                if key in self._gone or self._deletes_missing:
                    step = self._deciding.missing(namespace, key, held, self._indexing)
                    steps.append(step)
        return steps

    def _changes(self, deletes: Steps, first: bool) -> Changes:
        if first and not deletes and not self._updates:
            return InitialChanges(self._new)
        changes: Told = [step.change for step in deletes]
        for key, payload in self._new.items():
            step = self._updates.get(key)
            changes.append(
                Change(key, None, payload, initial=first) if step is None else step.change
            )
        return changes

    def _added(self) -> ByNamespace:
        """What is not held yet, as the store keeps it."""
        added: ByNamespace = {}
        for key, payload in self._new.items():
            if key not in self._updates:
                added.setdefault(key.rpartition("/")[0], {})[key] = payload
        return added

    # Indexes.

    def _index_anew(self) -> None:
        self._indexing = self._store.holdings.indexing
        self._indexes: Indexes = self._indexing.new_indexes()

    def _index_again(self) -> None:
        """The store's index functions are others by now: ask those."""
        self._index_anew()
        plain = self._store.codec.plain
        for key, payload in self._new.items():
            if key not in self._updates:
                enter_rows(self._indexes, [key], [self._indexing.row_of(plain(payload))])
        for key, step in self._updates.items():
            self._updates[key] = self._deciding.again(step, self._indexing)

    # Compression.

    def _learn(self) -> None:
        self._store.learn(lambda: list(islice(self._new.values(), SAMPLE_SIZE)))
        self._pack_plain()

    def _pack_plain(self) -> None:
        """Pack again what came before there was a dictionary."""
        if self._store.codec.wants_sample:
            return
        for key in self._plain:
            payload = self._store.codec.repacked(self._new[key])
            self._new[key] = payload
            step = self._updates.get(key)
            if step is not None:
                change = msgspec.structs.replace(step.change, new=payload)
                self._updates[key] = msgspec.structs.replace(step, change=change)
        self._plain.clear()
