"""A scheduler that decides every switch between threads, from a seed, on a clock moved by hand.

The package's own code runs as it is: informers, reflectors, handlers, timers. But its threads are
greenlets of one thread, and of what they wait for nothing is real. Locks, threads, times and chance
are handed to the package's modules by `simulated` in place of Python's, and come back to
`Scheduler`: a thread runs until it waits, or until it comes to a point where another may go on
(each taking and freeing of a lock, each start of a thread, each piece that comes from the network).
Which one goes on is drawn from the seed. Where all wait, time goes on to the next moment that one
of them waits for.

What is not decided here: switches between two such points. Code that shares state without a lock
is seen with its steps whole, except on threads of a `traced` scheduler, where a switch may come
before any line of the files that are named.
"""

from __future__ import annotations

import _thread
import math
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from functools import cache, partial
from random import Random
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final, TypeAlias

from greenlet import getcurrent, greenlet

from dyninformer.delivery.worker import Worker
from dyninformer.testing.clock import ManualClock
from dyninformer.threads import OwnThread, ReentrantLock

Ready: TypeAlias = Callable[[], bool]
Trace: TypeAlias = Callable[[FrameType, str, Any], Any]

_MOST_TURNS: Final = 200_000
_MOST_POINTS: Final = 1_000_000
"""Of all threads together, while no time passes: more are a loop without an end."""
_LONGEST: Final = 30_000.0
"""Seconds of its clock: no run lasts half as long."""
_SHORTEST: Final = 0.001
_NOT_SIMULATED: Final = (
    "dyninformer.testing",
    "dyninformer.cli",
    "dyninformer.jsonpath",
    "dyninformer.display",
)


class StuckError(AssertionError):
    """All wait, and nothing will ever come; or something goes round without an end."""


class OverError(BaseException):
    """The simulation was given up: ends the threads that are left."""


class Task:
    """A thread, as the scheduler knows it. ``ready`` is None for one that can go on."""

    __slots__ = (
        "fuse", "greenlet", "interrupted_at", "is_main", "name", "number", "ready", "thread",
        "until",
    )  # fmt: skip

    def __init__(self, name: str, number: int, thread: threading.Thread, runs: greenlet) -> None:
        self.name = name
        self.number = number
        """The so many-th of its scheduler."""
        self.thread = thread
        """What its code is told that it runs on."""
        self.greenlet = runs
        self.ready: Ready | None = None
        self.until: float | None = None
        self.is_main = False
        """Its code is told that it runs on the main thread, which alone an interrupt reaches."""
        self.fuse = 0
        """After so many points more an interrupt comes; 0 is never."""
        self.interrupted_at = 0.0
        """When it comes at the latest."""


