"""One thread that calls a handler with the events of many clusters, in turns.

Each cluster's informer has a queue for the handler, which keeps the order within the cluster. The
thread takes from each queue for a few milliseconds, and goes on with the next that has something:
however much comes from one cluster, the others are heard. So the handler is called one at a time,
and a hundred clusters cost one thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final

from dyninformer.delivery.queue import HandlerQueue
from dyninformer.delivery.worker import REPORT_EVERY, Telling
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import Bell, Deadline, Flag, OwnThread, in_forked_child, spawn

TURN_SECONDS: Final = 0.005
"""For which one cluster is told on, if others wait."""


class Turns:
    """Calls one handler, from the first cluster on that joins. Any method: from any thread."""

    def __init__(self, owner: object, name: str) -> None:
        self._owner = owner
        self._name = name
        # Either end takes one call of C, and so no lock: producers hold the lock of an informer.
        self._ready: deque[ClusterTeller] = deque()
        self._last: dict[
            tuple[str, GroupVersionResource], ClusterTeller
        ] = {}  # who adds has a lock
        self._bell = Bell()  # rings when something is ready, and at the end
        self._closed = False
        self._thread: OwnThread | None = None
        in_forked_child(self, "_bell", _closed=True, _thread=None)

    def teller(self, telling: Telling) -> ClusterTeller:
        """What calls the handler for the events of one more informer.

        If the cluster has had another one, which was removed, that one is heard to its end first.
        """
        cluster = telling.handler.cluster
        before = self._last.get((cluster, telling.store.gvr))
        made = ClusterTeller(self, telling, before)
        self._last[cluster, telling.store.gvr] = made
        return made

    def start(self) -> None:
        """Start the thread. Once."""
        self._thread = spawn(self._owner, f"dyninformer fleet handler {self._name}", self._run)

    def put(self, teller: ClusterTeller) -> None:
        """A cluster has something to tell. Takes no lock, and waits for nobody."""
        self._ready.append(teller)
        self._bell.ring()

    def tells_here(self) -> bool:
        """The current thread is the one that calls the handler."""
        return self._thread is threading.current_thread()

    def close(self) -> None:
        """Call it no more. Waits for nobody; idempotent."""
        self._closed = True
        self._bell.ring()

    def join(self, timeout: float | None) -> bool:
        """After `close`: wait for a callback that runs. False at the timeout."""
        thread = self._thread
        if thread is None:
            return True
        if self.tells_here():
            return False
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        while not self._closed:
            self._bell.wait_for(lambda: bool(self._ready) or self._closed)
            if self._closed:
                return
            self._ready.popleft().take_turn(self)

    @property
    def others_wait(self) -> bool:
        """Another cluster has something to tell."""
        return bool(self._ready)

    @property
    def closed(self) -> bool:
        """It is called no more."""
        return self._closed


class ClusterTeller:
    """The part of one cluster: a `worker.Teller`, whose thread is that of its `Turns`."""

    def __init__(self, turns: Turns, telling: Telling, before: ClusterTeller | None) -> None:
        """It begins when ``before`` has ended."""
        self.name = telling.name
        self._turns = turns
        self._telling = telling
        self._listed = False  # it is among those that are ready
        self._rests = Flag()  # no callback runs for it
        self._rests.set()
        in_forked_child(self, "_rests")
        self._before = before
        self.after: ClusterTeller | None = None
        """What begins when this has ended."""
        telling.queue.call_with(self.called)
        if before is not None:
            before.after = self
            # It may have ended before it knew of this one.
            self.called()

    @property
    def queue(self) -> HandlerQueue:
        """What is yet to be told."""
        return self._telling.queue

    @property
    def ended(self) -> bool:
        """It calls the handler no more."""
        return self._telling.queue.closed and self._rests.is_set()

    def tells_here(self) -> bool:
        """The current thread is the one that calls the handler."""
        return self._turns.tells_here()

    @property
    def heard(self) -> bool:
        """All that it had to tell was told, and all that others had before it.

        One that had nothing to tell ends at once, while the one before it is still being told.
        """
        return self._telling.queue.closed and self._before is None

    def join(self, timeout: float | None) -> bool:
        """Wait for a callback that runs, its queue being closed. False at the timeout."""
        deadline = Deadline(timeout)
        return self._rests.is_set() or (not self.tells_here() and self._rests.wait(deadline.left))

    def called(self) -> None:
        """Something was queued, or the queue closed. Under the informer's lock."""
        if self._before is not None:
            if not self._before.heard:
                return  # it will call
            self._before = None
        if not self._listed:
            self._listed = True
            self._turns.put(self)

    def take_turn(self, turns: Turns) -> None:
        """Tell what is there, for as long as a turn lasts if others wait. On the thread."""
        self._listed = False  # before looking: what comes later lists it again
        self._rests.clear()
        try:
            more = self._tell(turns)
        finally:
            self._rests.set()
        if more:
            self.called()
        elif self._telling.queue.closed and self.after is not None:
            self.after.called()

    def _tell(self, turns: Turns) -> bool:
        """Whether something is left."""
        telling, queue, tell = self._telling, self._telling.queue, self._telling.handler.tell
        stopped, gvr, codec = telling.stopped, telling.store.gvr, telling.store.codec
        measured, began = telling.measured if telling.measures else None, 0.0
        told, now = 0, time.monotonic()
        over, due = now + TURN_SECONDS, now + REPORT_EVERY
        while not turns.closed and (step := queue.head()) is not None:
            if measured is not None:
                began = time.monotonic()
            try:
                tell(step, gvr, codec, stopped)
            except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends no handler (S10)
                telling.failed(step.key, error)
            if measured is not None:
                measured(step.came, began)
            queue.advance()
            told += 1
            now = time.monotonic()
            if now >= due:
                telling.report(told)
                told, due = 0, now + REPORT_EVERY
            if now >= over and turns.others_wait:
                break
        else:
            if told:
                telling.report(told)
            return False
        telling.report(told)
        return True
