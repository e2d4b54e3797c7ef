"""One handler's queue: filled under the informer's lock, emptied by one thread or task."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from typing import Final, TypeAlias

from dyninformer.store.codec import Entry
from dyninformer.store.decide import Delta
from dyninformer.store.memory import FREED
from dyninformer.store.snapshot import View
from dyninformer.store.store import Store
from dyninformer.threads import acquired, in_forked_child

Keys: TypeAlias = Sequence[str]
Positions: TypeAlias = dict[str, int]


class Step(Delta, frozen=True, gc=False):
    """A change that is not the store's own: a replay of what is held, or several merged."""

    last: Entry | None = None
    """The last state of a deletion that was merged with updates; it is newer than ``old``."""
    sync: bool = False
    """A resync: nothing changed."""
    uids_unknown: bool = False
    """Deleted and added again in between: only the two uids tell whether it is the same object."""


class Walk:
    """Many steps as one item of a queue, made one by one; shared by handlers, immutable.

    What it looks at is frozen, so that ``step`` gives the same again when an interrupt came
    between asking and using.
    """

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: Positions | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def step(self, at: int) -> Delta:
        """The step at this place."""
        raise NotImplementedError

    def keys(self) -> Keys:
        """The keys of all steps, each once."""
        raise NotImplementedError

    def position(self, key: str) -> int | None:
        """Where the step of a key is, None if there is none. Under the informer's lock.

        Only a handler that merges needs it, and only if something changes during its walk:
        then it is made once for all that walk with it.
        """
        if self._positions is None:
            self._positions = dict(zip(self.keys(), count()))
        return self._positions.get(key)


class ChangesWalk(Walk):
    """A relist's changes, or a first state's, as the store told them."""

    __slots__ = ("_changes",)

    def __init__(self, changes: Sequence[Delta]) -> None:
        super().__init__()
        self._changes = changes

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def initial(self) -> bool:
        """It is a first state: each step adds another key."""
        return self._changes[0].initial

    def step(self, at: int) -> Delta:
        """The change at this place."""
        return self._changes[at]

    def steps(self) -> Sequence[Delta]:
        """All of them."""
        return self._changes

    def keys(self) -> Keys:
        """The changed keys."""
        return [change.key for change in self._changes]


class ViewWalk(Walk):
    """All that was held at one moment: as added, for a handler that comes late, or as a resync."""

    __slots__ = ("_keys", "_sync", "_view")

    def __init__(self, view: View, *, sync: bool) -> None:
        super().__init__()
        self._view = view
        self._keys: Keys | None = None
        self._sync = sync

    def __len__(self) -> int:
        return len(self._view)

    def step(self, at: int) -> Delta:
        """The object at this place."""
        key = self.keys()[at]
        payload = self._view.get(key)
        if self._sync:
            return Step(key, payload, payload, sync=True)
        return Delta(key, None, payload, initial=True)

    def keys(self) -> Keys:
        """The keys of the view, put together when it is first walked, not under the lock."""
        if self._keys is None:
            self._keys = self._view.keys()
        return self._keys


def merged(first: Delta, then: Delta) -> Delta | None:
    """The one step that two of a key come to; None if they come to nothing (S20).

    It leads from what the handler was told before ``first`` to what ``then`` tells.
    """
    if first.old is None and then.new is None:
        return None
    return Step(
        first.key,
        first.old,
        then.new,
        initial=first.initial,
        final_state_unknown=then.final_state_unknown,
        last=then.old if then.new is None else None,
        uids_unknown=first.new is None or _may_be_another(first) or _may_be_another(then),
        came=first.came,  # for so long the handler has not been told what has changed
    )


def _may_be_another(step: Delta) -> bool:
    return step.recreated or (isinstance(step, Step) and step.uids_unknown)


Start: TypeAlias = Callable[[], object]
Missed: TypeAlias = dict[str, Delta]
Reached: TypeAlias = list[Callable[[], None]]
FellBehind: TypeAlias = Callable[["HandlerQueue"], object]

