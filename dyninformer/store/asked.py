"""Indexes of labels and fields that reads ask for again and again (S43).

A read that selects by a label without an index looks at every object. The second one that would
do so builds the index instead, and answers from it. Nobody else waits: other reads scan, and
writers keep what is being built up to date, as for indexes that users add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cachetools import LRUCache

from dyninformer.store.codec import Entry
from dyninformer.store.indexes import Asked, AskedIndex, Index, held_bytes
from dyninformer.store.matching import Condition, Conditions, Scan, Told, Wanted
from dyninformer.threads import unbroken
from dyninformer.types import Key, Keys, Objects

if TYPE_CHECKING:
    from dyninformer.store.store import Entries, Store

Items: TypeAlias = Iterable[tuple[Key, Entry]]
Space: TypeAlias = str | None
AskedList: TypeAlias = list[Asked]
Narrowed: TypeAlias = "tuple[list[tuple[Key, Entry]], Conditions]"

MOST_INDEXES: Final = 16
"""So many labels and fields have an index."""
MOST_BYTES_EACH: Final = 256
"""So many bytes all of them take, for each object that is held..."""
LEAST_BYTES: Final = 1 << 23
"""...or so many, where there are few objects."""

_WHOLE: Final = 16  # to look at one object in so many counts as a whole look
_REMEMBERED: Final = 256  # labels and fields that have no index, and were asked for
_GROWN: Final = 1.25  # times as many objects: what indexes take is counted again


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A condition, and the index that tells of it. The store's lock is held."""

    condition: Condition
    index: Index

    def count(self) -> float:
        """How many keys it leads to; infinite if it only says which to leave out."""
        told, values = self.condition.told, self.condition.values
        if told is Told.ANYWHERE:
            return self.index.count_all()
        return sum(map(self.index.count, values)) if told is Told.UNDER else math.inf

    def keys(self) -> Keys:
        """The keys that it leads to."""
        if self.condition.told is Told.ANYWHERE:
            return self.index.all_keys()
        return [key for value in self.condition.values for key in self.index.keys(value)]


