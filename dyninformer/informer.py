"""One resource's informer: reflectors, store and delivery with one lifetime."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, Unpack

from dyninformer.checked import check_function, checked, wrong
from dyninformer.delivery.dispatch import Backlogs, Dispatcher, Timer, Timers, jittered
from dyninformer.delivery.handlers import Handler, HandlerOptions, Registration
from dyninformer.delivery.stream import ChangedKeys, EventStream
from dyninformer.discovery import Discovery
from dyninformer.discovery.known import Known
from dyninformer.errors import AuditError, NotKeptError, StoppedError
from dyninformer.frames.selection import LiveOptions
from dyninformer.gauges import InformerGauges, Statuses
from dyninformer.indexer import Indexer, Store
from dyninformer.lister import GenericLister, KeyRules
from dyninformer.metrics.told import NO_METRICS, Metrics, begin, contained, end
from dyninformer.moments.version import Versions, versions_of
from dyninformer.options import (
    ALL_NAMESPACES,
    DEFAULT_PAGE_SIZE,
    IndexFunction,
    ListOptions,
    ResourceOptions,
    Transform,
    check_known,
    check_transform,
    checked_indexers,
    spelled_out,
)
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Deltas
from dyninformer.store.history import VersionHistory
from dyninformer.store.snapshot import ByNamespace, Columns, Selector, View
from dyninformer.store.store import Store as Cache
from dyninformer.threads import (
    Bell,
    Deadline,
    Pause,
    ReentrantLock,
    Waiting,
    in_forked_child,
    runs_for,
    waited,
)
from dyninformer.types import Key, Names, Object, Objects
from dyninformer.waiting import Condition, Written, until_fresh, until_met, until_seen
from dyninformer.watching.audit import AuditReport, ScopeAudit
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.client import Channel, Source
from dyninformer.watching.crds import CrdWatch
from dyninformer.watching.prober import KINDS, Prober
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.states import Scope
from dyninformer.watching.status import InformerState, InformerStatus, merged
from dyninformer.work import RateLimited, WorkQueue
from dyninformer.work.queue import EventKeys
from dyninformer.writing import Write, Writes, until_written

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    from dyninformer.display.live.plot import LivePlot
    from dyninformer.display.live.table import LiveTable
    from dyninformer.display.live.widget import LiveWidget
    from dyninformer.moments.snapshot import Snapshot

Tweak: TypeAlias = Callable[[ListOptions], None]
WatchErrorHandler: TypeAlias = Callable[[Exception], object]

_logger = logging.getLogger(__name__)
_LIVE: Final = "dyninformer.display.live"  # it stands above; who shows nothing does not import it
_LONGEST_AUDIT: Final = 600.0  # seconds, of one that was not asked for
_MOST_ASKING: Final = 32  # at a time; each takes a second or two
_GRACE: Final = 0.5  # seconds that a connect under way is waited for at the end


class SharedIndexInformer(Writes[Object], Shown):
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
        runtime: Runtime | None = None,
    ) -> None:
        self.gvr = checked("gvr", gvr, GroupVersionResource, "a GroupVersionResource")
        given = ResourceOptions() if options is None else options
        self.options = checked("options", given, ResourceOptions, "ResourceOptions(...)").settled()
        self._owns_runtime = runtime is None
        self._runtime = runtime or Runtime.connect(client, metrics=metrics)
        gauges = InformerGauges()
        metrics = begin(self._runtime.metrics, gvr, gauges.read)
        self._store = Cache(
            gvr,
            codec=Codec(compress=self.options.compress is not False),
            indexers=self.options.indexers,
            transform=self.options.transform,
            metadata_only=bool(self.options.metadata_only),
            shard=self.options.shard,
            metrics=metrics,
        )
        self._store.repacking.call_later = self._runtime.timers.call_later
        self._dispatcher = Dispatcher(
            self._store,
            owner=self._runtime.owner,
            timers=self._runtime.timers,
            metrics=metrics,
            resync=self.options.resync or 0.0,
            max_backlog=self.options.max_backlog or 0,
        )
        kept = self.options.versions_kept
        self._history = VersionHistory(kept, self.options.scopes) if kept else None
        publish = self._dispatcher.publish
        # Under the store's lock.
        self._store.on_changes = (
            publish if self._history is None else _noting(self._history, publish)
        )
        self._reflectors = Reflectors(
            gvr,
            self.options,
            self._store,
            self._runtime,
            metrics=metrics,
            gauges=gauges,
            tweak=tweak_list_options,
            on_synced=self._dispatcher.synced,
        )
        discovery = self._runtime.discovery
        self.key_rules = KeyRules(
            self._store,
            self.options.scopes,
            lambda: discovery.scope(gvr),
            self._runtime.owner,
        )
        self.use = Use()
        """Held by whatever a user can hold of this informer. Not for import."""
        # None of these holds the informer: it is gone as soon as its user lets go of it, without
        # a collection.
        reflectors = self._reflectors
        self.lister = GenericLister(
            self._store,
            lambda: reflectors.synced,
            self.key_rules,
            Known.by(self._runtime.discovery, gvr),
            reflectors.status,
            keeps=self.use,
        )
        """Reads of the cache."""
        self.store = Store(self._store, self.use)
        """The cache by key, in client-go's words."""
        self.indexer = Indexer(
            self._store,
            partial(_add_indexers, self._store, reflectors),
            self.lister.check_index,
            self.use,
        )
        """The cache by key and by index, in client-go's words."""

    # -- handlers ------------------------------------------------------------------------

    @spelled_out(HandlerOptions)
    def add_event_handler(
        self, handler: object = None, **options: Unpack[HandlerOptions]
    ) -> Registration:
        """Have callbacks called with each object that is held, then with each change (S8, S9).

        Give an object with any of the four methods, or functions: ``on_add(obj)``,
        ``on_update(old, new)``, ``on_delete(obj)``, ``on_event(event)``. ``filter(obj)``
        chooses objects. ``when_changed`` is a path, or several: updates are heard only where
        one of their values changes. ``resync`` is the period, in seconds, at which all objects
        are told again. ``coalesce`` merges the events of one object that are not yet told;
        ``max_backlog`` does so only once more than so many wait, until the handler has caught up.
        The same ``name`` again replaces the handler.
        """
        return self._add(Handler(handler, **options))

    def add_event_handler_with_resync_period(self, handler: object, period: float) -> Registration:
        """`add_event_handler` with ``resync``, in client-go's words."""
        return self._add(Handler(handler, resync=period))

    def _add(self, handler: Handler) -> Registration:
        registration = self._dispatcher.add(handler)
        registration.keeps = self.use
        return registration

    def remove_event_handler(self, registration: Registration) -> None:
        """Take a handler away; again is fine. No callback begins after this returns.

        ValueError if it was added to another informer.
        """
        given = "what add_event_handler returned"
        found = checked("a registration", registration, Registration, given)
        found.remove_from(self._dispatcher, self.gvr)

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        max_backlog: int | None = None,
        initial: bool = True,
    ) -> EventStream:
        """A stream of events to iterate over in this thread: what is held, then what changes.

        ``coalesce`` and ``max_backlog`` are those of `add_event_handler`.
        """
        stream = self._dispatcher.events(
            idle_timeout=idle_timeout,
            coalesce=coalesce,
            max_backlog=max_backlog,
            initial=initial,
        )
        stream.keeps = self.use
        return stream

    def changed_keys(self, wake: Callable[[], object]) -> ChangedKeys:
        """The keys of what changes from now on, each once however often. Not for import."""
        make = partial(ChangedKeys, wake=wake)
        return self._dispatcher.subscribe(make, coalesce=True, max_backlog=None, initial=False)

    def held(self, keys: Iterable[Key] | None = None) -> View:
        """What is held now, of these keys or of all. Not for import."""
        if keys is None:
            return self._store.view()
        found: ByNamespace = {}
        for key in keys:
            entry = self._store.get(key)
            if entry is not None:
                found.setdefault(key.rpartition("/")[0], {})[key] = entry
        return View(self.gvr, self._store.codec, found)

    def work_queue(
        self,
        keys: EventKeys | None = None,
        *,
        workers: int = 1,
        retry: RateLimited | None = None,
        name: str | None = None,
    ) -> WorkQueue:
        """A queue of the keys that events bring, to work on and to try again: see `WorkQueue`.

        ``keys(event)`` gives the keys of an event; without it, it is the key of its object.
        """
        return WorkQueue({self: keys}, workers=workers, retry=retry, name=name)

    @spelled_out(LiveOptions)
    def live(
        self, columns: Columns | None = None, *, rows: int = 50, **options: Unpack[LiveOptions]
    ) -> LiveTable:
        """A table that follows the cluster in its place in a notebook: see `LiveTable`.

        ``columns`` and the selectors are those of `GenericLister.select`. With ``by``, a path or
        several, it counts the objects by what these find. ``sort_by`` is a column, the greatest
        first with a minus; of more than ``rows`` the first are shown. A table of the same ``name``
        takes the place of the one before.
        """
        check_known("a live table", options, ["rows", *LiveOptions.__annotations__])
        made: LiveTable = import_module(_LIVE + ".table").live_table(self, columns, rows, options)
        return made

    @spelled_out(LiveOptions)
    def live_widget(
        self, columns: Columns | None = None, *, rows: int = 15, **options: Unpack[LiveOptions]
    ) -> LiveWidget:
        """The same to scroll, sort and filter, however many objects there are: see `LiveWidget`.

        So many ``rows`` are seen at a time. Needs the extra ``widget``.
        """
        check_known("a live widget", options, ["rows", *LiveOptions.__annotations__])
        made: LiveWidget = import_module(_LIVE + ".widget").live_widget(
            self, columns, rows, options
        )
        return made

    def live_plot(
        self,
        by: str | Sequence[str],
        *,
        selector: Selector | None = None,
        field_selector: Selector | None = None,
        name: str | None = None,
    ) -> LivePlot:
        """How many objects there are by what paths find in them, drawn over time: see `LivePlot`.

        Needs the extra ``plot``.
        """
        made: LivePlot = import_module(_LIVE + ".plot").live_plot(
            self, by, selector=selector, field_selector=field_selector, name=name
        )
        return made

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Have ``handler(error)`` called when a list or watch fails. Only before `start`."""
        check_function("a watch error handler", handler, "a function of an error")
        self._reflectors.set_watch_error_handler(handler)

    def set_transform(self, transform: Transform | None) -> None:
        """Transform each object before it is held (S17). Only before `start`."""
        check_transform(transform)
        self._reflectors.check_not_started("set_transform")
        self._store.set_transform(transform)

    def history(self, name: str, namespace: str | None = None) -> Versions:
        """The versions of an object that are kept, oldest first, the present one last.

        Also of one that was deleted. ``name`` may be ``namespace/name``. It is empty for what was
        never there, or is gone for too long. NotKeptError unless ``history=`` was asked for.
        """
        key = self.key_rules.checked_key(name, namespace)
        if self._history is None:
            raise NotKeptError(
                f"the informer of {self.gvr} keeps no history: ask for it with history=20"
            )
        with self._store.lock:
            kept = self._history.of(key, self._store.get(key))
        if not kept:
            self.key_rules.check(key, "history('namespace/{name}')")
        return versions_of(self.gvr, key, self._store.codec, kept)

    def snapshot(self) -> Snapshot:
        """What is held at this moment, to be read when it has changed: `GenericLister.snapshot`."""
        return self.lister.snapshot()

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while running (S15)."""
        _add_indexers(self._store, self._reflectors, indexers)

    # -- life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to list and watch, on threads of its own. Idempotent."""
        self._reflectors.start()

    def run(self, stop: threading.Event) -> None:
        """Start, and return when ``stop`` is set or the informer is stopped otherwise."""
        if not callable(getattr(stop, "wait", None)):
            raise wrong("stop", stop, "a threading.Event")
        self.start()
        try:
            # Two ends to wait for, and the caller's event cannot be woken by the other.
            while not (stop.wait(0.1) or self.is_stopped()):
                pass
        finally:
            self.stop()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop for good, and wait for what runs; reads go on working (S11, S19).

        False if a callback still runs at the timeout. A call from a thread that runs this
        informer's code waits for nothing.
        """
        self.signal_stop()
        return not self.wait_stopped(timeout)

    def signal_stop(self) -> None:
        """Have everything stop, and wait for nothing. Idempotent, also after an interrupt."""
        self._reflectors.signal_stop()
        self._dispatcher.stop()
        end(self._reflectors.metrics)
        if self._owns_runtime:
            self._runtime.close()

    def let_go(self) -> None:
        """Tell that all that is held is gone, since nobody watches it any more, and end with that.

        What was queued before is told first. After the reflectors have ended. Not for import.
        """
        for scope in self.options.scopes:
            self._store.clear(scope)
        self._dispatcher.finish()

    def ending(self) -> Ending:
        """What stops it together with what its factory shares. Not for import."""
        return Ending(self._reflectors, self._dispatcher, self._runtime, self._store, self._history)

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After `signal_stop`: the names of what still runs when the time is over."""
        if runs_for(self._runtime.owner):
            return self._dispatcher.stuck()
        deadline = Deadline(timeout)
        left = self._reflectors.wait_stopped(deadline.left)
        left += self._dispatcher.wait_stopped(deadline.left)
        return left + self._runtime.wait_closed(deadline.left) if self._owns_runtime else left

    def is_started(self) -> bool:
        """Whether `start` was called."""
        return self._reflectors.started

    def is_stopped(self) -> bool:
        """Whether it has been stopped, which is for good."""
        return self._reflectors.stopped

    def has_synced(self) -> bool:
        """Whether the first whole state of every namespace is held; never false again."""
        return self._reflectors.synced

    def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when it stops before."""
        return waited(self.until_synced(timeout))

    def until_synced(
        self, timeout: float | None, *, unless: Callable[[int], bool] | None = None
    ) -> Waiting[bool]:
        """`wait_synced`, for a thread or a loop to carry out. Not for import.

        It is over, too, as soon as ``unless`` is true of the status's ``lasting``.
        """
        reflectors = self._reflectors

        def is_over() -> bool:
            if reflectors.synced or reflectors.stopped:
                return True
            return unless is not None and unless(reflectors.lasting)

        yield reflectors.pause(is_over, Deadline(timeout))
        return reflectors.synced

    @property
    def lasting(self) -> int:
        """`InformerStatus.lasting`. Not for import."""
        return self._reflectors.lasting

    def last_sync_resource_version(self) -> str:
        """The newest version seen; of several namespaces the lowest, "" until all are synced."""
        return self.status().resource_version

    def status(self) -> InformerStatus:
        """Its state, and the reason for it."""
        return replace(self._reflectors.status(), backlog=self._dispatcher.longest_backlog)

    @property
    def backlogs(self) -> Backlogs:
        """How many events wait for each handler and stream, by name. Not for import."""
        return self._dispatcher.backlog

    @property
    def runtime(self) -> Runtime:
        """What it shares with the other informers of its factory. Not for import."""
        return self._runtime

    @property
    def metrics(self) -> Metrics:
        """What is told of it; it ends with it. Not for import."""
        return self._reflectors.metrics

    @property
    def dispatcher(self) -> Dispatcher:
        """What tells its handlers and streams. Not for import."""
        return self._dispatcher

    @property
    def reflectors(self) -> Reflectors:
        """What keeps its cache as the server has it. Not for import."""
        return self._reflectors

    @property
    def controller(self) -> Controller:
        """client-go's view of the informer as a controller."""
        return Controller(self)

    # -- writes --------------------------------------------------------------------------

    def _key_of(self, name: str, namespace: str | None) -> Key:
        return self.key_rules.checked_key(name, namespace)

    def _write(self, asked: Write) -> Object:
        return waited(until_written(self, asked))

    # -- looking again ---------------------------------------------------------------------

    def audit(self, timeout: float | None = None) -> AuditReport:
        """Compare what is held with what the server has, and put right what differs (S36).

        A watch may leave out a change without any error, if a server or what is before it has
        lost one. This lists the collection (metadata only, unless there is a transform, which
        looks at all of it), gives what differs time to be told, and then reads those objects
        again: what is still different is told to the handlers as the change that it is, logged
        and counted. ``audit=3600`` in `ResourceOptions` does it every hour.

        AuditError says why it cannot be compared: no right to list it, not synced, not there.
        """
        return self._reflectors.audit(Deadline(timeout))

    def related(self, index: str, path: str, value: str) -> Objects:
        """What an index of this package's own has; it is made if it is not there. Not for import.

        Also where the informer has stopped, since that is a read (S19).
        """
        if index not in self._store.entries.published:
            self._store.add_indexers({index: path})
        return self._store.codec.decode_all(
            [entry for _, entry in self._store.by_index(index, value)]
        )

    def check_watched(self, namespace: str) -> None:
        """ValueError if nothing of this namespace is watched; "" is fine. Not for import."""
        if namespace:
            self._reflectors.check_watched(namespace)

    @property
    def selectors(self) -> tuple[str, str]:
        """The label selector and the field selector that are asked with. Not for import."""
        return self._reflectors.selectors

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

        ``name`` may be ``namespace/name``. Where exactly one namespace is watched it needs none;
        else the bare name of what is namespaced is a ValueError, and so is a namespace that is
        not watched.
        """
        return waited(self.until_met(condition, name, namespace, timeout))

    def until_met(
        self, condition: Condition, name: str, namespace: str | None, timeout: float | None
    ) -> Waiting[Object]:
        """`wait_for`, for a thread or a loop to carry out. Not for import."""
        key = self.key_rules.checked_key(name, namespace)
        if "/" in key:
            self._reflectors.check_watched(key.partition("/")[0])
        return until_met(self, self._dispatcher.watch(key), condition, timeout)

    def wait_for_version(
        self, written: Written, timeout: float | None = None, *, namespace: str | None = None
    ) -> None:
        """Wait until the cache has seen a write of your own.

        ``written`` is what it returned, a dict or an object of the official client; or its
        resourceVersion. Of several namespaces each has a stream of its own: the one that the
        object is in decides, or ``namespace``; a version alone waits for all of them.
        """
        waited(self.until_seen(written, timeout, namespace))

    def until_seen(
        self, written: Written, timeout: float | None, namespace: str | None
    ) -> Waiting[None]:
        """`wait_for_version`, for a thread or a loop to carry out. Not for import."""
        return until_seen(self, self._reflectors, written, timeout, namespace)

    def wait_fresh(self, max_age: float = 0, timeout: float | None = None) -> None:
        """Wait until the cache is known to be as the server had it ``max_age`` s ago, or since.

        Both count from the call: with 0 the cache then has all that was written before it.
        What the watch has brought 2 s after that moment, or later, is enough; else the server is
        asked, by a list of one object and a watch of a second or so. StaleCacheError says since
        when nothing is known, and why. ``status().fresh_as_of`` says without asking, and so less
        certainly, since when the cache is as the server has it.
        """
        waited(self.until_fresh(max_age, timeout))

    def until_fresh(self, max_age: float, timeout: float | None) -> Waiting[None]:
        """`wait_fresh`, for a thread or a loop to carry out. Not for import."""
        return until_fresh([self], max_age, timeout)

    def __repr__(self) -> str:
        held = f"{counted(len(self._store), 'object')}, {self.status().standing}"
        return f"<SharedIndexInformer of {self.gvr}, {held}>"


class Use:
    """That an informer is in use: everything that a user can hold of it holds this.

    Nothing that works for the informer does, no thread and no queue. Not for import.
    """

    __slots__ = ("__weakref__",)


def _add_indexers(
    store: Cache, reflectors: Reflectors, indexers: Mapping[str, IndexFunction]
) -> None:
    if reflectors.stopped:
        raise StoppedError(f"the informer of {store.gvr} has stopped: no index can be added")
    store.add_indexers(checked_indexers(indexers))


class Ending:
    """How to end an informer that is its factory's only one, without holding it. Not for import."""

    def __init__(
        self,
        reflectors: Reflectors,
        dispatcher: Dispatcher,
        runtime: Runtime,
        store: Cache,
        history: VersionHistory | None,
    ) -> None:
        self._reflectors = reflectors
        self._dispatcher = dispatcher
        self._runtime = runtime
        self._store = store
        self._history = history

    def signal(self) -> None:
        """Have everything stop, and wait for nothing. Idempotent."""
        self._reflectors.signal_stop()
        self._dispatcher.stop()
        end(self._reflectors.metrics)
        self._runtime.close()

    def let_go(self) -> None:
        """Where nobody can read it any more: wait until it is not written, and free what it holds.

        Its parts hold each other, so that all of it would stay until the garbage collector looks
        at what is old, which may be never: it counts objects, and these are bytes.
        """
        self._reflectors.wait_stopped(None)
        if self._history is not None:
            with self._store.lock:
                self._history.forget()
        self._store.let_go()