class Scheduler:
    """Decides who runs. The thread that makes it is its first task."""

    def __init__(
        self, seed: object, clock: ManualClock, *, switching: float, traced: Sequence[str] = ()
    ) -> None:
        """``switching`` is how likely another thread goes on at a point where it might."""
        self.clock = clock
        self.next_deadline: Callable[[], float | None] = lambda: None
        """When something else than a thread has to do something."""
        self.run_due: Callable[[], None] = lambda: None
        """Has it done."""
        self.failures: list[BaseException] = []
        """What threads ended with."""
        self.turns = self.interrupts = 0
        self.digest = 0
        """What has run so far, and when, in one number."""
        self._began = clock.now()
        self._random = Random(f"{seed} switches")
        self._switching = switching
        self.traced = tuple(traced)
        self._is_traced = dict[str, bool]()  # of the files that were met
        self._main = self.current = Task("user", 0, threading.current_thread(), getcurrent())
        self._tasks = [self._main]
        self._begun = 1  # tasks
        self._turns_now = self._points_now = 0
        self._stuck = ""
        self._over = self._ended = False
        self.victim = ""
        """Tasks whose names have this in them go on only now and then, if others can."""

    # -- for the simulated world -------------------------------------------------------------

    def spawn(self, name: str, target: Callable[[], object]) -> Task:
        """A thread of the world's own, which runs when it is its turn."""
        return self.enter(name, target, threading.Thread(name=name, daemon=True))

    def sleep(self, seconds: float) -> None:
        """Let others run for so long."""
        self.block(_never, self.clock.now() + max(0.0, seconds))

    @contextmanager
    def interrupted(self, after: int, seconds: float) -> Iterator[None]:
        """In the block this is the main thread, and Ctrl-C reaches it once, if it lasts so long.

        That is at the so many-th of its points and waits, or in a wait, so many seconds later.
        """
        me = self.current
        me.fuse, me.interrupted_at, me.is_main = after, self.clock.now() + seconds, True
        try:
            yield
        finally:
            me.fuse, me.is_main = 0, False

    @property
    def main_thread(self) -> threading.Thread | None:
        """The one that Ctrl-C would reach; None, that does not look up for it, if none comes."""
        return self.current.thread if self.current.is_main else None

    @property
    def alive(self) -> list[str]:
        """The threads that have not ended, except the first."""
        return sorted(task.name for task in self._tasks if task is not self._main)

    def give_up(self) -> None:
        """End all threads, one after the other, wherever they are."""
        self._over = True
        for task in list(self._tasks):
            if task is not self._main and task.greenlet:  # one that has begun
                self.current = task
                task.greenlet.throw(OverError)
        self._ended = True
        self.current = self._main

    # -- for the primitives ------------------------------------------------------------------

    def point(self) -> None:
        """Another thread may go on here."""
        if self._over:
            if self._ended:
                return  # what is left of the world is taken apart, by one thread
            raise OverError
        if self.current.fuse:
            self._burn(self.current)
        self._perhaps_switch()

    def freed(self) -> None:
        """A lock was: another thread may go on here. Finalizers come by, which must not raise."""
        if not self._over:
            self.point()

    def block(self, ready: Ready, until: float | None = None) -> bool:
        """Wait until it is ready, or for the moment; whether it is ready."""
        if self._over:
            if self._ended:
                return ready()
            raise OverError
        me = self.current
        # No wait is so short that no time passes: the clock of a machine goes on, too.
        me.until = None if until is None else max(until, self.clock.now() + _SHORTEST)
        if me.fuse:
            self._burn(me)
            me.until = min(me.until or math.inf, max(me.interrupted_at, self.clock.now()))
        me.ready = ready
        self._go_on(me)
        me.ready = me.until = None
        if me.fuse and self.clock.now() >= me.interrupted_at:
            self._interrupt(me)
        if me is self._main and self._stuck:
            raise StuckError(self._stuck)
        return ready()

    def enter(self, name: str, target: Callable[[], object], thread: threading.Thread) -> Task:
        """A new task, that does ``target`` as this thread, when it is its turn."""
        to_do = [target]

        def run(*_: object) -> None:
            if self.traced:
                sys.settrace(self._trace)  # a greenlet begins without
            try:
                to_do.pop()()  # what only this thread had is collected while it still is one
            except OverError:
                pass
            except BaseException as error:  # noqa: BLE001 - it is the simulation's to judge
                self.failures.append(error)
            self._leave(task)

        task = Task(name, self._begun, thread, greenlet(run, parent=self._main.greenlet))
        self._begun += 1
        self._tasks.append(task)
        return task

    # -- inside ------------------------------------------------------------------------------

    def _perhaps_switch(self) -> None:
        self._points_now += 1
        if self._points_now > _MOST_POINTS:
            raise StuckError(f"no end of it: {self.current.name}")
        if self._random.random() < self._switching:
            self.current.ready = None
            self._go_on(self.current)

    def _burn(self, me: Task) -> None:
        me.fuse -= 1
        if me.fuse:
            return
        if _finalizes():
            me.fuse = 1  # Python would print the interrupt there, and drop it: it comes next
        else:
            self._interrupt(me)

    def _interrupt(self, me: Task) -> None:
        me.fuse = 0
        self.interrupts += 1
        raise KeyboardInterrupt

    def _leave(self, task: Task) -> None:
        self._tasks.remove(task)
        if not self._over:
            self.current = self._choose()
            task.greenlet.parent = self.current.greenlet  # that goes on when this one has ended

    def _go_on(self, me: Task) -> None:
        chosen = self._choose()
        if chosen is not me:
            self.current = chosen
            if self.traced:
                # Nothing is traced within a trace function, and this may be one: its switch must
                # not leave the other greenlet untraced.
                sys.call_tracing(chosen.greenlet.switch, ())
            else:
                chosen.greenlet.switch()

    def _choose(self) -> Task:
        while True:
            now = self.clock.now()
            able = [
                task
                for task in self._tasks
                if task.ready is None
                or (task.until is not None and task.until <= now)
                or task.ready()
            ]
            if able:
                return self._turn(able, now)
            if now - self._began > _LONGEST:
                self._stuck = f"no end of it: all that is left are {', '.join(self.alive)}"
                return self._main
            moments = [task.until for task in self._tasks if task.until is not None]
            due = self.next_deadline()
            if due is not None:
                moments.append(due)
            if not moments:
                self._stuck = f"all wait for ever: {', '.join(map(self._shown, self._tasks))}"
                return self._main
            # What is due already and was not done needs a moment more.
            self.clock.advance(max(_SHORTEST, min(moments) - now))
            self._turns_now = self._points_now = 0
            self.run_due()

    def _turn(self, able: list[Task], now: float) -> Task:
        self.turns += 1
        self._turns_now += 1
        if self._turns_now > _MOST_TURNS:
            self._stuck = f"no end of it: {', '.join(map(self._shown, able))}"
            return self._main
        if len(able) > 1 and self.victim and self._random.random() < 0.98:
            able = [task for task in able if self.victim not in task.name] or able
        chosen = able[0] if len(able) == 1 else self._random.choice(able)
        self.digest = hash((self.digest, chosen.number, now - self._began))
        return chosen

    def _shown(self, task: Task) -> str:
        return task.name

    # -- switches before any line ------------------------------------------------------------

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """In the block, a switch may come before any line of the files that are `traced`."""
        if not self.traced:
            yield
            return
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        del event, argument
        file = frame.f_code.co_filename
        traced = self._is_traced.get(file)
        if traced is None:
            traced = self._is_traced[file] = file.endswith(self.traced)
        return self._line if traced else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Trace:
        del frame, argument
        if event == "line" and not self._over:
            self._perhaps_switch()  # no interrupt: between a block and its end Python lets none in
        return self._line