MANY: Final = 10_000
"""So many changes in a queue without a bound are worth a warning, and so is each tenfold of it."""


class Consumer(Enum):
    """The state of the thread that empties a queue; of a task it is always CALLED."""

    AWAKE = "looks at the queue before it waits"
    WAITING = "sleeps until the bell rings"
    ABSENT = "has no thread: one has to be started"
    CALLED = "is called with each addition, and at the end: an event loop's"


_AWAKE: Final = Consumer.AWAKE  # an enum's attributes are slow to look up


class Mark:
    """A place in a queue: told when everything before it has been handled."""

    __slots__ = ("reached",)

    def __init__(self, reached: Callable[[], None]) -> None:
        self.reached = reached


class HandlerQueue(ABC):
    """What a handler is yet to be told, in order.

    The informer's lock guards everything here except what is marked as the consumer's. Producers
    hold it when they call ``put``, ``put_changes``, ``put_walk`` and ``mark``, and do not call
    them on a closed queue. ``head``, ``advance``, ``wait`` and ``leave`` are for the one
    consumer, which holds no lock. A step stays the head until ``advance``, so that an interrupt
    in a user's thread loses nothing and tells nothing twice (S23).

    A change that cannot be queued, because memory is short, say, is missed: what leads from the
    state that the handler will know to the one that it should know is kept by key, and
    `catch_up` queues it.
    """

    def __init__(self, store: Store, consumer: Consumer, *, initial: bool = True) -> None:
        self.closed = False  # set once; read by any thread
        self._store = store
        self._initial = initial
        self._consumer = consumer
        self._bell = threading.Lock()  # while the consumer waits, it is held; to ring is to release
        self._bell.acquire()
        self._start_consumer: Start = _nobody
        self._hand: Delta | None = None  # the consumer's: the head that it was given
        self._missed: Missed = {}
        self._late: Reached = []  # what to call once all that was missed is queued, and handled
        self._fell_behind: FellBehind = _unheard
        self.most: int | None = None
        """So many changes wait one by one, and no more; None is no bound."""
        self.overflows = 0
        """How often more than that would have waited, so that they were merged."""
        in_forked_child(self, then=HandlerQueue._end_in_child)

    def start_with(self, start: Start) -> None:
        """Say how to get a consumer when there is none; called under the lock, must not wait."""
        self._start_consumer = start

    def call_with(self, call: Start) -> None:
        """Call this, under the lock, after each addition and when it is closed. Must not wait."""
        self._start_consumer = call
        self._consumer = Consumer.CALLED

    def tell_when_behind(self, call: FellBehind) -> None:
        """Call this, under the lock, when its changes were merged, or have become many."""
        self._fell_behind = call

    def put(self, changes: Sequence[Delta]) -> None:
        """Take changes one by one. Raises once all are queued or missed."""
        failure: BaseException | None = None
        append, takes_initial = self._append, self._initial
        for change in changes:
            if change.initial and not takes_initial:
                continue
            try:
                if self._missed:
                    self._take(change)
                else:
                    append(change)
            except BaseException as error:  # noqa: BLE001 - raised below, after the others
                self._missed.setdefault(change.key, change)
                failure = error
        if self._consumer is not _AWAKE and self._has_items():
            self.rouse()
        if failure is not None:
            raise failure

    def put_changes(self, changes: ChangesWalk) -> None:
        """Take the changes of a relist, or a first state. Raises once all are queued or missed."""
        if changes.initial and not self._initial:
            return
        if self._missed or not self._takes_whole(changes):
            self.put(changes.steps())
            return
        try:
            self._append_walk(changes)
        except BaseException:
            self._missed.update((change.key, change) for change in changes.steps())
            raise
        self.rouse()

    def put_walk(self, walk: Walk) -> None:
        """Take a late replay or a resync. If it raises, nothing of it was taken."""
        if len(walk):
            self._append_walk(walk)
            self.rouse()

    def mark(self, reached: Callable[[], None]) -> None:
        """Have ``reached`` called once all that is queued now was handled; at once if nothing."""
        if self._missed:
            self._late.append(reached)
        elif self.backlog:
            try:
                self._append_mark(Mark(reached))
            except BaseException:
                self._late.append(reached)
                raise
            self.rouse()
        else:
            reached()

    @property
    def missed(self) -> bool:
        """There are changes, or marks, that could not be queued: `catch_up`."""
        return bool(self._missed or self._late)

    def catch_up(self) -> None:
        """Try again to queue what was missed. Under the lock; raises as ``put`` does."""
        missed = tuple(self._missed.values())
        self._missed = {}
        try:
            self.put(missed)
        finally:
            while self._late and not self._missed:
                self.mark(self._late.pop(0))

    def _take(self, change: Delta) -> None:
        """Queue one change, merged with what was missed of its key."""
        key = change.key
        step: Delta | None = change
        if key in self._missed:
            step = merged(self._missed[key], change)
            del self._missed[key]
        if step is None:
            return
        try:
            self._append(step)
        except BaseException:
            self._missed[key] = step
            raise

    def rouse(self) -> None:
        """Have the consumer look at the queue. Under the lock."""
        if self._consumer is Consumer.WAITING:
            self._consumer = Consumer.AWAKE
            self._bell.release()  # held: ``wait`` saw to that before it said WAITING
        elif self._consumer is Consumer.ABSENT:
            self._start_consumer()
            self._consumer = Consumer.AWAKE  # last: without a start it is absent still
        elif self._consumer is Consumer.CALLED:
            self._start_consumer()

    def wait(self, timeout: float | None) -> bool:
        """Sleep until there is work, the queue is closed, or the timeout; False is the timeout.

        An interrupt may leave the state WAITING and the bell rung or not; both are good.
        """
        with self._store.lock:
            if self._has_items() or self.closed:
                return True
            self._bell.acquire(blocking=False)  # a ring that an interrupt left unheard
            self._consumer = Consumer.WAITING
        if acquired(self._bell, timeout):
            return True
        with self._store.lock:
            if self._consumer is Consumer.AWAKE:
                return True  # roused after the timeout, before the lock
            self._consumer = Consumer.AWAKE
            return False

    def leave(self) -> None:
        """The consumer ends: what is queued from now on needs another."""
        with self._store.lock:
            self._consumer = Consumer.ABSENT

    def close(self) -> int:
        """Take and give nothing more; the number of steps that this leaves untold."""
        dropped = self.backlog - (self._hand is not None)
        self.closed = True
        self._empty()
        if self._consumer in (Consumer.WAITING, Consumer.CALLED):
            self.rouse()
        return max(0, dropped)

    def _empty(self) -> None:
        self._clear()
        self._missed = {}
        self._late = []

    def _end_in_child(self) -> None:
        """No consumer lives, unless it is the thread that forked: that one sees the end."""
        self.closed = True
        before, self._bell = self._bell, threading.Lock()
        self._bell.acquire()
        if self._consumer is Consumer.WAITING and before.locked():
            before.release()
        self._consumer = Consumer.AWAKE
        self._empty()

    @abstractmethod
    def head(self) -> Delta | None:
        """What is to be told next; None if there is nothing now. It is no longer merged."""

    @abstractmethod
    def advance(self) -> None:
        """The head was told, or never will be. Without a head it does nothing."""

    def following(self) -> Delta | None:
        """`advance`, and then `head`; for a thread that no interrupt comes to."""
        self.advance()
        return self.head()

    @property
    def backlog(self) -> int:
        """The number of steps that are not yet handled."""
        return 0 if self.closed else self._untold() + len(self._missed)

    @property
    @abstractmethod
    def walking(self) -> bool:
        """A first state, late replay or resync is not yet finished."""

    @abstractmethod
    def _untold(self) -> int:
        """The number of queued steps that are not yet handled."""

    @abstractmethod
    def _append(self, change: Delta) -> None:
        """Queue a change. If it raises, nothing has changed; so it is with the next."""

    @abstractmethod
    def _append_walk(self, walk: Walk) -> None: ...

    @abstractmethod
    def _takes_whole(self, changes: ChangesWalk) -> bool:
        """A relist's changes are queued as the one walk that they are, not one by one."""

    @abstractmethod
    def _append_mark(self, mark: Mark) -> None: ...

    @abstractmethod
    def _has_items(self) -> bool: ...

    @abstractmethod
    def _clear(self) -> None: ...


