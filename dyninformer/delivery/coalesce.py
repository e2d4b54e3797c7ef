"""The queue of a handler that wants each key once, with its newest state (S20)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias, TypeGuard

from dyninformer.delivery.queue import Consumer, HandlerQueue, Mark
from dyninformer.delivery.steps import ChangesWalk, Walk, merged
from dyninformer.store.changes import Change
from dyninformer.store.store import Store

Overrides: TypeAlias = dict[str, Change | None]


class _Progress:
    """A walk, how far this handler is in it, and what of the rest has changed since.

    An override of None is a step that is not told: it was merged away, or into another place.
    """

    __slots__ = ("at", "overrides", "skipped", "walk")

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.at = 0
        self.overrides: Overrides = {}
        self.skipped = 0

    def absorb(self, change: Change) -> bool:
        """Merge the change into a step that is still to come, if there is one of its key."""
        held = self.coming(change.key)
        if held is None:
            return False
        self.override(change.key, merged(held, change))
        return True

    def coming(self, key: str) -> Change | None:
        """The step of a key that is still to come."""
        at = self.walk.position(key)
        if at is None or at < self.at:
            return None
        if key in self.overrides:
            return self.overrides[key]
        return self.walk.step(at)

    def override(self, key: str, step: Change | None) -> None:
        """Put another step in a key's place, which is still to come."""
        self.overrides[key] = step
        self.skipped += step is None

    def pass_skipped(self) -> Change | None:
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


Place: TypeAlias = str | Mark | _Progress
Walks: TypeAlias = list[_Progress]
Pending: TypeAlias = "OrderedDict[Place, Change | Mark | _Progress]"


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

    def head(self) -> Change | None:
        """The first place's step, which from now on is not merged."""
        if self._hand is not None:
            return self._hand
        with self._store.lock:
            pending = self._pending
            while pending and not self.closed:
                place = next(iter(pending))
                item = pending[place]
                if isinstance(item, Change):
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
            if self._is_pending(self._hand):
                del self._pending[self._hand.key]
            self._hand = None

    def _is_pending(self, hand: Change | None) -> TypeGuard[Change]:
        """The hand stands in a place of its own; else it is a walk's, or was changed again."""
        return hand is not None and self._pending.get(hand.key) is hand

    def _untold(self) -> int:
        """The number of keys of which something is to be told, and the head."""
        with self._store.lock:
            places = len(self._pending) - len(self._walks) - self._marks
            if self._hand is not None and not self._is_pending(self._hand):
                places += 1
            return places + sum(walk.left for walk in self._walks)

    @property
    def walking(self) -> bool:
        """The last step of some walk was not yet handled."""
        return bool(self._walks)

    def _append(self, change: Change) -> None:
        pending = self._pending
        held = pending.get(change.key)
        if isinstance(held, Change) and held is not self._hand:
            self._replace(change.key, merged(held, change))
            return
        if any(walk.absorb(change) for walk in self._walks):
            return
        if held is not None:
            del pending[change.key]  # being told: what follows has a place of its own
        pending[change.key] = change

    def _replace(self, key: str, step: Change | None) -> None:
        if step is None:
            del self._pending[key]
        else:
            self._pending[key] = step

    def _takes_whole(self, changes: ChangesWalk) -> bool:
        return changes.initial

    def _append_walk(self, walk: Walk) -> None:
        """What the walk has of keys that are pending goes to their places."""
        progress = _Progress(walk)
        moved = [
            (held.key, merged(held, step))
            for held in self._pending.values()
            if isinstance(held, Change) and held is not self._hand
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
