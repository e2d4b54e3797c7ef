"""What stays in a store is packed again, smaller than it came: aside, within a budget."""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from dyninformer.store.codec import SAMPLE_SIZE, Entry, EntryList, Mover
from dyninformer.store.dictionaries import spread
from dyninformer.store.memory import give_back_memory
from dyninformer.threads import ReentrantLock, in_forked_child
from dyninformer.types import Key, Keys

if TYPE_CHECKING:
    from dyninformer.store.store import Store

CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Have something called on another thread after so many seconds, one thing after the other."""
Places: TypeAlias = Iterator[tuple[str, Key]]
"""Namespaces and keys."""
Repacked: TypeAlias = Callable[[EntryList], EntryList]
"""Entries as they are to be, each itself if it is so."""

_BATCH: Final = 64  # so many entries are packed again between two sections that exchange them
_BATCH_BYTES: Final = 1 << 18  # of their JSON, or as many as that: a batch is not interrupted
_SLICE: Final = 0.005  # seconds of CPU time at a time
_RESTS: Final = 9  # so many times what was spent, before the next slice: a tenth of a core
_TRY_AGAIN: Final = 60.0  # seconds after there was no thread to look on
_TOGETHER: Final = 1 << 22  # bytes of entries that are freed at a time, at least: see `Replaced`
_PART_TOGETHER: Final = 32  # or this part of all, if that is more
_LARGER: Final = 1.1  # than all was when it was moved: what came since is worth a move
_MOVE_AGAIN: Final = 600.0  # seconds, at least, from one such move to the next...
_RESTS_BETWEEN: Final = 99  # ...and so many times what the last one spent: a hundredth of a core

_logger = logging.getLogger(__name__)


class Repacking:
    """Looks after how a store's entries are compressed. For one store.

    The first dictionary is trained where the objects come in, since nothing is compressed without
    it. What comes after that is done where `call_later` calls, once a whole state is there, so that
    a list or an update waits for none of it. It takes a tenth of a core's time at most. Where that
    cannot begin a thread, what is held stays as it is.
    """

    def __init__(self, store: Store) -> None:
        self._store = weakref.ref(store)  # a timer that is set keeps no store
        self.call_later: CallLater | None = None
        """Without one, all is done at once."""
        self._lock = ReentrantLock()  # guards the three that follow; nothing is called under it
        self._looks = False  # whether it is being looked how entries would be smaller
        self._moves = False  # whether entries are being moved
        self._again = False  # whether they are to be moved once more, since that has begun
        # Of whoever moves, who is one at a time.
        self._places: Places = iter(())  # what is yet to be moved
        self._mover: Mover | None = None
        self._spent = 0.0  # seconds of CPU time
        self._replaced = Replaced()
        # Of whoever looks or moves; others may read them late.
        self._moved_size = math.inf  # bytes of an entry when all were moved
        self._look_not_before = 0.0  # by the monotonic clock
        self._move_not_before = 0.0
        in_forked_child(
            self,
            "_lock",
            call_later=None,
            _looks=False,
            _moves=False,
            _again=False,
            _places=_nothing,
            _mover=None,
            _replaced=Replaced,
        )

    def learn(self, sample: Callable[[], EntryList]) -> None:
        """Train the first dictionary, unless that is done, and pack what is held with it."""
        store = self._store()
        if store is None or not store.codec.learn(sample):
            return
        places, repacked = _held(store), store.codec.repacked
        replaced = Replaced()
        while _moved(store, places, lambda entries: [*map(repacked, entries)], replaced):
            pass

    def look_at_held(self) -> None:
        """Have what is held made smaller where that is worth it by now. Mostly it is not."""
        store = self._store()
        if store is None:
            return
        codec, entries = store.codec, store.entries
        count = entries.count
        if codec.wants_sample:
            if count >= SAMPLE_SIZE:
                self.learn(lambda: spread(_entries(store), count, SAMPLE_SIZE))
        elif self._moves:
            pass  # what is yet to be moved is larger than it will be
        elif count >= codec.next_look or entries.size > codec.usual_size * count:
            self._look_soon()
        elif (
            entries.size > _LARGER * self._moved_size * count
            and time.monotonic() >= self._move_not_before
        ):
            self.move()

    def _look_soon(self) -> None:
        with self._lock:
            if self._looks or time.monotonic() < self._look_not_before:
                return
            self._looks = True
        if not self._soon(0.0, self._look):
            self._looks = False

    def _look(self) -> None:
        """See how what is held would be smaller, and have it moved over to that."""
        try:
            store = self._store()
            count = 0 if store is None else store.entries.count
            if store is None or not count:
                return
            if _finds_better(store, count):
                self.move()
            else:
                give_back_memory()  # of the sample: megabytes
        except BaseException:
            self._look_not_before = time.monotonic() + _TRY_AGAIN
            raise
        finally:
            self._looks = False

    def move(self) -> None:
        """Pack what is held again, with care: soon, and a few at a time."""
        with self._lock:
            self._again = self._moves
            if self._moves:
                return
            self._moves = True
        self._begin()

    def _begin(self) -> None:
        """The same for whoever has set `_moves`."""
        store = self._store()
        if store is not None:
            self._places, self._spent = _held(store), 0.0
            self._replaced = Replaced(store.entries.size)
            self._soon_go_on(0.0)

    def _soon_go_on(self, seconds: float) -> None:
        if not self._soon(seconds, self._go_on):
            self._fail()

    def _fail(self) -> None:
        """What is left stays as it is: it can be read. It is tried again in a while."""
        self._moved_size = 0.0
        self._move_not_before = time.monotonic() + _TRY_AGAIN
        self._end()

    def _end(self) -> None:
        self._places, self._mover, self._replaced = _nothing(), None, Replaced()
        self._moves = False

    def _go_on(self) -> None:
        """Move entries for a slice of time, and go on later."""
        try:
            rests = self._slice()
        except BaseException:
            self._fail()
            raise
        if rests is not None:
            self._soon_go_on(rests)

    def _slice(self) -> float | None:
        """Move entries; how many seconds to rest then, None if that was all."""
        store = self._store()
        if store is None:
            return None
        begun, spent = time.thread_time(), 0.0
        if self._mover is None or self._mover.number != store.codec.dictionary:
            self._mover = store.codec.mover()
        while _moved(store, self._places, self._mover.repacked, self._replaced):
            spent = time.thread_time() - begun
            if spent >= _SLICE and self.call_later is not None:
                self._spent += spent
                return _RESTS * spent
        with self._lock:
            again, self._again = self._again, False
        if again:
            self._places = _held(store)
            return 0.0
        rest = max(_MOVE_AGAIN, _RESTS_BETWEEN * (self._spent + spent))
        self._move_not_before = time.monotonic() + rest
        self._moved_size = store.entries.size / max(1, store.entries.count)
        store.codec.is_moved(self._moved_size)
        self._end()
        give_back_memory()  # of the tables, and of the entries as they were
        return None

    def _soon(self, seconds: float, act: Callable[[], None]) -> bool:
        """False if there is no thread for it: the store has changed by then, and goes on."""
        if self.call_later is None:
            act()
            return True
        try:
            self.call_later(seconds, act)
        except RuntimeError as error:  # no more threads, or the interpreter is ending
            _logger.warning("what is held is not compressed better for now: %s", error)
            self._look_not_before = time.monotonic() + _TRY_AGAIN
            return False
        return True


class Replaced:
    """Entries as they were, freed some megabytes at a time.

    Freed one by one, each leaves a hole: of 50,000 pods, 250 bytes each. Those that came one after
    the other lie side by side: freed together, they are one hole. It is given back to the system at
    once, since glibc has another heap for each thread, and the one that packs anew would not fill
    it: the process would grow by half of what it holds, until all is moved.
    """

    def __init__(self, held: int = 0) -> None:
        self._most = max(_TOGETHER, held // _PART_TOGETHER)
        self._entries: EntryList = []
        self._size = 0

    def add(self, entries: EntryList) -> None:
        """Free them when they are enough."""
        self._entries += entries
        self._size += sum(map(len, entries))
        if self._size >= self._most:
            self._entries, self._size = [], 0
            give_back_memory()


def _finds_better(store: Store, count: int) -> bool:
    """Whether so many entries are to be moved."""
    codec, held = store.codec, store.entries.size / count
    sample = spread(_entries(store), count, codec.sample_size(count, held))
    return codec.improve(sample, count, held)


def _nothing() -> Places:
    return iter(())


def _moved(store: Store, places: Places, repacked: Repacked, replaced: Replaced) -> bool:
    """Pack some entries again; False if there are none left."""
    get, plain_size = store.entries.get_of, store.codec.plain_size
    held: list[tuple[str, Key, Entry]] = []
    some, size = False, 0
    for namespace, key in islice(places, _BATCH):
        some, entry = True, get(namespace, key)
        if entry is not None:
            held.append((namespace, key, entry))
            size += plain_size(entry)
            if size >= _BATCH_BYTES:
                break
    packed = [
        (namespace, key, entry, after)
        for (namespace, key, entry), after in zip(
            held, repacked([entry for _, _, entry in held]), strict=True
        )
        if after is not entry
    ]
    if packed:
        with store.lock:
            store.entries.exchange(packed)
        replaced.add([entry for _, _, entry, _ in packed])
    return some


def _held(store: Store) -> Places:
    """The keys that are held; those of one namespace are copied at a time. Keeps no store."""
    return _keys_of(weakref.ref(store))


def _keys_of(known: weakref.ref[Store]) -> Places:
    store = known()
    if store is None:
        return
    with store.lock:
        namespaces = list(store.entries.by_namespace)
    for namespace in namespaces:
        store = known()
        if store is None:
            return
        with store.lock:
            keys: Keys = list(store.entries.by_namespace.get(namespace, ()))
        del store
        for key in keys:
            yield namespace, key


def _entries(store: Store) -> Iterator[Entry]:
    """The entries that are held, as they are found while one walks."""
    get = store.entries.get_of
    for namespace, key in _held(store):
        entry = get(namespace, key)
        if entry is not None:
            yield entry
