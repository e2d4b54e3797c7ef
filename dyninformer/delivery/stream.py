"""Events as an iterator, delivered in the thread that asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from dyninformer.checked import checked_number
from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.decide import Delta
from dyninformer.store.store import Store
from dyninformer.threads import ClosedByWith, Deadline
from dyninformer.types import Keys


def checked_idle_timeout(seconds: float | None) -> float | None:
    """Seconds without an event after which a stream ends."""
    if seconds is not None:
        checked_number("idle_timeout", seconds, "seconds, or None for ever")
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"idle_timeout is {seconds!r}: give seconds, or None for ever")
    return seconds


class Subscription(Shown):
    """A queue of events that somebody reads, be it a thread or a task of a loop.

    Not for import: `EventStream` is one.
    """

    def __init__(
        self,
        store: Store,
        queue: HandlerQueue,
        close: Callable[[], None],
        forget: Callable[[], None],
        idle_timeout: float | None,
    ) -> None:
        """``forget`` is called by a finalizer: it must take no lock, and wait for nobody."""
        self._store = store
        self._queue = queue
        self._close = close
        self._forget = forget
        self.idle_timeout = idle_timeout
        """Seconds without an event after which it ends, None is never; may be set in between."""
        self.keeps: object = None
        """What is to stay for as long as this is held. Not for import."""
        self._given = False  # the queue's head was returned to the caller
        self._waits = False  # somebody waits for the next one

    @property
    def gvr(self) -> GroupVersionResource:
        """Of which resource."""
        return self._store.gvr

    @property
    def closed(self) -> bool:
        """Whether it has ended: there will be no more events."""
        return self._queue.closed

    @property
    def backlog(self) -> int:
        """The number of events that have come and were not yet taken."""
        return max(0, self._queue.backlog - self._given)  # that of a closed queue is 0

    @property
    def overflows(self) -> int:
        """How often more events than ``max_backlog`` would have waited, so that they were merged.

        0 is: it has told each change.
        """
        return self._queue.overflows

    def close(self) -> None:
        """End it. Idempotent. Whoever waits for an event sees the end at once."""
        self._close()

    def __del__(self) -> None:
        """Runs anywhere: in the middle of ``publish`` to this very stream, say."""
        if not self._queue.closed:
            self._queue.closed = True
            self._forget()


class EventStream(Subscription, ClosedByWith):
    """The events of one informer, from the moment that it was asked for.

    Iterate over it; no thread is behind it, and it holds what you have not yet taken. It ends
    when it is closed, when the informer stops, or when no event has come for its
    ``idle_timeout``. Used as a context manager it closes at the end; so it does when it is
    no longer referenced. An interrupt (Ctrl-C) ends a wait and loses no event: the iteration can
    be taken up again. ``close`` may be called from any thread; iterate in one at a time.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     with namespaces.informer.events(idle_timeout=0.1) as events:
    ...         sorted(event.name for event in events)
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    # No method here makes a call between ``_given = True`` and returning the event: Python looks
    # for interrupts after calls, and one that came there would lose the event.

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event; waits for it."""
        step = self._step(self.idle_timeout)
        if step is None:
            self.close()
            raise StopIteration
        event = Event(self._store.gvr, self._store.codec, step)
        self._given = True
        return event

    def take(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes in time, or when the stream has ended.

        A timeout does not end the stream: this is for loops that do something else as well.
        """
        step = self._step(timeout)
        if step is None:
            return None
        event = Event(self._store.gvr, self._store.codec, step)
        self._given = True
        return event

    def _step(self, timeout: float | None) -> Delta | None:
        """What is to be told next, when it is there; None at the timeout, or at the end."""
        if self._waits:
            raise RuntimeError(
                f"another thread waits for the next event of this stream of {self._store.gvr}: "
                "give each thread a stream of its own"
            )
        self._waits = True
        try:
            if self._given:
                self._queue.advance()
                self._given = False
            step = self._queue.head()
            return self._wait(timeout) if step is None else step
        finally:
            self._waits = False

    def _wait(self, timeout: float | None) -> Delta | None:
        queue, deadline = self._queue, Deadline(timeout)
        while not queue.closed:
            woken = queue.wait(deadline.left)
            step = queue.head()
            if step is not None:
                return step
            if not woken and deadline.over:
                return None
        return None

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"backlog={self.backlog}"
        return f"<EventStream {self._store.gvr} {state}>"


class ChangedKeys(Subscription):
    """The keys of what has changed, each once however often: for who then looks into the cache.

    Nothing is behind it. ``wake`` is called when there is something to take, and at the end, under
    the informer's lock: it takes none, and waits for nobody. One thread takes at a time.

    Not for import.
    """

    def __init__(
        self,
        store: Store,
        queue: HandlerQueue,
        close: Callable[[], None],
        forget: Callable[[], None],
        wake: Callable[[], object],
    ) -> None:
        super().__init__(store, queue, close, forget, None)
        queue.call_with(wake)

    def take(self) -> Keys:
        """All that have changed since the last time."""
        queue, keys = self._queue, Keys()
        while (step := queue.head()) is not None:
            keys.append(step.key)
            queue.advance()
        return keys