def _nobody() -> None:
    """A stream's consumer comes by itself."""


def _unheard(queue: HandlerQueue) -> None:
    """Nobody wants to know."""


Item: TypeAlias = Delta | Walk | Mark


class OrderedQueue(HandlerQueue):
    """Everything, one after the other.

    Producers append at one end under the lock; the consumer takes from the other without it:
    a deque allows that. ``_clear`` puts another deque in place, and the consumer finishes with
    the one that it holds.
    """

    def __init__(self, store: Store, consumer: Consumer, *, initial: bool = True) -> None:
        super().__init__(store, consumer, initial=initial)
        self._items: deque[Item] = deque()
        self._many = MANY  # so many items, and somebody should know
        self._queued = 0
        self._walks = 0
        self._told = 0  # the consumer's
        self._walked = 0  # the consumer's
        self._at = 0  # the consumer's: its place in the walk that is the first item

    def head(self) -> Delta | None:
        """The first item, or the step of a walk."""
        if self._hand is not None:
            return self._hand
        items = self._items
        while items and not self.closed:
            item = items[0]
            if isinstance(item, Delta):
                self._hand = item
                return item
            if isinstance(item, Walk):
                if self._at < len(item):
                    self._hand = item.step(self._at)
                    return self._hand
                # Between here and popleft no interrupt comes in: Python looks for one only
                # after a call, and at the end of a loop's turn. So it is in ``advance``.
                self._walked += 1
                self._at = 0
            else:
                item.reached()
            items.popleft()
        if self._many != MANY:  # it has caught up; a producer that sounds just now sounds again
            self._many = MANY
            FREED.note()
        return None

    def advance(self) -> None:
        """Take the head away."""
        items = self._items
        if self._hand is None or not items:
            self._hand = None
            return
        walking = isinstance(items[0], Walk)
        self._told += 1
        self._hand = None
        if walking:
            self._at += 1
        else:
            items.popleft()

    def following(self) -> Delta | None:
        """The next item, where one change comes after the other: nearly always."""
        items = self._items
        if len(items) > 1 and items[0] is self._hand and not self.closed:
            step = items[1]
            if type(step) is Delta:
                items.popleft()
                self._told += 1
                self._hand = step
                return step
        return super().following()

    def _untold(self) -> int:
        """All queued steps that were not handled."""
        return self._queued - self._told

    @property
    def walking(self) -> bool:
        """The last step of some walk was not yet handled."""
        return self._walks > self._walked

    def _append(self, change: Delta) -> None:
        items = self._items
        if len(items) >= self._many:
            self._many *= 10
            self._fell_behind(self)
        items.append(change)
        self._queued += 1

    def _takes_whole(self, changes: ChangesWalk) -> bool:
        del changes
        return True

    def _append_walk(self, walk: Walk) -> None:
        self._items.append(walk)
        self._queued += len(walk)
        self._walks += 1

    def _append_mark(self, mark: Mark) -> None:
        self._items.append(mark)

    def _has_items(self) -> bool:
        return bool(self._items)

    def _clear(self) -> None:
        self._items = deque()


