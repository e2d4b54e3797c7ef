"""The factory, which has one informer per resource: where a program begins."""

from __future__ import annotations

import atexit
import logging
import os
import random
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, Unpack

from dyninformer.checked import check_function, checked, wrong
from dyninformer.discovery import Discovery, RefusedError
from dyninformer.errors import (
    CacheSyncError,
    OptionsConflictError,
    StoppedError,
    UnauthorizedSyncError,
    UnknownResourceError,
    UnreachableError,
)
from dyninformer.follow import AddHandler, Follower, follow
from dyninformer.informer import Runtime, SharedIndexInformer
from dyninformer.lister import GenericLister
from dyninformer.metrics.told import NO_METRICS, Metrics, check_metrics
from dyninformer.options import (
    ListOptions,
    Namespaces,
    ResourceOptions,
    ResourceOptionsDict,
    Transform,
    checked_resync,
    options_from,
    spelled_out,
)
from dyninformer.printable import counted
from dyninformer.relations.caches import Relations
from dyninformer.relations.tree import Tree
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown, ShownCollection
from dyninformer.threads import (
    Bell,
    ClosedByWith,
    Deadline,
    EndedByWith,
    Flag,
    Pause,
    ReentrantLock,
    Waiting,
    in_forked_child,
    runs_for,
    waited,
)
from dyninformer.types import Names, Object, Objects
from dyninformer.unused import closed, end_all, opened_at, when_unused
from dyninformer.waiting import until_fresh
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.status import WORST_FIRST, InformerStatus, are_unauthorized

if TYPE_CHECKING:
    import duckdb
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    from dyninformer.delivery.events import Event
    from dyninformer.delivery.handlers import OnEvent
    from dyninformer.transport.config import Environment, Given
    from dyninformer.watching.client import Source

_logger = logging.getLogger("dyninformer")
_EXIT_SECONDS: Final = 5.0
_ASKING_SECONDS: Final = 10.0
_TRIES: Final = 2  # that failed for what time does not mend: `sync` gives up
_LOOKUP_EVERY: Final = 3.0  # seconds between two lookups of a name, at most: somebody waits
_CRDS_LATE: Final = 10.0  # seconds after its return in which a server may not know its CRDs

Resource: TypeAlias = GroupVersionResource | str
NewInformer: TypeAlias = "Callable[[DynamicClient, float], SharedIndexInformer]"
Followers: TypeAlias = tuple[Follower, ...]
Make: TypeAlias = Callable[[GroupVersionResource, ResourceOptions], SharedIndexInformer]
ByResource: TypeAlias = Mapping[GroupVersionResource, ResourceOptions]
GenericInformers: TypeAlias = "list[GenericInformer]"


