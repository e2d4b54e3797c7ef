"""What a store's lock guards: the entries, their indexes, and what is being added to those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from dyninformer.store.changes import Payload
from dyninformer.store.indexers import Index, Indexing, Row, enter_rows
from dyninformer.store.receiving import Received
from dyninformer.store.steps import Step

Entries: TypeAlias = dict[str, Payload]
ByNamespace: TypeAlias = dict[str, Entries]
Indexes: TypeAlias = list[Index]


class Failed:
    """Objects on whose newest state the transform failed: held in an older one, or not at all.

    Changed with the store's lock held; `count` and `first` may be read by anybody.
    """

    def __init__(self) -> None:
        self._why: dict[str, str] = {}
        self.count = 0
        """How many there are."""
        self.first = ""
        """Why the one failed that has been so for the longest; "" if there is none."""

    def note(self, received: Received) -> None:
        """The newest state of an object has come, or it is gone."""
        if received.failure:
            self._why[received.key] = received.failure
        elif not self._why or self._why.pop(received.key, None) is None:
            return
        self._look()

    def replace(self, scope: str, failed: Mapping[str, str]) -> None:
        """The whole state of a scope has come, a namespace's or "" for all."""
        if not self._why and not failed:
            return
        inside = f"{scope}/"
        rest = {key: why for key, why in self._why.items() if scope and not key.startswith(inside)}
        self._why = {**rest, **failed}
        self._look()

    def _look(self) -> None:
        self.count, self.first = len(self._why), next(iter(self._why.values()), "")


class Holdings:
    """Entries by namespace and key, and their indexes.

    Every method but ``get`` is called with the store's lock held. Nothing per object in here is
    looked at by the garbage collector.
    """

    def __init__(self, indexing: Indexing) -> None:
        self.entries: ByNamespace = {}
        """No namespace is empty; cluster-scoped objects are under ""."""
        self.indexing = indexing
        """The functions of all indexes, also of those under construction."""
        self.published: dict[str, Index] = dict(
            zip(indexing.functions, indexing.new_indexes(), strict=True)
        )
        """The indexes that readers see."""
        self._indexes: Indexes = list(self.published.values())
        self._written: set[str] | None = None
        self._published_indexing = indexing
        self.count = 0

    def get(self, key: str) -> Payload | None:
        """The entry of a key. Needs no lock: what it finds was there while it looked."""
        namespace, slash, _ = key.partition("/")
        entries = self.entries.get(namespace if slash else "")
        return None if entries is None else entries.get(key)

    def get_of(self, namespace: str, key: str) -> Payload | None:
        """As ``get``, where the namespace is at hand."""
        entries = self.entries.get(namespace)
        return None if entries is None else entries.get(key)

    def make(self, step: Step) -> None:
        """Make one step."""
        key, new = step.change.key, step.change.new
        entries = self.entries.get(step.namespace)
        if new is None:
            if entries is not None and entries.pop(key, None) is not None:
                self.count -= 1
                if not entries:
                    del self.entries[step.namespace]
        else:
            if entries is None:
                entries = self.entries[step.namespace] = {}
            self.count += key not in entries
            entries[key] = new
        if step.old_row is step.new_row:
            return  # an index under construction gets the same values from what was frozen
        if self._written is not None:
            self._written.add(key)
        for index, old, values in zip(self._indexes, step.old_row, step.new_row, strict=True):
            index.replace(key, old, values)

    def adopt(self, entries: ByNamespace, indexes: Indexes) -> None:
        """Take over entries of keys that are not held, and their indexes, built apart."""
        for namespace, added in entries.items():
            held = self.entries.get(namespace)
            if held is None:
                self.entries[namespace] = added
            else:
                held.update(added)
            self.count += len(added)
            if self._written is not None:
                self._written.update(added)
        for index, added_index in zip(self._indexes, indexes, strict=True):
            index.absorb(added_index)

    def exchange(self, packed: Iterable[tuple[str, str, Payload, Payload]]) -> None:
        """Hold the same objects in other bytes, where they are still held."""
        for namespace, key, held, payload in packed:
            entries = self.entries.get(namespace)
            if entries is not None and entries.get(key) is held:
                entries[key] = payload

    def frozen(self, namespace: str | None) -> ByNamespace:
        """A copy of one namespace or of all; it shares the entries."""
        if namespace is None:
            return {name: entries.copy() for name, entries in self.entries.items()}
        entries = self.entries.get(namespace)
        return {} if entries is None else {namespace: entries.copy()}

    # Indexes that are added while the store is written (S15).

    def begin(self, indexing: Indexing) -> Indexes:
        """From now on keep indexes for the functions that ``indexing`` has more, unpublished."""
        before = self.indexing.functions
        added = indexing.new_indexes([name for name in indexing.functions if name not in before])
        for index in added:
            index.complete = False
        self._indexes = [*self._indexes, *added]
        self.indexing = indexing
        self._written = set()
        return added

    def fill(self, added: Indexes, rows: Mapping[str, Row]) -> None:
        """Enter keys as they were at ``begin``, but those that were written since: they are in."""
        written = self._written or ()
        keys = [key for key in rows if key not in written]
        enter_rows(added, keys, [rows[key] for key in keys])

    def publish(self) -> None:
        """Let readers see the indexes that were begun."""
        for index in self._indexes:
            index.complete = True
        self.published = dict(zip(self.indexing.functions, self._indexes, strict=True))
        self._published_indexing = self.indexing
        self._written = None

    def withdraw(self) -> None:
        """Give up the indexes that were begun and not published."""
        self.indexing = self._published_indexing
        self._indexes = list(self.published.values())
        self._written = None
