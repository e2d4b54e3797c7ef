"""The thread of one handler: started with its first work, and parked until the handler ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from dyninformer.delivery.handlers import Handler
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.metrics import Metrics
from dyninformer.store.store import Store
from dyninformer.threads import Deadline, Flag, in_forked_child, spawn

_REPORT_EVERY: Final = 1.0

_log = logging.getLogger(__name__)


class Worker:
    """Tells one handler what is in its queue, in order, one at a time (S8).

    A handler that never hears anything costs no thread (S21). One that did keeps its thread: a
    parked thread is 15 kB of memory (measured with 1,000), and a start takes 50 to 230 us.
    """

    def __init__(
        self,
        *,
        owner: object,
        store: Store,
        queue: HandlerQueue,
        handler: Handler,
        name: str,
        metrics: Metrics,
        want: Callable[[Worker], None],
        claim: Callable[[Worker], None],
    ) -> None:
        """``want`` has a thread started soon, ``claim`` says that it runs; both under the lock."""
        self.name = name
        self._owner = owner
        self._store = store
        self._queue = queue
        self._handler = handler
        self._metrics = metrics
        self._want = want
        self._claim = claim
        self._active = False  # guarded by the informer's lock, as is the next
        self._thread: threading.Thread | None = None  # the last that was active
        self._ended = Flag()  # no thread, and none is wanted
        self._ended.set()
        in_forked_child(self, "_ended", _active=False, _thread=None)

    def want_thread(self) -> None:
        """Have a thread started for the queue, which has none. Under the lock."""
        self._want(self)
        self._ended.clear()

    def dismiss(self) -> None:
        """No thread will be started: the queue was closed before."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        """There is no thread that calls the handler, and none is wanted."""
        return self._ended.is_set()

    def start(self) -> None:
        """Start a thread, which ends at once if there is one already.

        RuntimeError if the system has no more threads.
        """
        spawn(self._owner, f"dyninformer {self._store.gvr} handler {self.name}", self._run)

    def tells_here(self) -> bool:
        """The current thread is the one that calls this handler."""
        return self._thread is threading.current_thread()

    def join(self, timeout: float | None) -> bool:
        """Wait until the thread has ended; the queue has been closed. False at the timeout."""
        deadline = Deadline(timeout)
        if not self._ended.wait(timeout):
            return False
        if self._thread is not None:  # it has nothing left to do but to end
            self._thread.join(deadline.left)
        return True

    def _run(self) -> None:
        with self._store.lock:
            self._claim(self)
            if self._active or self.ended:
                return
            self._active = True
            self._thread = threading.current_thread()
        try:
            while not self._queue.closed:
                self._tell_all()
                self._queue.wait(None)
        finally:  # with metrics that raise, or no memory, the next change gets another thread
            with self._store.lock:
                self._queue.leave()
                self._active = False
                self._ended.set()

    def _tell_all(self) -> None:
        """Tell what is there, and report now and then."""
        queue, tell, closed = self._queue, self._handler.tell, self._closed
        gvr, codec = self._store.gvr, self._store.codec
        told, due = 0, time.monotonic() + _REPORT_EVERY
        while (step := queue.head()) is not None:
            try:
                tell(step, gvr, codec, closed)
            except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends no handler (S10)
                self._failed(step.key, error)
            queue.advance()
            told += 1
            if time.monotonic() >= due:
                self._report(told)
                told, due = 0, time.monotonic() + _REPORT_EVERY
        if told:
            self._report(told)

    def _closed(self) -> bool:
        return self._queue.closed

    def _report(self, told: int) -> None:
        gvr = self._store.gvr
        self._metrics.count("handled", gvr, told, handler=self.name)
        self._metrics.gauge("backlog", gvr, self._queue.backlog, handler=self.name)

    def _failed(self, key: str, error: BaseException) -> None:
        gvr = self._store.gvr
        _log.error("handler %s of %s failed on %s", self.name, gvr, key, exc_info=error)
        self._metrics.count("handler_errors", gvr, handler=self.name)