class AskedIndexes:
    """Which labels and fields of one store were asked for, and which of them have an index.

    All is guarded by the store's lock, and indexes are added and dropped by whoever has the turn to
    add indexers to the store. Any thread may read ``names`` and ``size``.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looks: LRUCache[Asked, float] = LRUCache(_REMEMBERED)
        self._used: dict[Asked, None] = {}  # those with an index, the last used at the end
        self._too_large: dict[Asked, int] = {}  # with so many objects, one alone was
        self._counted_at = 0
        self.names: tuple[str, ...] = ()
        """The labels and fields that have an index."""
        self.size = 0
        """How many bytes the indexes took when they were last counted."""

    def entries(self, wanted: Wanted, namespace: Space) -> dict[Key, Entry]:
        """The keys and entries of what is wanted, of one namespace or of all, at one moment."""
        items, rest = self._candidates(wanted, namespace)
        if not rest:
            return dict(items)
        passing = Scan(rest).passing(items, self._store.codec)
        return {key: entry for key, entry, _ in passing}

    def objects(self, wanted: Wanted, namespace: Space) -> Objects:
        """The objects that are wanted, each decoded for the caller alone."""
        items, rest = self._candidates(wanted, namespace)
        if rest:
            return Scan(rest).objects(items, self._store.codec)
        return self._store.codec.decode_all([entry for _, entry in items])

    # -- from what is wanted to what has to be looked at -----------------------------------

    def _candidates(self, wanted: Wanted, namespace: Space) -> tuple[Items, Conditions]:
        """What may be wanted, and the conditions that it is still to be tested by."""
        store = self._store
        if wanted.namespace is not None:
            if namespace not in (None, wanted.namespace):
                return (), ()
            namespace = wanted.namespace
        self._count_again()
        narrowed, due = self._look(wanted, namespace)
        if due and self._build(due):
            narrowed, _ = self._look(wanted, namespace)
        if narrowed is not None:
            return narrowed
        return store.view(namespace).items(), wanted.conditions

    def _look(self, wanted: Wanted, namespace: Space) -> tuple[Narrowed | None, AskedList]:
        """What keys and indexes leave of what is held, None if that is all of it; what to index."""
        entries = self._store.entries
        with self._store.lock:
            narrowed = self._narrowed(entries, wanted, namespace)
            if narrowed is not None:
                looked_at, rest = len(narrowed[0]), narrowed[1]
            else:
                looked_at, rest = _size(entries, namespace), wanted.conditions
            return narrowed, self._due(rest, looked_at) if rest else []

    def _narrowed(self, entries: Entries, wanted: Wanted, namespace: Space) -> Narrowed | None:
        """The entries that the most selective way leads to, less those that an index rules out."""
        known = [
            _Known(each, index)
            for each in wanted.conditions
            if each.told is not Told.NOTHING
            and (index := entries.published.get(each.asked)) is not None
        ]
        for each in known:
            self._used[each.condition.asked] = self._used.pop(each.condition.asked, None)
        way = min(known, key=_Known.count, default=None)
        least = math.inf if way is None else way.count()
        by_key = math.inf
        if wanted.name is not None:
            by_key = 1 if namespace is not None else len(entries.by_namespace)
        elif namespace is not None and known:
            by_key = _size(entries, namespace)
        if least == by_key == math.inf:
            return None
        if way is None or by_key <= least:
            way, keys = None, _keys_of(entries, wanted.name, namespace)
        else:
            keys = _of_those(way.keys(), wanted, namespace)
        ruled = [way] if way is not None else []
        for each in known:
            if each is not way and each.condition.told is not Told.ANYWHERE:
                condition = each.condition
                is_under = condition.told is Told.UNDER
                keys = each.index.among(keys, condition.values, under=is_under)
                ruled.append(each)
        rest = [*wanted.conditions]
        for each in ruled:
            rest.remove(each.condition)
        found = [(key, entry) for key in keys if (entry := entries.get(key)) is not None]
        return found, tuple(rest)

    # -- which of them get an index --------------------------------------------------------

    def _due(self, rest: Conditions, looked_at: int) -> AskedList:
        """Of what has to be tested on so many objects, what is worth an index by now."""
        total = self._store.entries.count
        if not looked_at:
            return []
        due: AskedList = []
        for condition in rest:
            asked = condition.asked
            if condition.told not in (Told.UNDER, Told.ANYWHERE) or asked in due:
                continue
            if total < 2 * self._too_large.get(asked, 0):
                continue
            looks = self._looks.get(asked, 0.0)
            if looks >= 1:
                due.append(asked)
            else:
                self._looks[asked] = looks + min(1.0, looked_at * _WHOLE / total)
        return due[:MOST_INDEXES]

    def _build(self, due: AskedList) -> bool:
        """Have indexes of these; False if another thread is adding some, or this one is."""
        store, turn = self._store, False
        try:
            turn = unbroken(partial(store.adding.acquire, blocking=False))
            if not turn or store.entries.is_added_to:  # by this thread: a user's function reads
                return False
            missing = [each for each in due if each not in store.entries.published]
            store.add_asked({each: AskedIndex(each) for each in missing})
            with store.lock:
                for each in due:
                    self._looks.pop(each, None)
                    self._used[each] = self._used.pop(each, None)
            self._keep_to_budget()
        finally:
            if turn:
                store.adding.release()
        return True

    def _count_again(self) -> None:
        """Keep to the budget, if the store has grown since that was looked at."""
        store = self._store
        if not self._used or store.entries.count <= self._counted_at * _GROWN:
            return
        turn = False
        try:
            turn = unbroken(partial(store.adding.acquire, blocking=False))
            if turn and not store.entries.is_added_to:
                self._keep_to_budget()
        finally:
            if turn:
                store.adding.release()

    def _keep_to_budget(self) -> None:
        """Drop those that were not used for the longest, as long as there is too much.

        The caller has the turn to add indexers.
        """
        store = self._store
        published = store.entries.published
        with store.lock:
            total = store.entries.count
            contents = {
                each: published[each].contents() for each in self._used if each in published
            }
        sizes = {each: held_bytes(*parts) for each, parts in contents.items()}
        most = max(LEAST_BYTES, total * MOST_BYTES_EACH)
        dropped: AskedList = []
        for each in [*sizes]:
            if len(sizes) <= MOST_INDEXES and sum(sizes.values()) <= most:
                break
            if sizes.pop(each) > most:
                self._too_large[each] = total
            dropped.append(each)
        if dropped:
            store.drop_asked(dropped)
        with store.lock:
            for each in dropped:
                self._used.pop(each, None)
            self.names = tuple(map(str, self._used))
            self.size = sum(sizes.values())
            self._counted_at = total


def _size(entries: Entries, namespace: Space) -> int:
    if namespace is None:
        return entries.count
    return len(entries.by_namespace.get(namespace, ()))


def _keys_of(entries: Entries, name: str | None, namespace: Space) -> Keys:
    """The keys of a namespace, or those that an object of the name can have."""
    if name is None:
        return list(entries.by_namespace.get(namespace or "", ()))
    spaces: Sequence[str] = [*entries.by_namespace] if namespace is None else [namespace]
    return [f"{space}/{name}" if space else name for space in spaces]


def _of_those(keys: Keys, wanted: Wanted, namespace: Space) -> Keys:
    """Those of a namespace, and of the name that is wanted."""
    if namespace:
        inside = f"{namespace}/"
        keys = [key for key in keys if key.startswith(inside)]
    elif namespace is not None:
        keys = [key for key in keys if "/" not in key]
    return keys if wanted.name is None else [key for key in keys if wanted.has_key(key)]
