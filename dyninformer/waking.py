"""Waits that an interrupt ends, without a lock left taken behind (S23).

`threading.Condition`, and `threading.Event` with it, take and free their lock in Python
code: an interrupt (Ctrl-C) between two of its bytecodes leaves the lock taken for ever, and
with it stands every thread that wants to wake the waiter. Here ``with`` is only used on
locks of C, which nothing can come between, and nobody holds one while it waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Bell:
    """Wakes whoever waits for a condition to become true. Every method: from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _sleepers; a finalizer may ring meanwhile
        self._sleepers: set[threading.Lock] = set()

    def ring(self) -> None:
        """Have all who wait look again."""
        with self._lock:
            sleepers, self._sleepers = self._sleepers, set()
        for sleeper in sleepers:
            sleeper.release()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the condition is true, as it is looked at after each ring.

        False if it is not at the timeout. The condition is called without a lock.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not condition():
            sleeper = threading.Lock()
            sleeper.acquire()
            try:
                with self._lock:
                    self._sleepers.add(sleeper)
                # Looked at again: it may have come true before there was anybody to wake.
                if condition():
                    return True
                left = -1 if until is None else until - time.monotonic()
                if (until is not None and left <= 0) or not sleeper.acquire(timeout=left):
                    return condition()
            finally:
                with self._lock:
                    self._sleepers.discard(sleeper)
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
