"""One informer per resource: the front door of the package."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from dyninformer.discovery import Discovery
from dyninformer.errors import StoppedError
from dyninformer.follow import Follower, follow
from dyninformer.informer import SharedIndexInformer
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import (
    ListOptions,
    Namespaces,
    ResourceOptions,
    Transform,
    checked_resync,
    options_from,
)
from dyninformer.registry import GenericInformer, Registry
from dyninformer.resource import GroupVersionResource
from dyninformer.shared import Shared
from dyninformer.syncing import SyncResult, sync_error
from dyninformer.threads import Deadline, Flag, in_forked_child, runs_for
from dyninformer.types import Names
from dyninformer.watching.status import InformerStatus

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    from dyninformer.delivery.events import Event

__all__ = ["DynamicSharedInformerFactory", "GenericInformer", "Resource", "SyncResult"]

_log = logging.getLogger("dyninformer")
_EXIT_SECONDS = 5.0

Resource: TypeAlias = GroupVersionResource | str
NewInformer: TypeAlias = "Callable[[DynamicClient, float], SharedIndexInformer]"
Status: TypeAlias = dict[GroupVersionResource, InformerStatus]
Followers: TypeAlias = tuple[Follower, ...]


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
        self._resync = checked_resync(resync)
        defaults = ResourceOptions(namespaces=namespace, resync=resync, transform=transform)
        by_resource = {_parsed(gvr): options for gvr, options in (resources or {}).items()}
        self._shared = Shared.connect(
            client, kubeconfig=kubeconfig, context=context, metrics=metrics or NO_METRICS
        )
        self._registry = Registry(
            partial(
                SharedIndexInformer,
                None,
                tweak_list_options=tweak_list_options,
                shared=self._shared,
            ),
            defaults=defaults,
            resources=by_resource,
        )
        self._discovery = Discovery(self._shared.source)
        # Guards _followers, and _stopped's change. A signal handler that shuts down may come
        # while its own thread holds it, hence one that can be taken twice.
        self._lock = threading.RLock()
        self._followers: Followers = ()
        self._stopped = Flag()
        _factories.add(self)
        in_forked_child(self, "_lock", "_stopped")

    # -- informers -----------------------------------------------------------------------

    def for_resource(self, resource: Resource, **options: Any) -> GenericInformer:
        """The informer of a resource; the same one for everybody who asks (S1).

        ``resource`` is a GroupVersionResource or any spelling of one. A full spelling
        asks the network nothing; ``"cert"``, ``"Certificate"`` or
        ``"certificates.cert-manager.io"`` ask the server at once. ``options`` are those
        of `ResourceOptions`; other ones than before are an OptionsConflictError, but
        indexers are added.

        It stays until it is removed, also if a follower had brought it, and ends.
        """
        asked = options_from(options)
        return self._registry.ask(self._resolve(resource), asked)

    def informer_for(self, resource: Resource, new_informer: NewInformer) -> GenericInformer:
        """The informer of a resource, made by ``new_informer(client, resync)`` if there is none."""
        gvr = self._resolve(resource)
        found = self._registry.known(gvr)
        if found is not None:
            return found
        made = new_informer(self.client, self._resync)
        if made.gvr != gvr:
            raise ValueError(f"new_informer made an informer of {made.gvr}, not of {gvr}")
        return self._registry.adopt(made)

    def start(self) -> None:
        """Start the informers that are not started. Idempotent; never waits for the network.

        One that was stopped by itself stays so. What one of them raises, a tweak's error say,
        is raised once the others are started.
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
        """Wait until every started informer holds a whole state, or the time is over.

        One that was stopped by itself before it held one never will: it is left out.
        """
        deadline = Deadline(timeout)
        started = [
            each
            for each in self._registry.all()
            if each.informer.is_started() and (self._stopped.is_set() or _may_sync(each.informer))
        ]
        for each in started:
            each.informer.wait_synced(deadline.left)
        return SyncResult((each.gvr, each.informer.has_synced()) for each in started)

    def sync(self, timeout: float | None = None) -> SyncResult:
        """Start, and wait for all. CacheSyncError says of each that did not sync why."""
        self.start()
        begun = time.monotonic()
        result = self.wait_for_cache_sync(timeout)
        if not result:
            raise sync_error(result, self.status(), time.monotonic() - begun)
        return result

    def status(self) -> Status:
        """How each informer stands."""
        return {each.gvr: each.informer.status() for each in self._registry.all()}

    def remove(self, resource: Resource, timeout: float = _EXIT_SECONDS) -> bool:
        """Stop an informer and forget it, so that it can be asked for anew (S4).

        What is unknown is removed already. False if a callback still runs at the
        timeout; from a thread of this factory's own nothing is waited for (S11).
        """
        found = self._registry.forget(self._resolve(resource))
        return found is None or found.informer.stop(timeout)

    def follow(
        self, *patterns: str, on_event: Callable[[Event], object] | None = None, **options: Any
    ) -> Follower:
        """Keep an informer per resource that matches, as CRDs come and go.

        Patterns are shell wildcards over ``plural.group``, ``"*.cert-manager.io"``.
        ``on_event`` hears the events of all, told apart by ``event.gvr``. ``options`` are
        those of `ResourceOptions`.
        """
        asked = options_from(options)
        self._check_running()
        follower = follow(
            self._registry,
            self._discovery,
            self._shared.crds,
            patterns,
            on_event=on_event,
            owner=self._shared.owner,
            options=asked,
        )
        with self._lock:
            self._followers = (*self._followers, follower)
        if self._stopped.is_set():  # meanwhile: whoever did it may not have seen this one
            follower.close()
            self._check_running()
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
        return f"<DynamicSharedInformerFactory of {len(self._registry.all())} informers, {state}>"

    # -- inside --------------------------------------------------------------------------

    def _resolve(self, resource: Resource) -> GroupVersionResource:
        if isinstance(resource, GroupVersionResource):
            return resource
        try:
            return GroupVersionResource.parse(resource)
        except ValueError:
            return self._discovery.resolve(resource).gvr

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
        self._shared.close()

    def _left(self, timeout: float | None) -> Names:
        """What still runs, after at most so long."""
        deadline = Deadline(timeout)
        ends = [
            *(each.wait_stopped for each in self._followers),
            *(each.informer.wait_stopped for each in self._registry.all()),
            self._shared.wait_closed,
        ]
        left: Names = []
        for wait in ends:
            left += wait(deadline.left)
        return left


def _may_sync(informer: SharedIndexInformer) -> bool:
    return informer.has_synced() or not informer.is_stopped()


def _parsed(resource: Resource) -> GroupVersionResource:
    return GroupVersionResource.parse(resource) if isinstance(resource, str) else resource


_factories: weakref.WeakSet[DynamicSharedInformerFactory] = weakref.WeakSet()


def _living() -> Iterator[DynamicSharedInformerFactory]:
    yield from list(_factories)


@atexit.register
def _stop_all() -> None:
    """At exit, have what still runs stop: a daemon thread must not outlive the interpreter."""
    for factory in _living():
        factory._signal()  # noqa: SLF001 - the module's own
