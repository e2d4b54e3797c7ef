"""Waits that an interrupt ends, without a lock left taken behind (S23).

`threading.Condition`, and `threading.Event` with it, take and free their lock in Python
code: an interrupt (Ctrl-C) between two of its bytecodes leaves the lock taken for ever, and
with it stands every thread that wants to wake the waiter. Here ``with`` is only used on
locks of C, which nothing can come between, and nobody holds one while it waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress


def bearable(seconds: float | None) -> float:
    """How to tell a lock of C to wait so long: as long as it can for None and ``inf``.

    >>> bearable(1.5), bearable(-1), bearable(float("inf")) == bearable(None)
    (1.5, 0.0, True)
    """
    longest = threading.TIMEOUT_MAX
    return longest if seconds is None else min(max(0.0, seconds), longest)


class Deadline:
    """The moment when a timeout is over, for waits that share one. Without a timeout, never.

    >>> Deadline(None).left, Deadline(None).over, Deadline(0).left, Deadline(0).over
    (None, False, 0.0, True)
    """

    __slots__ = ("_until",)

    def __init__(self, timeout: float | None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout

    @property
    def left(self) -> float | None:
        """Seconds until then, 0 when it is over; None if it never is."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    @property
    def over(self) -> bool:
        """It has passed."""
        return self._until is not None and time.monotonic() >= self._until


class Bell:
    """Wakes whoever waits for a condition to become true. Every method: from any thread.

    It has no lock, so that a finalizer or a signal handler may ring at any point, and whoever
    rings may hold any lock: a deque's append, popleft and remove are one step each.
    """

    def __init__(self) -> None:
        self._sleepers: deque[threading.Lock] = deque()

    def ring(self) -> None:
        """Have all who wait look again."""
        for _ in range(len(self._sleepers)):  # who comes later looks again by himself
            try:
                sleeper = self._sleepers.popleft()
            except IndexError:
                return  # somebody else rings, and wakes the rest
            sleeper.release()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the condition is true, as it is looked at after each ring.

        False if it is not at the timeout. The condition is called without a lock.
        """
        deadline = Deadline(timeout)
        while not condition():
            sleeper = threading.Lock()
            sleeper.acquire()
            try:
                self._sleepers.append(sleeper)
                # Looked at again: it may have come true before there was anybody to wake.
                if condition():
                    return True
                if not sleeper.acquire(timeout=bearable(deadline.left)):
                    return condition()
            finally:
                with suppress(ValueError):  # it was woken
                    self._sleepers.remove(sleeper)
        return True


class Flag:
    """A `threading.Event` whose waits an interrupt can end at any point."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._set = False

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    def set(self) -> None:
        """Wake all who wait, and let all pass who come."""
        self._set = True
        self._bell.ring()

    def clear(self) -> None:
        """Have who comes wait again."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if it is not at the timeout."""
        return self._bell.wait_for(self.is_set, timeout)
