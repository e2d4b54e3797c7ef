"""Handlers that an event loop calls: coroutine functions and plain ones, one call at a time."""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from dyninformer.aio.loops import Loop, Slices, Task, carry_out
from dyninformer.aio.stream import Knock
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import Registration as PlainRegistration
from dyninformer.delivery.worker import REPORT_EVERY, Telling
from dyninformer.shown import Shown
from dyninformer.store.decide import Delta
from dyninformer.threads import Flag, in_forked_child
from dyninformer.types import Object

OnObject: TypeAlias = Callable[[Object], Awaitable[object] | object]
OnUpdate: TypeAlias = Callable[[Object, Object], Awaitable[object] | object]
OnEvent: TypeAlias = Callable[[Event], Awaitable[object] | object]
Calls: TypeAlias = deque[tuple[Callable[..., object], tuple[Any, ...]]]

_calling: Final[ContextVar[object]] = ContextVar("dyninformer.aio calling", default=None)
"""Identifies the handler's call that this code runs in, also in tasks that the call has started."""


class HandlerTask:
    """Tells one handler what is in its queue, in order, one at a time (S8): a `worker.Teller`.

    It is one task of the loop that the handler was added in, there as long as the handler is. A
    callback that is awaited holds up its own handler alone.
    """

    def __init__(self, loop: Loop, telling: Telling) -> None:
        self.name = telling.name
        self.store = telling.store
        self._loop = loop
        self._telling = telling
        self._knock = Knock(loop)
        self._calls: Calls = deque()  # of the step that is being told
        self._calling: object = None  # identifies the calls that run now
        self._task: Task | None = None
        self._ended = Flag()  # it calls the handler no more
        in_forked_child(self, "_ended")
        telling.handler.call_through(self._note)
        telling.queue.call_with(self._called)

    # -- from any thread -----------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """It calls the handler no more."""
        return self._ended.is_set()

    @property
    def removed(self) -> bool:
        """No callback begins any more."""
        return self._telling.queue.closed

    def tells_here(self) -> bool:
        """Whether a call of this handler waits for the caller, as far as it can be known.

        The caller is the call itself, or a task that the call has started, as by ``gather``.
        """
        return self._calling is not None and _calling.get() is self._calling

    def join(self, timeout: float | None) -> bool:
        """Wait, in a thread, until it has ended, its queue being closed. False at the timeout."""
        return self._ended.wait(timeout)

    def begin(self) -> None:
        """Have the loop start it."""
        if not self._loop.post(self._start):
            self._lose()

    def cancel(self) -> None:
        """Have it end, whatever the handler waits for."""
        self._loop.post(self._cancel)

    def _called(self) -> None:
        """Something was queued, or the queue closed. Under the informer's lock."""
        if not self._knock():
            self._lose()

    def _lose(self) -> None:
        """The task has ended. If that was not for a removal, its loop comes to the end, too."""
        if not self._telling.queue.closed:
            self._telling.lose()
        self._ended.set()

    # -- in the loop ---------------------------------------------------------------------

    def _start(self) -> None:
        name = f"dyninformer {self._telling.store.gvr} handler {self.name}"
        self._task = self._loop.spawn(name, self._run, self._lose)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        queue, slices = self._telling.queue, Slices(self._loop)
        await slices.next()  # never before ``add_event_handler`` has returned
        while not queue.closed:
            await self._tell_all(slices)
            await self._knock.wait(self._loop, queue, None)
            slices.begin()

    async def _tell_all(self, slices: Slices) -> None:
        """Tell what is there, and report now and then."""
        telling, queue, tell = self._telling, self._telling.queue, self._telling.handler.tell
        stopped, gvr, codec = telling.stopped, telling.store.gvr, telling.store.codec
        measured, began = telling.measured if telling.measures else None, 0.0
        told, due = 0, time.monotonic() + REPORT_EVERY
        while (step := queue.head()) is not None:
            if measured is not None:
                began = time.monotonic()
            try:
                tell(step, gvr, codec, stopped)  # it notes what to call
                if self._calls:
                    await self._call_noted()
            except BaseException as error:  # noqa: BLE001 - `_failed` tells which end the task
                self._failed(step, error)
            self._calls.clear()
            if measured is not None:
                measured(step.came, began)
            queue.advance()
            told += 1
            if slices.over:
                await slices.next()
            if time.monotonic() >= due:
                telling.report(told)
                told, due = 0, time.monotonic() + REPORT_EVERY
        if told:
            telling.report(told)

    def _note(self, callback: Callable[..., object], *args: Any) -> None:
        self._calls.append((callback, args))

    async def _call_noted(self) -> None:
        queue = self._telling.queue
        self._calling = object()
        _calling.set(self._calling)
        try:
            while self._calls and not queue.closed:
                callback, args = self._calls.popleft()
                result = callback(*args)
                if inspect.isawaitable(result):
                    await result
        finally:
            self._calling = None

    def _failed(self, step: Delta, error: BaseException) -> None:
        """Log what a handler raised (S10), unless it is the end of this task, or of the program."""
        over = GeneratorExit, KeyboardInterrupt, SystemExit
        if isinstance(error, over) or self._loop.cancels(error):
            raise error
        self._telling.failed(step.key, error)


class Registration(Shown):
    """A handler's place in an informer; it is called by the loop that added it.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.open_informer("ns", client=server.client()) as namespaces:
    ...         async def note(obj: dict) -> None:
    ...             await asyncio.sleep(0)
    ...         handler = namespaces.informer.add_event_handler(on_add=note, name="mine")
    ...         print(handler.name, await handler.wait_for_sync(30), handler.backlog)
    ...         handler.remove()  # no callback begins after this
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    mine True 0
    """

    def __init__(self, core: PlainRegistration) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """The handler's name, as in logs, metrics, and its task's name."""
        return self._core.name

    @property
    def backlog(self) -> int:
        """How many events the handler has not yet finished; 0 once it is removed."""
        return self._core.backlog

    @property
    def overflows(self) -> int:
        """How often more events than ``max_backlog`` would have waited, so that they were merged.

        0 is: the handler has been told each change.
        """
        return self._core.overflows

    def has_synced(self) -> bool:
        """Whether the informer is synced and the handler has finished every initial event (S9)."""
        return self._core.has_synced()

    async def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until ``has_synced``; False at the timeout, or when it never will be.

        It never will be when the handler is removed or the informer stops. A call from the
        handler itself does not wait: the events that it would wait for are its own.
        """
        return await carry_out(self._core.until_synced(timeout))

    def remove(self) -> None:
        """Take the handler away. Idempotent. No callback begins after this returns (S11).

        A callback that is running goes on, and is not waited for.
        """
        self._core.remove()

    def shown(self) -> object:
        """What is shown in its place: what it is a shell of. Not for import."""
        return self._core

    def __repr__(self) -> str:
        return f"<aio.{repr(self._core).removeprefix('<')}"
