"""Blocking calls, run on threads beside the event loop: settings, discovery, starting, stopping."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

from dyninformer.aio.loops import Loop, running
from dyninformer.threads import ReentrantLock, in_forked_child, spawn

T = TypeVar("T")
Inbox: TypeAlias = "SimpleQueue[Call[Any] | None]"
"""Where one thread gets its next call; None ends the thread."""

_IDLE: Final = 1.0  # seconds after which a thread without work ends


class BlockingCalls:
    """Runs the blocking calls of one factory, each on an idle thread or on a new one.

    So no call waits for another call to end.
    """

    def __init__(self) -> None:
        self._lock = ReentrantLock()  # guards the next two
        self._idle: list[Inbox] = []
        self._closed = False
        in_forked_child(self, "_lock", _idle=list, _closed=True)

    async def run(self, act: Callable[[], T], unwanted: Callable[[T], object] | None = None) -> T:
        """Call ``act`` on a thread, and return or raise what it does.

        A cancellation ends the wait at once, and ``act`` goes on. Its result is passed to
        ``unwanted``, on a thread, perhaps more than once.
        """
        call = Call(act, running(), unwanted)
        self._begin(call)
        try:
            return await call.wait()
        except BaseException:
            call.left = True  # before looking whether it is done; the thread does it the other
            if call.done:  # way round, so that one of them, or both, see to what came of it
                self.begin(call.drop)
            raise

    def begin(self, act: Callable[[], T]) -> Call[T]:
        """Have a thread call ``act``, without waiting for it."""
        call = Call(act, running())
        self._begin(call)
        return call

    def close(self) -> None:
        """End the idle threads, and others after their call. Later calls are still run."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _begin(self, call: Call[Any]) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(call)
            return
        inbox = SimpleQueue()
        inbox.put(call)
        # It has another owner than the factory's threads: a shutdown on those never waits.
        spawn(self, "dyninformer aio", partial(self._work, inbox))

    def _work(self, inbox: Inbox) -> None:
        while True:
            try:
                call = inbox.get(timeout=_IDLE)
            except Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # `_begin` has taken the inbox, and is about to put a call into it
            if call is None:
                return
            call.carry_out()
            del call  # it may be the last reference to a whole factory
            with self._lock:
                if self._closed:
                    return
                self._idle.append(inbox)


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