def _noting(history: VersionHistory, publish: Callable[[Deltas], None]) -> Callable[[Deltas], None]:
    """Have changes noted, and then told, whatever becomes of the first."""

    def tell(deltas: Deltas) -> None:
        try:
            history.note(deltas)
        except BaseException:  # noqa: BLE001 - no memory, say: that is no reason to keep less
            history.forget()
        publish(deltas)

    return tell


class Controller:
    """An informer as client-go's Controller.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("v1/pods", client=server.client()) as pods:
    ...     pods.informer.controller.has_synced()
    True
    """

    def __init__(self, informer: SharedIndexInformer) -> None:
        self._informer = informer

    def run(self, stop: threading.Event) -> None:
        """`SharedIndexInformer.run`."""
        self._informer.run(stop)

    def has_synced(self) -> bool:
        """`SharedIndexInformer.has_synced`."""
        return self._informer.has_synced()

    def last_sync_resource_version(self) -> str:
        """`SharedIndexInformer.last_sync_resource_version`."""
        return self._informer.last_sync_resource_version()


class Reflectors:
    """Keep a store equal to what one informer watches. Not for import. Any method: from any thread.

    They are made when they start, since that is when ``tweak`` runs. ``on_synced`` is called
    on a reflector's thread, once all hold a whole state.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        options: ResourceOptions,
        store: Cache,
        runtime: Runtime,
        *,
        metrics: Metrics,
        gauges: InformerGauges,
        tweak: Tweak | None,
        on_synced: Callable[[], None],
    ) -> None:
        self.metrics = metrics
        """What is told of the informer, and ends with it."""
        self._gauges = gauges
        self._gvr = gvr
        self._options = options
        self._store = store
        self._runtime = runtime
        self._tweak = tweak
        self._on_synced = on_synced
        self._on_watch_error: WatchErrorHandler | None = None
        self._changed = Bell()  # rings when anything below, or a reflector's status, has changed
        # Guards changes of _reflectors, started and stopped. Under it the tweak runs, and
        # reflectors are made and started, which takes locks of the connection; the store's is
        # not taken. A signal handler that stops may come while its own thread holds it, hence one
        # that can be taken twice.
        self._lock = ReentrantLock()
        self._reflectors: tuple[Reflector, ...] = ()
        self._audits: set[Channel] = set()  # what audits ask through; guarded, too
        self._next_audit: Timer | None = None
        self._asked_last: dict[str, str] = {}  # by namespace, the last key that was asked for
        self._audited: datetime | None = None
        self._audit_failed = ""  # why the last one that nobody asked for could not be made
        self.started = False
        """`start` was called."""
        self.stopped = False
        """For good."""
        self.synced = False
        """All hold a whole state; never false again."""
        self._known_synced = 0  # so many of the first do
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
                self.metrics.gauge("synced", self._gvr, 0)
                self._reflectors = self._make()
                self._gauges.start(self._store, self.statuses)
            for each in self._reflectors:
                each.start()
            if self._next_audit is None:
                self._schedule_audit()
            self.started = True  # last: after an interrupt the next start goes on from there

    def signal_stop(self) -> None:
        """Have all stop, and wait for nothing. Idempotent, also after an interrupt."""
        with self._lock:
            self.stopped = True
            reflectors, audits = self._reflectors, tuple(self._audits)
        self._changed.ring()
        for each in reflectors:
            each.stop()
        for channel in audits:
            channel.close()
        if self._next_audit is not None:
            self._runtime.audits.cancel(self._next_audit)

    def wait_stopped(self, timeout: float | None) -> Names:
        """After `signal_stop`: the names of those that still run when the time is over."""
        deadline = Deadline(timeout)
        return [
            f"reflector {each.scope}" for each in self._reflectors if not each.join(deadline.left)
        ]

    def until_stopped(self) -> Waiting[None]:
        """Wait for `signal_stop`."""
        yield self.pause(lambda: self.stopped, Deadline(None))

    def ring(self) -> None:
        """Have all that `pause` look at their conditions again."""
        self._changed.ring()

    def pause(self, condition: Callable[[], bool], deadline: Deadline) -> Pause:
        """Until a condition that depends on their state is met."""
        return Pause(self._changed, condition, deadline)

    @property
    def bell(self) -> Bell:
        """Rings when their state changes, or one of them hears something."""
        return self._changed

    def last_version(self, namespace: str | None = None) -> str:
        """The newest version that was seen of a namespace, "" before its first state is held.

        Without one, of all: the lowest, "" until all are synced. ValueError if the namespace is
        none that is watched.
        """
        scopes = self._options.scopes
        if namespace is None or scopes == ALL_NAMESPACES:
            return self.status().resource_version
        self.check_watched(namespace)
        found = [each for each in self._reflectors if each.scope.namespace == namespace]
        return found[0].status().resource_version if found and found[0].synced else ""

    def check_watched(self, namespace: str) -> None:
        """ValueError if nothing of this namespace is watched."""
        scopes = self._options.scopes
        if scopes != ALL_NAMESPACES and namespace not in scopes:
            raise ValueError(
                f"the informer of {self._gvr} does not watch namespace {namespace!r}, but "
                f"{', '.join(scopes)}: nothing of it will be seen"
            )

    @property
    def selectors(self) -> tuple[str, str]:
        """Those of labels and of fields; empty before the start, which may change them."""
        for each in self._reflectors:
            return each.scope.label_selector, each.scope.field_selector
        return "", ""

    def status(self) -> InformerStatus:
        """The state of all together, and the reason for it."""
        reflectors = self._reflectors
        if not reflectors:
            state = InformerState.STOPPED if self.stopped else InformerState.WAITING
            return InformerStatus(state=state, objects=len(self._store))
        found = merged(self.statuses(), len(self._store))
        asked = self._store.asked
        return replace(
            found,
            audited=self._audited,
            asked_indexes=asked.names,
            asked_index_bytes=asked.size,
        )

    @property
    def lasting(self) -> int:
        """`InformerStatus.lasting`, which is asked after each change of any of a thousand."""
        unsynced = [each for each in self._reflectors[self._known_synced :] if not each.synced]
        return max((each.lasting for each in unsynced or self._reflectors), default=0)

    def statuses(self) -> Statuses:
        """The state of each; none before the start."""
        return [each.status() for each in self._reflectors]

    # -- audits ----------------------------------------------------------------------------

    def audit(self, deadline: Deadline) -> AuditReport:
        """See `SharedIndexInformer.audit`."""
        self._check_auditable()
        began, metrics = time.monotonic(), self.metrics
        channel = self._runtime.source.channel()
        audits: list[ScopeAudit] = []
        try:
            with self._lock:
                self._audits.add(channel)
            if self.stopped:
                raise StoppedError(f"cannot audit {self._gvr}: the informer has stopped")
            for each in self._reflectors:
                audits.append(self._audit_scope(each, channel, deadline))  # noqa: PERF401 - the next may raise
        except AuditError:
            metrics.count("audits", self._gvr, result="failed")
            raise
        else:
            self._audited = datetime.now(UTC)
        finally:
            with self._lock:
                self._audits.discard(channel)
            channel.close()
            # Also where one namespace could not be audited: what others had was put right.
            report = self._report_of(audits, time.monotonic() - began)
        metrics.count("audits", self._gvr, result="different" if report.differs else "equal")
        return report

    def _report_of(self, audits: Sequence[ScopeAudit], seconds: float) -> AuditReport:
        """What was found, logged and counted."""
        repaired = {key: kind for each in audits for key, kind in each.repaired.items()}
        report = AuditReport(
            gvr=self._gvr,
            compared=sum(each.compared for each in audits),
            from_etcd=sum(each.from_etcd for each in audits),
            updated=[key for key, kind in repaired.items() if kind == "UPDATED"],
            deleted=[key for key, kind in repaired.items() if kind == "DELETED"],
            added=[key for key, kind in repaired.items() if kind == "ADDED"],
            unresolved=[key for each in audits for key in each.different],
            seconds=seconds,
        )
        if report.unresolved:
            self.metrics.count("audit_unresolved", self._gvr, len(report.unresolved))
        if report.differs:
            _logger.warning("audit: %s", report)
        return report

    def _audit_scope(
        self, reflector: Reflector, channel: Channel, deadline: Deadline
    ) -> ScopeAudit:
        namespace = reflector.scope.namespace
        audit = ScopeAudit(
            reflector,
            self._store,
            channel,
            deadline,
            bell=self._changed,
            stopped=lambda: self.stopped,
            after=self._asked_last.get(namespace, ""),
            metrics=self.metrics,
        )
        audit.run()
        if audit.sampled:
            self._asked_last[namespace] = audit.sampled[-1]
        return audit

    def _check_auditable(self) -> None:
        """StoppedError or AuditError if there is nothing that could be compared."""
        if self.stopped:
            raise StoppedError(f"cannot audit {self._gvr}: the informer has stopped")
        if not self.started:
            raise AuditError(f"cannot audit {self._gvr}: it is not started")
        for each in self._reflectors:
            status = each.status()
            if status.state is InformerState.ABSENT:
                raise AuditError(f"cannot audit {each.scope}: {status.reason}")
            if not each.synced:
                why = f": {status.reason}" if status.reason else ""
                raise AuditError(f"cannot audit {each.scope}: it is not synced yet{why}")

    def _schedule_audit(self) -> None:
        """Set the next audit that nobody has to ask for."""
        period = self._options.audit
        if period and not self.stopped:
            # One thread of the factory calls one after the other: never two at once.
            timer = self._runtime.audits.call_later(jittered(period), self._audit_now)
            self._next_audit = timer
            if self.stopped:
                self._runtime.audits.cancel(timer)

    def _audit_now(self) -> None:
        """It is time; on the audits' thread."""
        failed = ""
        try:
            self.audit(Deadline(_LONGEST_AUDIT))
        except StoppedError:
            return
        except AuditError as error:
            failed = str(error)
            level = logging.DEBUG if failed == self._audit_failed else logging.WARNING
            _logger.log(level, "%s", failed)
        finally:
            self._audit_failed = failed
            self._schedule_audit()

    def is_fresh(self, since: float) -> bool:
        """What is held certainly has all that had been written by that moment `since_boot`."""
        reflectors = self._reflectors
        return bool(reflectors) and all(each.has_all_of(since) for each in reflectors)

    @property
    def age(self) -> float | None:
        """For how many seconds nothing certain is known of one of them; None if nothing ever."""
        ages = [each.age for each in self._reflectors]
        known = [each for each in ages if each is not None]
        return max(known) if known and len(known) == len(ages) else None

    def ask_if_fresh(self, since: float) -> None:
        """Have the server asked for all that is not known to be so; wait for nothing."""
        for each in self._reflectors:
            if not each.has_all_of(since):
                each.ask_if_fresh()

    def doubt(self, since: float) -> str:
        """Why the server did not say that what is not is fresh; "" if it was not asked."""
        stale = (each for each in self._reflectors if not each.has_all_of(since))
        return next(filter(None, (each.doubt for each in stale)), "")

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
                shard=self._options.shard,
            ),
            self._runtime.source.channel(),
            self._store,
            owner=self._runtime.owner,
            crds=self._runtime.crds,
            on_status=self._look_at_status,
            on_failure=self._tell_failure,
            questions=self._runtime.questions,
            on_answered=self._changed.ring,
            prober=self._runtime.prober,
            metrics=self.metrics,
        )

    def _look_at_status(self) -> None:
        """On a reflector's thread, after each step that changed its status."""
        reflectors, known = self._reflectors, self._known_synced
        # Of a thousand, each is looked at once, and not by each of the others. None is ever
        # unsynced again; where two threads look, the lower number costs another look.
        while known < len(reflectors) and reflectors[known].synced:
            known += 1
        self._known_synced = known
        synced = not self.synced and known == len(reflectors)
        if synced:
            self.synced = True
        self._changed.ring()
        if synced:  # after the informer itself: no handler is synced before it
            self._on_synced()
            self.metrics.gauge("synced", self._gvr, 1)

    def _tell_failure(self, error: Exception) -> None:
        if self._on_watch_error is not None:
            self._on_watch_error(error)


