"""The reflectors of one informer: one per namespace, with one beginning and one end (S2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from dyninformer.errors import StoppedError
from dyninformer.options import ALL_NAMESPACES, DEFAULT_PAGE_SIZE, ListOptions, ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.shared import Shared
from dyninformer.store.store import Store
from dyninformer.threads import Bell, Deadline, in_forked_child
from dyninformer.types import Names
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.states import Scope
from dyninformer.watching.status import InformerState, InformerStatus, merged

Tweak: TypeAlias = Callable[[ListOptions], None]
WatchErrorHandler: TypeAlias = Callable[[Exception], object]


class Reflectors:
    """Keep a store equal to what one informer watches. Every method: from any thread.

    They are made when they start, since that is when ``tweak`` runs. ``on_synced`` is called
    on a reflector's thread, once all hold a whole state.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        options: ResourceOptions,
        store: Store,
        shared: Shared,
        *,
        tweak: Tweak | None,
        on_synced: Callable[[], None],
    ) -> None:
        self._gvr = gvr
        self._options = options
        self._store = store
        self._shared = shared
        self._tweak = tweak
        self._on_synced = on_synced
        self._on_watch_error: WatchErrorHandler | None = None
        self._changed = Bell()  # rings when anything below, or a reflector's status, has changed
        self._lock = threading.RLock()  # guards changes of _reflectors, started and stopped
        self._reflectors: tuple[Reflector, ...] = ()
        self.started = False
        """`start` was called."""
        self.stopped = False
        """For good."""
        self.synced = False
        """All hold a whole state; never false again."""
        in_forked_child(self, "_lock", "_changed", stopped=True)

    def start(self) -> None:
        """Begin to list and watch, on threads of their own. Idempotent."""
        with self._lock:
            if self.stopped:
                raise StoppedError(
                    f"the informer of {self._gvr} has stopped: ask a running factory for a new one"
                )
            if self.started:
                return
            if not self._reflectors:
                self._shared.metrics.gauge("synced", self._gvr, 0)
                self._reflectors = self._make()
            for each in self._reflectors:
                each.start()
            self.started = True  # last: after an interrupt the next start goes on from there

    def signal_stop(self) -> None:
        """Have all stop, and wait for nothing. Again is fine, also after half of it."""
        with self._lock:
            self.stopped = True
            reflectors = self._reflectors
        self._changed.ring()
        for each in reflectors:
            each.stop()

    def wait_stopped(self, timeout: float | None) -> Names:
        """After `signal_stop`: the names of those that still run when the time is over."""
        deadline = Deadline(timeout)
        return [
            f"reflector {each.scope}" for each in self._reflectors if not each.join(deadline.left)
        ]

    def wait_until(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait for what depends on how they stand; whether it is so then."""
        return self._changed.wait_for(condition, timeout)

    def last_version(self, namespace: str | None = None) -> str:
        """The newest version that was seen of a namespace, "" before its first state is held.

        Without one, of all: the lowest, "" until all are synced. ValueError if the namespace is
        none that is watched.
        """
        scopes = self._options.scopes
        if namespace is None or scopes == ALL_NAMESPACES:
            return self.status().resource_version
        if namespace not in scopes:
            raise ValueError(
                f"the informer of {self._gvr} does not watch namespace {namespace!r}, but "
                f"{', '.join(scopes)}: nothing of it will be seen"
            )
        found = [each for each in self._reflectors if each.scope.namespace == namespace]
        return found[0].last_version if found and found[0].synced else ""

    def status(self) -> InformerStatus:
        """How they stand together, and why."""
        reflectors = self._reflectors
        if not reflectors:
            state = InformerState.STOPPED if self.stopped else InformerState.WAITING
            return InformerStatus(state=state, objects=len(self._store))
        return merged([each.status() for each in reflectors], len(self._store))

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Have ``handler(error)`` called with each failure; before start."""
        with self._lock:
            self.check_not_started("set_watch_error_handler")
            self._on_watch_error = handler

    def check_not_started(self, what: str) -> None:
        """RuntimeError if ``what`` comes too late."""
        if self.stopped:
            raise StoppedError(f"{what}: the informer of {self._gvr} has stopped")
        if self.started:
            raise RuntimeError(f"{what}: the informer of {self._gvr} is started; call it before")

    # -- inside --------------------------------------------------------------------------

    def _make(self) -> tuple[Reflector, ...]:
        options = self._options
        asked = ListOptions(
            options.label_selector or "",
            options.field_selector or "",
            options.page_size or DEFAULT_PAGE_SIZE,
        )
        if self._tweak is not None:
            self._tweak(asked)
        return tuple(self._reflector(namespace, asked) for namespace in options.scopes)

    def _reflector(self, namespace: str, asked: ListOptions) -> Reflector:
        return Reflector(
            Scope(
                gvr=self._gvr,
                namespace=namespace,
                label_selector=asked.label_selector,
                field_selector=asked.field_selector,
                page_size=asked.limit,
                metadata_only=bool(self._options.metadata_only),
                watch_list=self._options.watch_list is not False,
            ),
            self._shared.source.conversation(),
            self._store,
            owner=self._shared.owner,
            crds=self._shared.crds,
            on_status=self._look_at_status,
            on_failure=self._tell_failure,
            metrics=self._shared.metrics,
        )

    def _look_at_status(self) -> None:
        """On a reflector's thread, after each step that changed how it stands."""
        synced = not self.synced and all(each.synced for each in self._reflectors)
        if synced:
            self.synced = True
        self._changed.ring()
        if synced:  # after the informer itself: no handler is synced before it
            self._on_synced()
            self._shared.metrics.gauge("synced", self._gvr, 1)

    def _tell_failure(self, error: Exception) -> None:
        if self._on_watch_error is not None:
            self._on_watch_error(error)
