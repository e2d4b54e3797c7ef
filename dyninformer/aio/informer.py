"""One resource's informer, as an event loop uses it: the same informer, awaited where it waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakSet, WeakValueDictionary

from dyninformer import factory, informer
from dyninformer.aio.blocking import BlockingCalls
from dyninformer.aio.handlers import HandlerTask, Registration
from dyninformer.aio.loops import Loop, carry_out, running
from dyninformer.aio.stream import EventStream
from dyninformer.checked import check_function, checked
from dyninformer.delivery.handlers import Handler, HandlerOptions
from dyninformer.delivery.handlers import Registration as CoreRegistration
from dyninformer.delivery.stream import checked_idle_timeout
from dyninformer.delivery.worker import Telling
from dyninformer.indexer import Indexer, Store
from dyninformer.lister import GenericLister
from dyninformer.moments.version import Versions
from dyninformer.options import IndexFunction, ResourceOptions, Transform, spelled_out
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.threads import Deadline
from dyninformer.types import Key, Object
from dyninformer.waiting import Condition, Written
from dyninformer.watching.audit import AuditReport
from dyninformer.watching.status import InformerStatus
from dyninformer.writing import Write, Writes, send, until_held, until_possible

if TYPE_CHECKING:
    from dyninformer.aio.work import WorkQueue
    from dyninformer.moments.snapshot import Snapshot
    from dyninformer.work import RateLimited
    from dyninformer.work.queue import EventKeys

_logger = logging.getLogger(__name__)


class Shell:
    """What the informers of one factory share: threads for what blocks, the tasks of handlers."""

    def __init__(self) -> None:
        self.blocking = BlockingCalls()
        self._handlers: WeakSet[HandlerTask] = WeakSet()
        self._informers: WeakValueDictionary[informer.SharedIndexInformer, SharedIndexInformer]
        self._informers = WeakValueDictionary()

    def add(
        self, core: informer.SharedIndexInformer, handler: Handler, loop: Loop
    ) -> CoreRegistration:
        """Add a handler that the loop calls. From any thread."""
        tasks: list[HandlerTask] = []

        def teller_of(telling: Telling) -> HandlerTask:
            tasks.append(HandlerTask(loop, telling))
            return tasks[0]

        registration = core._dispatcher.add(handler, teller_of)
        self._handlers.add(tasks[0])
        tasks[0].begin()
        return registration

    def tells_here(self) -> bool:
        """Whether a handler's call waits for the caller, which must not wait for the handler."""
        return any(each.tells_here() for each in self._handlers)

    def cancel_handlers(self, core: informer.SharedIndexInformer | None = None) -> None:
        """Cancel the tasks of removed handlers: of one informer that has stopped, or of all."""
        for each in list(self._handlers):
            if each.removed and (core is None or each.store is core._store):
                each.cancel()

    def informer(self, core: informer.SharedIndexInformer) -> SharedIndexInformer:
        """The same for the same."""
        found = self._informers.get(core)
        if found is None:
            found = self._informers[core] = SharedIndexInformer(core, self)
        return found