Overrides: TypeAlias = dict[str, Delta | None]


class _Progress:
    """A walk, how far this handler is in it, and what of the rest has changed since.

    An override of None is a step that is not told: it was merged away, or into another place.
    """

    __slots__ = ("at", "overrides", "skipped", "walk")

    def __init__(self, walk: Walk, at: int = 0) -> None:
        self.walk = walk
        self.at = at
        self.overrides: Overrides = {}
        self.skipped = 0

    def absorb(self, change: Delta) -> bool:
        """Merge the change into a step that is still to come, if there is one of its key."""
        held = self.coming(change.key)
        if held is None:
            return False
        self.override(change.key, merged(held, change))
        return True

    def coming(self, key: str) -> Delta | None:
        """The step of a key that is still to come."""
        at = self.walk.position(key)
        if at is None or at < self.at:
            return None
        if key in self.overrides:
            return self.overrides[key]
        return self.walk.step(at)

    def override(self, key: str, step: Delta | None) -> None:
        """Put another step in a key's place, which is still to come."""
        self.overrides[key] = step
        self.skipped += step is None

    def pass_skipped(self) -> Delta | None:
        """The next step to tell, after those that are not told; None at the end."""
        while self.at < len(self.walk):
            step = self.walk.step(self.at)
            if step.key not in self.overrides:
                return step
            replaced = self.overrides[step.key]
            if replaced is not None:
                return replaced
            self.skipped -= 1
            self.at += 1
        return None

    @property
    def left(self) -> int:
        return len(self.walk) - self.at - self.skipped