class DynamicSharedInformerFactory(Shown, EndedByWith):
    """Live, indexed copies of any collections of one cluster.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     _ = factory.sync(timeout=30)
    ...     namespaces.lister.get("default")["kind"]
    'Namespace'

    ``client`` is a kubernetes DynamicClient or ApiClient, which stays as it is; without
    one, the kubeconfig or the pod's service account is used. Nothing is asked of the
    network before it must be. Every method may be called from any thread.

    ``namespace`` is one to watch, or several; None is all of them. ``resync`` is the period, in
    seconds, at which handlers are told all objects again, 0 for never. ``tweak_list_options``
    changes the `ListOptions` of each informer when it starts. ``transform`` changes each object
    before it is held. ``resources`` has `ResourceOptions` for single resources, which go before
    these; ``metrics`` is what counts, such as ``dyninformer.metrics.PrometheusMetrics()``.
    """

    def __init__(
        self,
        client: DynamicClient | ApiClient | Source | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        resync: float = 0,
        namespace: Namespaces | None = None,
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        transform: Transform | None = None,
        resources: Mapping[GroupVersionResource, ResourceOptions] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._resync = checked_resync(resync)
        if tweak_list_options is not None:
            check_function("tweak_list_options", tweak_list_options, "a function of a ListOptions")
        if metrics is not None:
            check_metrics(metrics)
        defaults = ResourceOptions(namespaces=namespace, resync=resync, transform=transform)
        by_resource = checked_by_resource({} if resources is None else resources)
        self._runtime = Runtime.connect(
            client, kubeconfig=kubeconfig, context=context, metrics=metrics or NO_METRICS
        )
        self.tweak_list_options = tweak_list_options
        """What changes each list and watch. Not for import."""
        self._registry = Registry(
            partial(
                SharedIndexInformer,
                None,
                tweak_list_options=tweak_list_options,
                runtime=self._runtime,
            ),
            defaults=defaults,
            resources=by_resource,
        )
        self._relations = Relations(
            self._registry.informers, self._runtime.discovery, self._runtime.source
        )
        # Guards _followers, and _stopped's change. Nothing that takes a lock is called under it.
        # A signal handler that shuts down may come while its own thread holds it, hence one that
        # can be taken twice.
        self._lock = ReentrantLock()
        self._followers: Followers = ()
        self._stopped = Flag()
        _factories.add(self)
        in_forked_child(self, "_lock", "_stopped")

    # -- informers -----------------------------------------------------------------------

    @spelled_out(ResourceOptionsDict)
    def for_resource(
        self,
        resource: Resource,
        *,
        timeout: float | None = 0,
        **options: Unpack[ResourceOptionsDict],
    ) -> GenericInformer:
        """The informer of a resource; the same one for every caller (S1).

        ``resource`` is a GroupVersionResource or any spelling of one. A full spelling
        asks the network nothing; ``"cert"``, ``"Certificate"`` or
        ``"certificates.cert-manager.io"`` ask the server at once, and for ``timeout`` seconds
        again while it is out of reach, say since it restarts. The answer, or UnreachableError,
        comes within them; with ``timeout=0`` after one look, which ends when the server has been
        silent for 30 s. Credentials that the server refuses are an UnauthorizedError at once.

        ``options`` are those of `ResourceOptions`: ``namespaces`` (None is the factory's, ``""``
        all), ``label_selector``, ``field_selector``, ``transform``, ``resync``,
        ``metadata_only``, ``indexers`` (by name), ``page_size`` (of a list), ``watch_list``
        (False: no streaming lists), ``compress`` (False: entries stay plain JSON), ``audit`` (how
        often what is held is compared with the server, in seconds), ``max_backlog`` (of a handler:
        beyond it what waits is merged), ``history`` (versions that are kept), ``shard`` (a part of
        the collection). Other ones than before are an OptionsConflictError, but indexers are added.

        It stays until it is removed, even if a follower brought it first and is closed.
        """
        asked = options_from(options)
        return self._registry.ask(self._resolve(resource, timeout), asked)

    def options_for(self, gvr: GroupVersionResource, asked: ResourceOptions) -> ResourceOptions:
        """What is asked for, with the factory's own for what is not. Not for import."""
        return self._registry.options_for(gvr, asked)

    def informer_for(self, resource: Resource, new_informer: NewInformer) -> GenericInformer:
        """The informer of a resource, made by ``new_informer(client, resync)`` if there is none."""
        gvr = self._resolve(resource)
        found = self._registry.known(gvr)
        if found is not None:
            return found
        check_function("new_informer", new_informer, "a function of a client and a resync period")
        made = checked(
            "what new_informer returned",
            new_informer(self.client, self._resync),
            SharedIndexInformer,
            "a SharedIndexInformer",
        )
        if made.gvr != gvr:
            raise ValueError(f"new_informer made an informer of {made.gvr}, not of {gvr}")
        return self._registry.adopt(made)

    def start(self) -> None:
        """Start the informers that are not started. Idempotent; never waits for the network.

        An informer that was stopped by itself stays stopped. If one cannot be started, because
        its tweak raises, say, the others are started first, and then its error is raised.
        """
        failed: list[Exception] = []
        for each in self._registry.all():
            if self._stopped.is_set():
                break
            try:
                if not each.informer.is_stopped():
                    each.informer.start()
            except StoppedError:
                continue  # stopped between the two
            except Exception as error:  # noqa: BLE001 - raised below
                failed.append(error)
        if self._stopped.is_set():
            raise StoppedError("this factory has been shut down: make a new one")
        if failed:
            raise failed[0]

    def wait_for_cache_sync(self, timeout: float | None = None) -> SyncResult:
        """Wait until every started informer has synced, or until the timeout.

        An informer that was stopped by itself before it had synced never will: it is left out.
        """
        return waited(self.until_caches_synced(timeout))

    def until_caches_synced(self, timeout: float | None) -> Waiting[SyncResult]:
        """`wait_for_cache_sync`, for a thread or a loop to carry out. Not for import."""
        deadline = Deadline(timeout)
        started = self._started()
        for each in started:
            yield from each.informer.until_synced(deadline.left)
        return _synced(started)

    def sync(self, timeout: float | None = None, *, patient: bool = False) -> SyncResult:
        """Start, and wait for all. CacheSyncError says why, for each that did not sync.

        It does not wait for what time does not mend: credentials or a selector that the server
        refuses, no right to list and watch, a namespace for what has none, a transform that fails.
        Once two tries of every informer that is left have ended so, it raises. They are tried
        again all the same; ``patient`` waits for them until the timeout, say for rights that are
        granted later. If all credentials are refused, the error is an UnauthorizedError as well.
        """
        self.start()
        return waited(self.until_synced(timeout, patient=patient))

    def until_synced(self, timeout: float | None, *, patient: bool = False) -> Waiting[SyncResult]:
        """`sync` after the start, for a thread or a loop to carry out. Not for import."""
        deadline, begun = Deadline(timeout), time.monotonic()
        started, lost = self._started(), False
        if patient:
            for each in started:
                yield from each.informer.until_synced(deadline.left)
        else:
            lost = yield from _until_synced_or_lost(started, deadline)
        result = _synced(started)
        if not result:
            raise _sync_error(result, self.status(), time.monotonic() - begun, lost)
        return result

    def status(self) -> Statuses:
        """How each informer stands."""
        return Statuses((each.gvr, each.informer.status()) for each in self._registry.all())

    def require_fresh(self, max_age: float, timeout: float | None = _ASKING_SECONDS) -> None:
        """Raise StaleCacheError unless all caches are as the server had them ``max_age`` s ago.

        Or since then, see `SharedIndexInformer.wait_fresh`: the server is asked where that is not
        known, and has until the timeout to answer. An informer that is not started is not fresh;
        one that was stopped by itself is left out.
        """
        waited(self.until_fresh(max_age, timeout))

    def until_fresh(self, max_age: float, timeout: float | None) -> Waiting[None]:
        """`require_fresh`, for a thread or a loop to carry out. Not for import."""
        found = [each.informer for each in self._registry.all()]
        if not self._stopped.is_set():
            found = [each for each in found if not each.is_stopped()]
        return until_fresh(found, max_age, timeout)

    def remove(self, resource: Resource, timeout: float = _EXIT_SECONDS) -> bool:
        """Stop an informer and forget it, so that it can be asked for anew (S4).

        True if there is none. False if a callback still runs at the timeout; a call from
        one of this factory's own threads waits for nothing (S11).
        """
        deadline = Deadline(timeout)
        found = self._forget(resource, timeout)
        return found is None or found.informer.stop(deadline.left)

    def _forget(self, resource: Resource, timeout: float | None) -> GenericInformer | None:
        """Signal an informer to stop, and forget it; the timeout is for looking up its name."""
        found = self._registry.named(self._resolve(resource, timeout))
        if found is not None:
            found.informer.signal_stop()  # first: nothing could stop it once it is forgotten (S23)
            self._registry.forget(found)
        return found

    @spelled_out(ResourceOptionsDict)
    def follow(
        self,
        *patterns: str,
        on_event: Callable[[Event], object] | None = None,
        **options: Unpack[ResourceOptionsDict],
    ) -> Follower:
        """Keep an informer per resource that matches, as CRDs come and go.

        Patterns are shell wildcards over ``plural.group``, ``"*.cert-manager.io"``.
        ``on_event`` hears the events of all, told apart by ``event.gvr``. ``options`` are
        those of `for_resource`.
        """
        return self._follow(patterns, on_event, options_from(options))

    def _follow(
        self,
        patterns: Sequence[str],
        on_event: OnEvent | None,
        asked: ResourceOptions,
        add: AddHandler | None = None,
    ) -> Follower:
        self._check_running()
        follower = follow(
            self._registry,
            self.discovery,
            self._runtime.crds,
            patterns,
            on_event=on_event,
            owner=self._runtime.owner,
            options=asked,
            add=add,
        )
        with self._lock:
            self._followers = (*self._followers, follower)
        if self._stopped.is_set():  # meanwhile: `_signal` may not have seen this one
            follower.close()
            self._check_running()
        return follower

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """What a query says of all that is cached, as a relation of DuckDB's.

        There is a table for each informer, under its plural, ``pods``, or ``"plural.group"``, or
        ``"plural.version.group"`` of two versions, as all are at this moment. Its columns:
        ``namespace``, ``name``, ``uid``, ``labels``, ``annotations``, ``created``, ``deleting``,
        ``generation``, ``resource_version``, the other fields of the objects, as ``spec`` and
        ``status``, and the columns that kubectl shows; a field, or one of those, that is called as
        another one has ``_column`` behind its name. Fields are structs where the CRD's schema says
        so, else JSON. Only what the query names is read. Needs the extra ``sql``.

        >>> from dyninformer import DynamicSharedInformerFactory
        >>> from dyninformer.testing import ApiServer
        >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
        ...     namespaces = factory.for_resource("v1/namespaces")
        ...     _ = factory.sync(timeout=30)
        ...     factory.sql("select name from namespaces where name like 'kube-p%'").fetchall()
        [('kube-public',)]
        """
        from dyninformer.frames import sql  # noqa: PLC0415 - few need it

        cached = [
            sql.Cached(each.lister.held.store.view(), each.lister.held.known, each.lister.early)
            for each in self._registry.all()
        ]
        return sql.relation(query, cached)

    def informers(self) -> GenericInformers:
        """Those that there are, in the order in which they were asked for. Not for import."""
        return self._registry.all()

    @property
    def runtime(self) -> Runtime:
        """What its informers share. Not for import."""
        return self._runtime

    @property
    def standing(self) -> str:
        """In a word or two, that of the informer that is worst off; ``closed`` once shut down.

        `InformerStatus.standing` has the words; ``not started`` if there is no informer.
        """
        if self._stopped.is_set():
            return "closed"
        words = {status.standing for status in self.status().values()}
        return next((word for word in WORST_FIRST if word in words), "not started")

    @property
    def host(self) -> str:
        """Where the API server is."""
        return self._runtime.source.host

    # -- what objects have to do with each other -----------------------------------------

    def owners(self, obj: Object, *, fetch: bool = False) -> Objects:
        """The objects that ``obj`` names as its owners, of all kinds that this factory caches.

        ``fetch`` asks the server for those that are not cached. What is not there any more, or has
        another uid than the reference says, is left out; `tree` shows it.
        """
        return self._relations.owners(obj, fetch)

    def owned_by(self, obj: Object, *, fetch: bool = False) -> Objects:
        """The objects that name ``obj`` as an owner, sorted by kind and name.

        Of all kinds that this factory caches, by an index that is made when it is first asked for,
        and kept up to date. ``fetch`` asks the server for those of all other kinds, too: a list of
        metadata for each that may be listed.
        """
        return self._relations.owned_by(obj, fetch)

    def tree(self, obj: Object, *, fetch: bool = False) -> Tree:
        """What is above ``obj`` and below it, as far as it is cached; ``print`` draws it.

        ``fetch`` asks the server for the rest, as `owners` and `owned_by` do.
        """
        return self._relations.tree(obj, fetch)

    def events_of(self, obj: Object, *, fetch: bool = False) -> Objects:
        """The Events about ``obj``, oldest first.

        Of the cached ones; ``fetch`` asks the server unless all that there are are cached.
        NotKeptError if no events are cached, and it is not to be asked.
        """
        return self._relations.events_of(obj, fetch)

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings."""
        return self._runtime.source.writes_client

    @property
    def settings(self) -> Environment | Given:
        """What to make another connection of. Not for import."""
        return self._runtime.source.settings

    @property
    def namespace(self) -> str:
        """The namespace that the kubeconfig's context, or the pod, is in; else "default"."""
        return self._runtime.source.namespace

    @property
    def discovery(self) -> Discovery:
        """What the server has: names, kinds, scopes, columns."""
        return self._runtime.discovery

    # -- the end -------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until this factory is shut down; False at the timeout."""
        return waited(self.until_stopped(timeout))

    @property
    def stopped_bell(self) -> Bell:
        """Rings when `wait` is to look again. Not for import."""
        return self._stopped.bell

    def until_stopped(self, timeout: float | None) -> Waiting[bool]:
        """`wait`, for a thread or a loop to carry out. Not for import."""
        stopped = self._stopped
        return (yield Pause(stopped.bell, stopped.is_set, Deadline(timeout)))

    def shutdown(self, timeout: float | None = None) -> bool:
        """Stop everything, and wait for the callbacks that run (S11).

        False if something still runs at the timeout; a log line names it. A call from a
        thread that runs this factory's own code waits for nothing. Reads go on working.
        """
        self._signal()
        if runs_for(self._runtime.owner):
            return not self._left(0)
        left = self._left(timeout)
        if left:
            _logger.warning("shutdown: still running after %s s: %s", timeout, ", ".join(left))
        return not left

    def _end_with_block(self) -> bool:
        return self.shutdown(_EXIT_SECONDS)

    def __repr__(self) -> str:
        return (
            f"<DynamicSharedInformerFactory of {counted(len(self._registry.all()), 'informer')}, "
            f"{self.standing}>"
        )

    # -- inside --------------------------------------------------------------------------

    def _resolve(self, resource: Resource, timeout: float | None = 0) -> GroupVersionResource:
        if isinstance(resource, GroupVersionResource):
            return resource
        try:
            return GroupVersionResource.parse(resource)
        except ValueError:
            return self._looked_up(resource, Deadline(timeout))

    def _looked_up(self, name: str, deadline: Deadline) -> GroupVersionResource:
        """What the server calls it, once the server can be asked."""
        backoff, back = Backoff(), Deadline(None)
        limited = not deadline.over  # no time at all is one look, however long that takes
        before: UnreachableError | None = None
        while True:
            try:
                return self.discovery.resolve(name, timeout=deadline.left if limited else None).gvr
            except UnreachableError as error:
                if isinstance(error, RefusedError):
                    raise
                if deadline.over:  # what was wrong says more than that the last look was cut short
                    raise before or error from None
                before = error
                back = Deadline(_CRDS_LATE)
            except UnknownResourceError:
                # A server that was out of reach a moment ago may not know its CRDs yet.
                if backoff.failures == 0 or deadline.over or back.over:
                    raise
            backoff = backoff.failed()
            delay = min(_LOOKUP_EVERY, backoff.delay(random.Random()))  # noqa: S311 - it spreads
            left = deadline.left
            if self._stopped.wait(delay if left is None else min(delay, left)):
                raise StoppedError(
                    f"cannot look up {name!r}: this factory has been shut down; make a new one"
                )

    def _started(self) -> GenericInformers:
        """Those that have synced, or may yet; once this is shut down, all that were started."""
        return [
            each
            for each in self._registry.all()
            if each.informer.is_started() and (self._stopped.is_set() or _may_sync(each.informer))
        ]

    def _check_running(self) -> None:
        if self._stopped.is_set():
            raise StoppedError(
                "cannot follow resources: this factory has been shut down; make a new one"
            )

    def _signal(self) -> None:
        """Have everything stop, and wait for nothing."""
        self._registry.close()
        with self._lock:
            self._stopped.set()
            followers = self._followers
        for follower in followers:
            follower.close()
        for each in self._registry.all():
            each.informer.signal_stop()
        self._runtime.close()

    def _left(self, timeout: float | None) -> Names:
        """What still runs, after at most so long."""
        deadline = Deadline(timeout)
        ends = [
            *(each.wait_stopped for each in self._followers),
            *(each.informer.wait_stopped for each in self._registry.all()),
            self._runtime.wait_closed,
        ]
        left: Names = []
        for wait in ends:
            left += wait(deadline.left)
        return left


def _may_sync(informer: SharedIndexInformer) -> bool:
    return informer.has_synced() or not informer.is_stopped()


def _synced(started: GenericInformers) -> SyncResult:
    return SyncResult((each.gvr, each.informer.has_synced()) for each in started)


def _until_synced_or_lost(started: GenericInformers, deadline: Deadline) -> Waiting[bool]:
    """Until all have synced, or the deadline; True as soon as no other will sync by itself.

    Of an informer that was in such trouble already another try is waited for, since what was
    wrong may have been mended meanwhile.
    """
    before = {each: each.informer.lasting for each in started}

    def is_lost(each: GenericInformer, lasting: int) -> bool:
        return lasting >= _TRIES and lasting != before[each]

    waiting = started
    while waiting and not deadline.over:
        for each in waiting:
            unless = partial(is_lost, each)
            yield from each.informer.until_synced(deadline.left, unless=unless)
        waiting = [
            each
            for each in waiting
            if not each.informer.has_synced() and not each.informer.is_stopped()
        ]
        if waiting and all(is_lost(each, each.informer.lasting) for each in waiting):
            return True
    return False


def checked_by_resource(given: object) -> ByResource:
    """Options by resource, as a user gave them."""
    if not isinstance(given, Mapping):
        raise wrong("resources", given, "a mapping from GroupVersionResources to ResourceOptions")
    return {
        gvr if isinstance(gvr, GroupVersionResource) else GroupVersionResource.parse(gvr): checked(
            f"resources[{gvr!r}]", options, ResourceOptions, "a ResourceOptions(...)"
        )
        for gvr, options in given.items()
    }


class GenericInformer(Shown):
    """An informer and its lister, for one resource.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     _ = factory.sync(timeout=30)
    ...     print(namespaces, namespaces.lister.get("default")["kind"])
    <GenericInformer of namespaces.v1, 4 objects, live> Namespace
    """

    def __init__(self, informer: SharedIndexInformer) -> None:
        self.informer = informer
        self.lister: GenericLister = informer.lister
        self.history = informer.history
        """`SharedIndexInformer.history`"""
        self.snapshot = informer.snapshot
        """`SharedIndexInformer.snapshot`"""
        self.live = informer.live
        """`SharedIndexInformer.live`"""
        self.live_widget = informer.live_widget
        """`SharedIndexInformer.live_widget`"""
        self.live_plot = informer.live_plot
        """`SharedIndexInformer.live_plot`"""
        self.work_queue = informer.work_queue
        """`SharedIndexInformer.work_queue`"""
        self.patch = informer.patch
        """`SharedIndexInformer.patch`"""
        self.patch_status = informer.patch_status
        """`SharedIndexInformer.patch_status`"""
        self.apply = informer.apply
        """`SharedIndexInformer.apply`"""
        self.delete = informer.delete
        """`SharedIndexInformer.delete`"""

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self.informer.gvr

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The lister's, so that both can be read as a table."""
        return self.lister.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The lister's."""
        return self.lister.__arrow_c_schema__()

    def __repr__(self) -> str:
        held = f"{counted(len(self.informer.store), 'object')}, {self.informer.status().standing}"
        return f"<{type(self).__name__} of {self.gvr}, {held}>"


class SyncResult(ShownCollection, dict[GroupVersionResource, bool]):
    """Which caches are synced. It is true if all are.

    >>> pods = GroupVersionResource("", "v1", "pods")
    >>> bool(SyncResult({pods: True})), bool(SyncResult({pods: False}))
    (True, False)
    """

    def __bool__(self) -> bool:
        return all(self.values())


class Statuses(ShownCollection, dict[GroupVersionResource, InformerStatus]):
    """How each informer of a factory stands, shown as a table. Not for import."""


class OpenInformer(GenericInformer, ClosedByWith):
    """A started and synced informer with a factory of its own, which ends with it.

    `open_informer` gives it. After its end the lister still answers, from the last state. One that
    is neither closed nor held any more, nor anything of it (its informer, lister, streams,
    registrations), is closed by itself, with a ResourceWarning: a notebook's cell that is run
    twice leaves one informer, not two.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     namespaces = open_informer("ns", client=server.client())
    ...     print(namespaces.close(), len(namespaces.lister))
    True 4
    """

    def __init__(self, factory: DynamicSharedInformerFactory, found: GenericInformer) -> None:
        super().__init__(found.informer)
        self._factory = factory
        self._ending = found.informer.ending()
        self._unused = when_unused(found.informer, self._ending, opened_at())

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings."""
        return self._factory.client

    def close(self, timeout: float | None = _EXIT_SECONDS) -> bool:
        """Stop it; reads go on working. Idempotent."""
        closed(self._unused, self._ending)
        return self._factory.shutdown(timeout)


@spelled_out(ResourceOptionsDict)
def open_informer(
    resource: Resource,
    *,
    client: DynamicClient | ApiClient | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: Namespaces | None = None,
    timeout: float | None = 30,
    patient: bool = False,
    metrics: Metrics | None = None,
    **options: Unpack[ResourceOptionsDict],
) -> OpenInformer:
    """One resource, started and synced: for scripts and notebooks.

    ``resource`` is any spelling. ``namespace`` is one to watch, or several; None is all of them.
    ``options`` are those of `DynamicSharedInformerFactory.for_resource`, the rest is the factory's.
    CacheSyncError after ``timeout`` seconds says why it did not sync, or sooner if time does not
    mend it, unless ``patient`` (`DynamicSharedInformerFactory.sync`). A server that is out of
    reach is waited for, also where a short name has to be looked up; one that refuses the
    credentials is not: UnauthorizedError. Close it, or use it in a ``with``.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     sorted(namespaces.lister.keys())
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """
    deadline = Deadline(timeout)
    factory = DynamicSharedInformerFactory(
        client, kubeconfig=kubeconfig, context=context, namespace=namespace, metrics=metrics
    )
    try:
        found = factory.for_resource(resource, timeout=deadline.left, **options)
        factory.sync(deadline.left, patient=patient)
    except BaseException:
        factory.shutdown(_EXIT_SECONDS)
        raise
    return OpenInformer(factory, found)


@dataclass(slots=True)
class _Entry:
    """An informer that serves. The registry's lock guards its fields."""

    generic: GenericInformer
    options: ResourceOptions
    kept: bool
    """It was asked for by name: it stays until it is removed by name."""
    users: set[object] = field(default_factory=set)
    """The followers that use it."""
    leaves: bool = False
    """Nobody needs it any more: it is about to be stopped."""


class Registry:
    """The informers of a factory (S1). Every method may be called from any thread.

    An informer that was asked for stays until it is removed. One that was only borrowed goes
    with its last borrower. A stopped one is replaced when it is asked for again (S4), unless the
    registry is closed: then it goes on answering reads, and no other is made (S3).
    """

    def __init__(self, make: Make, *, defaults: ResourceOptions, resources: ByResource) -> None:
        self._make = make
        self._defaults = defaults
        self._resources = dict(resources)
        # Guards what is below. Under it an informer is made, which takes no lock and asks nothing
        # of the network; none is started or stopped. A signal handler that shuts down may come
        # while its own thread holds it, hence one that can be taken twice.
        self._lock = ReentrantLock()
        self._entries: dict[GroupVersionResource, _Entry] = {}
        self._closed = False
        in_forked_child(self, "_lock", _closed=True)

    def ask(self, gvr: GroupVersionResource, asked: ResourceOptions) -> GenericInformer:
        """The informer of a resource, to be kept; OptionsConflictError if it has other options."""
        return self._serving(gvr, asked, user=None)

    def borrow(
        self, gvr: GroupVersionResource, asked: ResourceOptions, user: object
    ) -> GenericInformer:
        """The same, until ``user`` gives it back, or for longer if it is needed elsewhere."""
        return self._serving(gvr, asked, user=user)

    def give_back(self, informer: SharedIndexInformer, user: object) -> None:
        """``user`` needs it no longer. If nothing else does, it is stopped and forgotten.

        It waits for nothing. A closed registry forgets nothing, so that reads go on.
        """
        with self._lock:
            entry = self._entries.get(informer.gvr)
            if entry is None or entry.generic.informer is not informer:
                return  # removed meanwhile, and perhaps another one has come
            entry.users.discard(user)
            if entry.kept or entry.users or self._closed:
                return
            entry.leaves = True
        informer.signal_stop()  # before it is forgotten: an interrupt must not leave it running
        self.forget(entry.generic)

    def options_for(self, gvr: GroupVersionResource, asked: ResourceOptions) -> ResourceOptions:
        """These options, with those of the resource, and then of all, for what is not given."""
        own = self._resources.get(gvr)
        return asked.over(self._defaults if own is None else own.over(self._defaults))

    def known(self, gvr: GroupVersionResource) -> GenericInformer | None:
        """The informer of a resource, to be kept, if there is one that serves."""
        with self._lock:
            entry = self._current(gvr)
            if entry is None:
                return None
            entry.kept = True
            return entry.generic

    def adopt(self, informer: SharedIndexInformer) -> GenericInformer:
        """Keep an informer that the caller made, unless another one serves by now."""
        with self._lock:
            return self.known(informer.gvr) or self._add(informer, informer.options).generic

    def named(self, gvr: GroupVersionResource) -> GenericInformer | None:
        """The informer of a resource, if it has one, which may have stopped."""
        with self._lock:
            entry = self._entries.get(gvr)
        return None if entry is None else entry.generic

    def forget(self, stopped: GenericInformer) -> None:
        """Take an informer out, even if it is in use, unless another has taken its place."""
        with self._lock:
            entry = self._entries.get(stopped.gvr)
            if entry is not None and entry.generic is stopped:
                del self._entries[stopped.gvr]

    def all(self) -> GenericInformers:
        """All informers, in the order in which they were asked for."""
        with self._lock:
            return [entry.generic for entry in self._entries.values()]

    def informers(self) -> list[SharedIndexInformer]:
        """The same, without their listers."""
        return [each.informer for each in self.all()]

    def close(self) -> None:
        """Make no informer any more."""
        with self._lock:
            self._closed = True

    # -- inside --------------------------------------------------------------------------

    def _serving(
        self, gvr: GroupVersionResource, asked: ResourceOptions, *, user: object
    ) -> GenericInformer:
        with self._lock:
            entry = self._current(gvr)
            made = entry is None
            if entry is None:
                used = self.options_for(gvr, asked)
                self._check_open(gvr)
                entry = self._add(self._make(gvr, used), used, kept=user is None)
            conflicts = asked.conflicts(entry.options)
            if not conflicts:
                if user is None:
                    entry.kept = True
                else:
                    entry.users.add(user)
        if conflicts:
            raise OptionsConflictError(
                f"{gvr} was asked for before with other options: {'; '.join(conflicts)}. "
                f"Ask with the same ones, or call factory.remove({str(gvr)!r}) first"
            )
        if asked.indexers and not made:
            entry.generic.informer.add_indexers(asked.indexers)
        return entry.generic

    def _current(self, gvr: GroupVersionResource) -> _Entry | None:
        """The informer that serves; a stopped one serves only once the registry is closed."""
        entry = self._entries.get(gvr)
        if entry is None or self._closed:
            return entry
        return None if entry.leaves or entry.generic.informer.is_stopped() else entry

    def _add(
        self, informer: SharedIndexInformer, used: ResourceOptions, *, kept: bool = True
    ) -> _Entry:
        self._check_open(informer.gvr)
        entry = _Entry(GenericInformer(informer), used, kept)
        self._entries[informer.gvr] = entry
        return entry

    def _check_open(self, gvr: GroupVersionResource) -> None:
        if self._closed:
            raise StoppedError(
                f"cannot watch {gvr}: this factory has been shut down; make a new one"
            )


def _sync_error(
    result: SyncResult,
    status: Mapping[GroupVersionResource, InformerStatus],
    seconds: float,
    lost: bool,
) -> CacheSyncError:
    """What to raise after so many seconds: it says why, for each cache that did not sync."""
    lines = []
    for gvr in sorted(gvr for gvr, synced in result.items() if not synced):
        found = status.get(gvr)
        reason = (found and found.reason) or f"still {found.state if found else 'removed'}"
        tries = f" ({counted(found.attempts, 'try')} failed)" if found and found.attempts else ""
        lines.append(f"  {gvr}: {reason}{tries}")
    head = f"{len(lines)} of {counted(len(result), 'cache')} did not sync in {seconds:.1f} s"
    head += ", and more time would not help (patient=True waits all the same):" if lost else ":"
    late = [status.get(gvr) for gvr, synced in result.items() if not synced]
    kind = UnauthorizedSyncError if are_unauthorized(late) else CacheSyncError
    return kind("\n".join([head, *lines]), status)


_factories: weakref.WeakSet[DynamicSharedInformerFactory] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """At exit, have what still runs stop: a daemon thread must not outlive the interpreter."""
    for factory in list(_factories):
        factory._signal()  # noqa: SLF001 - the module's own
    end_all()
