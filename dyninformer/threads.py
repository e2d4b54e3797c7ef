"""Threads, waits and deadlines that an interrupt or a fork leaves whole.

- Waits that an interrupt ends, without leaving a lock taken (S23): `Bell`, `Bells`, `Flag`,
  `Deadline`; locks that none leaves taken: `ReentrantLock`, `unbroken`.
- Waits that are described, for a thread or an event loop to carry out: `Waiting`, `waited`.
- What a thread that is no daemon does when the interpreter exits: `called_at_exit`.
- Threads that know whose code they run, so that stopping never waits for itself (S11):
  `OwnThread`, `spawn`, `runs_for`.
- What a forked child is left with, where no other thread lives (S22): `in_forked_child`,
  `lock_across_forks`.
"""

from __future__ import annotations

import _thread
import concurrent.futures.thread  # noqa: F401 - its exit function is to be called after ours
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from dyninformer.checked import wrong

T = TypeVar("T")

_logger = logging.getLogger(__name__)


# -- waits -------------------------------------------------------------------------------
#
# `threading.Condition`, and `threading.Event` with it, take and free their lock in Python
# code: an interrupt (Ctrl-C) between two of its bytecodes leaves the lock taken for ever, and
# every thread that wants to wake the waiter stands still with it. Here ``with`` is only used on
# locks that nothing can come between, those of C, and nobody holds one while it waits.


def unbroken(function: Callable[[], T]) -> T:
    """What a function of C returns, with no interrupt between its end and what comes after this.

    Python looks for signals behind each call of such a function: what was taken would be lost to
    ``taken = lock.acquire(blocking=False)``. It does not where a loop takes what comes next, nor
    where a function of Python returns.
    """
    for returned in iter(function, _NOTHING):
        return returned
    raise AssertionError("it returned what nobody else has")


_NOTHING: Any = object()

if sys.version_info[:2] == (3, 14):

    class ReentrantLock(_thread.RLock):  # type: ignore[misc, unused-ignore] # not final there
        """A `threading.RLock` whose ``with`` begins in one step, as it does in other versions.

        Python 3.14 looks for signals between taking a lock and the block that frees it
        (python/cpython#148874, mended after 3.14.3): what a handler raises there would leave the
        lock taken for ever.
        """

        __slots__ = ()

        def __enter__(self) -> bool:  # type: ignore[override, unused-ignore]
            return unbroken(self.acquire)

else:
    ReentrantLock = threading.RLock


def lock_timeout(seconds: float | None) -> float:
    """What to pass to a lock of C for a wait of so long: the longest it can for None and ``inf``.

    >>> lock_timeout(1.5), lock_timeout(-1), lock_timeout(float("inf")) == lock_timeout(None)
    (1.5, 0.0, True)
    """
    longest = threading.TIMEOUT_MAX
    return longest if seconds is None else min(max(0.0, seconds), longest)


def acquired(lock: threading.Lock, seconds: float | None) -> bool:
    """Sleep on a lock until it is released; False after so many seconds. Ctrl-C ends it.

    Python looks for a signal before a thread sleeps, and a signal wakes a thread that sleeps. One
    that comes in between does neither, until the thread looks again. So the main thread, which
    alone is told of signals, wakes up once a second.
    """
    deadline = Deadline(seconds)
    is_main = threading.current_thread() is threading.main_thread()
    while True:
        most = lock_timeout(deadline.left)
        if lock.acquire(timeout=min(most, _LOOK_UP_SECONDS) if is_main else most):
            return True
        if deadline.over:
            return False


_LOOK_UP_SECONDS = 1.0


