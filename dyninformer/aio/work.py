"""The work queue, as an event loop uses it: the same keys and turns, awaited where they wait."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from dyninformer import informer
from dyninformer.aio.informer import GenericInformer, SharedIndexInformer, Shell
from dyninformer.aio.loops import Loop, Main, Task, carry_out, running
from dyninformer.checked import check_takes
from dyninformer.delivery.handlers import Handler, OnEvent, Registration
from dyninformer.shown import Shown
from dyninformer.types import Key
from dyninformer.work import RateLimited, WorkItem
from dyninformer.work import WorkQueue as CoreQueue
from dyninformer.work.queue import EventKeys, checked_after, checked_informers

Reconcile: TypeAlias = Callable[[Key], Awaitable[float | None] | float | None]
AnyInformer: TypeAlias = SharedIndexInformer | GenericInformer
Items: TypeAlias = "tuple[weakref.ref[WorkItem], ...]"

_EXIT_SECONDS: Final = 5.0
_items: Final[ContextVar[Items]] = ContextVar("dyninformer.aio items", default=())
"""The items that the current task has taken, or the task that has started it."""


class WorkQueue(Shown):
    """Keys to work on in an event loop, each once at a time, and tried again when that fails.

    It is `dyninformer.WorkQueue`, with the same promises: `run` awaits ``reconcile(key)`` in
    ``workers`` tasks, a loop of your own is an ``async for``. It is made, and used, in one loop;
    there a function from events to keys runs as well. ``informer.work_queue()`` makes one of one
    informer, `watch` adds others.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.open_informer("ns", client=server.client()) as namespaces:
    ...         async with namespaces.informer.work_queue(workers=4) as queue:
    ...             async for item in queue:
    ...                 with item:  # the key is done at its end, or tried again if it raises
    ...                     await asyncio.sleep(0)
    ...                     if item.key == "default":
    ...                         break
    ...         print(item.key)
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    default
    """

    def __init__(
        self,
        informers: Mapping[Any, EventKeys | None] | None = None,
        *,
        workers: int = 1,
        retry: RateLimited | None = None,
        name: str | None = None,
    ) -> None:
        """``informers`` says for each what it brings: None is the key of the object itself.

        ``name`` is for logs, metrics and tasks; by default the first informer's resource.
        """
        self._loop = running()
        self._core = CoreQueue(workers=workers, retry=retry, name=name)
        self._crew: _Crew | None = None  # of the `run` that goes on
        self._by_hand = False  # items were taken by `take`, or by a loop
        for each, keys in checked_informers(informers).items():
            self.watch(each, keys)

    @property
    def name(self) -> str:
        """Its name in logs, metrics and the names of tasks."""
        return self._core.name

    @property
    def workers(self) -> int:
        """How many tasks `run` has."""
        return self._core.workers

    def watch(self, informer: AnyInformer, keys: EventKeys | None = None) -> None:
        """Have the events of one more informer bring keys, those of before among them.

        ``keys(event)``, a plain function, gives the keys to work on: one, several, or None for
        nothing. Without it each event brings the key of its object.
        """
        found = getattr(informer, "informer", informer)
        if not isinstance(found, SharedIndexInformer):
            raise TypeError(f"{informer!r} is no informer of dyninformer.aio")
        fed: Any = _Fed(found._core, found._shell, self._loop)
        self._core.watch(fed, keys)

    # -- what is to be done --------------------------------------------------------------

    def add(self, key: Key) -> None:
        """Have a key worked on. Nothing if it waits already, or if the queue is closed."""
        self._core.add(key)

    def add_after(self, key: Key, delay: float) -> None:
        """Have a key worked on after so many seconds; of several delays the first counts."""
        self._core.add_after(key, delay)

    def add_rate_limited(self, key: Key) -> float:
        """Have a key worked on later, as after a failure. The seconds until then."""
        return self._core.add_rate_limited(key)

    def forget(self, key: Key) -> None:
        """Count the failures of a key from the start again. It says nothing of its turns."""
        self._core.forget(key)

    def retries(self, key: Key) -> int:
        """How often the key has failed since it was last done, or forgotten."""
        return self._core.retries(key)

    # -- work ----------------------------------------------------------------------------

    async def run(self, reconcile: Reconcile) -> None:
        """Work on the keys, in tasks of the queue's, until it is closed.

        ``reconcile(key)``, a coroutine function or a plain one, returns None when the work is
        done, or the seconds after which it is to be done again; zero or less means done, too. What
        it raises is logged with the key, and the key is tried again.

        Cancelled, this cancels its tasks, and returns when each ``reconcile`` has cleaned up. The
        keys that they are at get another turn, the queue stays open, and can be run again. It is a
        RuntimeError if other code cancels one of the tasks while the queue is open; the other tasks
        have ended then, too.
        """
        if not callable(reconcile):
            raise TypeError(f"reconcile is {reconcile!r}: give a coroutine function")
        check_takes("reconcile", reconcile, "key")
        if self._crew is not None:
            raise RuntimeError(f"the work queue {self.name} runs already")
        loop, keys = running(), self._core._keys
        crew = self._crew = _Crew(loop, lambda: keys.over)
        self._core._by_hand = True  # keys that are to be drained are taken
        try:
            for number in range(1, self.workers + 1):
                name = f"dyninformer work {self.name} {number}"
                crew.start(name, partial(self._serve, crew, loop, reconcile))
            await crew.wait()
        finally:
            self._crew = None
            self._core._by_hand = self._by_hand
            if keys.closed and not keys.over and not self._by_hand:
                self._core._shut(drain=False)  # a `close` waits for keys that no task takes
        if crew.dismissed:
            raise RuntimeError(
                f"a task of the work queue {self.name} was cancelled by other code, so that its "
                "run has ended. Its keys are kept: run it again"
            )

    async def take(self, timeout: float | None = None) -> WorkItem | None:
        """The next key's item; None at the timeout, or when the queue is closed and empty.

        Use it in a ``with``: see `dyninformer.WorkItem`.
        """
        self._by_hand = self._core._by_hand = True
        return await self._take(timeout)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WorkItem:
        """The next key's item; waits for it. Several tasks may iterate at a time."""
        item = await self.take()
        if item is None:
            raise StopAsyncIteration
        return item

    # -- the end -------------------------------------------------------------------------

    async def close(self, *, drain: bool = False, timeout: float | None = None) -> bool:
        """End it: nothing is added any more, and the work under way is waited for.

        What waits is dropped, or with ``drain`` worked on first; what is due later is dropped, and
        what fails from now on is not tried again. True if all has ended; False at the timeout,
        when what is left to drain is dropped. A task that has an item waits for nothing.
        Idempotent.
        """
        return await carry_out(
            self._core.until_closed(drain=drain, timeout=timeout, has_item=self._has_item_here())
        )

    @property
    def closed(self) -> bool:
        """Nothing is added any more: it was closed, or all its informers have stopped."""
        return self._core.closed

    @property
    def depth(self) -> int:
        """How many keys wait for their turn, without those that are due later."""
        return self._core.depth

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cancelled = error is not None and not isinstance(error, Exception)
        await self.close(timeout=0 if cancelled else _EXIT_SECONDS)

    def shown(self) -> object:
        """What is shown in its place: what it is a shell of. Not for import."""
        return self._core

    def __repr__(self) -> str:
        return f"<aio.{repr(self._core).removeprefix('<')}"

    # -- inside --------------------------------------------------------------------------

    async def _take(self, timeout: float | None = None) -> WorkItem | None:
        item = await carry_out(self._core.until_taken(timeout), self._put_back)
        if item is not None:
            referenced = (each for each in _items.get() if each() is not None)
            _items.set((*referenced, weakref.ref(item)))  # the queue notices an item that is lost
        return item

    def _put_back(self, item: WorkItem | None) -> None:
        """It was cancelled in the moment in which it was given a key."""
        if item is not None:
            self._core._put_back(item._turn)

    def _has_item_here(self) -> bool:
        """Whether the caller has an item of this queue to finish, and must not wait for that."""
        core = self._core
        found = (each() for each in _items.get())
        return any(
            item is not None and item._queue is core and core._keys.lasts(item._turn)
            for item in found
        )

    async def _serve(self, crew: _Crew, loop: Loop, reconcile: Reconcile) -> None:
        """Work in one task until the queue is closed, or the crew is dismissed."""
        await loop.turn()  # never before all of them are there
        # A reconcile may have caught the cancellation, or raised another error in its place.
        while not crew.dismissed and (item := await self._take()) is not None:
            try:
                returned = reconcile(item.key)
                after = await returned if inspect.isawaitable(returned) else returned
                after = checked_after(after)
            except BaseException as error:
                over = GeneratorExit, KeyboardInterrupt, SystemExit
                if isinstance(error, over) or loop.cancels(error):
                    self._core._put_back(item._turn)
                    raise
                self._core._failed(item._turn, error)
            else:
                self._core._finish(item._turn, after)
            await loop.turn()