Place: TypeAlias = str | int | Mark | _Progress
Walks: TypeAlias = list[_Progress]
Pending: TypeAlias = "OrderedDict[Place, Delta | Mark | _Progress]"


class CoalescingQueue(HandlerQueue):
    """What is not yet told, at most one step of each key, in the place of its first.

    It never holds more than one step for each key, however far the handler is behind. Of a walk
    it holds what has changed since. The consumer, too, takes the lock: what it takes can no
    longer be merged.
    """

    def __init__(self, store: Store, consumer: Consumer, *, initial: bool = True) -> None:
        super().__init__(store, consumer, initial=initial)
        self._pending: Pending = OrderedDict()
        self._walks: Walks = []  # those in _pending
        self._marks = 0  # the number of those in _pending
        self._hand_place: Place = ""  # where the hand was found

    def head(self) -> Delta | None:
        """The first place's step, which from now on is not merged."""
        if self._hand is not None:
            return self._hand
        with self._store.lock:
            pending = self._pending
            while pending and not self.closed:
                place = next(iter(pending))
                item = pending[place]
                self._hand_place = place
                if isinstance(item, Delta):
                    self._hand = item
                    return item
                if isinstance(item, _Progress):
                    step = item.pass_skipped()
                    if step is not None:
                        self._hand = step
                        item.at += 1  # no interrupt comes between: see OrderedQueue
                        return step
                    self._walks = [walk for walk in self._walks if walk is not item]
                else:
                    item.reached()
                    self._marks -= 1
                del pending[place]
        return None

    def advance(self) -> None:
        """Take the head away."""
        with self._store.lock:
            if self._hand is not None and self._hand_is_pending():
                del self._pending[self._hand_place]
            self._hand = None

    def _hand_is_pending(self) -> bool:
        """The hand stands in a place of its own; else it is a walk's, or was changed again."""
        return self._pending.get(self._hand_place) is self._hand

    def _untold(self) -> int:
        """The number of keys of which something is to be told, and the head."""
        with self._store.lock:
            places = len(self._pending) - len(self._walks) - self._marks
            if self._hand is not None and not self._hand_is_pending():
                places += 1
            return places + sum(walk.left for walk in self._walks)

    @property
    def walking(self) -> bool:
        """The last step of some walk was not yet handled."""
        return bool(self._walks)

    def _append(self, change: Delta) -> None:
        pending = self._pending
        held = pending.get(change.key)
        if isinstance(held, Delta) and held is not self._hand:
            self._replace(change.key, merged(held, change))
            return
        if any(walk.absorb(change) for walk in self._walks):
            return
        if held is not None:
            del pending[change.key]  # being told: what follows has a place of its own
        pending[change.key] = change

    def _replace(self, key: str, step: Delta | None) -> None:
        if step is None:
            del self._pending[key]
        else:
            self._pending[key] = step

    def _takes_whole(self, changes: ChangesWalk) -> bool:
        return changes.initial

    def _append_walk(self, walk: Walk) -> None:
        self._append_progress(_Progress(walk))

    def _append_progress(self, progress: _Progress) -> None:
        """What the walk has of keys that are pending goes to their places."""
        moved = [
            (held.key, merged(held, step))
            for held in self._pending.values()
            if isinstance(held, Delta) and held is not self._hand
            if (step := progress.coming(held.key)) is not None
        ]  # nothing has changed yet, should that have raised
        self._walks.append(progress)
        self._pending[progress] = progress
        for key, step in moved:
            progress.override(key, None)
            self._replace(key, step)

    def _append_mark(self, mark: Mark) -> None:
        self._pending[mark] = mark
        self._marks += 1

    def _has_items(self) -> bool:
        return bool(self._pending)

    def _clear(self) -> None:
        self._pending = OrderedDict()
        self._walks = []
        self._marks = 0


