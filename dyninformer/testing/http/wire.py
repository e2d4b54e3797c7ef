"""One connection's bytes, both ways, with back pressure, and what a connection may cost."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from dyninformer.checked import check_fields


@dataclass(frozen=True, slots=True)
class Limits:
    """The real server's limits, where it has them.

    >>> from dyninformer.testing import ApiServer, Limits
    >>> with ApiServer(limits=Limits(idle_seconds=1)):  # keep-alive connections soon go stale
    ...     pass
    """

    head_bytes: int = (1 << 20) + 4096
    """Request line and headers; more is a 431."""
    body_bytes: int = 3 << 20
    """Request body; more is a 413."""
    head_seconds: float = 32.0
    """From a request's first byte to the end of its headers."""
    body_seconds: float = 60.0
    """From the end of the headers to the end of the body."""
    idle_seconds: float = 90.0
    """A keep-alive connection without a request is closed after this."""
    stall_seconds: float = 60.0
    """A client that takes no byte for so long, while there is something to send, is dropped.

    An HTTP/2 stream whose window stays closed for so long is reset.
    """
    linger_seconds: float = 1.0
    """How long a refused client is listened to, so that it can read why."""
    max_streams: int = 100
    """Requests at once on one HTTP/2 connection; one more is refused with REFUSED_STREAM."""

    def __post_init__(self) -> None:
        check_fields(self)


_INBOX_LIMIT = 1 << 18
_OUTBOX_LIMIT = 1 << 18
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for no time: close() sends RST


def do_nothing() -> None:
    """What is called when the client goes and nothing waits for that."""


class Wire(asyncio.Protocol):
    """The transport under a connection.

    It belongs to the loop's thread, and serves one reading and writing task. What the
    client sends ahead is kept up to a limit, then left in the kernel.
    """

    def __init__(self, connected: Callable[[Wire], None], lost: Callable[[Wire], None]) -> None:
        self._connected = connected
        self._lost = lost
        self._inbox = bytearray()
        self._ended = False
        self._closed = False
        self._reading = True
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self.on_gone: Callable[[], None] = do_nothing
        """Called when the client has closed its side, or all of it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio: the client is there."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP gives no other kind
        self._transport = transport
        transport.set_write_buffer_limits(high=_OUTBOX_LIMIT)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connected(self)

    def data_received(self, data: bytes) -> None:
        """Asyncio: the client says something."""
        self._inbox += data
        self._arrived.set()
        if self._reading and len(self._inbox) > _INBOX_LIMIT:
            self._reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Asyncio: the client has said all it will say."""
        self._ended = True
        self._arrived.set()
        self.on_gone()
        # It may still want its answer; TLS has no such half-open state.
        return self._transport.get_extra_info("ssl_object") is None

    def pause_writing(self) -> None:
        """Asyncio: the client is slow."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Asyncio: the client has caught up."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Asyncio: the connection is over, from whatever side."""
        self._closed = self._ended = True
        self._arrived.set()
        self._writable.set()
        self.on_gone()
        self._lost(self)

    @property
    def speaks_http2(self) -> bool:
        """The client has agreed to HTTP/2, in the handshake of TLS."""
        tls = self._transport.get_extra_info("ssl_object")
        return tls is not None and tls.selected_alpn_protocol() == "h2"

    @property
    def gone(self) -> bool:
        """The client reads no more, or says no more."""
        return self._ended

    @property
    def closed(self) -> bool:
        """Nothing can be sent."""
        return self._closed or self._transport.is_closing()

    async def read(self) -> bytes:
        """What has arrived, waiting for something; empty at the end."""
        while not self._inbox and not self._ended:
            self._arrived.clear()
            await self._arrived.wait()
        data = bytes(self._inbox)
        self._inbox.clear()
        if not self._reading and not self._closed:
            self._reading = True
            self._transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """Send, or keep until it can be sent; nothing if the connection is closed."""
        if not self.closed:
            self._transport.write(data)

    async def drain(self, stall: float) -> None:
        """Return once there is room for more; drop a client that makes none for ``stall`` s."""
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(stall):
                await self._writable.wait()
        except TimeoutError:
            self.abort()

    async def flush(self, stall: float) -> None:
        """Return once the kernel has all that was written, or the connection is closed."""
        if self.closed or not self._transport.get_write_buffer_size():
            return
        self._transport.set_write_buffer_limits(high=0)
        try:
            await self.drain(stall)
        finally:
            self._transport.set_write_buffer_limits(high=_OUTBOX_LIMIT)

    def close(self) -> None:
        """Send what is kept, then close."""
        self._transport.close()

    async def linger(self, seconds: float) -> None:
        """Close so that the client can read what it was told while it still sends.

        Closing a socket with unread bytes resets it, and a reset takes the answer with it.
        """
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(seconds):
                if not self.closed and self._transport.can_write_eof():
                    self._transport.write_eof()
                while await self.read():
                    pass
        self.close()

    def abort(self) -> None:
        """Close at once; what is kept is lost."""
        self._transport.abort()

    def reset(self) -> None:
        """Close at once, with RST."""
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
