"""Where time comes from: the machine, or a test's own hand."""

from __future__ import annotations

import time
from typing import Protocol

from dyninformer.checked import checked_number


class Clock(Protocol):
    """Seconds since 1970 that never go backwards: good for timestamps and for deadlines.

    Not for import.
    """

    def now(self) -> float:
        """The time now."""


class SystemClock:
    """The machine's time when it was made, and from then on what has passed since."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """The time now."""
        return self._offset + time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.now() - ManualClock().now()
    1.5
    """

    __slots__ = ("_now",)

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self._now = checked_number("now", now, "seconds since 1970")

    def now(self) -> float:
        """The time now."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        if checked_number("what passes", seconds, "seconds") < 0:
            raise ValueError(f"time does not go backwards ({seconds} s)")
        self._now += seconds
