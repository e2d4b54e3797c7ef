"""Resources that match patterns, in all clusters of a fleet, as their CRDs come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import Handler, OnEvent, Registration
from dyninformer.fleet.turns import Turns
from dyninformer.follow import Follower
from dyninformer.informer import SharedIndexInformer
from dyninformer.options import ResourceOptions
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.threads import Bell, Bells, ClosedByWith

if TYPE_CHECKING:
    from dyninformer.factory import DynamicSharedInformerFactory
    from dyninformer.fleet.informer import FleetRuntime

Followers: TypeAlias = dict[str, Follower]
Followed: TypeAlias = dict[str, list[GroupVersionResource]]
Reasons: TypeAlias = dict[str, str]


class FleetFollower(Shown, ClosedByWith):
    """A `Follower` in each cluster of a fleet, whose events one function hears, one at a time.

    Clusters that come later are followed, too. Every method may be called from any thread.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         follower = fleet.follow("namespaces")
    ...         print(follower.wait_for_sync(timeout=30), *follower.resources())
    True eu us
    """

    def __init__(
        self,
        patterns: Sequence[str],
        on_event: Callable[[Event], object] | None,
        options: ResourceOptions,
        runtime: FleetRuntime,
        forget: Callable[[FleetFollower], None],
    ) -> None:
        if on_event is not None:
            Handler(on_event=on_event)  # what is wrong with it is said here
        self.patterns = tuple(patterns)
        self._on_event = on_event
        self._options = options
        self._forget = forget
        self._runtime = runtime
        self._turns = Turns(runtime.owner, f"follow {' '.join(map(str, patterns))}")
        self._parts: Followers = {}  # replaced under the fleet's lock
        self._closed = False

    # -- of the fleet --------------------------------------------------------------------

    def start(self) -> None:
        """Start its thread, if it has somebody to tell. Not for import."""
        if self._on_event is not None:
            self._turns.start()

    def join(self, cluster: str, factory: DynamicSharedInformerFactory) -> None:
        """Follow one more cluster. Under the fleet's lock. Not for import."""
        if self._closed:
            return

        def add(informer: SharedIndexInformer, tell: OnEvent, name: str) -> Registration:
            handler = Handler(on_event=tell, name=name).in_cluster(cluster)
            return informer.dispatcher.add(handler, self._turns.teller)

        follow = factory._follow  # noqa: SLF001 - as aio does: it has another who tells
        self._parts = {
            **self._parts,
            cluster: follow(self.patterns, self._on_event, self._options, add),
        }
        if self._closed:  # meanwhile: `end` may not have seen this one
            self._parts[cluster].close()

    def leave(self, cluster: str) -> None:
        """Follow a cluster no more, which is about to be let go of. Not for import."""
        if cluster in self._parts:
            self._parts[cluster].leave()

    def end(self) -> None:
        """Tell nobody any more, and wait for nothing. Not for import."""
        self._closed = True
        for each in self._parts.values():
            each.close()
        self._turns.close()

    def wait_ended(self, timeout: float | None) -> bool:
        """After `end`: wait for a callback that runs. False at the timeout. Not for import."""
        return self._turns.join(timeout)

    # -- of the user ---------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What it follows."""
        return f"follow {' '.join(self.patterns)}"

    def resources(self) -> Followed:
        """What has an informer now, by cluster, sorted."""
        return {cluster: self._parts[cluster].resources() for cluster in self._current()}

    def has_synced(self) -> bool:
        """Whether all that matched at the last look is held whole, in every cluster."""
        return all(self._parts[cluster].has_synced() for cluster in self._current())

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until `has_synced`; False at the timeout, or when it is closed.

        `reasons` says then which clusters it waits for. A call from its own function waits not.
        """
        if not self._turns.tells_here():
            Bells(self._bells).wait_for(self._has_no_more_to_wait_for, timeout)
        return self.has_synced()

    def _bells(self) -> Iterator[Bell]:
        yield self._runtime.changed
        for cluster in self._current():
            yield from self._parts[cluster].bells()

    def _has_no_more_to_wait_for(self) -> bool:
        parts = [self._parts[cluster] for cluster in self._current()]
        return self._closed or all(each.has_synced() or each.closed for each in parts)

    @property
    def reasons(self) -> Reasons:
        """Why not all that match can be followed now, by cluster; empty if all are."""
        found = {cluster: self._parts[cluster].reason for cluster in self._current()}
        return {cluster: reason for cluster, reason in found.items() if reason}

    def close(self) -> None:
        """End it: no event is told after this, and the informers it brought are removed.

        Waits for nobody.
        """
        self.end()
        self._forget(self)

    def __repr__(self) -> str:
        clusters = counted(len(self._current()), "cluster")
        return f"<FleetFollower of {', '.join(self.patterns)} in {clusters}>"

    def _current(self) -> list[str]:
        return [each for each in self._runtime.names if each in self._parts]
