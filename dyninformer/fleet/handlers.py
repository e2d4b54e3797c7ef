"""A handler of a fleet: its place in the informer of each cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dyninformer.checked import checked_name
from dyninformer.delivery.dispatch import Dispatcher
from dyninformer.delivery.handlers import Handler, Registration
from dyninformer.fleet.turns import Turns
from dyninformer.shown import Shown
from dyninformer.threads import Bell, in_forked_child
from dyninformer.types import Names

Registrations: TypeAlias = dict[str, Registration]


class FleetRegistration(Shown):
    """A handler's place in the informers of all clusters. From any thread.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         informer = fleet.for_resource("v1/namespaces").informer
    ...         handler = informer.add_event_handler(on_event=lambda event: None, name="mine")
    ...         synced = fleet.sync(timeout=30)
    ...         print(handler.name, handler.wait_for_sync(30), handler.backlog)
    ...         handler.remove()  # no callback begins after this
    mine True 0
    """

    def __init__(
        self,
        handler: Handler,
        owner: object,
        clusters: Callable[[], Names],
        forget: Callable[[FleetRegistration], None],
    ) -> None:
        """``clusters`` are those that it has to have heard; ``forget`` takes it out of a fleet."""
        self._handler = handler
        self._clusters = clusters
        self._forget = forget
        self._turns = Turns(owner, handler.name)
        self._parts: Registrations = {}  # replaced by the fleet, under its lock
        self._bell = Bell()  # rings when one of them has synced, or ended, and when one comes
        self._removed = False
        in_forked_child(self, "_bell", _removed=True)

    # -- of the fleet --------------------------------------------------------------------

    def start(self) -> None:
        """Start its thread. Not for import."""
        self._turns.start()

    def join(self, cluster: str, dispatcher: Dispatcher) -> None:
        """Have it told of one more cluster. Under the fleet's lock. Not for import."""
        if self._removed:
            return
        part = dispatcher.add(self._handler.in_cluster(cluster), self._turns.teller)
        part.ring(self._bell)
        self._parts = {**self._parts, cluster: part}
        if self._removed:  # meanwhile: `end` may not have seen this one
            part.remove()
        self._bell.ring()

    def look_again(self) -> None:
        """A cluster went: have `wait_for_sync` look. Not for import."""
        self._bell.ring()

    def end(self) -> None:
        """Call it no more, and wait for nothing. Not for import."""
        self._removed = True
        for each in self._parts.values():
            each.remove()
        self._turns.close()
        self._bell.ring()

    def wait_ended(self, timeout: float | None) -> bool:
        """After `end`: wait for a callback that runs. False at the timeout. Not for import."""
        return self._turns.join(timeout)

    def tells_here(self) -> bool:
        """The current thread is the one that calls it. Not for import."""
        return self._turns.tells_here()

    def is_of(self, forget: Callable[[FleetRegistration], None]) -> bool:
        """Whether this method of an informer takes it out of the fleet. Not for import."""
        return self._forget == forget

    @property
    def given_name(self) -> str | None:
        """Another handler of this name takes its place. Not for import."""
        return self._handler.given_name

    # -- of the user ---------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The handler's name, as in logs, metrics, and its thread's name."""
        return self._handler.name

    @property
    def backlog(self) -> int:
        """How many events of all clusters the handler has not yet finished; 0 once removed."""
        return sum(each.backlog for each in self._parts.values())

    @property
    def overflows(self) -> int:
        """How often more events than ``max_backlog`` would have waited, so that they were merged.

        Of each cluster by itself. 0 is: the handler has been told each change.
        """
        return sum(each.overflows for each in self._parts.values())

    @property
    def removed(self) -> bool:
        """Whether it hears nothing any more."""
        return self._removed

    def has_synced(self, cluster: str | None = None) -> bool:
        """Whether the handler has finished every initial event of a cluster, or of all."""
        give = "the name of a cluster of the fleet, or None for all"
        names = self._clusters() if cluster is None else [checked_name("cluster", cluster, give)]
        parts = self._parts
        return all(each in parts and parts[each].has_synced() for each in names)

    def wait_for_sync(self, timeout: float | None = None, cluster: str | None = None) -> bool:
        """Wait until ``has_synced``; False at the timeout, or once handler or cluster is removed.

        A call from the handler itself does not wait: the events that it would wait for are its own.
        """
        if not self.tells_here():
            was_there = cluster in self._clusters()
            self._bell.wait_for(
                lambda: (
                    self._removed
                    or self.has_synced(cluster)
                    or (was_there and cluster not in self._clusters())
                ),
                timeout,
            )
        return self.has_synced(cluster)

    def remove(self) -> None:
        """Take the handler away. Idempotent. No callback begins after this returns (S11).

        A callback that is running goes on, and is not waited for.
        """
        self.end()
        self._forget(self)

    def __repr__(self) -> str:
        state = "removed" if self._removed else f"backlog={self.backlog}"
        return f"<FleetRegistration {self.name} {state}>"