class BoundedQueue(CoalescingQueue):
    """Everything, one after the other, while that is at most so many changes; then merged.

    When one more comes, all that is queued is merged as a `CoalescingQueue` would have, and so is
    what comes from then on, until the consumer has taken the last of it. So the handler is told
    the difference between what it knows and what is held, which is what a relist would tell it;
    no copy of what it knows is needed, since the first step of each key begins there.

    It never holds more than ``most`` changes one by one, or else one step of each key that the
    handler was told of or that is held; and beside either walks, of a state that is shared.
    """

    def __init__(
        self, store: Store, consumer: Consumer, *, initial: bool = True, most: int
    ) -> None:
        super().__init__(store, consumer, initial=initial)
        self.most = self._most = most
        self._merges = False  # each step stands at its key's place; else at that of its turn
        self._turns = count()

    def head(self) -> Delta | None:
        """The first step. Where there is none, it has caught up."""
        with self._store.lock:
            step = super().head()
            if step is None and self._merges:
                self._merges = False
                FREED.note()
            return step

    def _append(self, change: Delta) -> None:
        if not self._merges and self._one_by_one() >= self._most:
            self._merge()
        if self._merges:
            super()._append(change)
        else:
            self._pending[next(self._turns)] = change

    def _one_by_one(self) -> int:
        return len(self._pending) - len(self._walks) - self._marks

    def _takes_whole(self, changes: ChangesWalk) -> bool:
        """A relist's changes are a walk where no other one has steps of the same keys."""
        return changes.initial or not (self._merges or self._walks)

    def _append_progress(self, progress: _Progress) -> None:
        if self._merges:
            super()._append_progress(progress)
        else:
            self._walks.append(progress)
            self._pending[progress] = progress

    def _merge(self) -> None:
        """Bring each step to the place of its key. If that raises, all is as it was."""
        before = self._pending, self._walks, self._marks, self._hand_place
        self._pending, self._walks, self._marks = OrderedDict(), [], 0
        self._merges = True
        try:
            for item in before[0].values():
                if isinstance(item, Delta):
                    super()._append(item)
                elif isinstance(item, _Progress):  # its overrides are none: nothing was merged
                    super()._append_progress(_Progress(item.walk, item.at))
                else:
                    self._append_mark(item)
            if self._hand is not None and before[0].get(before[3]) is self._hand:
                self._hand_place = self._hand.key
            self._fell_behind(self)
        except BaseException:
            self._pending, self._walks, self._marks, self._hand_place = before
            self._merges = False
            raise
        self.overflows += 1

    def _clear(self) -> None:
        super()._clear()
        self._merges = False
