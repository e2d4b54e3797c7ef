"""Locks that are free in the child of a fork, over state that is whole (S22)."""

from __future__ import annotations

import os
import threading
from itertools import count
from weakref import WeakKeyDictionary

_numbers = count()
_known: WeakKeyDictionary[threading.RLock, int] = WeakKeyDictionary()
_known_lock = threading.RLock()  # guards _known; taken before all others, and only to fork or add
_taken: list[threading.RLock] = []


def fork_safe_lock() -> threading.RLock:
    """A lock that whoever forks holds while it forks, and that both sides then release.

    So a fork waits for critical sections to end, and the child finds their state whole. Who
    holds one of these locks may take a younger one, never an older one.
    """
    lock = threading.RLock()
    with _known_lock:
        _known[lock] = next(_numbers)
    return lock


def _take_all() -> None:
    _known_lock.acquire()
    for lock, _ in sorted(_known.items(), key=lambda item: item[1]):
        lock.acquire()
        _taken.append(lock)


def _release_all() -> None:
    while _taken:
        _taken.pop().release()
    _known_lock.release()


os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)