class Deadline:
    """The moment when a timeout is over, for waits that share one. Without a timeout, never.

    >>> Deadline(None).left, Deadline(None).over, Deadline(0).left, Deadline(0).over
    (None, False, 0.0, True)
    """

    __slots__ = ("_until",)

    def __init__(self, timeout: float | None) -> None:
        try:
            self._until = None if timeout is None else time.monotonic() + timeout
        except TypeError:
            raise wrong("a timeout", timeout, "seconds, or None for no limit") from None
        if self._until != self._until:
            raise ValueError("a timeout is nan: give seconds, or None for no limit")

    @property
    def left(self) -> float | None:
        """Seconds until then, 0 when it is over; None if it never is."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def before(self, moment: float) -> float | None:
        """Seconds until then, or until a moment of the monotonic clock if that comes first."""
        until = moment if self._until is None else min(moment, self._until)
        return None if until == math.inf else max(0.0, until - time.monotonic())

    @property
    def over(self) -> bool:
        """It has passed."""
        return self._until is not None and time.monotonic() >= self._until


class EndedByWith:
    """It ends with its ``with`` block, as `_end_with_block` does it. Not for import."""

    __slots__ = ()

    def _end_with_block(self) -> object:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_with_block()


class ClosedByWith(EndedByWith):
    """Its ``close`` is called at the end of a ``with`` block. Not for import."""

    __slots__ = ()

    def close(self) -> object:
        """End it."""
        raise NotImplementedError

    def _end_with_block(self) -> object:
        return self.close()


def since_boot() -> float:
    """Seconds that have passed since some moment, those of a machine that slept too.

    The monotonic clocks of Linux and macOS stand still while a laptop sleeps, so it is another one
    there. Where there is none, as on Windows, the monotonic clock is all there is.
    """
    return time.clock_gettime(_BOOT_CLOCK) if _BOOT_CLOCK is not None else time.monotonic()


# macOS: time.monotonic stands still in sleep there, this one goes on (mach_continuous_time).
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)
if _BOOT_CLOCK is None and sys.platform == "darwin":
    _BOOT_CLOCK = time.CLOCK_MONOTONIC_RAW


class Sleeper(Protocol):
    """What waits at a bell: the lock that a thread sleeps on, or what stands for an event loop."""

    def release(self) -> object:
        """Wake it. It must take no lock of this package, and wait for nobody."""


class Bell:
    """Wakes every thread that waits for a condition to become true. Any thread may call it.

    It has no lock, so a finalizer or a signal handler may ring at any point, and the thread
    that rings may hold any lock: a list's append, pop and remove are one step each. An empty deque
    would take ten times as much memory, and few bells have more than one sleeper.
    Not for import.
    """

    def __init__(self) -> None:
        self._sleepers: list[Sleeper] = []

    def add(self, sleeper: Sleeper) -> None:
        """Have it woken by the next ring, once. It must look at its condition after this."""
        self._sleepers.append(sleeper)

    def discard(self, sleeper: Sleeper) -> None:
        """Do not wake it, if it was not woken yet."""
        with suppress(ValueError):
            self._sleepers.remove(sleeper)

    def ring(self) -> None:
        """Have all that wait look again."""
        for _ in range(len(self._sleepers)):  # a thread that comes later looks again by itself
            try:
                sleeper = self._sleepers.pop(0)
            except IndexError:
                return  # another thread rings, and wakes the rest
            sleeper.release()

    def ring_one(self) -> None:
        """Have one that waits look again: the one that waits longest.

        That one must either do what it was woken for, or ring again.
        """
        with suppress(IndexError):  # nobody waits
            self._sleepers.pop(0).release()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the condition is true, as it is looked at after each ring.

        False if it is not at the timeout. The condition is called without a lock.
        """
        deadline = Deadline(timeout)
        while not condition():
            sleeper = threading.Lock()
            sleeper.acquire()
            try:
                self.add(sleeper)
                # Looked at again: it may have come true before there was anybody to wake.
                if condition():
                    return True
                if not acquired(sleeper, deadline.left):
                    return condition()
            finally:
                self.discard(sleeper)
        return True


