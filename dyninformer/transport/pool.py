"""The connections to one API server, and which of them carries a request.

Everything happens on one event loop, so nothing here needs a lock.

With HTTP/2 a connection carries up to a hundred requests. Watches share connections, and lists
have others: on a slow link a list would delay the events of the watches beside it. With HTTP/1.1
each request has a connection to itself, which another request may use afterwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from dyninformer.errors import StoppedError
from dyninformer.transport.connection import Connection, Stream
from dyninformer.transport.endpoint import ConnectError, Connector
from dyninformer.transport.http2 import WINDOW
from dyninformer.transport.messages import Outgoing

_MOST_CONNECTING: Final = 8
_EXPECTED_ROOM: Final = 100  # of a connection that is being opened and may turn out to be HTTP/2
_LARGE_WINDOW: Final = 4 << 20


class Traffic(Enum):
    """What a request is for. Requests share connections only with others of their kind."""

    WATCH = auto()
    LIST = auto()


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request that waits for a connection with room."""

    request: Outgoing
    silence: float
    stream: asyncio.Future[Stream]


class Pool:
    """Keeps the connections of one endpoint."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._open: dict[Traffic, set[Connection]] = {each: set() for each in Traffic}
        # Of these, the ones with room, the one that got it last behind.
        self._free: dict[Traffic, dict[Connection, None]] = {each: {} for each in Traffic}
        self._waiters: dict[Traffic, deque[_Waiter]] = {each: deque() for each in Traffic}
        self._opening: dict[Traffic, set[asyncio.Task[None]]] = {each: set() for each in Traffic}
        self._expected_room = _EXPECTED_ROOM  # 1 once a server has chosen HTTP/1.1
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def begin(
        self, request: Outgoing, silence: float, traffic: Traffic, *, fresh: bool = False
    ) -> Stream:
        """Send a request as soon as a connection has room for it; ``fresh``: over a new one.

        Raises `ConnectError` if a connection was needed, and none came about.
        """
        if self._closed:
            raise StoppedError("the connections have been closed")
        if fresh:
            connection = await self._connect(traffic)
            stream = self._begin(connection, request, silence, traffic)
            self._add(connection, traffic)
            return stream
        waiter = _Waiter(request, silence, asyncio.get_running_loop().create_future())
        self._waiters[traffic].append(waiter)
        self._serve(traffic)
        try:
            return await waiter.stream
        except asyncio.CancelledError:
            if waiter.stream.done() and not waiter.stream.cancelled():
                waiter.stream.result().close()
            raise

    def distrust_idle(self) -> None:
        """Close the connections without requests: one that was idle turned out to be dead."""
        for connections in self._open.values():
            for each in [each for each in connections if not each.requests]:
                each.close()

    def close(self) -> None:
        """End all connections and requests, and refuse new ones."""
        self._closed = True
        for traffic in Traffic:
            for task in self._opening[traffic]:
                task.cancel()
            for connection in list(self._open[traffic]):
                connection.close()
            for waiter in self._waiters[traffic]:
                waiter.stream.cancel()

    def leave_to_parent(self) -> None:
        """In a forked child: close the sockets, and leave the connections to the parent."""
        for connections in self._open.values():
            for each in connections:
                each.leave_to_parent()

    # -- inside --------------------------------------------------------------------------

    def _serve(self, traffic: Traffic) -> None:
        """Give waiting requests the room there is, and open connections for the others."""
        waiters, free = self._waiters[traffic], self._free[traffic]
        while waiters and free:
            connection = next(reversed(free))
            waiter = waiters.popleft()
            if not waiter.stream.done():
                stream = self._begin(connection, waiter.request, waiter.silence, traffic)
                waiter.stream.set_result(stream)
        opening = self._opening[traffic]
        while len(opening) * self._expected_room < len(waiters) and len(opening) < _MOST_CONNECTING:
            task = asyncio.get_running_loop().create_task(self._open_one(traffic))
            opening.add(task)

    def _begin(
        self, connection: Connection, request: Outgoing, silence: float, traffic: Traffic
    ) -> Stream:
        window = _LARGE_WINDOW if traffic is Traffic.LIST else WINDOW
        stream = connection.begin(request, silence, window)
        if not connection.room:
            self._free[traffic].pop(connection, None)
        return stream

    async def _open_one(self, traffic: Traffic) -> None:
        """Open a connection for those that wait. If that fails, they all get the error."""
        task = asyncio.current_task()
        try:
            connection = await self._connect(traffic)
        except Exception as error:  # noqa: BLE001 - whatever it is, they must not wait for ever
            self._fail_waiters(traffic, error)
        else:
            self._add(connection, traffic)
        finally:
            self._opening[traffic].discard(task)
        if not self._closed:
            self._serve(traffic)

    async def _connect(self, traffic: Traffic) -> Connection:
        made: list[Connection] = []

        def changed() -> None:
            if made:
                self._on_change(made[0], traffic)

        connection = await self._connector.connect(changed)
        if self._closed:
            connection.close()
            raise StoppedError("the connections have been closed")
        made.append(connection)
        self._expected_room = _EXPECTED_ROOM if connection.is_http2 else 1
        return connection

    def _add(self, connection: Connection, traffic: Traffic) -> None:
        if connection.is_open:
            self._open[traffic].add(connection)
            self._on_change(connection, traffic)

    def _on_change(self, connection: Connection, traffic: Traffic) -> None:
        """A connection has ended, or has room or less of it."""
        known, free = self._open[traffic], self._free[traffic]
        if connection in known:
            free.pop(connection, None)
            if not connection.is_open:
                known.discard(connection)
            elif connection.room:
                free[connection] = None
        if self._waiters[traffic] and not self._closed:
            self._serve(traffic)

    def _fail_waiters(self, traffic: Traffic, error: Exception) -> None:
        waiters = self._waiters[traffic]
        while waiters:
            waiter = waiters.popleft()
            if not waiter.stream.done():
                waiter.stream.set_exception(_copy(error))


def _copy(error: Exception) -> Exception:
    """Return an error of its own for each request, since each adds a traceback to it."""
    stage = error.stage if isinstance(error, ConnectError) else "connecting"
    found = ConnectError(stage)
    found.__cause__ = error.__cause__ if isinstance(error, ConnectError) else error
    return found
