"""What a forked child needs, whose parent's other threads are gone: free locks, ended work (S22).

A lock that one of those threads held stays held in the child for ever. So each object that has
locks is known here, and in the child gets fresh ones; what else of it was the parent's it sees
to itself, in `_after_fork`. Only where a fork must not fall into the middle of a change is the
lock held across the fork.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

Names: TypeAlias = tuple[str, ...]
Locks: TypeAlias = list[threading.RLock]

_log = logging.getLogger(__name__)


class _Forked(Protocol):
    def _after_fork(self) -> None:
        """In a child, with every lock free: end what only the parent's threads could go on with.

        It may use any other object, which may have ended already or not yet.
        """


_renewed: WeakKeyDictionary[object, Names] = WeakKeyDictionary()
_ending: WeakSet[_Forked] = WeakSet()
_held: WeakSet[threading.RLock] = WeakSet()
_held_lock = threading.RLock()  # guards _held; taken before those, and only to fork or to add
_taken: Locks = []


def fresh_in_child(thing: object, *locks: str) -> None:
    """In a child of a fork, put fresh locks into these attributes of the thing.

    Whatever they guard may be half done there. For what one assignment or one call of C changes
    that makes no difference; what may be torn, ``_after_fork`` replaces.
    """
    _renewed[thing] = locks


def ended_in_child(thing: _Forked, *locks: str) -> None:
    """The same, and then have its ``_after_fork`` called: what the parent began is over there."""
    fresh_in_child(thing, *locks)
    _ending.add(thing)


def lock_across_forks() -> threading.RLock:
    """A lock that whoever forks holds while it forks, and that both sides then release.

    So a fork waits for the section to end, and the child finds its state whole. Who holds one
    may not wait for a thread that forks, run a user's code, or take another one of these.
    """
    lock = threading.RLock()
    with _held_lock:
        _held.add(lock)
    return lock


def _hold() -> None:
    _held_lock.acquire()
    for lock in list(_held):
        lock.acquire()
        _taken.append(lock)


def _release() -> None:
    while _taken:
        _taken.pop().release()
    _held_lock.release()


def _begin_child() -> None:
    _release()
    for thing, locks in list(_renewed.items()):
        for name in locks:
            reentrant = isinstance(getattr(thing, name), type(_held_lock))
            setattr(thing, name, threading.RLock() if reentrant else threading.Lock())
    for each in list(_ending):
        try:
            each._after_fork()  # noqa: SLF001 - what it registered for
        except Exception:  # noqa: BLE001 - the others are to be ended all the same
            _log.exception("%r could not be ended after a fork", each)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_begin_child)
