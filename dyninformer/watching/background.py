"""Operations that nothing can interrupt, on threads that no caller has to wait for (S34).

A name lookup, a TCP connect and a credential plugin go on until they are over. So they run
on daemon threads of their own, and a caller that needs a result waits for it in a way that
can be ended. A result that no caller waits for any more is discarded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dyninformer.errors import StoppedError
from dyninformer.threads import Deadline, ReentrantLock, in_forked_child

if TYPE_CHECKING:
    from dyninformer.watching.sockets import Call

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Task:
    name: str
    operation: Callable[[], Any]
    discard: Callable[[Any], None]
    result: Future[Any] = field(default_factory=Future)
    waiters: int = 0


class BackgroundThreads:
    """Runs operations on at most ``most`` daemon threads at a time, in the order they came.

    A thread lives while there is something to do. Every method may be called from any
    thread.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._lock = ReentrantLock()  # guards all below
        self._pending: deque[_Task] = deque()
        self._running: dict[str, str] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._shared: dict[str, _Task] = {}
        self._numbers = set(range(1, most + 1))
        self._closed = False
        in_forked_child(
            self, "_lock", _closed=True, _pending=deque, _running=dict, _threads=dict, _shared=dict
        )

    def run(
        self,
        name: str,
        operation: Callable[[], T],
        call: Call,
        *,
        discard: Callable[[T], None] = lambda _: None,
        shared: bool = False,
    ) -> T:
        """What ``operation`` returns or raises; or what ``call`` raises when it is ended, at once.

        With ``shared``, a caller that comes while an operation of that name is under way waits
        for that one. ``discard`` gets a result that nobody waited for, on the thread that
        made it.
        """
        task = self._enter(name, operation, discard, shared=shared)
        try:
            call.wait_for(task.result)
        except BaseException:
            self._leave(task)
            raise
        if task.result.cancelled():
            raise StoppedError(f"{self._name}: nothing is begun any more, it has been closed")
        result: T = task.result.result()
        return result

    def begin(self, name: str, operation: Callable[[], object]) -> None:
        """Have it run, and wait for nothing; after `close` it is not run."""
        self._enter(name, operation, lambda _: None, shared=False)

    def under_way(self) -> list[str]:
        """The threads at work, each with what it is doing."""
        with self._lock:
            return [f"{thread} ({what})" for thread, what in self._running.items()]

    def join(self, timeout: float | None) -> None:
        """After `close`: give what has begun so long to end."""
        deadline = Deadline(timeout)
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            if thread.is_alive():  # a signal handler may come in the middle of its start
                thread.join(deadline.left)

    def close(self) -> None:
        """Begin nothing any more. What has begun goes on, and is discarded."""
        with self._lock:
            self._closed = True
            dropped = list(self._pending)
            self._pending.clear()
        for task in dropped:
            task.result.cancel()

    # -- inside --------------------------------------------------------------------------

    def _enter(
        self,
        name: str,
        operation: Callable[[], Any],
        discard: Callable[[Any], None],
        *,
        shared: bool,
    ) -> _Task:
        with self._lock:
            task = self._shared.get(name) if shared else None
            if task is None:
                task = _Task(name, operation, discard)
                if self._closed:
                    task.result.cancel()
                    return task
                if shared:
                    self._shared[name] = task
                self._pending.append(task)
                if self._numbers:
                    # Started under the lock, so that its number is its own from birth; the
                    # new thread only waits for the lock.
                    self._start(task)
            task.waiters += 1
            return task

    def _start(self, task: _Task) -> None:
        number = self._numbers.pop()
        name = self._name if self._most == 1 else f"{self._name} {number}"
        thread = threading.Thread(target=self._work, args=(number, name), name=name, daemon=True)
        self._threads[name] = thread
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is ending
            del self._threads[name]
            self._numbers.add(number)
            self._pending.remove(task)
            self._forget(task)
            raise

    def _work(self, number: int, thread: str) -> None:
        while True:
            with self._lock:
                self._running.pop(thread, None)
                if not self._pending:
                    self._threads.pop(thread, None)
                    self._numbers.add(number)
                    return
                task = self._pending.popleft()
                if task.waiters == 0:
                    self._forget(task)
                    continue
                self._running[thread] = task.name
            self._perform(task)
            del task  # it may hold a socket

    def _perform(self, task: _Task) -> None:
        try:
            outcome, error = task.operation(), None
        except BaseException as raised:  # noqa: BLE001 - it is the waiter's to handle
            outcome, error = None, raised
        with self._lock:
            # After this nothing can begin to wait for it, and no caller that waits can leave
            # without taking the result or being counted here.
            self._forget(task)
            wanted = task.waiters > 0
            if error is not None:
                task.result.set_exception(error)
            else:
                task.result.set_result(outcome)
        if error is None and not wanted:
            task.discard(outcome)

    def _forget(self, task: _Task) -> None:
        """Under the lock: nobody can join it any more."""
        if self._shared.get(task.name) is task:
            del self._shared[task.name]

    def _leave(self, task: _Task) -> None:
        with self._lock:
            task.waiters -= 1
            orphaned = (
                task.waiters == 0
                and task.result.done()
                and not task.result.cancelled()
                and task.result.exception() is None
            )
        if orphaned:  # the result came, and the waiter was ended before it could take it
            task.discard(task.result.result())
