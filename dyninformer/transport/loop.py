"""The event loop in a background thread, and how other threads use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from dyninformer.errors import StoppedError
from dyninformer.threads import Bell, Deadline, OwnThread, in_forked_child, spawn
from dyninformer.types import Names

T = TypeVar("T")


async def in_thread(act: Callable[[], T], name: str) -> T:
    """Run something that blocks and cannot be interrupted, on a daemon thread of this name.

    If the coroutine is cancelled, it returns at once, and the thread's result is dropped.
    asyncio's executor would hold up the end of the program until the thread is done.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: Future[T]) -> None:
        error = result.exception()
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result.result())

    def run() -> None:
        result: Future[T] = Future()
        try:
            result.set_result(act())
        except Exception as error:  # noqa: BLE001 - the waiting coroutine raises it
            result.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - raised in a task, it would end the loop
            result.set_exception(_carried(error))
        with suppress(RuntimeError):  # the loop has been closed: no coroutine waits
            loop.call_soon_threadsafe(settle, result)

    spawn(loop, name, run)
    return await done


def _carried(error: BaseException) -> Exception:
    """Return an ordinary error with the name of one that is not, such as SystemExit."""
    kind = type(type(error).__name__, (RuntimeError,), {})
    found: Exception = kind(str(error))
    found.__cause__ = error
    return found


class LoopThread:
    """An event loop in a daemon thread, which starts with the first use.

    Every method may be called from any thread. After a fork the child's loop is a stopped one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()  # guards _loop and _stopped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: OwnThread | None = None
        self._stopped = False
        in_forked_child(self, "_lock", _stopped=True, _loop=None, _thread=None)

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Have the loop run a coroutine. Cancelling the future cancels the coroutine."""
        try:
            loop = self._started()
        except BaseException:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop, and wait for what it returns or raises.

        Raises `TimeoutError` at the timeout. Then, and after Ctrl-C, the coroutine is cancelled.
        """
        return waited(self.begin(coroutine), timeout)

    def post(self, act: Callable[[], object]) -> None:
        """Have the loop call something soon; nothing, if it has stopped."""
        with self._lock:
            loop = self._loop
            if loop is not None and not self._stopped:
                loop.call_soon_threadsafe(act)

    def stop(self) -> None:
        """Cancel what runs on the loop, and end its thread. Idempotent; waits for nothing."""
        with self._lock:
            if self._loop is not None and not self._stopped:
                self._loop.call_soon_threadsafe(_end, self._loop)
            self._stopped = True

    def join(self, timeout: float | None = None) -> bool:
        """After `stop`: wait until the thread has ended; False at the timeout."""
        thread = self._thread
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def under_way(self) -> Names:
        """Return the names of threads in something that nothing can interrupt: see `in_thread`."""
        loop = self._loop
        return [
            thread.name
            for thread in threading.enumerate()
            if loop is not None and isinstance(thread, OwnThread) and thread.owner is loop
        ]

    # -- inside --------------------------------------------------------------------------

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._stopped:
                raise StoppedError("the connections have been closed")
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    self._thread = spawn(self, self._name, lambda: _serve(loop))
                except BaseException:
                    loop.close()
                    raise
                self._loop = loop
            return self._loop


def waited(future: Future[T], timeout: float | None = None) -> T:
    """Wait for a future, so that Ctrl-C ends the wait; an unfinished one is cancelled."""
    bell = Bell()
    future.add_done_callback(lambda _: bell.ring())
    try:
        if not bell.wait_for(future.done, Deadline(timeout).left):
            raise TimeoutError
        return future.result()
    finally:
        future.cancel()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks, and stop the loop when they have ended."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    waiting = asyncio.gather(*tasks, return_exceptions=True) if tasks else None
    if waiting is None:
        loop.call_soon(loop.stop)  # after what was posted before
    else:
        waiting.add_done_callback(lambda _: loop.call_soon(loop.stop))
