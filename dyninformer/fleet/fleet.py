"""`Fleet`: the factories of many clusters, as one."""

from __future__ import annotations

import atexit
import logging
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

from dyninformer.checked import check_function, checked_flag, checked_mapping, checked_name, wrong
from dyninformer.delivery.events import Event
from dyninformer.errors import ConfigError, DynInformerError, OptionsConflictError
from dyninformer.factory import DynamicSharedInformerFactory, checked_by_resource
from dyninformer.fleet.contexts import Contexts, Kubeconfig
from dyninformer.fleet.follower import FleetFollower
from dyninformer.fleet.handlers import FleetRegistration
from dyninformer.fleet.informer import (
    Asked,
    FleetGenericInformer,
    FleetInformer,
    FleetRuntime,
    check_indexers,
)
from dyninformer.fleet.lister import unknown_cluster
from dyninformer.fleet.members import Member
from dyninformer.fleet.status import (
    ClusterStatuses,
    FleetStatuses,
    FleetSyncResult,
    Require,
    SyncWait,
    checked_require,
    sync_error,
)
from dyninformer.metrics.told import Metrics, check_metrics, labelled
from dyninformer.options import (
    ListOptions,
    Namespaces,
    ResourceOptions,
    ResourceOptionsDict,
    Transform,
    checked_resync,
    options_from,
)
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.threads import (
    Bell,
    Bells,
    Deadline,
    EndedByWith,
    OwnThread,
    in_forked_child,
    runs_for,
    spawn,
)
from dyninformer.types import Names

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    from dyninformer.watching.client import Source

Way: TypeAlias = "DynamicClient | ApiClient | Source | str | os.PathLike[str] | None"
"""How a cluster is reached: a client, the name of a context, a kubeconfig; None is the usual."""
Resource: TypeAlias = GroupVersionResource | str
Members: TypeAlias = dict[str, Member]
MemberList: TypeAlias = list[Member]
AskedByName: TypeAlias = "dict[Resource, FleetGenericInformer]"
Settings: TypeAlias = dict[str, Any]

_EXIT_SECONDS: Final = 5.0

_logger = logging.getLogger("dyninformer")


