"""The port: listening or refusing, the connections it has taken, and their TLS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dyninformer.testing.http.connection import Connection, Handle
from dyninformer.testing.http.http2 import Http2Connection
from dyninformer.testing.http.sending import Frames
from dyninformer.testing.http.wire import Limits, Wire

if TYPE_CHECKING:
    import trustme

_HOST = "127.0.0.1"
_BACKLOG = 1024
_TLS_HANDSHAKE = b"\x16"
_NO_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 1.0
"""How long a client is given to answer the end of TLS with its own."""
_EXHAUSTED_SECONDS = 0.1
"""How long no client is let in after the process has run out of file descriptors."""

_logger = logging.getLogger(__name__)


class Listener:
    """A port on loopback that stays this server's from construction to `close`.

    Everything happens on the thread of ``loop``. ``port`` 0 is any that is free.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: Handle,
        clock: Callable[[], float],
        *,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self._loop = loop
        self._handle = handle
        self._clock = clock
        self._limits = limits or Limits()
        self._tls = tls
        self._frames = Frames()
        self._sock = _bound(port)
        self._listening = False
        self._handshakes: dict[asyncio.Task[None], socket.socket] = {}
        self._wires: set[Wire] = set()
        self._all_gone = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], Wire] = {}
        self.port: int = self._sock.getsockname()[1]
        """The port's number."""

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._wires)

    def open(self) -> None:
        """Accept connections. Idempotent."""
        if not self._listening:
            self._listening = True
            self._sock.listen(_BACKLOG)
            self._loop.add_reader(self._sock, self._accept)

    def refuse(self) -> None:
        """Refuse connections, and keep the port from being taken by others. Idempotent.

        Connections that are open go on. A socket that is bound and does not listen
        refuses, and holds the number.
        """
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._sock)
            self._sock.close()
            self._sock = _bound(self.port)

    def sever(self) -> None:
        """Begin to end every connection, without a goodbye.

        The one whose request the caller is handling, if so, is spared: a fault may do this
        in the middle of a request, which is then answered.
        """
        current = asyncio.current_task()
        spared = None if current is None else self._tasks.get(current)
        for wire in self._wires - {spared}:
            wire.abort()
        for task, wire in self._tasks.items():
            if wire is not spared:
                task.cancel()

    async def drop_connections(self) -> None:
        """End every connection at once, without a goodbye, and return when they are gone."""
        handshakes = tuple(self._handshakes)
        for task in handshakes:
            task.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)
        self.sever()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._wires:
            self._all_gone.clear()
            await self._all_gone.wait()

    async def close(self) -> None:
        """Give the port back, and end every connection. Idempotent."""
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._sock)
        self._sock.close()
        await self.drop_connections()

    def _accept(self) -> None:
        """Let in the clients that wait."""
        for _ in range(_BACKLOG):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                _logger.exception("no connection can be accepted; trying again soon")
                self._loop.remove_reader(self._sock)
                self._loop.call_later(_EXHAUSTED_SECONDS, self._accept_again)
                return
            sock.setblocking(False)
            task = self._loop.create_task(self._take(sock))
            self._handshakes[task] = sock
            task.add_done_callback(self._taken)

    def _accept_again(self) -> None:
        if self._listening:
            self._loop.add_reader(self._sock, self._accept)

    async def _take(self, sock: socket.socket) -> None:
        """From an accepted socket to a connection, through the handshake of TLS if there is one."""
        if self._tls is not None and await self._first_byte(sock) != _TLS_HANDSHAKE:
            await self._refuse_plain_http(sock)
            return
        await self._loop.connect_accepted_socket(
            lambda: Wire(self._connected, self._lost),
            sock,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
            ssl_shutdown_timeout=_GOODBYE_SECONDS if self._tls else None,
        )

    async def _first_byte(self, sock: socket.socket) -> bytes:
        """What the client begins with, left where it is; empty if it has left."""
        readable = asyncio.Event()
        self._loop.add_reader(sock, readable.set)
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                await readable.wait()
        finally:
            self._loop.remove_reader(sock)
        return sock.recv(1, socket.MSG_PEEK)

    async def _refuse_plain_http(self, sock: socket.socket) -> None:
        """Tell a client that speaks no TLS, in words that it can read."""
        with sock, contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._loop.sock_sendall(sock, _NO_TLS)
                sock.shutdown(socket.SHUT_WR)
                while await self._loop.sock_recv(sock, 1 << 16):
                    pass

    def _taken(self, task: asyncio.Task[None]) -> None:
        sock = self._handshakes.pop(task)
        if task.cancelled() or task.exception() is not None:
            sock.close()  # the end of the server, or no TLS, or no trust, or a client that has left

    def _connected(self, wire: Wire) -> None:
        self._wires.add(wire)
        made: Connection | Http2Connection
        if wire.speaks_http2:
            spawn = partial(self._spawn, wire)
            made = Http2Connection(wire, self._handle, self._limits, self._clock, spawn)
        else:
            made = Connection(wire, self._handle, self._limits, self._clock, self._frames)
        self._spawn(wire, made.run())

    def _spawn(self, wire: Wire, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the connection."""
        task = self._loop.create_task(work)
        self._tasks[task] = wire
        task.add_done_callback(self._tasks.pop)
        return task

    def _lost(self, wire: Wire) -> None:
        self._wires.discard(wire)
        if not self._wires:
            self._all_gone.set()


def _bound(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.ExitStack() as undo:
        undo.callback(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((_HOST, port))
        sock.setblocking(False)
        undo.pop_all()
    return sock


# -- a certificate authority of this process's own ---------------------------------------------


@cache
def _authority() -> trustme.CA:
    """One authority for all servers of the process, made on first use (a few milliseconds)."""
    import trustme  # noqa: PLC0415 - 50 ms of cryptography that plain HTTP does not need

    return trustme.CA(organization_name="dyninformer", key_type=trustme.KeyType.ECDSA)


def authority_pem() -> bytes:
    """The authority's certificate, for clients to trust."""
    return _authority().cert_pem.bytes()


def server_context(*, http2: bool = True) -> ssl.SSLContext:
    """What a server on loopback shows: a certificate for 127.0.0.1 and localhost.

    ``http2`` offers HTTP/2 to clients, which choose in the handshake.
    """
    import trustme  # noqa: PLC0415 - as above

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    certificate = _authority().issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA)
    certificate.configure_cert(context)
    return context
