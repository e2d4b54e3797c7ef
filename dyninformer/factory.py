"""One informer per resource: the front door of the package."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from dyninformer.discovery import Discovery
from dyninformer.errors import CacheSyncError, OptionsConflictError, StoppedError
from dyninformer.follow import Follower, follow
from dyninformer.informer import SharedIndexInformer
from dyninformer.lister import GenericLister
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import (
    ListOptions,
    Namespaces,
    ResourceOptions,
    Transform,
    checked_resync,
)
from dyninformer.resource import GroupVersionResource
from dyninformer.shared import Shared
from dyninformer.threads import runs_for
from dyninformer.waking import Flag
from dyninformer.watching.status import InformerStatus

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    from dyninformer.delivery.events import Event

_log = logging.getLogger("dyninformer")
_EXIT_SECONDS = 5.0

Resource: TypeAlias = GroupVersionResource | str
NewInformer: TypeAlias = "Callable[[DynamicClient, float], SharedIndexInformer]"
Status: TypeAlias = dict[GroupVersionResource, InformerStatus]
Names: TypeAlias = list[str]


class GenericInformer:
    """An informer and its lister, for one resource."""

    def __init__(self, informer: SharedIndexInformer) -> None:
        self.informer = informer
        self.lister: GenericLister = informer.lister

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self.informer.gvr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.gvr}, {len(self.informer.store)} objects>"


class SyncResult(dict[GroupVersionResource, bool]):
    """Which caches are synced. It is true if all are."""

    def __bool__(self) -> bool:
        return all(self.values())


class DynamicSharedInformerFactory:
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
    """

    def __init__(
        self,
        client: DynamicClient | ApiClient | None = None,
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
        self._defaults = ResourceOptions(
            namespaces=namespace, resync=checked_resync(resync), transform=transform
        )
        self._resources = {_parsed(gvr): options for gvr, options in (resources or {}).items()}
        self._tweak = tweak_list_options
        self._resync = checked_resync(resync)
        self._shared = Shared.connect(
            client, kubeconfig=kubeconfig, context=context, metrics=metrics or NO_METRICS
        )
        self._discovery = Discovery(self._shared.source)
        self._lock = threading.Lock()  # guards _informers, _asked, _followers and _stopped's change
        self._informers: dict[GroupVersionResource, GenericInformer] = {}
        self._asked: dict[GroupVersionResource, ResourceOptions] = {}
        self._followers: list[Follower] = []
        self._stopped = Flag()
        _factories.add(self)

    # -- informers -----------------------------------------------------------------------

    def for_resource(self, resource: Resource, **options: Any) -> GenericInformer:
        """The informer of a resource; the same one for everybody who asks (S1).

        ``resource`` is a GroupVersionResource or any spelling of one. A full spelling
        asks the network nothing; ``"cert"``, ``"Certificate"`` or
        ``"certificates.cert-manager.io"`` ask the server at once. ``options`` are those
        of `ResourceOptions`; other ones than before are an OptionsConflictError, but
        indexers are added.
        """
        asked = _options_from(options)
        gvr = self._resolve(resource)
        with self._lock:
            used = asked.over(self._resources.get(gvr, ResourceOptions()).over(self._defaults))
            found = self._current(gvr)
            if found is None:
                return self._add(gvr, self._new(gvr, used), used)
            conflicts = asked.conflicts(self._asked[gvr])
        if conflicts:
            raise OptionsConflictError(
                f"{gvr} was asked for before with other options: {'; '.join(conflicts)}. "
                f"Ask with the same ones, or call factory.remove({str(gvr)!r}) first"
            )
        if asked.indexers:
            found.informer.add_indexers(asked.indexers)
        return found

    def informer_for(self, resource: Resource, new_informer: NewInformer) -> GenericInformer:
        """The informer of a resource, made by ``new_informer(client, resync)`` if there is none."""
        gvr = self._resolve(resource)
        with self._lock:
            found = self._current(gvr)
        if found is not None:
            return found
        made = new_informer(self.client, self._resync)
        if made.gvr != gvr:
            raise ValueError(f"new_informer made an informer of {made.gvr}, not of {gvr}")
        with self._lock:
            return self._current(gvr) or self._add(gvr, made, made.options)

    def start(self) -> None:
        """Start the informers that are not started. Idempotent; never waits for the network."""
        for each in self._all():
            if self._stopped.is_set():
                break
            each.informer.start()
        if self._stopped.is_set():
            raise StoppedError("this factory has been shut down: make a new one")

    def wait_for_cache_sync(self, timeout: float | None = None) -> SyncResult:
        """Wait until every started informer holds a whole state, or the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        started = [each for each in self._all() if each.informer.is_started()]
        for each in started:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            each.informer.wait_synced(left)
        return SyncResult((each.gvr, each.informer.has_synced()) for each in started)

    def sync(self, timeout: float | None = None) -> SyncResult:
        """Start, and wait for all. CacheSyncError says of each that did not sync why."""
        self.start()
        begun = time.monotonic()
        result = self.wait_for_cache_sync(timeout)
        if not result:
            raise _sync_error(result, self.status(), time.monotonic() - begun)
        return result

    def status(self) -> Status:
        """How each informer stands."""
        return {each.gvr: each.informer.status() for each in self._all()}

    def remove(self, resource: Resource, timeout: float = _EXIT_SECONDS) -> bool:
        """Stop an informer and forget it, so that it can be asked for anew (S4).

        What is unknown is removed already. False if a callback still runs at the
        timeout; from a thread of this factory's own nothing is waited for (S11).
        """
        gvr = self._resolve(resource)
        with self._lock:
            found = self._informers.pop(gvr, None)
            self._asked.pop(gvr, None)
        return found is None or found.informer.stop(timeout)

    def follow(
        self, *patterns: str, on_event: Callable[[Event], object] | None = None, **options: Any
    ) -> Follower:
        """Keep an informer per resource that matches, as CRDs come and go.

        Patterns are shell wildcards over ``plural.group``, ``"*.cert-manager.io"``.
        ``on_event`` hears the events of all, told apart by ``event.gvr``. ``options`` are
        those of `ResourceOptions`.
        """
        _options_from(options)
        self._check_running("follow resources")
        follower = follow(
            self,
            self._discovery,
            self._shared.crds,
            patterns,
            on_event=on_event,
            owner=self._shared.owner,
            options=options,
        )
        with self._lock:
            self._followers.append(follower)
        return follower

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings."""
        return self._shared.source.writes_client

    @property
    def namespace(self) -> str:
        """The namespace that the kubeconfig's context, or the pod, is in; else "default"."""
        return self._shared.source.namespace

    @property
    def discovery(self) -> Discovery:
        """What the server has: names, kinds, scopes, columns."""
        return self._discovery

    # -- the end -------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody shuts this factory down; false if the time is over first."""
        return self._stopped.wait(timeout)

    def shutdown(self, timeout: float | None = None) -> bool:
        """Stop everything, and wait for the callbacks that run (S11).

        False if something still runs at the timeout; a log line names it. From a thread
        that runs this factory's own code, nothing is waited for. Reads go on working.
        """
        self._signal()
        if runs_for(self._shared.owner):
            return not self._left(0)
        left = self._left(timeout)
        if left:
            _log.warning("shutdown: still running after %s s: %s", timeout, ", ".join(left))
        return not left

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown(_EXIT_SECONDS)

    def __repr__(self) -> str:
        state = "stopped" if self._stopped.is_set() else "running"
        return f"<DynamicSharedInformerFactory of {len(self._all())} informers, {state}>"

    # -- inside --------------------------------------------------------------------------

    def _all(self) -> list[GenericInformer]:
        with self._lock:
            return [*self._informers.values()]

    def _resolve(self, resource: Resource) -> GroupVersionResource:
        if isinstance(resource, GroupVersionResource):
            return resource
        try:
            return GroupVersionResource.parse(resource)
        except ValueError:
            return self._discovery.resolve(resource).gvr

    def _current(self, gvr: GroupVersionResource) -> GenericInformer | None:
        """The informer that serves; a stopped one only serves where the factory is stopped too."""
        found = self._informers.get(gvr)
        if found is not None and found.informer.is_stopped() and not self._stopped.is_set():
            return None
        return found

    def _new(self, gvr: GroupVersionResource, options: ResourceOptions) -> SharedIndexInformer:
        self._check_running(f"watch {gvr}")
        return SharedIndexInformer(
            None, gvr, options, tweak_list_options=self._tweak, shared=self._shared
        )

    def _add(
        self, gvr: GroupVersionResource, informer: SharedIndexInformer, used: ResourceOptions
    ) -> GenericInformer:
        self._check_running(f"watch {gvr}")
        made = GenericInformer(informer)
        self._asked[gvr] = used  # first: an interrupt in between leaves nothing to be found
        self._informers[gvr] = made
        return made

    def _check_running(self, what: str) -> None:
        if self._stopped.is_set():
            raise StoppedError(f"cannot {what}: this factory has been shut down; make a new one")

    def _signal(self) -> None:
        """Have everything stop, and wait for nothing."""
        with self._lock:
            self._stopped.set()
            followers = [*self._followers]
        for follower in followers:
            follower.close()
        for each in self._all():
            each.informer.signal_stop()
        self._shared.close()

    def _left(self, timeout: float | None) -> Names:
        """What still runs, after at most so long."""
        deadline = None if timeout is None else time.monotonic() + timeout
        ends = [
            *(each.wait_stopped for each in self._followers),
            *(each.informer.wait_stopped for each in self._all()),
            self._shared.wait_closed,
        ]
        left: Names = []
        for wait in ends:
            left += wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return left


def _parsed(resource: Resource) -> GroupVersionResource:
    return GroupVersionResource.parse(resource) if isinstance(resource, str) else resource


def _options_from(options: Mapping[str, Any]) -> ResourceOptions:
    try:
        return ResourceOptions(**options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        known = ", ".join(ResourceOptions.__dataclass_fields__)
        wrong = ", ".join(name for name in options if name not in known.split(", "))
        raise TypeError(f"no option {wrong}: a resource has {known}") from None


def _sync_error(result: SyncResult, status: Status, seconds: float) -> CacheSyncError:
    lines = []
    for gvr in sorted(gvr for gvr, synced in result.items() if not synced):
        found = status.get(gvr)
        reason = (found and found.reason) or f"still {found.state if found else 'removed'}"
        tries = f" ({found.attempts} tries failed)" if found and found.attempts else ""
        lines.append(f"  {gvr}: {reason}{tries}")
    head = f"{len(lines)} of {len(result)} caches did not sync in {seconds:.1f} s:"
    return CacheSyncError("\n".join([head, *lines]), status)


_factories: weakref.WeakSet[DynamicSharedInformerFactory] = weakref.WeakSet()


def _living() -> Iterator[DynamicSharedInformerFactory]:
    yield from list(_factories)


@atexit.register
def _stop_all() -> None:
    """At exit, have what still runs stop: a daemon thread must not outlive the interpreter."""
    for factory in _living():
        factory._signal()  # noqa: SLF001 - the module's own