class Fleet(Shown, EndedByWith):
    """Live, indexed copies of any collections of many clusters, behind one lister each.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, ApiServer() as us:
    ...     with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
    ...         namespaces = fleet.for_resource("v1/namespaces")
    ...         _ = fleet.sync(timeout=30)
    ...         print(len(namespaces.lister), len(namespaces.lister.by_cluster("eu")))
    8 4

    ``contexts`` are names or patterns (``"eu-*"``) of the kubeconfig's contexts, each of which is
    a cluster of that name; ``clusters`` has others by name: a client, the name of a context, a
    path of a kubeconfig (`os.PathLike`), or None for what is found where nothing is said. Of the
    kubeconfig it is noticed when it changes: contexts that come and fit are added, those that go
    are removed, unless ``watch_kubeconfig`` is False. ``keep_removed`` keeps the objects of those.

    The other options are those of `DynamicSharedInformerFactory`, for each cluster; what
    ``metrics`` are told has the label ``cluster``. Each cluster has a factory of its own, with
    connections and threads of its own: one that is away, slow or full delays no other. Nothing is
    asked of the network before it must be. Every method may be called from any thread.
    """

    def __init__(
        self,
        clusters: Mapping[str, Way] | None = None,
        *,
        contexts: Iterable[str] | str | None = None,
        kubeconfig: str | os.PathLike[str] | None = None,
        resync: float = 0,
        namespace: Namespaces | None = None,
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        transform: Transform | None = None,
        resources: Mapping[GroupVersionResource, ResourceOptions] | None = None,
        metrics: Metrics | None = None,
        watch_kubeconfig: bool = True,
        keep_removed: bool = False,
    ) -> None:
        if clusters is None and contexts is None:
            raise TypeError(
                "a fleet needs contexts, such as contexts=['eu-*'] ('*' is all), or clusters by "
                "name, such as {'eu': client}"
            )
        checked_resync(resync)
        if tweak_list_options is not None:
            check_function("tweak_list_options", tweak_list_options, "a function of a ListOptions")
        if metrics is not None:
            check_metrics(metrics)
        self._settings: Settings = {
            "resync": resync,
            "namespace": namespace,
            "tweak_list_options": tweak_list_options,
            "transform": transform,
            "resources": checked_by_resource({} if resources is None else resources),
        }
        ResourceOptions(namespaces=namespace, transform=transform)  # what is wrong is said here
        self._metrics = metrics
        self._kubeconfig: Kubeconfig = kubeconfig
        self._keep_removed = checked_flag("keep_removed", keep_removed)
        self._watches = checked_flag("watch_kubeconfig", watch_kubeconfig)
        self._contexts = None if contexts is None else Contexts(contexts, kubeconfig)
        self._runtime = FleetRuntime()
        # All of these are guarded by the runtime's lock.
        self._members: Members = {}
        self._stale: Members = {}
        self._left: MemberList = []  # removed, and perhaps not yet heard to the end
        self._asked: AskedByName = {}
        self._followers: tuple[FleetFollower, ...] = ()
        self._looking: OwnThread | None = None  # for changes of the kubeconfig
        self._dismissed: set[str] = set()  # contexts that a user has removed
        in_forked_child(self, _looking=None)
        if clusters is not None:
            give = "a mapping from names to clusters, such as {'eu': client}"
            for name, way in checked_mapping("clusters", clusters, give).items():
                self._join(self._member(name, way), must=True)
        for name, server in self._contexts.first().items() if self._contexts else ():
            if name not in self._members:
                self._join(self._of_context(name, server), must=False)
        _fleets.add(self)

    # -- resources -----------------------------------------------------------------------

    def for_resource(
        self, resource: Resource, **options: Unpack[ResourceOptionsDict]
    ) -> FleetGenericInformer:
        """The informers of a resource in all clusters; the same one for every caller (S1).

        ``resource`` is a GroupVersionResource or any spelling of one. Each cluster says for itself
        what a short name means: versions may differ, and one that has no such resource, or is
        away, is asked again later, while the others go on. So a name that no cluster knows is no
        error here, but one of `sync`. ``options`` are those of
        `DynamicSharedInformerFactory.for_resource`.
        """
        checked_options = options_from(options)
        check_indexers(checked_options.indexers)
        found, spelled = self._spelled(resource)
        with self._runtime.lock:
            self._runtime.check_running()
            known = self._asked.get(spelled)
            if known is not None:
                self._check_same(known, checked_options)
                new = dict(options.get("indexers", {}))
            else:
                asked = Asked(str(resource), found, dict(options), checked_options)
                asked.informer = FleetInformer(asked, self._runtime)
                known = self._asked[spelled] = FleetGenericInformer(asked.informer, asked)
                new = {}
                try:
                    for each in self._members.values():
                        each.attach(asked)
                except BaseException:  # what is refused was not asked for: the next may be right
                    del self._asked[spelled]
                    for each in self._members.values():
                        each.forget(asked)
                    raise
        if new:
            known.informer.add_indexers(new)
        return known

    def remove_resource(self, resource: Resource, timeout: float = _EXIT_SECONDS) -> bool:
        """Stop the informers of a resource and forget them, so that it can be asked for anew (S4).

        True if there is none. False if a callback still runs at the timeout.
        """
        deadline = Deadline(timeout)
        _, spelled = self._spelled(resource)
        with self._runtime.lock:
            known = self._asked.pop(spelled, None)
            if known is None:
                return True
            members = [*self._members.values(), *self._stale.values()]
            for each in members:
                each.forget(known.asked)
        running = known.informer.end()
        ended = True
        gvrs = known.informer.gvrs
        for each in members:
            gvr = gvrs.get(each.name)
            if each.factory is not None and gvr is not None and not self._is_asked(gvr, each.name):
                ended = each.factory.remove(gvr, deadline.left or 0) and ended
        left = [each for each in running if not each.wait_ended(deadline.left)]
        return not left and ended

    def follow(
        self,
        *patterns: str,
        on_event: Callable[[Event], object] | None = None,
        **options: Unpack[ResourceOptionsDict],
    ) -> FleetFollower:
        """Keep an informer per resource that matches in each cluster, as CRDs come and go.

        As `DynamicSharedInformerFactory.follow`; ``on_event`` hears the events of all resources
        and clusters, one at a time.
        """
        runtime = self._runtime
        with runtime.lock:
            runtime.check_running()
            made = FleetFollower(
                patterns, on_event, options_from(options), runtime, self._forget_follower
            )
            try:
                for each in self._members.values():
                    if each.factory is not None:
                        made.join(each.name, each.factory)
            except BaseException:
                made.end()
                raise
            self._followers = (*self._followers, made)
        made.start()
        return made

    # -- clusters ------------------------------------------------------------------------

    @property
    def clusters(self) -> Names:
        """The names of those that are watched, in the order in which they came."""
        return list(self._runtime.names)

    @property
    def stale(self) -> Names:
        """The names of those that were removed, and whose objects are kept as they were."""
        return list(self._runtime.stale)

    def cluster(self, name: str) -> DynamicSharedInformerFactory:
        """The factory of one cluster: its ``client`` for writes, ``discovery``, ``tree``.

        UnknownClusterError names those that there are; ConfigError says why there is none.
        """
        checked_name("name", name, "the name of a cluster of the fleet")
        with self._runtime.lock:
            member = self._members.get(name) or self._stale.get(name)
        if member is None:
            raise unknown_cluster(name, "", self._members, [])
        if member.factory is None:
            raise ConfigError(f"cluster {name}: {member.problem}")
        return member.factory

    def add(
        self,
        name: str,
        client: Way = None,
        *,
        kubeconfig: Kubeconfig = None,
        context: str | None = None,
    ) -> None:
        """Watch one more cluster: all that is asked for, and in a fleet that is started at once.

        It is said as to a factory: by a client, or by ``kubeconfig`` and ``context``. A ValueError
        if there is one of this name. What was kept of one that was removed is let go of first:
        handlers are told that it is gone, and then what the cluster has.
        """
        way = partial(self._factory, name, client, kubeconfig, context)
        self._add(Member(checked_name("name", name, "a name for the cluster"), way, self._runtime))

    def remove(
        self, name: str, *, keep: bool | None = None, timeout: float | None = _EXIT_SECONDS
    ) -> bool:
        """Watch a cluster no more; nothing if there is none of this name.

        Its objects are told to handlers and streams as DELETED, with ``final_state_unknown``:
        nobody knows what becomes of them from here on. With ``keep`` they stay, as they were last
        seen, nothing is told, and `stale` names the cluster; a second ``remove`` lets go of them.
        None is the fleet's ``keep_removed``.

        True once every handler's queue has them; False at the timeout, if something of the
        cluster still runs, a transform, say. A call from a thread that runs the fleet's code
        waits for nothing.
        """
        checked_name("name", name, "the name of a cluster of the fleet")
        keeps = self._keep_removed if keep is None else checked_flag("keep", keep)
        with self._runtime.lock:
            if keep is None and name in self._stale:
                keeps = False  # the second time
            self._dismissed.add(name)  # it does not come again with the next kubeconfig
        member = self._part_with(name, keep=keeps)
        if member is None or self._runs_here():
            return True
        return member.wait_left(timeout)

    # -- life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start what is not started. Idempotent; never waits for the network."""
        runtime = self._runtime
        runtime.check_running()
        with runtime.lock:
            runtime.started = True
            members = list(self._members.values())
            if self._contexts is not None and self._watches and self._looking is None:
                look = partial(self._contexts.follow, self._take, runtime.stopped)
                name = "dyninformer fleet looks at the kubeconfig"
                self._looking = spawn(runtime.owner, name, look)
        failed: list[Exception] = []
        for each in members:
            try:
                each.start()
            except Exception as error:  # noqa: BLE001 - raised below
                failed.append(error)
        if failed:
            raise failed[0]

    def wait_for_cache_sync(self, timeout: float | None = None) -> FleetSyncResult:
        """Wait until every cluster has synced, or until the timeout."""
        stopped = self._runtime.stopped
        Bells(self._bells).wait_for(lambda: stopped.is_set() or not self._late(), timeout)
        self._runtime.waited = True
        return self._result()

    def sync(
        self,
        timeout: float | None = None,
        *,
        require: Require = "all",
        patient: bool = False,
    ) -> FleetSyncResult:
        """Start, and wait. CacheSyncError names each cluster that did not sync, and says why.

        ``require`` says what is enough. ``"all"``: every cluster. ``"reachable"``: those that are
        there, at least one; not waited for are those of which a try has failed, which lack the
        resource, or which have said nothing for 3 s. A number: so many, and then no other is
        waited for. What is not there yet comes later, whatever was required.

        It does not wait for what time does not mend, see `DynamicSharedInformerFactory.sync`;
        ``patient`` waits for that as well, until the timeout.
        """
        wanted = checked_require(require)
        deadline, begun = Deadline(timeout), time.monotonic()
        self.start()
        wait = SyncWait(
            wanted, begun, {each.name: self._statuses(each) for each in self._watched()}, patient
        )

        def is_over() -> bool:
            late = self._late()
            return self._runtime.stopped.is_set() or wait.is_over(
                len(self) - len(late), late, self._statuses
            )

        bells = Bells(self._bells)
        if not bells.wait_for(is_over, deadline.before(wait.looks_again)):
            bells.wait_for(is_over, deadline.left)
        result = self._result()
        if not wait.is_enough(len(result.synced), len(result)):
            lost = not (deadline.over or self._runtime.stopped.is_set())
            seconds = time.monotonic() - begun
            raise sync_error(self.status(), result, seconds, lost=lost, hosts=self.hosts())
        self._runtime.waited = True
        return result

    def status(self) -> FleetStatuses:
        """How each informer of each cluster stands: ``status()["eu"][gvr]``.

        Where a cluster has not said yet what a name means, the name stands for the GVR.
        """
        with self._runtime.lock:
            members = [*self._members.values(), *self._stale.values()]
            asked = [each.asked for each in self._asked.values()]
        return FleetStatuses((each.name, each.statuses(asked)) for each in members)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until this fleet is shut down; False at the timeout."""
        return self._runtime.stopped.wait(timeout)

    def shutdown(self, timeout: float | None = None) -> bool:
        """Stop everything in all clusters, and wait for the callbacks that run (S11).

        False if something still runs at the timeout; a log line names it. A call from a thread
        that runs the fleet's own code waits for nothing. Reads go on working.
        """
        deadline = Deadline(timeout)
        members, running = self._signal()
        if self._runs_here():
            return False
        left = [
            f"fleet handler {each.name}" for each in running if not each.wait_ended(deadline.left)
        ]
        ended = [
            each.factory.shutdown(deadline.left) for each in members if each.factory is not None
        ]
        if left:
            _logger.warning("shutdown: still running after %s s: %s", timeout, ", ".join(left))
        return not left and all(ended)

    def _end_with_block(self) -> bool:
        return self.shutdown(_EXIT_SECONDS)

    def __len__(self) -> int:
        return len(self._runtime.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.clusters)

    def __bool__(self) -> bool:
        return True  # one without clusters is still a fleet

    def __repr__(self) -> str:
        standing = {name: each.standing for name, each in self.status().items()}
        live = sum(word == "live" for word in standing.values())
        return f"<Fleet of {counted(len(self), 'cluster')}, {live} live>"

    # -- for displays --------------------------------------------------------------------

    def hosts(self) -> dict[str, str]:
        """Where the API server of each cluster is. Not for import."""
        with self._runtime.lock:
            members = [*self._members.values(), *self._stale.values()]
        return {
            each.name: each.factory.host if each.factory is not None else each.server or ""
            for each in members
        }

    # -- inside --------------------------------------------------------------------------

    def _spelled(self, resource: Resource) -> tuple[GroupVersionResource | None, Resource]:
        """What it is if it says so itself, and what it is remembered by."""
        if isinstance(resource, GroupVersionResource):
            return resource, resource
        try:
            found = GroupVersionResource.parse(resource)
        except ValueError:
            return None, resource.lower()
        return found, found

    def _check_same(self, known: FleetGenericInformer, now: ResourceOptions) -> None:
        """OptionsConflictError if it was asked for with other options."""
        defaults = ResourceOptions(
            namespaces=self._settings["namespace"],
            resync=self._settings["resync"],
            transform=self._settings["transform"],
        )
        own = self._settings["resources"].get(known.asked.gvr, ResourceOptions())
        conflicts = now.conflicts(known.asked.checked.over(own.over(defaults)))
        if conflicts:
            name = known.asked.name
            raise OptionsConflictError(
                f"{name} was asked for before with other options: {'; '.join(conflicts)}. Ask "
                f"with the same ones, or call fleet.remove_resource({name!r}) first"
            )

    def _is_asked(self, gvr: GroupVersionResource, cluster: str) -> bool:
        """Another spelling of it stands for the same informer."""
        with self._runtime.lock:
            informers = [each.informer for each in self._asked.values()]
        return any(each.gvrs.get(cluster) == gvr for each in informers)

    def _member(self, name: object, way: Way) -> Member:
        named = checked_name("the name of a cluster", name)
        if isinstance(way, str):
            make = partial(self._factory, named, None, self._kubeconfig, way)
        elif isinstance(way, os.PathLike):
            make = partial(self._factory, named, None, way, None)
        else:
            make = partial(self._factory, named, way, None, None)
        return Member(named, make, self._runtime)

    def _of_context(self, name: str, server: str) -> Member:
        make = partial(self._factory, name, None, self._kubeconfig, name)
        return Member(name, make, self._runtime, server)

    def _factory(
        self, name: str, client: Way, kubeconfig: Kubeconfig, context: str | None
    ) -> DynamicSharedInformerFactory:
        if isinstance(client, str | os.PathLike):
            raise wrong("client", client, "a client, or kubeconfig= and context=")
        metrics = None if self._metrics is None else labelled(self._metrics, cluster=name)
        return DynamicSharedInformerFactory(
            client, kubeconfig=kubeconfig, context=context, metrics=metrics, **self._settings
        )

    def _add(self, member: Member, *, must: bool = True) -> None:
        with self._runtime.lock:
            self._runtime.check_running()
            if member.name in self._members:
                raise ValueError(
                    f"the fleet has a cluster {member.name!r}: remove it first, or give another "
                    "name"
                )
            self._dismissed.discard(member.name)
        self._part_with(member.name, keep=False, watched=False)
        self._join(member, must=must)

    def _join(self, member: Member, *, must: bool) -> None:
        """Have a cluster watched. ``must``: one that cannot be had is an error."""
        try:
            member.open()
        except DynInformerError as error:
            if must:
                raise
            _logger.warning("fleet: cluster %s: %s", member.name, error)
        runtime = self._runtime
        with runtime.lock:
            runtime.check_running()
            if member.name in self._members:  # another thread was faster
                raise ValueError(f"the fleet has a cluster {member.name!r}")
            self._members[member.name] = member
            runtime.names = tuple(self._members)
            for each in self._asked.values():
                member.attach(each.asked)
            for follower in self._followers:
                if member.factory is not None:
                    follower.join(member.name, member.factory)
        runtime.changed.ring()
        if runtime.started:
            member.start()

    def _part_with(self, name: str, *, keep: bool, watched: bool = True) -> Member | None:
        """Watch a cluster no more; None if there is nothing to do.

        Without ``watched`` only what was kept of one that is not watched any more.
        """
        runtime = self._runtime
        with runtime.lock:
            member = self._members.pop(name, None) if watched else None
            if member is None:
                if keep or name not in self._stale:
                    return None
                member = self._stale.pop(name)
            if keep:
                self._stale[name] = member
            else:
                self._left = [each for each in self._left if not each.has_been_heard]
                self._left.append(member)
            runtime.names, runtime.stale = tuple(self._members), tuple(self._stale)
            for each in self._asked.values():
                member.forget(each.asked)
                if not keep:
                    each.informer.detach(name)
                each.informer.look_again()
            if watched:
                for follower in self._followers:
                    follower.leave(name)
        runtime.changed.ring()
        member.leave(keep=keep)
        return member

    def _runs_here(self) -> bool:
        """This thread runs code of the fleet's: it must not wait for itself (S11)."""
        with self._runtime.lock:
            members = [*self._members.values(), *self._stale.values(), *self._left]
        return runs_for(self._runtime.owner) or any(
            runs_for(each.factory.runtime.owner) for each in members if each.factory is not None
        )

    def _signal(self) -> tuple[MemberList, list[FleetRegistration | FleetFollower]]:
        """Have everything stop, and wait for nothing: all clusters, and what may still run."""
        runtime = self._runtime
        runtime.stopped.set()
        with runtime.lock:
            members = [*self._members.values(), *self._stale.values(), *self._left]
            asked, followers = list(self._asked.values()), self._followers
        runtime.changed.ring()
        running: list[FleetRegistration | FleetFollower] = list(followers)
        for each in asked:
            running += each.informer.end()
        for follower in followers:
            follower.end()
        for member in members:
            member.signal()
            if member.factory is not None:
                member.factory._signal()  # noqa: SLF001 - all are signalled before one is waited for
        return members, running

    def _forget_follower(self, follower: FleetFollower) -> None:
        with self._runtime.lock:
            self._followers = tuple(each for each in self._followers if each is not follower)

    # -- how it stands -------------------------------------------------------------------

    def _watched(self) -> MemberList:
        with self._runtime.lock:
            return list(self._members.values())

    def _statuses(self, member: Member) -> ClusterStatuses:
        with self._runtime.lock:
            asked = [each.asked for each in self._asked.values()]
        return member.statuses(asked)

    def _late(self) -> MemberList:
        """The clusters that have not synced."""
        return [each for each in self._watched() if not each.has_synced(bool(self._asked))]

    def _result(self) -> FleetSyncResult:
        return FleetSyncResult(
            (
                each.name,
                {gvr: status.synced for gvr, status in self._statuses(each).items()},
            )
            for each in self._watched()
        )

    def _bells(self) -> Iterator[Bell]:
        """What rings when anything changes that a wait for a sync may be over by."""
        yield self._runtime.changed
        yield self._runtime.stopped.bell
        for each in self._late():
            yield from each.bells()

    def _take(self, found: Mapping[str, str]) -> None:
        """Have the clusters that the kubeconfig names now. On the thread that looks at it."""
        with self._runtime.lock:
            current = dict(self._members)
            dismissed = set(self._dismissed)
        for name, member in list(current.items()):
            if member.server is None:
                continue  # it was given otherwise
            if found.get(name) != member.server or member.factory is None:
                why = "is gone from the kubeconfig" if name not in found else "has changed there"
                _logger.info("fleet: cluster %s %s", name, why)
                self._part_with(name, keep=self._keep_removed)
                del current[name]
        for name, server in found.items():
            if name not in current and name not in dismissed:
                self._add(self._of_context(name, server), must=False)


_fleets: weakref.WeakSet[Fleet] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """At exit, have what still runs stop: a daemon thread must not outlive the interpreter."""
    for fleet in list(_fleets):
        fleet._signal()  # noqa: SLF001 - the module's own
