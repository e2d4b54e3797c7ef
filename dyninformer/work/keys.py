"""The keys of a work queue: which wait, which are at work, which come later, which failed."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from dyninformer.checked import checked_number
from dyninformer.types import Key, Keys

Since: TypeAlias = dict[Key, float]
Heap: TypeAlias = list[tuple[float, Key]]
Working: TypeAlias = dict[Key, tuple[int, float]]

_DOUBLINGS: Final = 1000
"""A float can be doubled so often without an overflow."""
_STALE: Final = 64
"""So many entries of the heap may be out of date before it is put together anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """How soon what failed is tried again: later and later for each key, and not all at once.

    The first retry of a key comes after ``first`` seconds, each further one after twice the time,
    up to ``longest``; a random part of at most ``jitter`` times the delay is added, so that what
    failed together is not tried again together. A queue makes at most ``per_second`` retries in
    the long run, and ``burst`` at a time; ``per_second=None`` sets no such limit. The defaults are
    client-go's, but for the jitter.

    >>> retry = RateLimited(first=1, longest=60, jitter=0)
    >>> [retry.delay(failures) for failures in (1, 2, 3, 100)]
    [1.0, 2.0, 4.0, 60.0]
    """

    first: float = 0.005
    longest: float = 1000.0
    jitter: float = 0.5
    per_second: float | None = 10.0
    burst: int = 100

    def __post_init__(self) -> None:
        first, longest = seconds("first", self.first), seconds("longest", self.longest)
        if not 0 < first <= longest:
            raise ValueError(
                f"first is {first:g} and longest {longest:g}: the first delay must be above 0, "
                "and no longer than the longest"
            )
        seconds("jitter", self.jitter)
        if self.per_second is not None and not seconds("per_second", self.per_second) > 0:
            raise ValueError("per_second is 0: give a number above it, or None for no limit")
        whole("burst", self.burst)

    def delay(self, failures: int, chance: float = 0.0) -> float:
        """Seconds until the next try of a key that failed so often; ``chance`` is from 0 to 1."""
        doubled = self.first * 2.0 ** min(max(0, failures - 1), _DOUBLINGS)
        return min(self.longest, doubled) * (1 + self.jitter * chance)


class Turn:
    """One turn of a key, as `WorkKeys.take` fills it in."""

    __slots__ = ("began", "came", "key", "number")

    def __init__(self) -> None:
        self.key: Key = ""
        """The key; "" as long as none was taken."""
        self.number = 0
        """Which turn of the queue it is, counted from 1."""
        self.came = 0.0
        """When it was added, or when its delay was over."""
        self.began = 0.0
        """When it was taken."""


