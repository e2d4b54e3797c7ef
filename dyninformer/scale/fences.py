"""Whether a shard is ours at this moment: asked before each callback and each write (S51)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dyninformer.errors import LostShardError
from dyninformer.threads import Bell, ReentrantLock, in_forked_child

Clock: TypeAlias = Callable[[], float]


class Tenure:
    """A stretch of time in which a replica may act, which is renewed until it is over once.

    Whoever finds it over has ended it for good, so that nothing is left out by one thread, and gone
    on with by another. From any thread.
    """

    def __init__(self, clock: Clock, until: float) -> None:
        self._clock = clock
        self._lock = ReentrantLock()  # guards what is below
        self._until = until
        self._over = False
        in_forked_child(self, "_lock", _over=True)

    def holds(self) -> bool:
        """Whether it is not over."""
        with self._lock:
            if self._clock() >= self._until:
                self._over = True
            return not self._over

    @property
    def left(self) -> float:
        """Seconds for which it holds, unless it is extended."""
        return max(0.0, self._until - self._clock())

    def extend(self, until: float) -> bool:
        """Renew it; False if it was over before."""
        with self._lock:
            if not self.holds():
                return False
            self._until = max(self._until, until)
            return True

    def end(self) -> None:
        """It is over now."""
        with self._lock:
            self._over = True


class Ownership:
    """A shard, or a lead, that is ours in one term, until it is let go of. From any thread.

    Not for import.
    """

    def __init__(self, what: str, shard: int, holder: str, term: int, tenure: Tenure) -> None:
        self.what = what
        self.shard = shard
        self.holder = holder
        self.term = term
        self._tenure = tenure
        # Guards what is below. A signal handler may come while its own thread holds it.
        self._lock = ReentrantLock()
        self._closed = False
        self._lost = False
        self._running = 0
        self.idle_bell = Bell()
        """Rings when nothing works on it any more, after it was closed."""
        in_forked_child(self, "_lock", _closed=True, _lost=True)

    def holds(self) -> bool:
        """Whether it is ours, by our own clock."""
        return not self._closed and self._tenure.holds()

    @property
    def left(self) -> float:
        """Seconds for which it is ours, unless it is extended, or closed before."""
        return self._tenure.left

    def extend(self, until: float) -> bool:
        """Have it for longer; False if it was over before."""
        return not self._closed and self._tenure.extend(until)

    def enter(self) -> bool:
        """Begin to work on it; False if it is not ours. Call `leave` afterwards."""
        with self._lock:
            if not self.holds():
                return False
            self._running += 1
            return True

    def leave(self) -> None:
        """What was begun is done."""
        with self._lock:
            self._running -= 1
            idle = self._closed and not self._running
        if idle:
            self.idle_bell.ring()

    def close(self, *, lost: bool = False) -> None:
        """Nothing begins any more; what has begun goes on, unless it is another's by now."""
        with self._lock:
            self._closed = True
            self._lost = self._lost or lost

    def works(self) -> bool:
        """Whether what has begun may go on: it is given to nobody before that has ended."""
        with self._lock:
            at_work = not self._closed or (self._running > 0 and not self._lost)
            return at_work and self._tenure.holds()

    @property
    def closed(self) -> bool:
        """Whether it was let go of."""
        return self._closed

    @property
    def idle(self) -> bool:
        """Nothing works on it, and nothing will."""
        with self._lock:
            return self._closed and not self._running


class Fence:
    """Who has a shard, and in which term: to be looked at before each write.

    ``term`` is greater than that of anybody that had the shard before: written into an object, it
    tells later readers which write is the newer one.

    >>> from dyninformer import Leader
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, Leader("nightly", "default", client=server.client()) as leader:
    ...     with leader.elected(timeout=30) as fence:
    ...         fence.check()
    ...         print(fence.term, fence.holder == leader.identity)
    0 True
    """

    __slots__ = ("_ownership",)

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership

    @property
    def shard(self) -> int:
        """Which shard; 0 for a leader."""
        return self._ownership.shard

    @property
    def holder(self) -> str:
        """The name of the replica, which is never used again."""
        return self._ownership.holder

    @property
    def term(self) -> int:
        """LeaseTransitions of its lease."""
        return self._ownership.term

    def holds(self) -> bool:
        """Whether it is ours still, by our own clock. Asks nobody."""
        return self._ownership.works()

    def check(self) -> None:
        """LostShardError unless it `holds`."""
        if not self.holds():
            raise lost(self._ownership.what, self.holder)

    def __repr__(self) -> str:
        state = "" if self.holds() else ", lost"
        return f"<Fence of {self._ownership.what}, term {self.term}{state}>"


def lost(what: str, holder: str) -> LostShardError:
    """What to raise where something is not ours."""
    return LostShardError(
        f"{what} is not ours ({holder}) any more, or was never: another replica has it, or may "
        "take it; write nothing of it"
    )
