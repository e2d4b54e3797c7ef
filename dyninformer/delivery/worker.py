"""The thread of one handler: there while there is work, and a little longer."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from dyninformer.delivery.handlers import Handler
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.delivery.summons import Summons
from dyninformer.metrics import Metrics
from dyninformer.store.store import Store
from dyninformer.threads import Deadline, Flag, in_forked_child, spawn

LINGER: Final = 5.0
"""Seconds that a thread without work stays: changes come in bursts, and a thread costs 50 us."""
_REPORT_EVERY: Final = 1.0

_log = logging.getLogger(__name__)


class Worker:
    """Tells one handler what is in its queue, in order, one at a time (S8).

    It has at most one thread at a time: the queue summons one when it has none.
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
        summons: Summons,
    ) -> None:
        self.name = name
        self._summons = summons
        self._owner = owner
        self._store = store
        self._queue = queue
        self._handler = handler
        self._metrics = metrics
        self._active = False  # guarded by the informer's lock, as is the next
        self._thread: threading.Thread | None = None  # the last that was active
        self._ended = Flag()  # no thread, and none was summoned
        self._ended.set()
        in_forked_child(self, "_ended", _active=False, _thread=None)

    def summon(self) -> None:
        """Have a thread started for the queue, which has none. Under the lock."""
        self._summons.summon(self)
        self._ended.clear()

    def dismissed(self) -> None:
        """No thread will be started: the queue was closed before."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        """There is no thread that calls the handler, and none was summoned."""
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
            self._summons.claim(self)
            if self._active or self.ended:
                return
            self._active = True
            self._thread = threading.current_thread()
        gone = False
        try:
            while not gone:
                self._tell_all()
                gone = not self._queue.wait(LINGER) or self._queue.closed
                gone = gone and self._leave()
        finally:
            if not gone:  # metrics that raise, no memory: the next change gets another thread
                self._leave(anyway=True)

    def _leave(self, *, anyway: bool = False) -> bool:
        """End, unless there is work again: then False. From now on a thread may be summoned."""
        with self._store.lock:
            if not self._queue.leave(anyway=anyway):
                return False
            self._active = False
            self._ended.set()
            return True

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
