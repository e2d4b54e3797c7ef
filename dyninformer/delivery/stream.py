"""Events as an iterator, delivered in the thread that asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.store.changes import Change
from dyninformer.store.store import Store


class EventStream:
    """The events of one informer, from the moment that it was asked for.

    Iterate over it; no thread is behind it, and it holds what you have not yet taken. It ends
    when it is closed, when the informer stops, or when no event has come for its
    ``idle_timeout``. Used as a context manager it closes at the end; so it does when nobody
    holds it any more. An interrupt (Ctrl-C) ends a wait and loses no event: the iteration can
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

    def __init__(
        self,
        store: Store,
        queue: HandlerQueue,
        close: Callable[[HandlerQueue], None],
        idle_timeout: float | None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._close = close
        self.idle_timeout = idle_timeout
        """Seconds without an event after which it ends, None is never; may be set in between."""
        self._given = False  # the queue's head was returned to the caller
        self._in_next = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event; waits for it."""
        if self._in_next:
            raise RuntimeError(
                f"another thread waits for the next event of this stream of {self._store.gvr}: "
                "give each thread a stream of its own"
            )
        self._in_next = True
        try:
            queue = self._queue
            if self._given:
                queue.advance()
                self._given = False
            step = queue.head()
            if step is None:
                step = self._wait()
            if step is None:
                raise StopIteration
            event = Event(self._store.gvr, self._store.codec, step)
            self._given = True
            return event
        finally:
            self._in_next = False

    def _wait(self) -> Change | None:
        """The next step when there is one, None at the end."""
        queue, left = self._queue, self.idle_timeout
        until = None if left is None else time.monotonic() + left
        while not queue.closed:
            woken = queue.wait(left)
            step = queue.head()
            if step is not None:
                return step
            if until is not None:
                left = until - time.monotonic()
            if not woken and left is not None and left <= 0:
                self.close()
        return None

    @property
    def backlog(self) -> int:
        """How many events have come that were not yet taken."""
        return self._queue.backlog - self._given

    def close(self) -> None:
        """End it; again is fine. A thread that waits for an event sees the end at once."""
        self._close(self._queue)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._queue.abandon()

    def __repr__(self) -> str:
        state = "closed" if self._queue.closed else f"backlog={self.backlog}"
        return f"<EventStream {self._store.gvr} {state}>"