class WorkKeys:
    """What is to be done for which key, and when: the core of a work queue, without its waits.

    No method waits, takes a lock, or calls any code but the clock and ``chance``: this class is
    the whole decision, for the queue of threads and for one of an event loop. Who uses it

    - calls it in one thread at a time (`WorkQueue` under its lock, an event loop by being one);
    - wakes one of those that wait for a key when `add`, `add_after`, `retry` or `done` says True,
      and all of them after `close`;
    - has those wait no longer than until `next_due`, and call `take` again.

    It keeps these promises. A key that was taken is not given again before `done`. What was added
    while it was at work brings it again, once. An added key is taken once for any number of
    additions before that. Keys are taken in the order in which they came, those whose delay is
    over behind those that wait then. Nothing is forgotten before `close`. An interrupt in the
    middle of any method, or a method that a signal handler calls in the middle of another, loses
    no key: what changes several members makes no call in between, and Python looks for
    interrupts after calls.

    >>> keys = WorkKeys(clock=iter(range(10)).__next__)
    >>> keys.add("prod/shop"), keys.add("prod/shop"), keys.depth
    (True, False, 1)
    >>> turn = Turn()
    >>> keys.take(turn), turn.key, keys.take(Turn())
    (True, 'prod/shop', False)
    >>> keys.add("prod/shop"), keys.take(Turn()), keys.done(turn), keys.take(Turn())
    (False, False, True, True)
    """

    def __init__(
        self,
        retry: RateLimited | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._limit = retry or RateLimited()
        self._clock = clock
        self._chance = chance
        self._waiting: Since = {}  # in the order of their turns
        self._working: Working = {}  # the number of the turn, and when it began
        self._again: Since = {}  # of those at work: what was added meanwhile
        self._later: Since = {}  # when they are due
        # Entries that _later does not have are out of date: they are passed over.
        self._heap: Heap = []
        self._failures: dict[Key, int] = {}
        self._turns = 0
        self._tokens = float(self._limit.burst)  # negative where retries are spoken for
        self._filled = clock()  # when the tokens were counted
        self.closed = False
        """Nothing is added any more."""
        self.added = 0
        """How often a key came to wait, so far."""
        self.retried = 0
        """How often a key was given another try, so far."""
        self.dropped = 0
        """How many keys were left undone by `close`, or failed after it."""

    # -- what is to be done --------------------------------------------------------------

    def add(self, key: Key) -> bool:
        """Have work done on a key. True if somebody who waits should be woken for it."""
        return not self.closed and self._put(key, self._clock())

    def add_after(self, key: Key, delay: float) -> bool:
        """`add` it after so many seconds; of several delays of a key the one that ends first.

        True if somebody who waits should be woken, to wait less long.
        """
        if delay <= 0:
            return self.add(key)
        now = self._clock()
        due = now + delay
        self._bring_due(now)  # a delay that is over is no earlier one: its key waits
        held = self._later.get(key)
        if self.closed or (held is not None and held <= due):
            return False
        if len(self._heap) > 2 * len(self._later) + _STALE:
            self._heap = sorted((due, key) for key, due in self._later.items())
        before = self._heap[0][0] if self._heap else math.inf
        heapq.heappush(self._heap, (due, key))  # first: without it the next would be passed over
        self._later[key] = due
        return due < before

    def retry(self, key: Key) -> tuple[float, bool]:
        """It failed: `add` it after a delay (`RateLimited`). The delay, and what `add_after` says.

        After `close` it is not added again, and counted as dropped.
        """
        if self.closed:
            self.dropped += 1
            return 0.0, False
        failures = self._failures.get(key, 0) + 1
        delay = max(self._limit.delay(failures, self._chance()), self._token())
        self._failures[key] = failures
        self.retried += 1
        return delay, self.add_after(key, delay)

    def forget(self, key: Key) -> None:
        """The next failure of the key is its first. What was added stays."""
        self._failures.pop(key, None)

    def retries(self, key: Key) -> int:
        """How often it has failed since it was last forgotten."""
        return self._failures.get(key, 0)

    # -- turns ---------------------------------------------------------------------------

    def take(self, turn: Turn) -> bool:
        """Give the next key its turn, and fill that in; False if none waits."""
        now = self._clock()
        self._bring_due(now)
        for key in self._waiting:  # the first one; and no call from here on
            self._turns += 1
            turn.number, turn.began, turn.came = self._turns, now, self._waiting[key]
            turn.key = key
            self._working[key] = (turn.number, now)
            del self._waiting[key]
            return True
        return False

    def lasts(self, turn: Turn) -> bool:
        """The turn was taken, and is not done."""
        held = self._working.get(turn.key)
        return held is not None and held[0] == turn.number

    def done(self, turn: Turn) -> bool:
        """The turn is over. True if the key waits again, since it was added meanwhile.

        Idempotent, also if the key has another turn by now.
        """
        if not self.lasts(turn):
            return False
        key = turn.key
        if key not in self._again:
            del self._working[key]
            return False
        self._waiting[key] = self._again[key]
        del self._again[key]
        del self._working[key]
        return True

    def next_due(self) -> float:
        """When `take` may have more to give, by the clock.

        ``-inf`` if it has now, ``inf`` if it will not have before something is added or done.
        """
        if self._waiting:
            return -math.inf
        while self._heap:
            due, key = self._heap[0]
            if self._later.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return math.inf

    # -- the end -------------------------------------------------------------------------

    def close(self, *, drain: bool = False) -> int:
        """Add nothing more. With ``drain`` what waits now is still given, else it is dropped.

        What is due later is dropped in either case. The number of keys that were. May be called
        again, to drop what was to be drained.
        """
        self.closed = True
        left = set(self._later)
        if not drain:
            left |= self._waiting.keys() | self._again.keys()
        self.dropped += len(left)
        self._later, self._heap = {}, []
        if not drain:
            self._waiting, self._again = {}, {}
        return len(left)

    @property
    def over(self) -> bool:
        """It is closed, and there is nothing to take."""
        return self.closed and not self._waiting

    # -- how it stands -------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """How many keys wait for their turn, without those that are due later."""
        return len(self._waiting) + len(self._again)

    @property
    def later(self) -> int:
        """How many keys are due later."""
        return len(self._later)

    @property
    def at_work(self) -> Keys:
        """The keys that were taken and are not done, the longest at work first."""
        return list(self._working)

    def spent(self, turn: Turn) -> float:
        """Seconds since a turn began."""
        return self._clock() - turn.began

    def unfinished(self) -> tuple[float, float]:
        """For how long those are at work: all together, and the longest."""
        now = self._clock()
        spent = [now - began for _, began in self._working.values()]
        return sum(spent), max(spent, default=0.0)

    # -- inside --------------------------------------------------------------------------

    def _put(self, key: Key, came: float) -> bool:
        if key in self._working:
            if key not in self._again:
                self._again[key] = came
                self.added += 1
            return False
        if key in self._waiting:
            return False
        self._waiting[key] = came
        self.added += 1
        return True

    def _bring_due(self, now: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, key = heap[0]
            if self._later.get(key) == due:
                self._put(key, due)  # first: an interrupt behind it brings the key once more
                del self._later[key]
            heapq.heappop(heap)

    def _token(self) -> float:
        """Take one of the bucket's; the seconds until it is there."""
        rate = self._limit.per_second
        if rate is None:
            return 0.0
        now = self._clock()
        filled = min(float(self._limit.burst), self._tokens + (now - self._filled) * rate)
        self._filled = now
        self._tokens = filled - 1.0
        return max(0.0, -self._tokens / rate)


def seconds(what: str, value: object) -> float:
    """A number of seconds that a user gave: finite, and not negative.

    >>> seconds("delay", 2)
    2.0
    >>> seconds("delay", -1)
    Traceback (most recent call last):
    ValueError: delay is -1: give a number of seconds from 0 on
    """
    number = checked_number(what, value, "a number of seconds")
    if not 0 <= number < math.inf:  # NaN, too
        raise ValueError(f"{what} is {value!r}: give a number of seconds from 0 on")
    return float(number)


def whole(what: str, value: object) -> int:
    """A number of things that a user gave: whole, and at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} is {value!r}: give a whole number of at least 1")
    return value


def checked_key(key: object) -> Key:
    """A key that a user gave, if it can be one."""
    if not isinstance(key, str):
        raise TypeError(
            f"{key!r} is no key: give 'namespace/name', or the name of a cluster-scoped object"
        )
    if not key:
        raise ValueError("a key is empty: give 'namespace/name'")
    return key
