"""A loop on a thread of its own, and the way for other threads to have things done there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class OwnerThread:
    """Runs an asyncio loop on one named daemon thread, from construction to `close`.

    Its methods may be called from any thread, the loop's own included.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._name = name
        self._closed = False
        self._lock = threading.Lock()  # guards _closed against calls that would never be run
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the loop's thread, and return what it returns or raises."""
        if self.is_current():
            return function()

        async def once() -> T:
            return function()

        return self.run(once)

    def run(self, coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop to its end; not from the loop's own thread."""
        if self.is_current():
            raise RuntimeError(f"{self._name} cannot wait for itself")
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} has been closed")
            future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine(), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt ends the wait: nobody needs the answer
            raise

    @property
    def closed(self) -> bool:
        """`close` has been called."""
        return self._closed

    def is_current(self) -> bool:
        """Whether the caller is on the loop's thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End every task, the loop and the thread. Idempotent; not from the loop's own thread."""
        with self._lock:
            already, self._closed = self._closed, True
        if not already:
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self.loop.close()
