"""Calls that block, away from the event loop: reading settings, discovery, starting, the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from dyninformer.aio.loops import Loop, running
from dyninformer.threads import Flag, ReentrantLock, in_forked_child, spawn

T = TypeVar("T")

_MOST: Final = 4
_IDLE: Final = 5.0  # seconds after which a thread without work ends


class BlockingCalls:
    """The threads of one factory that its awaited methods run on: none when there is no work.

    One does, as a rule. Up to four are there while what is asked of the network takes long.
    """

    def __init__(self) -> None:
        self._lock = ReentrantLock()  # guards all below
        self._waiting: deque[Call[Any]] = deque()
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._more = Flag()  # there is work, or the end has come
        in_forked_child(self, "_lock", "_more", _waiting=deque, _threads=0, _idle=0, _closed=True)

    async def run(self, act: Callable[[], T], unwanted: Callable[[T], object] | None = None) -> T:
        """What ``act`` returns or raises.

        Cancelled, it returns at once: what has begun goes on, and ``unwanted`` gets what comes of
        it, on a thread, and more than once perhaps.
        """
        call = Call(act, running(), unwanted)
        self._begin(call, urgent=False)
        try:
            return await call.wait()
        except BaseException:
            call.left = True  # before looking whether it is done; the thread does it the other
            if call.done:  # way round, so that one of them, or both, see to what came of it
                self.begin(call.drop)
            raise

    def begin(self, act: Callable[[], T], *, urgent: bool = False) -> Call[T]:
        """Have ``act`` called, and wait for nothing. What is ``urgent`` waits for no other call."""
        call = Call(act, running())
        self._begin(call, urgent=urgent)
        return call

    def _begin(self, call: Call[T], *, urgent: bool) -> None:
        with self._lock:
            if urgent:
                self._waiting.appendleft(call)
            else:
                self._waiting.append(call)
            start = len(self._waiting) > self._idle and (urgent or self._threads < _MOST)
            if start:
                self._threads += 1
        self._more.set()
        if start:
            try:
                # Not a thread of the factory's own: on those a shutdown would wait for nobody.
                spawn(self, "dyninformer aio", self._work)
            except BaseException:
                with self._lock:
                    self._threads -= 1
                raise

    def close(self) -> None:
        """Let the threads end that have no work. Later calls are run all the same."""
        with self._lock:
            self._closed = True
        self._more.set()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.carry_out()
            del call  # it may hold a whole factory

    def _next(self) -> Call[Any] | None:
        while True:
            self._more.clear()  # before looking: what comes later sets it again
            with self._lock:
                if self._waiting:
                    call = self._waiting.popleft()
                    if self._waiting:
                        self._more.set()  # for another thread
                    return call
                if self._closed:
                    self._threads -= 1
                    self._more.set()  # the others, too
                    return None
                self._idle += 1
            woken = self._more.wait(_IDLE)
            with self._lock:
                self._idle -= 1
                if not woken and not self._waiting:
                    self._threads -= 1
                    return None


class Call(Generic[T]):
    """One call, and the task that waits for it."""

    def __init__(
        self, act: Callable[[], T], loop: Loop, unwanted: Callable[[T], object] | None = None
    ) -> None:
        self.waiter = loop.waiter()
        """Is woken when it is done."""
        self.left = False
        """No task waits for it any more; what has not begun then never does."""
        self.done = False
        """It was carried out."""
        self._act = act
        self._loop = loop
        self._unwanted = unwanted
        self._result: T | None = None
        self._error: BaseException | None = None

    async def wait(self) -> T:
        """What comes of it."""
        await self.waiter.wait(None)
        return self.result()

    def result(self) -> T:
        """What came of it."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback has this frame
        return self._result  # type: ignore[return-value]  # done, and without an error

    def carry_out(self) -> None:
        """Do it, and say so. In the thread."""
        if self.left:
            return
        try:
            self._result = self._act()
        except BaseException as error:  # noqa: BLE001 - it is the waiting task's
            self._error = error
        self.done = True
        if self.left:
            self.drop()
        self._loop.post(self.waiter.wake)

    def drop(self) -> None:
        """No task takes what came of it. In a thread."""
        if self._unwanted is not None and self._error is None:
            self._unwanted(self._result)  # type: ignore[arg-type]  # as in `result`
