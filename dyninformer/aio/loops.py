"""The event loop that runs here, asyncio's or trio's, and the way into it from other threads.

What comes from other threads crosses in batches: `Loop.post` wakes the loop once for all that is
posted until it looks, and the loop runs for `SLICE` seconds of it before others get their turn.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from dyninformer.threads import Pause, Waiting

if TYPE_CHECKING:
    import trio

T = TypeVar("T")
Act: TypeAlias = Callable[[], object]
Main: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

SLICE: Final = 0.005
"""Seconds that this package keeps the loop to itself before others get their turn."""
_FOREVER: Final = 3e7  # a year of seconds: a longer timeout is none

_logger = logging.getLogger("dyninformer")


class Waiter(Protocol):
    """What one task waits for, once."""

    def wake(self) -> None:
        """End the wait, or the one to come. In the loop; idempotent."""

    async def wait(self, timeout: float | None) -> bool:
        """Wait until it is woken; False if it is not in time."""


class Task(Protocol):
    """A task that runs in the background of a loop. In the loop, if nothing else is said."""

    def cancel(self) -> None:
        """Have it end."""


class Loop(ABC):
    """An event loop, as this package uses it; `running` finds it. In the loop, except ``post``."""

    def __init__(self) -> None:
        self._acts: deque[Act] = deque()
        self._posted = False  # the loop was asked to run them
        self._looks: deque[Act] = deque()
        self._looking = False  # the loop was asked for those
        self._sharing = 1  # consumers that ran in the loop's last turn
        self._ran = 0  # in this one
        self._counts = False  # the loop was asked to begin another turn

    # -- from any thread -----------------------------------------------------------------

    def post(self, act: Act) -> bool:
        """Have the loop call ``act`` soon; False if it was closed. May be called under a lock.

        The flag is cleared before the loop looks, and set after an act was added: none is
        overlooked, and at the worst the loop looks once too often.
        """
        self._acts.append(act)
        if self._posted and not self.closed:
            return True
        self._posted = True
        try:
            self._call_soon(self._run_acts)
        except RuntimeError:  # closed, in asyncio's words and in trio's
            self._acts.clear()
            return False
        return True

    def post_look(self, look: Act) -> None:
        """Have the loop look at a condition, when it has time for that. Else as `post`.

        What a thousand waits look for may take longer than is left between two changes. So they
        have a slice, and then the rest of the program has as much: a wait that is not looked at
        yet is not rung for again, and then sees several changes in one look.
        """
        self._looks.append(look)
        if not self._looking:
            self._looking = True
            self.post(self._run_looks)

    @property
    @abstractmethod
    def closed(self) -> bool:
        """It runs nothing any more."""

    # -- in the loop ---------------------------------------------------------------------

    @abstractmethod
    def waiter(self) -> Waiter:
        """What the current task can wait for."""

    @abstractmethod
    def spawn(self, name: str, main: Main, ended: Act) -> Task:
        """Begin a task of its own; ``ended`` is called at its end, even if it never ran."""

    def share(self) -> float:
        """The seconds that a consumer may go on for, of those that all share in one turn."""
        self._ran += 1
        if not self._counts:
            self._counts = True
            self._call_next(self._count)
        return SLICE / self._sharing

    @abstractmethod
    async def turn(self) -> None:
        """Let others run."""

    @abstractmethod
    async def shielded(self, waiter: Waiter, timeout: float | None) -> None:
        """Wait for so long at most, although the current task is being cancelled.

        A second cancellation ends the wait in asyncio.
        """

    @abstractmethod
    def cancels(self, error: BaseException) -> bool:
        """The error is how this loop ends the current task, and must reach it."""

    async def carry_out(
        self, waiting: Waiting[T], unwanted: Callable[[T], object] | None = None
    ) -> T:
        """What `threads.waited` does in a thread. A cancellation ends the wait, and all of it.

        ``unwanted`` gets a result that came in the moment of a cancellation.
        """
        wait = _Wait(self, waiting)
        try:
            wait.begin()
            while not wait.over:
                if not await wait.waiter.wait(wait.left):
                    wait.late()
        except BaseException:
            if unwanted is not None and wait.over and not wait.failed:
                unwanted(wait.result())
            raise
        finally:
            wait.end()
        return wait.result()

    @abstractmethod
    def _call_soon(self, act: Act) -> None:
        """From any thread; RuntimeError if it is closed."""

    def _call_next(self, act: Act) -> None:
        """In the loop: once others had their turn."""
        self._call_soon(act)

    def _call_later(self, delay: float, act: Act) -> None:
        """In the loop: after so many seconds, if it can, or else once others had their turn."""
        del delay
        self._call_next(act)

    def _run_looks(self) -> None:
        until = time.monotonic() + SLICE
        while self._looks:
            self._looks.popleft()()
            if time.monotonic() >= until:
                self._call_later(SLICE, self._run_looks)
                return
        self._looking = False
        if self._looks and not self._looking:  # posted meanwhile, and not asked for
            self._looking = True
            self._call_next(self._run_looks)

    def _count(self) -> None:
        self._counts = False
        self._sharing, self._ran = max(1, self._ran), 0

    def _run_acts(self) -> None:
        self._posted = False
        until = time.monotonic() + SLICE
        try:
            while self._acts:
                act = self._acts.popleft()
                try:
                    act()
                except Exception:  # the others are to be run all the same
                    _logger.exception("an error of dyninformer itself, in an event loop")
                if time.monotonic() >= until:
                    break
        finally:  # an interrupt ends this slice alone
            if self._acts:
                self._posted = True
                self._call_next(self._run_acts)


class Slices:
    """How long one consumer goes on before it lets others run.

    All that have something to do share one slice, so that a hundred of them keep the loop no
    longer than one does.
    """

    __slots__ = ("_loop", "_until")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._until = 0.0

    def begin(self) -> None:
        """It waited, and others ran."""
        self._until = time.monotonic() + self._loop.share()

    @property
    def over(self) -> bool:
        """Others are to run now: `next`."""
        return time.monotonic() >= self._until

    async def next(self) -> None:
        """Let others run, and go on."""
        await self._loop.turn()
        self.begin()


class _Wait(Generic[T]):
    """One `Waiting` that a task waits for; a `threads.Sleeper`.

    The loop carries it out where it takes what was posted, and the task only hears the end: a
    thousand tasks whose conditions are looked at again and again are not woken for it.
    """

    def __init__(self, loop: Loop, waiting: Waiting[T]) -> None:
        self.over = False
        self.waiter = loop.waiter()
        self._loop = loop
        self._waiting = waiting
        self._context = copy_context()  # the user's conditions find what the task has
        self._pause: Pause | None = None
        self._armed = float("inf")  # when the task wakes by itself
        self._result: T | None = None
        self._error: BaseException | None = None

    # -- by the task ---------------------------------------------------------------------

    def begin(self) -> None:
        """Go on until there is something to wait for."""
        self._guarded(self._start)

    @property
    def left(self) -> float | None:
        """Seconds until the task is to look at the deadline."""
        left = None if self._pause is None else self._pause.deadline.left
        self._armed = float("inf") if left is None else time.monotonic() + left
        return left

    def late(self) -> None:
        """The task woke by itself."""
        self.waiter = self._loop.waiter()
        if self._pause is not None and self._pause.deadline.over:
            self._guarded(self._time_is_over)

    @property
    def failed(self) -> bool:
        """It ended with an error."""
        return self._error is not None

    def result(self) -> T:
        """What was waited for."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback has this frame
        return self._result  # type: ignore[return-value]  # over, and without an error

    def end(self) -> None:
        """Leave nothing behind."""
        self.over = True
        if self._pause is not None:
            self._pause.bell.discard(self)
        self._waiting.close()

    # -- by who rings --------------------------------------------------------------------

    def release(self) -> None:
        """From any thread, with any lock."""
        self._loop.post_look(self._look)

    # -- in the loop ---------------------------------------------------------------------

    def _look(self) -> None:
        if not self.over:
            self._guarded(self._go_on)

    def _guarded(self, step: Act) -> None:
        try:
            self._context.run(step)
        except StopIteration as end:
            self._finish(end.value, None)
        except BaseException as error:  # noqa: BLE001 - it is the waiting task's
            self._finish(None, error)

    def _start(self) -> None:
        self._pause = next(self._waiting)
        self._go_on()

    def _time_is_over(self) -> None:
        pause = self._pause
        assert pause is not None  # noqa: S101 - it has begun
        pause.bell.discard(self)
        self._pause = self._waiting.send(pause.condition())
        self._go_on()

    def _go_on(self) -> None:
        while True:
            pause = self._pause
            assert pause is not None  # noqa: S101 - it has begun
            if not pause.condition():
                pause.bell.add(self)
                # Looked at again: it may have come true before there was anybody to wake.
                if not pause.condition():
                    break
                pause.bell.discard(self)
            self._pause = self._waiting.send(True)
        left = pause.deadline.left
        if left is not None and time.monotonic() + left < self._armed - SLICE:
            self.waiter.wake()  # the task's alarm is set too late
            self.waiter = self._loop.waiter()

    def _finish(self, result: T | None, error: BaseException | None) -> None:
        self.over = True
        self._result = result
        self._error = error
        self.waiter.wake()