def _finalizes() -> bool:
    """Whether this is called by a finalizer."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def _never() -> bool:
    return False


# -- what the package has in place of Python's ---------------------------------------------------


class SimulatedLock:
    """A `threading.Lock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it."""
        self._scheduler.point()
        if self._held:
            if not blocking:
                return False
            until = _until(self._scheduler, timeout)
            if not self._scheduler.block(self._is_free, until):
                return False
        self._held = True
        return True

    def release(self) -> None:
        """Free it; any thread may."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False
        self._scheduler.freed()

    def locked(self) -> bool:
        """Somebody holds it."""
        return self._held

    def _is_free(self) -> bool:
        return not self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedRLock:
    """A `threading.RLock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: Task | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, once more perhaps."""
        me = self._scheduler.current
        if self._owner is me:
            self._count += 1
            return True
        self._scheduler.point()
        if self._owner is not None:
            if not blocking:
                return False
            until = _until(self._scheduler, timeout)
            if not self._scheduler.block(self._is_free, until):
                return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        """Free it, once."""
        if self._owner is not self._scheduler.current:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._scheduler.freed()

    def _is_free(self) -> bool:
        return self._owner is None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _until(scheduler: Scheduler, timeout: float) -> float | None:
    if timeout < 0 or timeout >= threading.TIMEOUT_MAX:
        return None
    return scheduler.clock.now() + timeout


class SimulatedFuture:
    """A `concurrent.futures.Future`, as far as it is used."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def result(self, timeout: float | None = None) -> Any:
        """Wait for it."""
        until = None if timeout is None else _until(self._scheduler, timeout)
        if not (self._done or self._scheduler.block(self.done, until)):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result

    def done(self) -> bool:
        """It is there."""
        return self._done

    def set_result(self, result: object) -> None:
        """Tell it."""
        self._done, self._result = True, result

    def set_exception(self, error: BaseException) -> None:
        """Have it raised."""
        self._done, self._error = True, error

    def cancel(self) -> None:
        """Nobody will tell it."""
        self.set_exception(CancelledError())