class Bells(Bell):
    """Several bells to wait at as one, for a single waiter. Nobody rings it itself.

    Which they are is asked anew at each wait, and each is waited at before the next one is asked
    for: where the first rings whenever others come, none of those is missed. Not for import.
    """

    def __init__(self, bells: Callable[[], Iterable[Bell]]) -> None:
        super().__init__()
        self._bells = bells
        self._at: list[tuple[Bell, Sleeper]] = []

    def add(self, sleeper: Sleeper) -> None:
        """Have it woken by the next ring of any, once or more often if several ring at a time."""
        self.discard(sleeper)  # where it was not woken the last time
        woken = _WokenOnce(sleeper)
        for bell in self._bells():
            self._at.append((bell, woken))  # first: `discard` undoes what an interrupt leaves
            bell.add(woken)

    def discard(self, sleeper: Sleeper) -> None:
        """Do not wake it, if it was not woken yet."""
        del sleeper  # there is only the one
        while self._at:
            bell, woken = self._at[-1]
            bell.discard(woken)
            self._at.pop()


class _WokenOnce:
    """Stands for a lock that sleeps at several bells: a second release of it is nothing."""

    def __init__(self, sleeper: Sleeper) -> None:
        self._sleeper = sleeper

    def release(self) -> None:
        """Wake it."""
        with suppress(RuntimeError):
            self._sleeper.release()


class Flag:
    """A `threading.Event` whose waits an interrupt can end at any point."""

    def __init__(self) -> None:
        self.bell = Bell()
        """Rings when it is set."""
        self._set = False

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    def set(self) -> None:
        """Wake all threads that wait; from now on a wait returns at once."""
        self._set = True
        self.bell.ring()

    def clear(self) -> None:
        """From now on a wait lasts until the next `set`."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if it is not at the timeout."""
        return self.bell.wait_for(self.is_set, timeout)


class Pause(NamedTuple):
    """One stretch of a wait: until the condition is true, as looked at after each ring.

    Not for import.
    """

    bell: Bell
    condition: Callable[[], bool]
    deadline: Deadline


Waiting: TypeAlias = Generator[Pause, bool, T]
"""A wait without a thread: it says what to pause for, is told whether that came true in time, and
returns what was waited for. `waited` carries it out in a thread, `dyninformer.aio` in a loop."""


def waited(waiting: Waiting[T]) -> T:
    """Carry out a wait in this thread.

    >>> flag = Flag()
    >>> def until_set() -> Waiting[str]:
    ...     return "set" if (yield Pause(flag.bell, flag.is_set, Deadline(0))) else "not set"
    >>> waited(until_set())
    'not set'
    """
    try:
        pause = next(waiting)
        while True:
            bell, condition, deadline = pause
            pause = waiting.send(bell.wait_for(condition, deadline.left))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        waiting.close()


# -- threads -----------------------------------------------------------------------------


