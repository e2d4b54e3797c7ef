"""Operations that nothing can interrupt, on threads that nobody has to wait for (S34).

A name lookup, a TCP connect and a credential plugin go on until they are over. So they run
on daemon threads of their own, and whoever needs a result waits for it in a way that can
be ended. A result that nobody waits for any more is discarded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from dyninformer.errors import StoppedError
from dyninformer.threads import Deadline, in_forked_child

T = TypeVar("T")


class Waiter(Protocol):
    """Who waits for a result, and may be told to stop waiting."""

    def wait_for(self, result: Future[Any], /) -> None:
        """Return when it is there; raise if the waiting has been ended."""


@dataclass(slots=True, eq=False)
class _Errand:
    name: str
    operation: Callable[[], Any]
    discard: Callable[[Any], None]
    result: Future[Any] = field(default_factory=Future)
    waiters: int = 0


class Errands:
    """Runs operations on at most ``most`` daemon threads at a time, in the order they came.

    A thread lives while there is something to do. Every method may be called from any
    thread.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._lock = threading.RLock()  # guards all below
        self._pending: deque[_Errand] = deque()
        self._running: dict[str, str] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._shared: dict[str, _Errand] = {}
        self._numbers = set(range(1, most + 1))
        self._closed = False
        in_forked_child(
            self, "_lock", _closed=True, _pending=deque, _running=dict, _threads=dict, _shared=dict
        )

    def run(
        self,
        name: str,
        operation: Callable[[], T],
        waiter: Waiter,
        *,
        discard: Callable[[T], None] = lambda _: None,
        shared: bool = False,
    ) -> T:
        """What ``operation`` returns or raises; or what the waiter raises, at once.

        With ``shared``, whoever comes while an operation of that name is under way waits
        for that one. ``discard`` gets a result that nobody waited for, on the thread that
        made it.
        """
        errand = self._enter(name, operation, discard, shared=shared)
        try:
            waiter.wait_for(errand.result)
        except BaseException:
            self._leave(errand)
            raise
        if errand.result.cancelled():
            raise StoppedError(f"{self._name}: nothing is begun any more, it has been closed")
        result: T = errand.result.result()
        return result

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
        for errand in dropped:
            errand.result.cancel()

    # -- inside --------------------------------------------------------------------------

    def _enter(
        self,
        name: str,
        operation: Callable[[], Any],
        discard: Callable[[Any], None],
        *,
        shared: bool,
    ) -> _Errand:
        with self._lock:
            errand = self._shared.get(name) if shared else None
            if errand is None:
                errand = _Errand(name, operation, discard)
                if self._closed:
                    errand.result.cancel()
                    return errand
                if shared:
                    self._shared[name] = errand
                self._pending.append(errand)
                if self._numbers:
                    # Started under the lock, so that its number is its own from birth; the
                    # new thread only waits for the lock.
                    self._start(errand)
            errand.waiters += 1
            return errand

    def _start(self, errand: _Errand) -> None:
        number = self._numbers.pop()
        name = self._name if self._most == 1 else f"{self._name} {number}"
        thread = threading.Thread(target=self._work, args=(number, name), name=name, daemon=True)
        self._threads[name] = thread
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is ending
            del self._threads[name]
            self._numbers.add(number)
            self._pending.remove(errand)
            self._forget(errand)
            raise

    def _work(self, number: int, thread: str) -> None:
        while True:
            with self._lock:
                self._running.pop(thread, None)
                if not self._pending:
                    self._threads.pop(thread, None)
                    self._numbers.add(number)
                    return
                errand = self._pending.popleft()
                if errand.waiters == 0:
                    self._forget(errand)
                    continue
                self._running[thread] = errand.name
            self._perform(errand)
            del errand  # it may hold a socket

    def _perform(self, errand: _Errand) -> None:
        try:
            outcome, error = errand.operation(), None
        except BaseException as raised:  # noqa: BLE001 - it is the waiter's to handle
            outcome, error = None, raised
        with self._lock:
            # After this nobody can begin to wait for it, and nobody who waits can leave
            # without taking the result or being counted here.
            self._forget(errand)
            wanted = errand.waiters > 0
            if error is not None:
                errand.result.set_exception(error)
            else:
                errand.result.set_result(outcome)
        if error is None and not wanted:
            errand.discard(outcome)

    def _forget(self, errand: _Errand) -> None:
        """Under the lock: nobody can join it any more."""
        if self._shared.get(errand.name) is errand:
            del self._shared[errand.name]

    def _leave(self, errand: _Errand) -> None:
        with self._lock:
            errand.waiters -= 1
            orphaned = (
                errand.waiters == 0
                and errand.result.done()
                and not errand.result.cancelled()
                and errand.result.exception() is None
            )
        if orphaned:  # the result came, and the waiter was ended before it could take it
            errand.discard(errand.result.result())
