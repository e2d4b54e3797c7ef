"""The thread of one handler: started with its first work, and parked until the handler ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from dyninformer.delivery.handlers import Handler
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.metrics.told import NO_METRICS, Metrics, observe, observes
from dyninformer.store.store import Store
from dyninformer.threads import Deadline, Flag, in_forked_child, spawn

REPORT_EVERY: Final = 1.0
"""Seconds between two reports to the metrics, at least, while there is work."""

_logger = logging.getLogger(__name__)


class Telling(NamedTuple):
    """What a teller needs: whom to tell, from which queue, and where to report to."""

    owner: object
    store: Store
    queue: HandlerQueue
    handler: Handler
    name: str
    metrics: Metrics
    lose: Callable[[], None]
    """Closes the queue and has it taken away: the teller has ended. It takes no lock."""

    def stopped(self) -> bool:
        """No callback is to begin any more."""
        return self.queue.closed

    @property
    def measures(self) -> bool:
        """Somebody wants to know how long it takes: see `measured`."""
        return observes(self.metrics)

    def measured(self, came: float, began: float) -> None:
        """A step that came, and was begun, then is over; by the monotonic clock."""
        gvr, metrics = self.store.gvr, self.metrics
        observe(metrics, "handler_duration_seconds", gvr, time.monotonic() - began)
        if came:  # by a watch: neither a first state nor a resync
            observe(metrics, "event_lag_seconds", gvr, began - came)

    def report(self, number: int) -> None:
        """So many steps were handled since the last report."""
        gvr = self.store.gvr
        self.metrics.count("handled", gvr, number)
        self.metrics.gauge("backlog", gvr, self.queue.backlog)

    def failed(self, key: str, error: BaseException) -> None:
        """The handler raised (S10)."""
        gvr = self.store.gvr
        _logger.error("handler %s of %s failed on %s", self.name, gvr, key, exc_info=error)
        self.metrics.count("handler_errors", gvr)


class Teller(Protocol):
    """What calls a handler: a thread, or a task of an event loop."""

    name: str

    @property
    def ended(self) -> bool:
        """It calls the handler no more, and has nothing to call it with."""

    def tells_here(self) -> bool:
        """What runs now is what calls this handler."""

    def join(self, timeout: float | None) -> bool:
        """Wait, in a thread, until it has ended, its queue being closed. False at the timeout."""


class Worker:
    """Tells one handler what is in its queue, in order, one at a time (S8).

    A handler that never hears anything costs no thread (S21). One that did keeps its thread: a
    parked thread is 15 kB of memory (measured with 1,000), and a start takes 50 to 230 us.
    """

    def __init__(
        self, telling: Telling, want: Callable[[Worker], None], claim: Callable[[Worker], None]
    ) -> None:
        """``want`` has a thread started soon, ``claim`` says that it runs; both under the lock."""
        self.name = telling.name
        self._telling = telling
        self._store = telling.store
        self._queue = telling.queue
        self._want = want
        self._claim = claim
        self._active = False  # guarded by the informer's lock, as is the next
        self._thread: threading.Thread | None = None  # the last that was active
        self._ended = Flag()  # no thread, and none is wanted
        self._ended.set()
        in_forked_child(self, "_ended", _active=False, _thread=None)
        self._queue.start_with(self.want_thread)

    def want_thread(self) -> None:
        """Have a thread started for the queue, which has none. Under the lock."""
        self._want(self)
        self._ended.clear()

    def dismiss(self) -> None:
        """No thread will be started: the queue was closed before."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        """No thread calls the handler, and none is needed."""
        return self._ended.is_set()

    def start(self) -> None:
        """Start a thread, which ends at once if there is one already.

        RuntimeError if the system has no more threads.
        """
        spawn(self._telling.owner, f"dyninformer {self._store.gvr} handler {self.name}", self._run)

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
        telling, queue, tell = self._telling, self._queue, self._telling.handler.tell
        stopped, gvr, codec = telling.stopped, self._store.gvr, self._store.codec
        following, counted = queue.following, telling.metrics is not NO_METRICS
        measured, began = telling.measured if telling.measures else None, 0.0
        told, due = 0, time.monotonic() + REPORT_EVERY
        step = queue.head()
        while step is not None:
            if measured is not None:
                began = time.monotonic()
            try:
                tell(step, gvr, codec, stopped)
            except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends no handler (S10)
                telling.failed(step.key, error)
            if measured is not None:
                measured(step.came, began)
            step = following()
            if counted:
                told += 1
                if time.monotonic() >= due:
                    telling.report(told)
                    told, due = 0, time.monotonic() + REPORT_EVERY
        if told:
            telling.report(told)
