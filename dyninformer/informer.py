"""One resource's informer: reflectors, store and delivery with one lifetime."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from dyninformer.conditions import Condition
from dyninformer.controller import Controller
from dyninformer.delivery.dispatch import Dispatcher
from dyninformer.delivery.handlers import Filter, OnEvent, OnObject, OnUpdate, Paths
from dyninformer.delivery.registration import Registration
from dyninformer.delivery.stream import EventStream
from dyninformer.errors import StoppedError, WaitTimeoutError
from dyninformer.indexer import Indexer, Store
from dyninformer.lister import GenericLister
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import (
    DEFAULT_PAGE_SIZE,
    IndexFunction,
    ListOptions,
    ResourceOptions,
    Transform,
)
from dyninformer.resource import GroupVersionResource
from dyninformer.shared import Shared
from dyninformer.store import store as room
from dyninformer.store import versions
from dyninformer.store.changes import Changes
from dyninformer.store.codec import Codec
from dyninformer.threads import runs_for
from dyninformer.waiting import wait_for
from dyninformer.waking import Bell
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.states import Scope
from dyninformer.watching.status import InformerState, InformerStatus, merged

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

Object: TypeAlias = dict[str, Any]
Names: TypeAlias = list[str]
Tweak: TypeAlias = Callable[[ListOptions], None]
WatchErrorHandler: TypeAlias = Callable[[Exception], object]


class SharedIndexInformer:
    """Keeps one collection in memory, and tells handlers what changes.

    A factory makes it; by itself it is made of a client, the resource and its options.
    Every method may be called from any thread.
    """

    def __init__(
        self,
        client: DynamicClient | ApiClient | None,
        gvr: GroupVersionResource,
        options: ResourceOptions | None = None,
        *,
        tweak_list_options: Tweak | None = None,
        metrics: Metrics = NO_METRICS,
        shared: Shared | None = None,
    ) -> None:
        self.gvr = gvr
        self.options = options or ResourceOptions()
        self._tweak = tweak_list_options
        self._owns_shared = shared is None
        self._shared = shared or Shared.connect(client, metrics=metrics)
        self._store = room.Store(
            gvr,
            codec=Codec(compress=self.options.compress is not False),
            indexers=self.options.indexers,
            transform=self.options.transform,
            metadata_only=bool(self.options.metadata_only),
            metrics=self._shared.metrics,
            on_changes=self._publish,
            on_pause=self._pause,
        )
        self._dispatcher = Dispatcher(
            self._store,
            owner=self._shared.owner,
            timers=self._shared.timers,
            metrics=self._shared.metrics,
            resync=self.options.resync or 0.0,
        )
        self.lister = GenericLister(self._store, self.has_synced)
        """Reads of the cache."""
        self.store = Store(self._store)
        """The cache by key, in client-go's words."""
        self.indexer = Indexer(self._store)
        """The cache by key and by index, in client-go's words."""
        self._on_watch_error: WatchErrorHandler | None = None
        self._lock = threading.RLock()  # guards changes of the four below
        self._changed = Bell()  # rings when one of them has changed
        self._reflectors: tuple[Reflector, ...] = ()
        self._started = False
        self._synced = False
        self._stopped = False
        _informers.add(self)

    # -- handlers ------------------------------------------------------------------------

    def add_event_handler(
        self,
        handler: object = None,
        *,
        on_add: OnObject | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnObject | None = None,
        on_event: OnEvent | None = None,
        filter: Filter | None = None,
        when_changed: Paths | None = None,
        resync: float | None = None,
        coalesce: bool = False,
        name: str | None = None,
    ) -> Registration:
        """Have callbacks called with what is held, and then with what changes (S8, S9).

        Give an object with any of the four methods, or functions: ``on_add(obj)``,
        ``on_update(old, new)``, ``on_delete(obj)``, ``on_event(event)``. ``filter(obj)``
        chooses objects, ``when_changed`` a path or paths whose values must change,
        ``resync`` a period at which all objects are told again, ``coalesce`` merges
        what is not yet told of one key. The same ``name`` again replaces the handler.
        """
        return self._dispatcher.add(
            handler,
            on_add=on_add,
            on_update=on_update,
            on_delete=on_delete,
            on_event=on_event,
            filter=filter,
            when_changed=when_changed,
            resync=resync,
            coalesce=coalesce,
            name=name,
        )

    def add_event_handler_with_resync_period(self, handler: object, period: float) -> Registration:
        """`add_event_handler` with ``resync``, in client-go's words."""
        return self._dispatcher.add(handler, resync=period)

    def remove_event_handler(self, registration: Registration) -> None:
        """Take a handler away; again is fine. No callback begins after this returns."""
        registration.remove()

    def events(
        self, *, idle_timeout: float | None = None, coalesce: bool = False, initial: bool = True
    ) -> EventStream:
        """What is held and what changes, to iterate over in this thread, from now on."""
        return self._dispatcher.events(
            idle_timeout=idle_timeout, coalesce=coalesce, initial=initial
        )

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Have ``handler(error)`` called with each failure of a list or watch; before start."""
        with self._lock:
            self._check_not_started("set_watch_error_handler")
            self._on_watch_error = handler

    def set_transform(self, transform: Transform | None) -> None:
        """Transform each object before it is held (S17); before start."""
        with self._lock:
            self._check_not_started("set_transform")
        self._store.set_transform(transform)

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while running (S15)."""
        if self._stopped:
            raise StoppedError(f"the informer of {self.gvr} has stopped: no index can be added")
        self._store.add_indexers(indexers)

    # -- life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to list and watch, on threads of its own. Idempotent."""
        with self._lock:
            if self._stopped:
                raise StoppedError(
                    f"the informer of {self.gvr} has stopped: ask a running factory for a new one"
                )
            if self._started:
                return
            if not self._reflectors:
                self._reflectors = self._make_reflectors()
            for reflector in self._reflectors:
                reflector.start()
            self._started = True  # last: after an interrupt the next start goes on from there

    def run(self, stop: threading.Event) -> None:
        """Start, and return when ``stop`` is set or the informer is stopped otherwise."""
        self.start()
        try:
            # Two ends to wait for, and the caller's event cannot be woken by the other.
            while not (stop.wait(0.1) or self._stopped):
                pass
        finally:
            self.stop()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop for good, and wait for what runs; reads go on working (S11, S19).

        False if a callback still runs at the timeout. From a thread that runs this
        informer's code nothing is waited for.
        """
        self.signal_stop()
        return not self.wait_stopped(timeout)

    def signal_stop(self) -> None:
        """Have everything stop, and wait for nothing. Again is fine, also after half of it."""
        with self._lock:
            self._stopped = True
            reflectors = self._reflectors
        self._changed.ring()
        for reflector in reflectors:
            reflector.stop()
        self._dispatcher.stop()
        if self._owns_shared:
            self._shared.close()

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After `signal_stop`: the names of what still runs when the time is over."""
        if runs_for(self._shared.owner):
            return self._dispatcher.stuck()
        until = None if timeout is None else time.monotonic() + timeout
        left = [
            f"reflector {reflector.scope}"
            for reflector in self._reflectors
            if not reflector.join(_left(until))
        ]
        left += self._dispatcher.wait_stopped(_left(until))
        return left + self._shared.wait_closed(_left(until)) if self._owns_shared else left

    def is_started(self) -> bool:
        """`start` was called."""
        return self._started

    def is_stopped(self) -> bool:
        """It has been stopped, for good."""
        return self._stopped

    def has_synced(self) -> bool:
        """The first whole state of every namespace is held; never false again."""
        return self._synced

    def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when it stops before."""
        self._changed.wait_for(lambda: self._synced or self._stopped, timeout)
        return self._synced

    def last_sync_resource_version(self) -> str:
        """The newest version seen; of several namespaces the lowest, "" until all are synced."""
        return self.status().resource_version

    def status(self) -> InformerStatus:
        """How it stands, and why."""
        reflectors = self._reflectors
        if not reflectors:
            state = InformerState.STOPPED if self._stopped else InformerState.WAITING
            return InformerStatus(state=state, objects=len(self._store))
        return merged([each.status() for each in reflectors], len(self._store))

    @property
    def controller(self) -> Controller:
        """client-go's view of the informer as a controller."""
        return Controller(self)

    # -- waiting for the cluster ---------------------------------------------------------

    def wait_for(
        self,
        condition: Condition,
        *,
        name: str,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Wait until an object meets a condition, and return it as it then is.

        ``condition`` is kubectl's ``--for`` text (``"condition=Ready"``,
        ``"jsonpath={.status.phase}=Running"``, ``"create"``, ``"delete"``), where a path may
        also have ``!=``, ``<``, ``<=``, ``>`` or ``>=`` behind it, or a function of the object.
        The object need not exist yet. After ``"delete"`` its last state is returned, ``{}`` if
        there never was one. WaitTimeoutError holds the last state.
        """
        return wait_for(self, condition, name=name, namespace=namespace, timeout=timeout)

    def wait_for_version(self, resource_version: str, timeout: float | None = None) -> None:
        """Wait until the cache has seen a version: the one that a write of yours returned."""
        until = None if timeout is None else time.monotonic() + timeout
        self._changed.wait_for(
            lambda: self._stopped or self._has_seen(resource_version), _left(until)
        )
        if self._has_seen(resource_version):
            return
        if self._stopped:
            raise StoppedError(f"the informer of {self.gvr} stopped while it was waited for")
        raise WaitTimeoutError(
            f"the cache of {self.gvr} has not seen version {resource_version} in {timeout} s: "
            f"it is at {self.last_sync_resource_version() or 'none yet'}. "
            f"{self.status().reason}".rstrip(),
            None,
        )

    def __repr__(self) -> str:
        return f"<SharedIndexInformer of {self.gvr}, {len(self._store)} objects>"

    # -- inside --------------------------------------------------------------------------

    def _make_reflectors(self) -> tuple[Reflector, ...]:
        options = self.options
        asked = ListOptions(
            options.label_selector or "",
            options.field_selector or "",
            options.page_size or DEFAULT_PAGE_SIZE,
        )
        if self._tweak is not None:
            self._tweak(asked)
        return tuple(
            Reflector(
                Scope(
                    gvr=self.gvr,
                    namespace=namespace,
                    label_selector=asked.label_selector,
                    field_selector=asked.field_selector,
                    page_size=asked.limit,
                    metadata_only=bool(options.metadata_only),
                    watch_list=options.watch_list is not False,
                ),
                self._shared.source.conversation(),
                self._store,
                owner=self._shared.owner,
                crds=self._shared.crds,
                on_status=self._look_at_status,
                on_failure=self._tell_failure,
                metrics=self._shared.metrics,
            )
            for namespace in options.scopes
        )

    def _pause(self) -> None:
        """Under the store's lock: several changes were published, and now there are no more."""
        self._dispatcher.pause()

    def _publish(self, changes: Changes) -> None:
        """Under the store's lock: what changed goes to the handlers' queues."""
        self._dispatcher.publish(changes)

    def _look_at_status(self) -> None:
        """On a reflector's thread, after each step that changed how it stands."""
        synced = not self._synced and all(each.synced for each in self._reflectors)
        with self._lock:
            # Never back to false: another reflector's thread may have seen all synced meanwhile.
            self._synced = self._synced or synced
        self._changed.ring()
        if synced:  # after the informer itself: no handler is synced before it
            self._dispatcher.synced()

    def _tell_failure(self, error: Exception) -> None:
        if self._on_watch_error is not None:
            self._on_watch_error(error)

    def _after_fork(self) -> None:
        """In a child: a stopped informer with fresh locks, that answers from the fork's state."""
        self._lock = threading.RLock()
        self._changed = Bell()
        self._stopped = True
        self._dispatcher.after_fork()
        self._shared.after_fork()

    def _check_not_started(self, what: str) -> None:
        if self._stopped:
            raise StoppedError(f"{what}: the informer of {self.gvr} has stopped")
        if self._started:
            raise RuntimeError(f"{what}: the informer of {self.gvr} is started; call it before")

    def _has_seen(self, version: str) -> bool:
        seen = self.last_sync_resource_version()
        return bool(seen) and not versions.older(seen, version)


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


_informers: weakref.WeakSet[SharedIndexInformer] = weakref.WeakSet()


def _stop_in_child() -> None:
    for informer in list(_informers):
        informer._after_fork()  # noqa: SLF001 - the module's own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stop_in_child)