class SharedIndexInformer(Writes[Coroutine[Any, Any, Object]], Shown):
    """Keeps one collection in memory, and tells handlers what changes, in an event loop.

    It is `dyninformer.SharedIndexInformer`, on the same threads: what waits there is awaited
    here, and handlers may be coroutine functions. Reads (``lister``, ``store``, ``indexer``) are
    plain calls that never block. A factory makes it.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.DynamicSharedInformerFactory(server.client()) as factory:
    ...         namespaces = await factory.for_resource("v1/namespaces")
    ...         await factory.sync(timeout=30)
    ...         found = await namespaces.informer.wait_for(
    ...             "jsonpath={.status.phase}=Active", name="default", timeout=30)
    ...         print(found["kind"], namespaces.informer.has_synced())
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    Namespace True
    """

    def __init__(self, core: informer.SharedIndexInformer, shell: Shell) -> None:
        self._core = core
        self._shell = shell
        self.gvr: GroupVersionResource = core.gvr
        self.options: ResourceOptions = core.options
        self.lister: GenericLister = core.lister
        """Reads of the cache."""
        self.store: Store = core.store
        """The cache by key, in client-go's words."""
        self.indexer: Indexer = core.indexer
        """The cache by key and by index, in client-go's words."""

    # -- handlers ------------------------------------------------------------------------

    @spelled_out(HandlerOptions)
    def add_event_handler(
        self, handler: object = None, **options: Unpack[HandlerOptions]
    ) -> Registration:
        """Have callbacks called with each object that is held, then with each change (S8, S9).

        They are coroutine functions or plain ones; the loop that runs now calls them, one at a
        time and in order, and awaits each before the next. A plain one must not block, nor may
        ``filter``. The rest is as in `dyninformer.SharedIndexInformer.add_event_handler`.
        """
        handled = Handler(handler, coroutines=True, **options)
        registration = self._shell.add(self._core, handled, running())
        registration.keeps = self._core.use
        return Registration(registration)

    def add_event_handler_with_resync_period(self, handler: object, period: float) -> Registration:
        """`add_event_handler` with ``resync``, in client-go's words."""
        return self.add_event_handler(handler, resync=period)

    def remove_event_handler(self, registration: Registration) -> None:
        """Take a handler away; again is fine. No callback begins after this returns.

        ValueError if it was added to another informer.
        """
        checked("a registration", registration, Registration, "what add_event_handler returned")
        registration._core.remove_from(self._core._dispatcher, self.gvr)

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        max_backlog: int | None = None,
        initial: bool = True,
    ) -> EventStream:
        """A stream of events for ``async for``: what is held, then what changes.

        It is subscribed when this returns, and costs no thread and no task.
        """
        make = partial(EventStream, idle_timeout=checked_idle_timeout(idle_timeout))
        stream = self._core._dispatcher.subscribe(
            make, coalesce=coalesce, max_backlog=max_backlog, initial=initial
        )
        stream.keeps = self._core.use
        return stream

    def set_watch_error_handler(self, handler: Callable[[Exception], object]) -> None:
        """Have the loop that runs now call ``handler(error)`` when a list or watch fails.

        It is a plain function. Only before `start`.
        """
        check_function("a watch error handler", handler, "a plain function of an error")
        loop = running()

        def tell(error: Exception) -> None:
            try:
                handler(error)
            except Exception:
                _logger.exception("the watch error handler of %s failed", self.gvr)

        self._core.set_watch_error_handler(lambda error: loop.post(partial(tell, error)))

    def set_transform(self, transform: Transform | None) -> None:
        """Transform each object before it is held (S17), on a thread. Only before `start`."""
        self._core.set_transform(transform)

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
        from dyninformer.aio.work import WorkQueue  # noqa: PLC0415 - it is made of informers

        return WorkQueue({self: keys}, workers=workers, retry=retry, name=name)

    def history(self, name: str, namespace: str | None = None) -> Versions:
        """The versions of an object that are kept: `dyninformer.SharedIndexInformer.history`."""
        return self._core.history(name, namespace)

    def snapshot(self) -> Snapshot:
        """What is held at this moment, to be read when it has changed."""
        return self._core.snapshot()

    async def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while running (S15). Their functions are called on a thread."""
        await self._shell.blocking.run(partial(self._core.add_indexers, indexers))

    # -- life ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to list and watch, on threads of its own. Idempotent."""
        await self._shell.blocking.run(self._core.start)

    async def run(self) -> None:
        """Start, and return when it is stopped. Cancelled, it stops it."""
        try:
            await self.start()
            reflectors = self._core._reflectors
            await carry_out(reflectors.until_stopped())
        finally:
            self._core.signal_stop()

    async def stop(self, timeout: float | None = None) -> bool:
        """Stop for good, and wait for what runs; reads go on working (S11, S19).

        False if a callback of it still runs at the timeout; it is cancelled then. A call from a
        handler of the same factory waits for nothing.
        """
        if self._shell.tells_here():
            self._core.signal_stop()
            return not self._core.wait_stopped(0)
        deadline = Deadline(timeout)
        stopped = await self._shell.blocking.run(lambda: self._core.stop(deadline.left))
        if not stopped:
            self._shell.cancel_handlers(self._core)
        return stopped

    def is_started(self) -> bool:
        """Whether `start` was called."""
        return self._core.is_started()

    def is_stopped(self) -> bool:
        """Whether it has been stopped, which is for good."""
        return self._core.is_stopped()

    def has_synced(self) -> bool:
        """Whether the first whole state of every namespace is held; never false again."""
        return self._core.has_synced()

    async def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for `has_synced`; False at the timeout, or when it stops before."""
        return await carry_out(self._core.until_synced(timeout))

    def last_sync_resource_version(self) -> str:
        """The newest version seen; of several namespaces the lowest, "" until all are synced."""
        return self._core.last_sync_resource_version()

    def status(self) -> InformerStatus:
        """Its state, and the reason for it."""
        return self._core.status()

    async def audit(self, timeout: float | None = None) -> AuditReport:
        """Compare what is held with what the server has, and put right what differs (S36).

        See `dyninformer.SharedIndexInformer.audit`. It runs on a thread; cancelled, it goes on
        there.
        """
        deadline = Deadline(timeout)
        return await self._shell.blocking.run(lambda: self._core.audit(deadline.left))

    # -- writes --------------------------------------------------------------------------

    def _key_of(self, name: str, namespace: str | None) -> Key:
        return self._core.key_rules.checked_key(name, namespace)

    async def _write(self, asked: Write) -> Object:
        await carry_out(until_possible(self._core, asked))
        answer = await self._shell.blocking.run(partial(send, self._core, asked))
        await carry_out(until_held(self._core, asked, answer))
        return answer

    # -- waiting for the cluster ---------------------------------------------------------

    async def wait_for(
        self,
        condition: Condition,
        *,
        name: str,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Object:
        """Wait until an object meets a condition, and return it as it then is.

        ``condition`` is kubectl's ``--for`` text or a plain function of the object, which the
        loop calls; see `dyninformer.SharedIndexInformer.wait_for`. A wait costs no thread, and
        what happens to other objects costs it nothing.
        """
        return await carry_out(self._core.until_met(condition, name, namespace, timeout))

    async def wait_for_version(
        self,
        written: Written,
        timeout: float | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        """Wait until the cache has seen a write of your own.

        See `dyninformer.SharedIndexInformer.wait_for_version`.
        """
        await carry_out(self._core.until_seen(written, timeout, namespace))

    async def wait_fresh(self, max_age: float = 0, timeout: float | None = None) -> None:
        """Wait until the cache is known to be as the server had it ``max_age`` s ago, or since.

        See `dyninformer.SharedIndexInformer.wait_fresh`.
        """
        await carry_out(self._core.until_fresh(max_age, timeout))

    def shown(self) -> object:
        """What is shown in its place: what it is a shell of. Not for import."""
        return self._core

    def __repr__(self) -> str:
        return f"<aio.{repr(self._core).removeprefix('<')}"


class GenericInformer(Shown):
    """An informer and its lister, for one resource, in an event loop.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.DynamicSharedInformerFactory(server.client()) as factory:
    ...         namespaces = await factory.for_resource("v1/namespaces")
    ...         await factory.sync(timeout=30)
    ...         print(namespaces, namespaces.lister.get("default")["kind"])
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    <aio.GenericInformer of namespaces.v1, 4 objects, live> Namespace
    """

    def __init__(self, core: factory.GenericInformer, shell: Shell) -> None:
        self.informer = shell.informer(core.informer)
        self.lister: GenericLister = core.lister

    @property
    def gvr(self) -> GroupVersionResource:
        """Which resource."""
        return self.informer.gvr

    def events(
        self,
        *,
        idle_timeout: float | None = None,
        coalesce: bool = False,
        max_backlog: int | None = None,
        initial: bool = True,
    ) -> EventStream:
        """`SharedIndexInformer.events`."""
        return self.informer.events(
            idle_timeout=idle_timeout,
            coalesce=coalesce,
            max_backlog=max_backlog,
            initial=initial,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The lister's, so that both can be read as a table."""
        return self.lister.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The lister's."""
        return self.lister.__arrow_c_schema__()

    def shown(self) -> object:
        """What is shown in its place: what it holds. Not for import."""
        return self.lister

    def __repr__(self) -> str:
        held = f"{counted(len(self.informer.store), 'object')}, {self.informer.status().standing}"
        return f"<aio.{type(self).__name__} of {self.gvr}, {held}>"
