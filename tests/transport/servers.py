"""Servers of HTTP/2, in memory and on sockets, for tests that decide about every frame."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Self

import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import Event, RequestReceived, StreamReset
from h2.settings import SettingCodes

from dyninformer.transport.http2 import Http2
from dyninformer.transport.messages import Outgoing, Part

GET = Outgoing("GET", "/api", [("Authorization", "Bearer sesame")])
OK = [(":status", "200"), ("content-type", "application/json")]


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """One frame, as its bytes."""
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


class Peer:
    """A server that speaks HTTP/2 by the package h2, and the client that is tested."""

    def __init__(self, *, most_streams: int = 100) -> None:
        self.client = Http2("server:6443")
        self.server = H2Connection(H2Configuration(client_side=False))
        self.server.initiate_connection()
        self.server.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: most_streams})
        self.heard: list[Event] = []
        self.parts: list[Part] = []
        self.exchange()

    def exchange(self) -> list[Part]:
        """Carry bytes both ways until both are silent; the new parts that the client reports."""
        before = len(self.parts)
        while True:
            upwards, downwards = self.client.output(), self.server.data_to_send()
            if not upwards and not downwards:
                return self.parts[before:]
            self.heard += self.server.receive_data(upwards)
            self.parts += self.client.receive(downwards)

    def ask(self, request: Outgoing = GET, window: int = 0) -> int:
        """Begin a request, and have the server hear of it."""
        stream = self.client.send(request, window=window)
        self.exchange()
        return stream

    def answered(self, request: Outgoing = GET, window: int = 0) -> int:
        """Begin a request, and have the server send the head of an answer."""
        stream = self.ask(request, window)
        self.server.send_headers(stream, OK)
        self.exchange()
        return stream

    def requests(self) -> list[dict[str, str]]:
        """The headers of each request that the server has heard."""
        return [
            {_text(name): _text(value) for name, value in each.headers or ()}
            for each in self.heard
            if isinstance(each, RequestReceived)
        ]

    def resets(self) -> list[tuple[int | None, int]]:
        """The streams that the client ended, each with the code."""
        return [
            (each.stream_id, int(each.error_code or 0))
            for each in self.heard
            if isinstance(each, StreamReset)
        ]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


# -- on sockets -----------------------------------------------------------------------------


AUTHORITY = trustme.CA()


def client_tls(*protocols: str) -> ssl.SSLContext:
    """A client's context that trusts the servers here."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    context.set_alpn_protocols(list(protocols) or ["h2", "http/1.1"])
    return context


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - conditions of any kind
            await asyncio.sleep(0.002)


class Http2Server:
    """A server of HTTP/2 over TLS in the test's event loop, each of whose faults is a switch.

    A target that begins with ``/watch`` is answered with a stream that stays open, any other one
    with the target as its body.
    """

    def __init__(self, *, most_streams: int = 100) -> None:
        self.most_streams = most_streams
        self.connections: list[Http2Connection] = []
        """All that ever were, in the order in which they came."""
        self.refusing = 0
        """So many of the next streams are refused."""
        self.silent = False
        """Bytes are taken, and nothing is answered, not even a PING."""
        self.holding = False
        """Requests are heard, and not answered."""
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
        context.set_alpn_protocols(["h2"])
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Http2Connection(self), "127.0.0.1", 0, ssl=context
        )
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *details: object) -> None:
        assert self._server is not None
        self._server.close()
        for each in self.connections:
            each.cut()

    @property
    def open(self) -> list[Http2Connection]:
        """The connections that have not ended."""
        return [each for each in self.connections if each.is_open]


class Http2Connection(asyncio.Protocol):
    """One of the server's connections."""

    def __init__(self, server: Http2Server) -> None:
        self._server = server
        self._h2 = H2Connection(H2Configuration(client_side=False))
        self._transport: asyncio.Transport | None = None
        self.is_open = False
        self.targets: dict[int, str] = {}
        """What was asked for, by stream."""
        self.streams: set[int] = set()
        """The streams that are open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True
        self._server.connections.append(self)
        self._h2.initiate_connection()
        self._h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: self._server.most_streams})
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        del exc
        self.is_open = False

    def data_received(self, data: bytes) -> None:
        """Answer."""
        if self._server.silent:
            return
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self._answer(event)
            elif isinstance(event, StreamReset):
                self.streams.discard(event.stream_id or 0)
        self.flush()

    def send(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """A part of a body."""
        self._h2.send_data(stream, data, end_stream=end)
        if end:
            self.streams.discard(stream)
        self.flush()

    def go_away(self, last: int) -> None:
        """Announce that no stream above this one is answered."""
        assert self._transport is not None
        self._transport.write(frame(7, 0, 0, last.to_bytes(4, "big") + bytes(4)))

    def cut(self) -> None:
        """End it without a word."""
        if self._transport is not None:
            self._transport.abort()

    def flush(self) -> None:
        """Send what waits."""
        if self._transport is not None and not self._server.silent:
            self._transport.write(self._h2.data_to_send())

    def _answer(self, event: RequestReceived) -> None:
        stream = event.stream_id or 0
        if self._server.refusing or len(self.streams) >= self._server.most_streams:
            self._server.refusing = max(0, self._server.refusing - 1)
            self._h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            return
        headers = {_text(name): _text(value) for name, value in event.headers or ()}
        target = self.targets[stream] = headers[":path"]
        if self._server.holding:
            return
        self._h2.send_headers(stream, OK)
        if target.startswith("/watch"):
            self.streams.add(stream)
        else:
            self._h2.send_data(stream, target.encode(), end_stream=True)
