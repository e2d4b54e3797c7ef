"""Events as an asynchronous iterator, taken from the queue by the task that asks for them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from dyninformer.aio.loops import Loop, Slices, Waiter, running
from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import HandlerQueue
from dyninformer.delivery.stream import Subscription
from dyninformer.store.decide import Delta
from dyninformer.store.store import Store
from dyninformer.threads import Deadline


class Knock:
    """Wakes the task that waits for a queue's next change, wherever that comes from.

    The queue holds this, and not what reads it: a stream that nobody holds can be collected.
    """

    __slots__ = ("_asleep", "_loop", "_waiter")

    def __init__(self, loop: Loop | None = None) -> None:
        self._asleep = False  # the reader found nothing, and hears of what comes
        self._loop = loop
        self._waiter: Waiter | None = None

    def __call__(self) -> bool:
        """There is something, or the end has come; False if the reader's loop was closed.

        From any thread, under the informer's lock.
        """
        loop = self._loop
        if loop is None:
            return True  # nothing has read yet
        if not self._asleep:
            return not loop.closed
        self._asleep = False
        return loop.post(self._wake)

    async def wait(self, loop: Loop, queue: HandlerQueue, timeout: float | None) -> bool:
        """Until there is something, or the end; False at the timeout.

        The flag is set before the queue is looked at again, and the waiter is there before that:
        what comes in between wakes a wait that has not yet begun.
        """
        self._waiter = waiter = loop.waiter()
        self._loop = loop
        self._asleep = True
        try:
            if queue.closed or queue.head() is not None:
                return True
            return await waiter.wait(timeout)
        finally:
            self._asleep = False
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None:
            self._waiter.wake()


class EventStream(Subscription):
    """The events of one informer, from the moment that it was asked for.

    Iterate over it with ``async for``; nothing is behind it, and it holds what you have not yet
    taken, which is its ``backlog``. It ends when it is closed, when the informer stops, or when
    no event has come for its ``idle_timeout``. A cancellation ends a wait and loses no event: the
    iteration can be taken up again. With ``async with`` it closes at the end; so it does when it
    is no longer referenced. Iterate in one task at a time.

    >>> import asyncio
    >>> from dyninformer import aio
    >>> from dyninformer.testing import ApiServer
    >>> async def main(server: ApiServer) -> None:
    ...     async with aio.open_informer("ns", client=server.client()) as namespaces:
    ...         async with namespaces.events(idle_timeout=0.1) as events:
    ...             print(sorted([event.name async for event in events]))
    >>> with ApiServer() as server:
    ...     asyncio.run(main(server))
    ['default', 'kube-node-lease', 'kube-public', 'kube-system']
    """

    def __init__(
        self,
        store: Store,
        queue: HandlerQueue,
        close: Callable[[], None],
        forget: Callable[[], None],
        idle_timeout: float | None,
    ) -> None:
        super().__init__(store, queue, close, forget, idle_timeout)
        self._slices: Slices | None = None
        self._loop: Loop | None = None  # in which it was last read
        self._knock = Knock()
        queue.call_with(self._knock)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event; waits for it."""
        event = await self.take(self.idle_timeout)
        if event is None:
            self.close()
            raise StopAsyncIteration
        return event

    async def take(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes in time, or when the stream has ended.

        A timeout does not end the stream: this is for loops that do something else as well.
        """
        if self._waits:
            raise RuntimeError(
                f"another task waits for the next event of this stream of {self._store.gvr}: "
                "give each task a stream of its own"
            )
        self._waits = True
        try:
            step = await self._step(timeout)
        finally:
            self._waits = False
        if step is None:
            return None
        self._given = True
        return Event(self._store.gvr, self._store.codec, step)

    async def _step(self, timeout: float | None) -> Delta | None:
        """What is to be told next, when it is there; None at the timeout, or at the end."""
        loop = running()
        if self._slices is None or self._loop is not loop:
            self._loop, self._slices = loop, Slices(loop)
        queue, slices = self._queue, self._slices
        if slices.over:  # before the event is taken, so that a cancellation here loses none
            await slices.next()
        if self._given:
            queue.advance()
            self._given = False
        step = queue.head()
        if step is not None:
            return step
        deadline = Deadline(timeout)
        while not queue.closed:
            woken = await self._knock.wait(loop, queue, deadline.left)
            slices.begin()
            step = queue.head()
            if step is not None:
                return step
            if not woken and deadline.over:
                return None
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"backlog={self.backlog}"
        return f"<aio.EventStream {self._store.gvr} {state}>"
