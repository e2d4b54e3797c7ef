"""The port: listening or refusing, and the connections it has taken."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from dyninformer.testing.http.connection import Connection, Handle
from dyninformer.testing.http.framing import Frames
from dyninformer.testing.http.limits import Limits
from dyninformer.testing.http.wire import Wire

_HOST = "127.0.0.1"
_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 1.0
"""How long a client is given to answer the end of TLS with its own."""


class Listener:
    """A port on loopback that stays this server's from `open` to `close`.

    Everything happens on the loop's thread.
    """

    def __init__(
        self, handle: Handle, clock: Callable[[], float], *, limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        self._handle = handle
        self._clock = clock
        self._limits = limits or Limits()
        self._tls = tls
        self._frames = Frames()
        self._server: asyncio.Server | None = None
        self._placeholder: socket.socket | None = None
        self._wires: set[Wire] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        """The port's number, from the first `open` on."""

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._wires)

    async def open(self) -> None:
        """Accept connections. Idempotent."""
        if self._server is not None:
            return
        self._release()
        sock = _bound(self.port)
        self.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Wire(self._connected, self._lost),
            sock=sock, backlog=1024, ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
            ssl_shutdown_timeout=_GOODBYE_SECONDS if self._tls else None,
        )  # fmt: skip

    async def refuse(self) -> None:
        """Refuse connections, and keep the port from being taken by others. Idempotent.

        Connections that are open go on. A socket that is bound and does not listen
        refuses, and holds the number.
        """
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self._placeholder = _bound(self.port)

    async def drop_connections(self) -> None:
        """End every connection at once, without a goodbye."""
        for wire in tuple(self._wires):
            wire.abort()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Give the port back, and end every connection. Idempotent."""
        await self.refuse()
        self._release()
        await self.drop_connections()

    def _connected(self, wire: Wire) -> None:
        connection = Connection(wire, self._handle, self._limits, self._clock, self._frames)
        self._wires.add(wire)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lost(self, wire: Wire) -> None:
        self._wires.discard(wire)

    def _release(self) -> None:
        if self._placeholder is not None:
            self._placeholder.close()
            self._placeholder = None


def _bound(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.ExitStack() as undo:
        undo.callback(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((_HOST, port))
        undo.pop_all()
    return sock