class Runtime:
    """What the informers of one factory share: the connection, the CRD watch, timers, and an end.

    An informer that stands alone has one of its own. Not for import.
    """

    def __init__(self, source: Source, metrics: Metrics) -> None:
        self.owner = object()
        """The owner of all threads, see `threads.runs_for`."""
        self.source = source
        self.metrics = contained(metrics)
        self.timers = Timers(self.owner)
        self.audits = Timers(self.owner, "dyninformer audits")
        self.questions = BackgroundThreads(f"dyninformer questions to {source.host}", _MOST_ASKING)
        """Threads that ask whether caches are fresh."""
        self.probes = BackgroundThreads(f"dyninformer probes of {source.host}", KINDS)
        """Threads that ask whether the server is there: however many questions it owes answers."""
        self.prober = Prober(source.channel(), self.probes, owner=self.owner)
        self.crds = CrdWatch(source, owner=self.owner, prober=self.prober)
        self.discovery = Discovery(source)

    @classmethod
    def connect(
        cls,
        client: DynamicClient | ApiClient | Source | None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> Runtime:
        """Find the API server. This makes no request."""
        if not isinstance(client, Source):
            client = Source(client, kubeconfig=kubeconfig, context=context)
        return cls(client, metrics)

    def close(self) -> None:
        """End the timers, the CRD watch and the connection; wait for nothing. Idempotent."""
        self.timers.stop()
        self.audits.stop()
        self.crds.stop()
        self.prober.stop()
        self.questions.close()
        self.probes.close()
        self.source.close()

    def wait_closed(self, timeout: float | None = None) -> Names:
        """After `close`: the names of what still runs when the time is over."""
        deadline = Deadline(timeout)
        ends = {
            "dyninformer timers": self.timers.join,
            "dyninformer audits": self.audits.join,
            "dyninformer CRD watch": self.crds.join,
            "dyninformer prober": self.prober.join,
        }
        left = [name for name, join in ends.items() if not join(deadline.left)]
        for threads in (self.questions, self.probes):
            threads.join(deadline.left)  # what they wait for has been ended
        # A connect ends in a moment; a name lookup or a plugin may take any time, so that it is
        # named, and not waited for.
        grace = _GRACE if deadline.left is None else min(_GRACE, deadline.left)
        self.source.join(grace)
        asking = self.questions.under_way() + self.probes.under_way()
        return left + asking + self.source.under_way()
