"""The events of all clusters as one iterator, delivered in the thread that asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self, TypeAlias

from dyninformer.checked import checked_flag
from dyninformer.delivery.dispatch import Dispatcher
from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.delivery.stream import Subscription, checked_idle_timeout
from dyninformer.options import check_merging
from dyninformer.shown import Shown
from dyninformer.store.decide import Delta
from dyninformer.store.store import Store
from dyninformer.threads import Bell, ClosedByWith, Deadline, in_forked_child


class ClusterEvents(Subscription):
    """The part of one cluster. ``wake`` is called when there is something to take. Not for import.

    That is under the informer's lock: ``wake`` takes none, and waits for nobody.
    """

    def __init__(
        self,
        store: Store,
        queue: HandlerQueue,
        close: Callable[[], None],
        forget: Callable[[], None],
        *,
        cluster: str,
        before: ClusterEvents | None,
        wake: Callable[[], object],
    ) -> None:
        """``before`` is of an informer that the cluster had before, heard to its end first."""
        super().__init__(store, queue, close, forget, None)
        self.cluster = cluster
        self._before = before
        queue.call_with(wake)

    def head(self) -> Delta | None:
        """What is to be told next; it stays until `advance`."""
        before = self._before
        if before is not None:
            before.head()  # it ends when it finds nothing more
            if not before.heard:
                return None
            self._before = None
        return self._queue.head()

    @property
    def heard(self) -> bool:
        """All that it had to tell was told, and all that others had before it.

        One that had nothing to tell ends at once, while the one before it is still being told.
        """
        return self.closed and self._before is None

    def advance(self) -> None:
        """It was told."""
        self._queue.advance()

    def event(self, step: Delta) -> Event:
        """What is told of it."""
        return Event(self._store.gvr, self._store.codec, step, cluster=self.cluster)


ClusterStep: TypeAlias = tuple[ClusterEvents, Delta]


class FleetEventStream(Shown, ClosedByWith):
    """The events of one resource in all clusters: ``event.cluster`` says in which.

    Those of one cluster come in order, and the clusters take turns, event by event, so that none
    is kept waiting by another. Clusters that come later are heard, too; one that goes is heard to
    its end. Otherwise it is what an `EventStream` is: no thread is behind it, it ends when it is
    closed, when the fleet is shut down, or when no event has come for its ``idle_timeout``, and an
    interrupt loses no event.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         namespaces = fleet.for_resource("v1/namespaces")
    ...         synced = fleet.sync(timeout=30)
    ...         with namespaces.informer.events(idle_timeout=0.1) as events:
    ...             sorted((event.cluster, event.name) for event in events)[3:5]
    [('eu', 'kube-system'), ('us', 'default')]
    """

    def __init__(
        self,
        name: str,
        *,
        idle_timeout: float | None,
        coalesce: bool,
        max_backlog: int | None,
        initial: bool,
    ) -> None:
        """``name`` is what it is of, as messages have it."""
        check_merging(coalesce, max_backlog)
        self.idle_timeout = checked_idle_timeout(idle_timeout)
        """Seconds without an event after which it ends, None is never; may be set in between."""
        self._name = name
        self._coalesce = coalesce
        self._max_backlog = max_backlog
        self._initial = checked_flag("initial", initial)
        self._parts: tuple[ClusterEvents, ...] = ()  # replaced by the fleet, under its lock
        self._bell = Bell()
        self._closed = False
        self._at = 0  # whose turn it is; the reader's, as the next two
        self._given: ClusterEvents | None = None  # its head was returned to the caller
        self._waits = False
        in_forked_child(self, "_bell", _closed=True)

    # -- of the fleet, under its lock ----------------------------------------------------

    def join(self, cluster: str, dispatcher: Dispatcher) -> None:
        """Hear one more cluster. Not for import."""
        if self._closed:
            return
        # Not the stream itself, nor anything that holds it: it is to go when its reader lets go.
        before = next(
            (e for e in reversed(self._parts) if e.cluster == cluster and not e.closed), None
        )
        make = partial(ClusterEvents, cluster=cluster, before=before, wake=self._bell.ring)
        part = dispatcher.subscribe(
            make,
            coalesce=self._coalesce,
            max_backlog=self._max_backlog,
            initial=self._initial,
        )
        self._parts = (*(each for each in self._parts if not each.closed), part)
        if self._closed:  # meanwhile: `close` may not have seen this one
            part.close()
        self._bell.ring()

    # -- of whoever reads ----------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether it has ended: there will be no more events."""
        return self._closed

    @property
    def backlog(self) -> int:
        """The number of events that have come and were not yet taken."""
        waiting = sum(each.backlog for each in self._parts)
        return max(0, waiting - (self._given is not None))  # that of a closed one is 0

    @property
    def overflows(self) -> int:
        """How often more events than ``max_backlog`` would have waited, so that they were merged.

        Of each cluster by itself. 0 is: it has told each change.
        """
        return sum(each.overflows for each in self._parts)

    def close(self) -> None:
        """End it. Idempotent. Whoever waits for an event sees the end at once."""
        self._closed = True
        for each in self._parts:
            each.close()
        self._bell.ring()

    def __iter__(self) -> Self:
        return self

    # No call is made between ``_given = part`` and returning the event: Python looks for
    # interrupts after calls, and one that came there would lose the event.

    def __next__(self) -> Event:
        """The next event; waits for it."""
        found = self._step(self.idle_timeout)
        if found is None:
            self.close()
            raise StopIteration
        part, step = found
        event = part.event(step)
        self._given = part
        return event

    def take(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes in time, or when the stream has ended.

        A timeout does not end the stream: this is for loops that do something else as well.
        """
        found = self._step(timeout)
        if found is None:
            return None
        part, step = found
        event = part.event(step)
        self._given = part
        return event

    def _step(self, timeout: float | None) -> ClusterStep | None:
        """What is to be told next, when it is there; None at the timeout, or at the end."""
        if self._waits:
            raise RuntimeError(
                f"another thread waits for the next event of this stream of {self._name}: "
                "give each thread a stream of its own"
            )
        self._waits = True
        try:
            given = self._given
            if given is not None:
                given.advance()  # after an interrupt it does so again, and that is nothing
                self._given = None
            deadline = Deadline(timeout)
            while not self._closed:
                found = self._next()
                if found is not None:
                    return found
                if deadline.over or not self._bell.wait_for(self._has_news, deadline.left):
                    return None
            return None
        finally:
            self._waits = False

    def _next(self) -> ClusterStep | None:
        """The step of the next cluster that has one."""
        parts = self._parts
        count = len(parts)
        for later in range(count):
            at = (self._at + later) % count
            step = parts[at].head()
            if step is not None:
                self._at = at + 1
                return parts[at], step
        return None

    def _has_news(self) -> bool:
        return self._closed or any(each.head() is not None for each in self._parts)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"backlog={self.backlog}"
        return f"<FleetEventStream {self._name} {state}>"
