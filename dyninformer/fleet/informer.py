"""One resource in all clusters: an informer for each behind one, and one lister."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Unpack
from weakref import WeakSet

from dyninformer.checked import checked, checked_name
from dyninformer.delivery.handlers import Handler, HandlerOptions, of_another_informer
from dyninformer.errors import StoppedError, UnknownClusterError
from dyninformer.fleet.handlers import FleetRegistration
from dyninformer.fleet.lister import ByCluster, FleetLister, unknown_cluster
from dyninformer.fleet.stream import FleetEventStream
from dyninformer.informer import SharedIndexInformer
from dyninformer.options import IndexFunction, ResourceOptions, checked_indexers
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.indexes import as_function
from dyninformer.threads import Bell, Deadline, Flag, ReentrantLock, in_forked_child
from dyninformer.types import Names, Object
from dyninformer.waiting import Condition
from dyninformer.watching.status import InformerStatus

if TYPE_CHECKING:
    from dyninformer.factory import GenericInformer

GVRs: TypeAlias = dict[str, GroupVersionResource]
Options: TypeAlias = dict[str, Any]
InformerStatuses: TypeAlias = dict[str, InformerStatus]


class FleetRuntime:
    """What all parts of one fleet share. Not for import."""

    def __init__(self) -> None:
        self.owner = object()
        """The owner of the fleet's own threads, see `threads.runs_for`."""
        # Guards which clusters there are, what is asked for, and which informers, handlers and
        # streams are joined to which. Under it informers are made, and handlers and streams are
        # added to them, which takes the locks of those; nothing is asked of the network, and no
        # code of the user's is run. A signal handler that shuts down may come while its own thread
        # holds it, hence one that can be taken twice.
        self.lock = ReentrantLock()
        self.changed = Bell()
        """Rings when a cluster comes or goes, and when one knows what a resource is there."""
        self.names: tuple[str, ...] = ()
        """The clusters that are watched, in their order; replaced under the lock."""
        self.stale: tuple[str, ...] = ()
        """Those that were removed, and whose objects are kept."""
        self.started = False
        """`Fleet.start` was called."""
        self.waited = False
        """A user has waited for the fleet to sync, and knows what is there."""
        self.stopped = Flag()
        in_forked_child(self, "lock", "changed", "stopped")

    def check_running(self) -> None:
        """StoppedError once the fleet was shut down."""
        if self.stopped.is_set():
            raise StoppedError("this fleet has been shut down: make a new one")


@dataclass
class Asked:
    """A resource that somebody asked for. The fleet's lock guards it. Not for import."""

    name: str
    """As it was spelled."""
    gvr: GroupVersionResource | None
    """None: each cluster has to say what that is."""
    options: Options
    checked: ResourceOptions
    informer: FleetInformer = field(init=False)

    @property
    def resource(self) -> GroupVersionResource | str:
        """What a factory is asked for."""
        return self.gvr or self.name