class OwnThread(threading.Thread):
    """A named daemon thread that works for ``owner``, a factory's or an informer's lifetime."""

    def __init__(self, owner: object, name: str, target: Callable[[], None]) -> None:
        super().__init__(name=name, target=target, daemon=True)
        self.owner = owner

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, with any timeout, ``inf`` too.

        A thread that has not begun is not waited for: a signal handler may come in the middle of
        its start.
        """
        if self.is_alive():
            super().join(lock_timeout(timeout))


def spawn(owner: object, name: str, target: Callable[[], None]) -> OwnThread:
    """Start a daemon thread for ``owner``. Its name is what a stack dump or a report shows."""
    thread = OwnThread(owner, name, target)
    thread.start()
    return thread


def runs_for(owner: object) -> bool:
    """Whether this thread runs code of ``owner``: a callback, a transform, a condition.

    What is stopped from such a thread is signalled, and not waited for: the thread could be
    waiting for itself (S11).
    """
    thread = threading.current_thread()
    return isinstance(thread, OwnThread) and thread.owner is owner


def is_interrupt(error: BaseException) -> bool:
    """Whether a signal may have raised it, and not the code that it came out of.

    Ctrl-C, and what a signal handler raises, SystemExit above all, reach the main thread alone.
    Elsewhere the code that ran has raised it.
    """
    return (
        not isinstance(error, Exception) and threading.current_thread() is threading.main_thread()
    )


# -- the exit of the interpreter ---------------------------------------------------------
#
# The interpreter waits for each thread that is no daemon before it calls what is registered with
# `atexit`. A thread that waits to be told its end there would keep it for ever.

_at_exit: list[Callable[[], object]] = []
_exits = Flag()


@contextmanager
def called_at_exit(end: Callable[[], object]) -> Iterator[None]:
    """Call ``end`` if the interpreter exits while this thread is inside and would keep it.

    ``end`` must wait for nothing. The main thread and daemons keep no interpreter.
    """
    thread = threading.current_thread()
    if thread.daemon or thread is threading.main_thread():
        yield
        return
    _at_exit.append(end)
    try:
        if _exits.is_set():
            end()
        yield
    finally:
        _at_exit.remove(end)


def _exit() -> None:
    _exits.set()
    for end in _at_exit.copy():
        end()


# Python has no public function for this. Functions are called in the reverse order, and the one of
# `concurrent.futures`, which is registered when that is imported, waits for the threads of pools.
_register_exit: Any = getattr(threading, "_register_atexit", None)
if _register_exit is not None:
    with suppress(RuntimeError):  # the interpreter exits already
        _register_exit(_exit)


# -- forks -------------------------------------------------------------------------------
#
# A lock that another thread held at the fork stays held in the child for ever, and what that
# thread would have done is never done. So each object that has locks or threads says here, when
# it is made, how it stands in a child; nothing else in the package is run at a fork.


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _InChild:
    freed: tuple[str, ...]
    values: dict[str, Any]
    then: Callable[[Any], object] | None


Locks: TypeAlias = list[ReentrantLock]

_registered: WeakKeyDictionary[object, _InChild] = WeakKeyDictionary()
_usual: WeakValueDictionary[type, _InChild] = WeakValueDictionary()  # one for all of a class
_crossing: WeakSet[ReentrantLock] = WeakSet()  # held while a fork happens
_crossing_lock = ReentrantLock()  # guards _crossing; taken before those, to fork or to add one
_taken: Locks = []


def in_forked_child(
    thing: T, *freed: str, then: Callable[[T], object] | None = None, **values: Any
) -> None:
    """Say what ``thing`` is in a child of a fork (S22).

    ``freed`` names attributes that threads wait for: a lock is replaced by a new one, a `Bell` is
    rung, a `Flag` is set. ``values`` are what other attributes become; a callable makes its
    value. ``then`` is called with the thing last, when no lock of any registered object is held
    any more; it may use other objects, which may have come to their own ``then`` or not.

    What a lock guards may be half changed in the child. Where one assignment or one call of C
    makes the change this does not matter; what may be torn, ``values`` replaces.
    """
    said = _InChild(freed, values, then)
    usual = _usual.setdefault(type(thing), said)
    _registered[thing] = usual if usual == said else said


def lock_across_forks() -> ReentrantLock:
    """A lock that a thread holds while it forks, and that both sides then release.

    So a fork waits for the section to end, and the child finds its state whole. A thread that
    holds one may not wait for a thread that forks, run a user's code, or take another such lock.
    """
    lock = ReentrantLock()
    with _crossing_lock:
        _crossing.add(lock)
    return lock


def _before_fork() -> None:
    _crossing_lock.acquire()
    for lock in list(_crossing):
        lock.acquire()
        _taken.append(lock)


def _release() -> None:
    while _taken:
        _taken.pop().release()
    _crossing_lock.release()


def _after_fork_in_child() -> None:
    _release()
    registered = list(_registered.items())
    for thing, child in registered:
        for name in child.freed:
            member = getattr(thing, name)
            if not isinstance(member, Bell | Flag):
                reentrant = isinstance(member, type(_crossing_lock))
                setattr(thing, name, ReentrantLock() if reentrant else threading.Lock())
        for name, value in child.values.items():
            setattr(thing, name, value() if callable(value) else value)
    for thing, child in registered:
        try:
            _let_go(thing, child)
        except Exception:  # the others are to be ended all the same
            _logger.exception("%r could not be ended after a fork", thing)


def _let_go(thing: object, child: _InChild) -> None:
    for name in child.freed:
        member = getattr(thing, name)
        if isinstance(member, Bell):
            member.ring()
        elif isinstance(member, Flag):
            member.set()
    if child.then is not None:
        child.then(thing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_release, after_in_child=_after_fork_in_child
    )