class _Crew:
    """The tasks of one `run`."""

    def __init__(self, loop: Loop, is_over: Callable[[], bool]) -> None:
        self.dismissed = False
        """They were cancelled before their queue was over."""
        self._loop = loop
        self._is_over = is_over
        self._tasks: set[Task] = set()
        self._all_ended = loop.waiter()

    def start(self, name: str, main: Main) -> None:
        """Begin one more task. If other code cancels it, the others are cancelled as well."""
        returned = False

        async def work() -> None:
            nonlocal returned
            await main()
            returned = True

        def ended() -> None:
            self._tasks.discard(task)
            if not returned and not self._is_over():
                self._dismiss()
            if not self._tasks:
                self._all_ended.wake()

        task = self._loop.spawn(name, work, ended)
        self._tasks.add(task)

    async def wait(self) -> None:
        """Wait until all tasks have ended. A cancellation cancels them, and is raised after that.

        As in a task group, a second cancellation does not end the wait.
        """
        try:
            await self._all_ended.wait(None)
        except BaseException as error:
            self._dismiss()
            if self._loop.cancels(error):
                await self._clean_up()
            raise

    def _dismiss(self) -> None:
        if not self.dismissed:
            self.dismissed = True
            for each in self._tasks:
                each.cancel()

    async def _clean_up(self) -> None:
        while self._tasks:
            self._all_ended = self._loop.waiter()
            try:
                await self._loop.shielded(self._all_ended, None)
            except BaseException as error:
                if not self._loop.cancels(error):
                    raise


class _Fed:
    """An informer as the queue sees it, whose handlers the loop calls."""

    def __init__(self, core: informer.SharedIndexInformer, shell: Shell, loop: Loop) -> None:
        self._shell = shell
        self._loop = loop
        self._core = core
        self.gvr = core.gvr
        self.runtime = core.runtime
        self.metrics = core.metrics
        self.is_stopped = core.is_stopped

    def add_event_handler(self, *, on_event: OnEvent) -> Registration:
        """On the loop."""
        handler = Handler(on_event=on_event, coroutines=True)
        return self._shell.add(self._core, handler, self._loop)