class _SimulatedThread(OwnThread):
    """An `OwnThread` that runs when it is its turn."""

    scheduler: Scheduler
    _task: Task | None = None
    _has_ended = False

    def start(self) -> None:
        """Have it run some time."""

        def run() -> None:
            try:
                self.run()
            finally:
                self._has_ended = True

        self._task = self.scheduler.enter(self.name, run, self)
        self.scheduler.point()

    @property
    def ident(self) -> int | None:
        """A number of its own, once it was started."""
        return None if self._task is None else id(self._task)

    def is_alive(self) -> bool:
        """It was started, and has not ended."""
        return self._task is not None and not self._has_ended

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if self.is_alive():
            until = None if timeout is None else _until(self.scheduler, timeout)
            self.scheduler.block(lambda: self._has_ended, until)


_REPLACED: Final[dict[str, object]] = {
    "threading": threading,
    "_thread": _thread,
    "time": time,
    "random": random,
    "Future": Future,
    "OwnThread": OwnThread,
    "ReentrantLock": ReentrantLock,
    "Random": Random,
}


@cache
def _modules() -> tuple[ModuleType, ...]:
    return tuple(
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("dyninformer.") and not name.startswith(_NOT_SIMULATED)
    )


@cache
def _places() -> tuple[tuple[ModuleType, str], ...]:
    """Where the package has what is replaced."""
    return tuple(
        (module, name)
        for module in _modules()
        for name, real in _REPLACED.items()
        if vars(module).get(name) is real
    )


@cache
def _defaults() -> tuple[tuple[dict[str, Any], str, object], ...]:
    """What the package has taken of the clock and of chance as defaults of parameters."""
    return tuple(
        (defaults, parameter, real)
        for module in _modules()
        for found in vars(module).values()
        if isinstance(found, type)
        for init in (vars(found).get("__init__"),)
        if isinstance(init, FunctionType)
        for defaults in (init.__kwdefaults__ or {},)
        for parameter, real in list(defaults.items())
        if real in (time.monotonic, random.random)
    )


@contextmanager
def simulated(scheduler: Scheduler, seed: object) -> Iterator[None]:
    """In the block, what the package makes and starts is run by the scheduler."""
    chance = Random(f"{seed} chance")
    clock, began = scheduler.clock, scheduler.clock.now()
    thread_class: type[_SimulatedThread] = type(
        "SimulatedThread", (_SimulatedThread,), {"scheduler": scheduler}
    )
    aside = (f"aside {number}" for number in range(1 << 30))

    def start_new_thread(function: Callable[..., object], args: tuple[Any, ...]) -> None:
        scheduler.spawn(next(aside), lambda: function(*args))

    def passed() -> float:
        return clock.now() - began

    def thread(
        target: Callable[..., None], args: tuple[Any, ...] = (), name: str = "", **_: object
    ) -> OwnThread:
        return thread_class(None, name, partial(target, *args))

    given: dict[str, object] = {
        "threading": SimpleNamespace(
            **{**vars(threading), "Lock": partial(SimulatedLock, scheduler)}
            | {"RLock": partial(SimulatedRLock, scheduler), "Thread": thread}
            | {"current_thread": lambda: scheduler.current.thread}
            | {"get_ident": lambda: id(scheduler.current)}
            | {"main_thread": lambda: scheduler.main_thread}
        ),
        "_thread": SimpleNamespace(**{**vars(_thread), "start_new_thread": start_new_thread}),
        "time": SimpleNamespace(
            **{**vars(time), "time": clock.now, "monotonic": passed, "sleep": scheduler.sleep}
            | {"clock_gettime": lambda _: passed()}
        ),
        "random": SimpleNamespace(
            Random=lambda *_: Random(chance.random()),
            uniform=chance.uniform,
            random=chance.random,
        ),
        "Future": partial(SimulatedFuture, scheduler),
        "OwnThread": thread_class,
        "ReentrantLock": partial(SimulatedRLock, scheduler),
        "Random": lambda *_: Random(chance.random()),
    }
    places, defaults = _places(), _defaults()
    for module, name in places:
        setattr(module, name, given[name])
    for parameters, name, real in defaults:
        parameters[name] = passed if real is time.monotonic else chance.random
    # Sets are walked in the order of hashes, which must not be that of addresses in memory.
    Worker.__hash__ = _by_name  # type: ignore[method-assign, assignment]
    try:
        with scheduler.tracing():
            yield
    finally:
        del Worker.__hash__
        for module, name in places:
            setattr(module, name, _REPLACED[name])
        for parameters, name, real in defaults:
            parameters[name] = real


def _by_name(worker: Worker) -> int:
    return zlib.crc32(worker.name.encode())