# -- asyncio, with any loop ----------------------------------------------------------------


class _AsyncioWaiter:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[bool] = loop.create_future()

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    async def wait(self, timeout: float | None) -> bool:
        if timeout is None or timeout > _FOREVER:
            return await self._future
        alarm = self._loop.call_later(timeout, self._ring)
        try:
            return await self._future
        finally:
            alarm.cancel()

    def _ring(self) -> None:
        if not self._future.done():
            self._future.set_result(False)


class _AsyncioTask:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


class AsyncioLoop(Loop):
    """A loop of asyncio, of uvloop, or of whatever else implements asyncio's."""

    def __init__(self, native: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.native = native
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself holds tasks weakly

    @property
    def closed(self) -> bool:
        """See `Loop`."""
        return self.native.is_closed()

    def waiter(self) -> Waiter:
        """See `Loop`."""
        return _AsyncioWaiter(self.native)

    def spawn(self, name: str, main: Main, ended: Act) -> Task:
        """See `Loop`."""
        task = self.native.create_task(main(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _task: ended())
        return _AsyncioTask(task)

    async def turn(self) -> None:
        """See `Loop`."""
        await asyncio.sleep(0)

    async def shielded(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Loop`."""
        await waiter.wait(timeout)

    def cancels(self, error: BaseException) -> bool:
        """See `Loop`."""
        if not isinstance(error, asyncio.CancelledError):
            return False
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    def _call_soon(self, act: Act) -> None:
        self.native.call_soon_threadsafe(act)

    def _call_next(self, act: Act) -> None:
        self.native.call_soon(act)

    def _call_later(self, delay: float, act: Act) -> None:
        self.native.call_later(delay, act)


# -- trio, by itself or under anyio --------------------------------------------------------


class _TrioWaiter:
    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - it runs here

        self._trio = trio
        self._event = trio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout: float | None) -> bool:
        if timeout is None:
            await self._event.wait()
        else:
            with self._trio.move_on_after(timeout):
                await self._event.wait()
        return self._event.is_set()


class _TrioTask:
    def __init__(self, main: Main, name: str, ended: Act) -> None:
        import trio  # noqa: PLC0415 - it runs here

        self._scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._run, main, ended, name=name)

    async def _run(self, main: Main, ended: Act) -> None:
        try:
            with self._scope:
                await main()
        finally:
            ended()

    def cancel(self) -> None:
        self._scope.cancel()


class TrioLoop(Loop):
    """A run of trio."""

    def __init__(self, native: trio.lowlevel.TrioToken) -> None:
        super().__init__()
        import trio  # noqa: PLC0415 - it runs here

        self._trio = trio
        self.native = native

    @property
    def closed(self) -> bool:
        """See `Loop`. At its end a run cancels all tasks, and those say so themselves."""
        return False

    def waiter(self) -> Waiter:
        """See `Loop`."""
        return _TrioWaiter()

    def spawn(self, name: str, main: Main, ended: Act) -> Task:
        """See `Loop`."""
        return _TrioTask(main, name, ended)

    async def turn(self) -> None:
        """See `Loop`."""
        await self._trio.lowlevel.checkpoint()

    async def shielded(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Loop`."""
        with self._trio.CancelScope(shield=True):
            await waiter.wait(timeout)

    def cancels(self, error: BaseException) -> bool:
        """See `Loop`."""
        return isinstance(error, self._trio.Cancelled)

    def _call_soon(self, act: Act) -> None:
        self.native.run_sync_soon(act)


# -- which runs here -----------------------------------------------------------------------


class _Here(threading.local):
    """The loop that ran in this thread last, while something of it is left."""

    loop: weakref.ref[AsyncioLoop | TrioLoop] | None = None


_here = _Here()


def running() -> Loop:
    """The loop that runs the caller; RuntimeError if none does."""
    in_trio = _trio_task() is not None
    try:
        native: Any = (
            sys.modules["trio"].lowlevel.current_trio_token()
            if in_trio
            else asyncio.get_running_loop()
        )
    except RuntimeError:
        raise RuntimeError(
            "dyninformer.aio works inside an event loop, of asyncio or trio, and none runs here: "
            "call this from a coroutine, or use dyninformer itself, which needs none"
        ) from None
    known = None if _here.loop is None else _here.loop()
    if known is not None and known.native is native:
        return known
    found = TrioLoop(native) if in_trio else AsyncioLoop(native)
    _here.loop = weakref.ref(found)
    return found


def _trio_task() -> object:
    """The task of trio that runs here, None if none does. It imports nothing."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_task()
    except RuntimeError:
        return None


async def carry_out(waiting: Waiting[T], unwanted: Callable[[T], object] | None = None) -> T:
    """`Loop.carry_out`, in the loop that runs here."""
    return await running().carry_out(waiting, unwanted)
