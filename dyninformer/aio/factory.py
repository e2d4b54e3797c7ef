"""The factory, as an event loop uses it: what blocks there is awaited here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, Unpack

from dyninformer import factory
from dyninformer.aio.blocking import Call
from dyninformer.aio.follow import Follower
from dyninformer.aio.handlers import OnEvent
from dyninformer.aio.informer import GenericInformer, Shell
from dyninformer.aio.loops import carry_out, running
from dyninformer.aio.opening import Opening
from dyninformer.delivery.handlers import Handler, Registration
from dyninformer.errors import StoppedError
from dyninformer.factory import NewInformer, Resource, Statuses, SyncResult
from dyninformer.follow import Follower as CoreFollower
from dyninformer.informer import SharedIndexInformer
from dyninformer.metrics.told import Metrics
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
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.threads import Deadline, ReentrantLock, in_forked_child
from dyninformer.unused import Place, closed, opened_at, when_unused

if TYPE_CHECKING:
    import duckdb
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

T = TypeVar("T")

_EXIT_SECONDS: Final = 5.0
_ASKING_SECONDS: Final = 10.0
_CANCELLED_SECONDS: Final = 0.05
"""What a cancelled ``async with`` waits for the end at most; the rest goes on without it."""
_HOW_TO_CLOSE: Final = "`async with aio.open_informer(...) as opened:`, or `await opened.close()`"


class DynamicSharedInformerFactory(Shown):
    """Live, indexed copies of any collections of one cluster, for an event loop.

    It is `dyninformer.DynamicSharedInformerFactory`, with the same options, on the same threads:
    what waits there is awaited here. It may be used from several loops. Nothing is read or asked
    before the first await.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.DynamicSharedInformerFactory(server.client()) as factory:
    ...         namespaces = await factory.for_resource("v1/namespaces")
    ...         await factory.sync(timeout=30)
    ...         print(namespaces.lister.get("default")["kind"])
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    Namespace
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
        ResourceOptions(namespaces=namespace, resync=checked_resync(resync), transform=transform)
        self._make = partial(
            factory.DynamicSharedInformerFactory,
            client,
            kubeconfig=kubeconfig,
            context=context,
            resync=resync,
            namespace=namespace,
            tweak_list_options=tweak_list_options,
            transform=transform,
            resources=resources,
            metrics=metrics,
        )
        self._shell = Shell()
        # Guards the next two. Under it the factory is made, which reads settings.
        self._lock = ReentrantLock()
        self._made: factory.DynamicSharedInformerFactory | None = None
        self._ended = False
        in_forked_child(self, "_lock")

    # -- informers -----------------------------------------------------------------------

    @spelled_out(ResourceOptionsDict)
    async def for_resource(
        self,
        resource: Resource,
        *,
        timeout: float | None = 0,
        **options: Unpack[ResourceOptionsDict],
    ) -> GenericInformer:
        """The informer of a resource; the same one for every caller (S1).

        See `dyninformer.DynamicSharedInformerFactory.for_resource`.
        """
        deadline = Deadline(timeout)
        return await self._generic(
            lambda: self._core().for_resource(resource, timeout=deadline.left, **options)
        )

    async def informer_for(self, resource: Resource, new_informer: NewInformer) -> GenericInformer:
        """The informer of a resource, made by ``new_informer(client, resync)`` if there is none.

        It makes a `dyninformer.SharedIndexInformer`, on a thread.
        """
        return await self._generic(lambda: self._core().informer_for(resource, new_informer))

    async def start(self) -> None:
        """Start the informers that are not started. Idempotent; never waits for the network.

        See `dyninformer.DynamicSharedInformerFactory.start`.
        """
        await self._off_loop(lambda: self._core().start())

    async def wait_for_cache_sync(self, timeout: float | None = None) -> SyncResult:
        """Wait until every started informer has synced, or until the timeout.

        An informer that was stopped by itself before it had synced never will: it is left out.
        """
        deadline = Deadline(timeout)
        core = await self._off_loop(self._core)
        return await carry_out(core.until_caches_synced(deadline.left))

    async def sync(self, timeout: float | None = None, *, patient: bool = False) -> SyncResult:
        """Start, and wait for all. CacheSyncError says why, for each that did not sync.

        See `dyninformer.DynamicSharedInformerFactory.sync`.
        """
        deadline = Deadline(timeout)
        await self.start()
        return await carry_out(self._core().until_synced(deadline.left, patient=patient))

    def status(self) -> Statuses:
        """How each informer stands."""
        return Statuses() if self._made is None else self._made.status()

    async def require_fresh(self, max_age: float, timeout: float | None = _ASKING_SECONDS) -> None:
        """Raise StaleCacheError unless all caches are as the server had them ``max_age`` s ago.

        See `dyninformer.DynamicSharedInformerFactory.require_fresh`.
        """
        deadline = Deadline(timeout)
        core = await self._off_loop(self._core)
        await carry_out(core.until_fresh(max_age, deadline.left))

    async def remove(self, resource: Resource, timeout: float = _EXIT_SECONDS) -> bool:
        """Stop an informer and forget it, so that it can be asked for anew (S4).

        True if there is none. False if a callback of it still runs at the timeout; it is
        cancelled then. A call from a handler of this factory waits for nothing (S11).
        """
        deadline = Deadline(timeout)
        found = await self._off_loop(lambda: self._core()._forget(resource, deadline.left))
        return found is None or await self._shell.informer(found.informer).stop(deadline.left)

    @spelled_out(ResourceOptionsDict)
    def follow(
        self,
        *patterns: str,
        on_event: OnEvent | None = None,
        **options: Unpack[ResourceOptionsDict],
    ) -> Opening[Follower]:
        """Keep an informer per resource that matches, as CRDs come and go.

        ``async with`` it, or await it and close it later. The loop that runs then calls
        ``on_event``, a coroutine function or a plain one. See
        `dyninformer.DynamicSharedInformerFactory.follow`.
        """
        asked = options_from(options)

        async def begin() -> Follower:
            loop, shell = running(), self._shell

            def add(core: SharedIndexInformer, tell: OnEvent, name: str) -> Registration:
                handler = Handler(on_event=tell, name=name, coroutines=True)
                return shell.add(core, handler, loop)

            def follow() -> CoreFollower:
                return self._core()._follow(patterns, on_event, asked, add)

            return Follower(await shell.blocking.run(follow, CoreFollower.close), shell)

        return Opening(begin)

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings. It blocks: call it on a thread."""
        return self._core().client

    @property
    def namespace(self) -> str:
        """The namespace that the kubeconfig's context, or the pod, is in; else "default"."""
        return self._core().namespace

    # -- the end -------------------------------------------------------------------------

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until this factory is shut down; False at the timeout."""
        deadline = Deadline(timeout)
        core = await self._off_loop(self._core)
        return await carry_out(core.until_stopped(deadline.left))

    async def shutdown(self, timeout: float | None = None) -> bool:
        """Stop everything, and wait for the callbacks that run (S11).

        False if something still runs at the timeout: a log line names it, and what is a
        coroutine is cancelled. A call from a handler of this factory waits for nothing. Reads go
        on working.
        """
        Deadline(timeout)  # refuse a wrong timeout before anything ends
        if self._shell.tells_here():
            return await self._shell.blocking.begin(self._signal_end).wait()
        call = self._shell.blocking.begin(partial(self._end, timeout))
        try:
            ended = await call.wait()
        except BaseException:
            self._begin_end_at_once()
            raise
        if not ended:
            self._shell.cancel_handlers()
        return ended

    async def __aenter__(self) -> Self:
        await self._off_loop(self._core)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, Exception):
            await self.shutdown(_EXIT_SECONDS)
        else:
            await self._end_cancelled()

    async def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """What a query says of all that is cached, as a relation of DuckDB's.

        See `dyninformer.DynamicSharedInformerFactory.sql`.
        """
        return await self._off_loop(lambda: self._core().sql(query))

    def shown(self) -> object:
        """What is shown in its place: what it is a shell of. Not for import."""
        return self if self._made is None else self._made

    def __repr__(self) -> str:
        if self._made is None:
            return "<aio.DynamicSharedInformerFactory, not yet used>"
        return f"<aio.{repr(self._made).removeprefix('<')}"

    # -- inside --------------------------------------------------------------------------

    def _core(self) -> factory.DynamicSharedInformerFactory:
        """The factory itself. It reads the settings when it is made."""
        if self._made is not None:
            return self._made
        with self._lock:
            if self._made is None:
                if self._ended:
                    raise StoppedError("this factory has been shut down: make a new one")
                self._made = self._make()
            return self._made

    async def _off_loop(self, act: Callable[[], T]) -> T:
        return await self._shell.blocking.run(act)

    async def _generic(self, ask: Callable[[], factory.GenericInformer]) -> GenericInformer:
        return GenericInformer(await self._off_loop(ask), self._shell)

    def _end(self, timeout: float | None) -> bool:
        """In a thread."""
        with self._lock:
            self._ended = True
            core = self._made
        ended = core is None or core.shutdown(timeout)
        self._shell.blocking.close()
        return ended

    async def _end_cancelled(self) -> None:
        """Have everything end, and wait for next to nothing."""
        await running().shielded(self._begin_end_at_once().waiter, _CANCELLED_SECONDS)

    def _begin_end_at_once(self) -> Call[bool]:
        return self._shell.blocking.begin(self._end_at_once)

    def _signal_end(self) -> bool:
        """In a thread, for a handler, which is not waited for: whether nothing runs any more."""
        if self._made is None:
            return True
        self._made._signal()
        return not self._made._left(0)

    def _end_at_once(self) -> bool:
        """In a thread. Handlers that are awaited are cancelled as soon as they are removed."""
        if self._made is not None:
            self._made._signal()
            self._shell.cancel_handlers()
        return self._end(_EXIT_SECONDS)


class OpenInformer(GenericInformer):
    """A started and synced informer with a factory of its own, which ends with it.

    `open_informer` gives it. After its end the lister still answers, from the last state. Once no
    references to it or to a part of it remain, it is closed, with a ResourceWarning (S42).

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     namespaces = await aio.open_informer("ns", client=server.client())
    ...     print(await namespaces.close(), len(namespaces.lister))
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    True 4
    """

    def __init__(
        self, factory: DynamicSharedInformerFactory, found: GenericInformer, where: Place
    ) -> None:
        self.informer = found.informer
        self.lister = found.lister
        self._factory = factory
        core = found.informer._core
        self._ending = core.ending()
        self._unused = when_unused(core, self._ending, where, _HOW_TO_CLOSE)

    @property
    def client(self) -> DynamicClient:
        """A client for writes, with the same settings. It blocks: call it on a thread."""
        return self._factory.client

    async def close(self, timeout: float | None = _EXIT_SECONDS) -> bool:
        """Stop it; reads go on working. Idempotent."""
        Deadline(timeout)  # refuse a wrong timeout before anything ends
        closed(self._unused, self._ending)
        return await self._factory.shutdown(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        closed(self._unused, self._ending)
        await self._factory.__aexit__(kind, error, trace)


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
) -> Opening[OpenInformer]:
    """One resource, started and synced: ``async with`` it, or await it and close it later.

    See `dyninformer.open_informer`.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.open_informer("ns", client=server.client()) as namespaces:
    ...         print(sorted(namespaces.lister.keys()))
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """
    where = opened_at()

    async def begin() -> OpenInformer:
        deadline = Deadline(timeout)
        made = DynamicSharedInformerFactory(
            client, kubeconfig=kubeconfig, context=context, namespace=namespace, metrics=metrics
        )
        try:
            found = await made.for_resource(resource, timeout=deadline.left, **options)
            await made.sync(deadline.left, patient=patient)
        except BaseException as error:
            await made.__aexit__(type(error), error, error.__traceback__)
            raise
        return OpenInformer(made, found, where)

    return Opening(begin)
