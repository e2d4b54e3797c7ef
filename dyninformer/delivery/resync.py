"""Resyncs: each handler hears all objects again, each at its own period (S5)."""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from dyninformer.threads import Flag, in_forked_child, runs_for, spawn

Act: TypeAlias = Callable[[], None]

JITTER: Final = 0.1

_log = logging.getLogger(__name__)


def jittered(period: float) -> float:
    """The time to the next resync: informers that began together do not stay together."""
    return random.uniform(period, period * (1 + JITTER))  # noqa: S311 - no secret, only spread


class Timer:
    """One act at one time."""

    __slots__ = ("act", "at")

    def __init__(self, at: float, act: Act) -> None:
        self.at = at
        self.act = act

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at


class Clock(Protocol):
    """What calls back later."""

    def call_later(self, delay: float, act: Act) -> Timer:
        """Call ``act`` once, after ``delay`` seconds, on a thread of its own."""

    def cancel(self, timer: Timer) -> None:
        """Do not call it, if it was not yet called."""


Heap: TypeAlias = list[Timer]


class Timers:
    """The timers of a factory: one thread for all, there while one is set."""

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._lock = threading.RLock()  # guards all that follows
        self._changed = Flag()  # wakes the thread
        self._heap: Heap = []
        self._thread: threading.Thread | None = None
        self._running = False  # set and unset by the thread
        self._stopped = False
        in_forked_child(self, "_lock", _heap=list, _thread=None, _running=False, _stopped=True)

    def call_later(self, delay: float, act: Act) -> Timer:
        """Call ``act`` once, after ``delay`` seconds. What it raises is logged.

        Acts follow each other on one thread: they must be short. Once stopped, nothing is called.
        """
        timer = Timer(time.monotonic() + delay, act)
        with self._lock:
            if self._stopped:
                return timer
            heapq.heappush(self._heap, timer)
            running = self._running
        self._changed.set()
        if not running:
            spawn(self._owner, "dyninformer timers", self._run)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Do not call it, if it was not yet called."""
        with self._lock:
            if timer in self._heap:
                self._heap.remove(timer)
                heapq.heapify(self._heap)
        self._changed.set()

    def stop(self) -> None:
        """Call nothing any more. Returns at once; see ``join``."""
        with self._lock:
            self._stopped = True
            self._heap.clear()
        self._changed.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; not on a thread of the owner's. False at the timeout."""
        thread = self._thread
        if thread is None or runs_for(self._owner):
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        with self._lock:
            if self._running:
                return  # two were set at once, and either started a thread
            self._running = True
            self._thread = threading.current_thread()
        while (timer := self._next()) is not None:
            try:
                timer.act()
            except BaseException:  # noqa: BLE001 - SystemExit, too: the other timers are to go on
                _log.exception("a timer failed")

    def _next(self) -> Timer | None:
        """Wait for the next timer that is due; None when none is left."""
        while True:
            self._changed.clear()  # before looking: what comes later sets it again
            with self._lock:
                if self._stopped or not self._heap:
                    self._running = False
                    return None
                left = self._heap[0].at - time.monotonic()
                if left <= 0:
                    return heapq.heappop(self._heap)
            self._changed.wait(left)
