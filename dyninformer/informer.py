"""One resource's informer: reflectors, store and delivery with one lifetime."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dyninformer.conditions import Condition
from dyninformer.controller import Controller
from dyninformer.delivery.dispatch import Dispatcher
from dyninformer.delivery.handlers import (
    Filter,
    Handler,
    OnEvent,
    OnObject,
    OnUpdate,
    Paths,
    Registration,
)
from dyninformer.delivery.stream import EventStream
from dyninformer.errors import StoppedError
from dyninformer.indexer import Indexer, Store
from dyninformer.lister import GenericLister
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import IndexFunction, ResourceOptions, Transform
from dyninformer.reflectors import Reflectors, Tweak, WatchErrorHandler
from dyninformer.resource import GroupVersionResource
from dyninformer.shared import Shared
from dyninformer.store import store as room
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Deltas
from dyninformer.threads import Deadline, runs_for
from dyninformer.types import Names, Object
from dyninformer.waiting import Written, wait_for, wait_for_version
from dyninformer.watching.status import InformerStatus

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient


class SharedIndexInformer:
    """Keeps one collection in memory, and tells handlers what changes.

    A factory makes it; by itself it is made of a client, the resource and its options.
    Every method may be called from any thread.

    >>> from dyninformer import GroupVersionResource, SharedIndexInformer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     namespaces = SharedIndexInformer(
    ...         server.client(), GroupVersionResource("", "v1", "namespaces"))
    ...     seen = []
    ...     handler = namespaces.add_event_handler(
    ...         on_add=lambda obj: seen.append(obj["metadata"]["name"]))
    ...     namespaces.start()
    ...     print(handler.wait_for_sync(30), len(seen), namespaces.stop(5))
    True 4 True
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
        self.options = (options or ResourceOptions()).settled()
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
        )
        self._dispatcher = Dispatcher(
            self._store,
            owner=self._shared.owner,
            timers=self._shared.timers,
            metrics=self._shared.metrics,
            resync=self.options.resync or 0.0,
        )
        self._reflectors = Reflectors(
            gvr,
            self.options,
            self._store,
            self._shared,
            tweak=tweak_list_options,
            on_synced=self._dispatcher.synced,
        )
        self.lister = GenericLister(self._store, self.has_synced)
        """Reads of the cache."""
        self.store = Store(self._store)
        """The cache by key, in client-go's words."""
        self.indexer = Indexer(self._store, self.add_indexers)
        """The cache by key and by index, in client-go's words."""

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
            Handler(
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
        )

    def add_event_handler_with_resync_period(self, handler: object, period: float) -> Registration:
        """`add_event_handler` with ``resync``, in client-go's words."""
        return self._dispatcher.add(Handler(handler, resync=period))

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
        self._reflectors.set_watch_error_handler(handler)

    def set_transform(self, transform: Transform | None) -> None:
        """Transform each object before it is held (S17); before start."""
        self._reflectors.check_not_started("set_transform")
        self._store.set_transform(transform)

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while running (S15)."""
        if self.is_stopped():
            raise StoppedError(f"the informer of {self.gvr} has stopped: no index can be added")
        self._store.add_indexers(indexers)

    # -- life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to list and watch, on threads of its own. Idempotent."""
        self._reflectors.start()

    def run(self, stop: threading.Event) -> None:
        """Start, and return when ``stop`` is set or the informer is stopped otherwise."""
        self.start()
        try:
            # Two ends to wait for, and the caller's event cannot be woken by the other.
            while not (stop.wait(0.1) or self.is_stopped()):
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
        self._reflectors.signal_stop()
        self._dispatcher.stop()
        if self._owns_shared:
            self._shared.close()

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After `signal_stop`: the names of what still runs when the time is over."""
        if runs_for(self._shared.owner):
            return self._dispatcher.stuck()
        deadline = Deadline(timeout)
        left = self._reflectors.wait_stopped(deadline.left)
        left += self._dispatcher.wait_stopped(deadline.left)
        return left + self._shared.wait_closed(deadline.left) if self._owns_shared else left

    def is_started(self) -> bool:
        """`start` was called."""
        return self._reflectors.started

    def is_stopped(self) -> bool:
        """It has been stopped, for good."""
        return self._reflectors.stopped

    def has_synced(self) -> bool:
        """The first whole state of every namespace is held; never false again."""
        return self._reflectors.synced

    def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when it stops before."""
        reflectors = self._reflectors
        reflectors.wait_until(lambda: reflectors.synced or reflectors.stopped, timeout)
        return reflectors.synced

    def last_sync_resource_version(self) -> str:
        """The newest version seen; of several namespaces the lowest, "" until all are synced."""
        return self.status().resource_version

    def status(self) -> InformerStatus:
        """How it stands, and why."""
        return self._reflectors.status()

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
        there never was one; another object of the same name, with another uid, is a deletion.
        WaitTimeoutError holds the last state.
        """
        return wait_for(self, condition, name=name, namespace=namespace, timeout=timeout)

    def wait_for_version(
        self, written: Written, timeout: float | None = None, *, namespace: str | None = None
    ) -> None:
        """Wait until the cache has seen a write of yours.

        ``written`` is what it returned, a dict or an object of the official client; or its
        resourceVersion. Of several namespaces each has a stream of its own: the one that the
        object is in decides, or ``namespace``; a version alone waits for all of them.
        """
        wait_for_version(self, self._reflectors, written, timeout, namespace)

    def __repr__(self) -> str:
        return f"<SharedIndexInformer of {self.gvr}, {len(self._store)} objects>"

    # -- inside --------------------------------------------------------------------------

    def _publish(self, changes: Deltas) -> None:
        """Under the store's lock: what changed goes to the handlers' queues."""
        self._dispatcher.publish(changes)