class FleetInformer(Shown):
    """The informers of one resource in all clusters of a fleet, as one.

    Handlers and streams hear all clusters, those too that come later; ``event.cluster`` says which.
    What is of one cluster alone (writes, work queues, audits, live tables) is its informer's:
    `by_cluster` gives that. Every method may be called from any thread.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         namespaces = fleet.for_resource("v1/namespaces").informer
    ...         seen = set()
    ...         handler = namespaces.add_event_handler(
    ...             on_event=lambda event: seen.add((event.cluster, event.name)))
    ...         synced = fleet.sync(timeout=30)
    ...         print(handler.wait_for_sync(30), len(seen), ("us", "default") in seen)
    True 8 True
    """

    def __init__(self, asked: Asked, runtime: FleetRuntime) -> None:
        self._asked = asked
        self._runtime = runtime
        # Both are replaced, under the fleet's lock.
        self._parts: ByCluster = {}
        self._registrations: tuple[FleetRegistration, ...] = ()
        self._streams: WeakSet[FleetEventStream] = WeakSet()
        self.lister = FleetLister(
            asked.name, lambda: self._parts, self._missing, lambda: runtime.waited
        )
        """Reads of all caches."""

    # -- handlers ------------------------------------------------------------------------

    def add_event_handler(
        self, handler: object = None, **options: Unpack[HandlerOptions]
    ) -> FleetRegistration:
        """Have callbacks called with each object that is held, then with each change.

        The options are those of `SharedIndexInformer.add_event_handler`. One thread calls the
        handler, one event at a time; those of one cluster come in order, and the clusters take
        turns, so that much of one does not keep the others waiting. ``on_event`` alone is told the
        cluster. ``max_backlog`` is of each cluster. The same ``name`` again replaces the handler.
        """
        return self._add(Handler(handler, **options))

    def add_event_handler_with_resync_period(
        self, handler: object, period: float
    ) -> FleetRegistration:
        """`add_event_handler` with ``resync``, in client-go's words."""
        return self._add(Handler(handler, resync=period))

    def _add(self, handler: Handler) -> FleetRegistration:
        runtime = self._runtime
        replaced: list[FleetRegistration] = []
        with runtime.lock:
            runtime.check_running()
            if handler.given_name is None:
                handler.name = self._free_name(handler.name)
            made = FleetRegistration(handler, runtime.owner, self._clusters, self._forget)
            if handler.given_name is not None:
                replaced += [e for e in self._registrations if e.given_name == handler.given_name]
            self._registrations = (*self._registrations, made)
            try:
                for cluster, part in self._parts.items():
                    made.join(cluster, part.informer.dispatcher)
            except BaseException:  # an interrupt leaves all or nothing (S23)
                made.remove()
                raise
        made.start()
        for each in replaced:
            each.remove()
        return made

    def remove_event_handler(self, registration: FleetRegistration) -> None:
        """Take a handler away; again is fine. No callback begins after this returns.

        ValueError if it was added to another informer.
        """
        given = "what add_event_handler returned"
        found = checked("a registration", registration, FleetRegistration, given)
        if not found.is_of(self._forget):
            raise of_another_informer(found, self._asked.name)
        found.remove()

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        max_backlog: int | None = None,
        initial: bool = True,
    ) -> FleetEventStream:
        """A stream of events to iterate over in this thread: what is held, then what changes.

        ``coalesce`` and ``max_backlog`` are those of `add_event_handler`.
        """
        runtime = self._runtime
        stream = FleetEventStream(
            self._asked.name,
            idle_timeout=idle_timeout,
            coalesce=coalesce,
            max_backlog=max_backlog,
            initial=initial,
        )
        with runtime.lock:
            runtime.check_running()
            self._streams.add(stream)
            for cluster, part in self._parts.items():
                stream.join(cluster, part.informer.dispatcher)
        return stream

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes in all clusters, also while running, and in those that come later.

        What is refused is asked of none that comes later.
        """
        added = checked_indexers(indexers)
        check_indexers(added)
        runtime, options = self._runtime, self._asked.options
        with runtime.lock:
            before = dict(options.get("indexers", {}))
            options["indexers"] = {**before, **added}
            parts, stale = self._parts, runtime.stale
        try:
            for cluster, each in parts.items():
                if cluster in stale and not runtime.stopped.is_set():
                    each.lister.held.store.add_indexers(added)  # its reads go on
                else:
                    each.informer.add_indexers(added)
        except BaseException:
            with runtime.lock:
                now = options["indexers"]
                kept = {name: each for name, each in now.items() if name not in added}
                options["indexers"] = {**before, **kept}
            raise

    def work_queue(self, *_: object, **__: object) -> NoReturn:
        """TypeError: keys are of one cluster. Have a queue of each cluster's informer.

        ``fleet.for_resource("cert").informer.by_cluster("eu").work_queue()``. So one cluster that
        is away, before whose first state no key is handed out, keeps no other's work waiting.
        """
        raise TypeError(_NO_QUEUE)

    # -- the clusters --------------------------------------------------------------------

    @property
    def clusters(self) -> Names:
        """The clusters that have an informer of it, in the fleet's order."""
        return list(self._parts)

    @property
    def gvrs(self) -> GVRs:
        """What the resource is in each cluster: versions may differ."""
        return {cluster: part.gvr for cluster, part in self._parts.items()}

    def by_cluster(self, cluster: str) -> SharedIndexInformer:
        """The informer of one cluster. UnknownClusterError names those that there are."""
        return self.part(cluster).informer

    def part(self, cluster: str) -> GenericInformer:
        """The same, with its lister. Not for import."""
        checked_name("cluster", cluster, "the name of a cluster of the fleet")
        part = self._parts.get(cluster)
        if part is None:
            raise unknown_cluster(cluster, self._asked.name, self._parts, self._missing())
        return part

    def has_synced(self) -> bool:
        """Whether the first whole state of every cluster is held."""
        parts = self._parts
        return all(each in parts and parts[each].informer.has_synced() for each in self._clusters())

    def is_stopped(self) -> bool:
        """Whether the fleet has been shut down, which is for good."""
        return self._runtime.stopped.is_set()

    def status(self) -> InformerStatuses:
        """How the informer of each cluster stands; `Fleet.status` says of the others, too."""
        return {cluster: part.informer.status() for cluster, part in self._parts.items()}

    def wait_for(
        self,
        condition: Condition,
        *,
        name: str,
        cluster: str,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Wait until an object of one cluster meets a condition, and return it as it then is.

        See `SharedIndexInformer.wait_for`. The cluster need not have said yet what the resource is
        there; it has to be one of the fleet's.
        """
        deadline = Deadline(timeout)
        checked_name("cluster", cluster, "the name of a cluster of the fleet")
        if cluster not in (*self._runtime.names, *self._runtime.stale):
            raise unknown_cluster(cluster, self._asked.name, self._parts, [])
        runtime = self._runtime
        runtime.changed.wait_for(
            lambda: (
                cluster in self._parts or cluster not in runtime.names or runtime.stopped.is_set()
            ),
            deadline.left,
        )
        if cluster not in self._parts:
            runtime.check_running()
        found = self.by_cluster(cluster)
        return found.wait_for(condition, name=name, namespace=namespace, timeout=deadline.left)

    def __repr__(self) -> str:
        return f"<FleetInformer of {self._asked.name} in {counted(len(self._parts), 'cluster')}>"

    # -- of the fleet, under its lock ----------------------------------------------------

    def attach(self, cluster: str, part: GenericInformer) -> None:
        """Have all that listen hear one more cluster. Not for import."""
        names = (*self._runtime.names, *self._runtime.stale)
        parts = {**self._parts, cluster: part}
        self._parts = {each: parts[each] for each in names if each in parts}
        for registration in self._registrations:
            registration.join(cluster, part.informer.dispatcher)
        for stream in list(self._streams):
            stream.join(cluster, part.informer.dispatcher)

    def look_again(self) -> None:
        """A cluster went: whoever waits for it need not. Not for import."""
        for each in self._registrations:
            each.look_again()

    def detach(self, cluster: str) -> None:
        """Read a cluster no more. Not for import."""
        self._parts = {each: part for each, part in self._parts.items() if each != cluster}

    def end(self) -> list[FleetRegistration]:
        """Tell nobody any more, wait for nothing; what may still run. Not for import."""
        for stream in list(self._streams):
            stream.close()
        for registration in self._registrations:
            registration.end()
        return list(self._registrations)

    # -- inside --------------------------------------------------------------------------

    def _clusters(self) -> Names:
        """Those that are watched."""
        return list(self._runtime.names)

    def _missing(self) -> Names:
        """The clusters of the fleet that have no informer of it yet."""
        parts = self._parts
        return [each for each in self._runtime.names if each not in parts]

    def _forget(self, registration: FleetRegistration) -> None:
        with self._runtime.lock:
            self._registrations = tuple(
                each for each in self._registrations if each is not registration
            )

    def _free_name(self, name: str) -> str:
        taken = {each.name for each in self._registrations}
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        return free


def check_indexers(indexers: Mapping[str, IndexFunction]) -> None:
    """Refuse now what each cluster would refuse when it comes. Not for import."""
    for each in indexers.values():
        as_function(each)


_NO_QUEUE = (
    "a work queue has keys of one cluster, and this informer is of several: have a queue of each, "
    "as in informer.by_cluster('eu').work_queue()"
)


class FleetGenericInformer(Shown):
    """An informer and its lister, for one resource in all clusters of a fleet.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         namespaces = fleet.for_resource("v1/namespaces")
    ...         synced = fleet.sync(timeout=30)
    ...         print(namespaces, namespaces.gvr)
    <FleetGenericInformer of v1/namespaces, 8 objects in 2 clusters> namespaces.v1
    """

    def __init__(self, informer: FleetInformer, asked: Asked) -> None:
        self.informer = informer
        self.lister = informer.lister
        self.asked = asked
        """Not for import."""

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource; of a short name, what it is in the first cluster that has said so.

        `FleetInformer.gvrs` has it of each cluster. UnknownClusterError as long as none has.
        """
        if self.asked.gvr is not None:
            return self.asked.gvr
        found = next(iter(self.informer.gvrs.values()), None)
        if found is None:
            raise UnknownClusterError(
                f"no cluster has said yet what {self.asked.name!r} is there: "
                "fleet.status() says why"
            )
        return found

    def by_cluster(self, cluster: str) -> GenericInformer:
        """The informer and lister of one cluster. UnknownClusterError names those there are."""
        return self.informer.part(cluster)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The lister's, so that both can be read as a table."""
        return self.lister.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The lister's."""
        return self.lister.__arrow_c_schema__()

    def __repr__(self) -> str:
        return repr(self.lister).replace("FleetLister", "FleetGenericInformer")
