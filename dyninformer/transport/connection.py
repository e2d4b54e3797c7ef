"""One connection on the event loop: a socket, TLS, an engine of HTTP, and the answers' readers."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http.client import RemoteDisconnected
from typing import Final

from dyninformer.transport.http2 import WINDOW, Http2
from dyninformer.transport.layers import Layer
from dyninformer.transport.messages import (
    Data,
    End,
    Engine,
    GoingAway,
    Head,
    LostConnectionError,
    Outgoing,
    Part,
    ProtocolError,
    Reset,
    UnprocessedError,
)

_FULL: Final = 4096
"""A read of so much is a full one: kube-apiserver sends TLS records of this size."""
_PAUSE: Final = 0.001  # seconds
_MOST_BUFFERED: Final = 1 << 20  # bytes of an HTTP/1.1 answer that its reader has not taken
_MOST_UNSENT: Final = 4 << 20  # bytes that the server does not read
_QUIET: Final = 15.0  # seconds without a byte after which a PING is sent...
_PATIENCE: Final = 10.0  # ...and so many more before the connection counts as dead
_HURRY: Final = 3.0  # the same, where a request waits on a connection that was idle
_IDLE: Final = 90.0  # seconds after which a connection without requests is closed

READ_SIZE: Final = 262_144


class Stream:
    """One request and its answer. For one coroutine, on the connection's loop."""

    def __init__(self, connection: Connection, number: int, silence: float) -> None:
        self.reused = connection.used
        """It went over a connection that had answered before."""
        self._connection = connection
        self._number = number
        self._head: Head | None = None
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._complete = False
        self._failure: Callable[[], BaseException] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._loop = connection.loop
        self._silence = silence
        self._heard = self._loop.time()
        self._timer = self._loop.call_later(silence, self._check_silence)

    @property
    def buffered(self) -> int:
        """How many bytes of the body wait for the reader."""
        return self._size

    async def head(self) -> Head:
        """Wait for the status and the headers.

        Raises:
            TimeoutError: Nothing came for as long as is allowed.
            UnprocessedError: The server has not looked at the request.
            LostConnectionError: The connection ended.
        """
        while self._head is None:
            if self._complete:
                raise self._error()
            await self._wait()
        return self._head

    async def read(self) -> bytes:
        """Wait for a part of the body, and return all that has come; b"" at its end."""
        while not self._pieces:
            if self._failure is not None:
                raise self._error()
            if self._complete:
                return b""
            await self._wait()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        self._connection.consumed(self._number, len(data))
        return data

    def allow_silence(self, seconds: float) -> None:
        """From now on, so many seconds without a byte are no failure."""
        self._silence = seconds
        self._timer.cancel()
        self._check_silence()

    def close(self) -> None:
        """End it. A coroutine that waits for it gets a `LostConnectionError`. Idempotent."""
        if not self._complete:
            self.fail(partial(LostConnectionError, "the request was ended"))
            self._connection.cancel(self._number)

    def take(self, part: Part) -> None:
        """Take a part of the answer. Called by the connection."""
        self._heard = self._loop.time()
        if isinstance(part, Data):
            self._pieces.append(part.data)
            self._size += len(part.data)
        elif isinstance(part, Head):
            self._head = part
        elif isinstance(part, End):
            self._finish()
        self._wake()

    def fail(self, failure: Callable[[], BaseException]) -> None:
        """Have the reader get an error once it has taken what came before."""
        if not self._complete:
            self._failure = failure
            self._finish()
            self._wake()

    # -- inside --------------------------------------------------------------------------

    def _error(self) -> BaseException:
        """Return a new error each time, since a traceback is added to it where it is raised."""
        return (
            LostConnectionError("the answer has no head") if not self._failure else self._failure()
        )

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        self._complete = True
        self._timer.cancel()

    def _check_silence(self) -> None:
        """Fail if nothing came for too long; else look again when that could be so."""
        if self._pieces:
            self._heard = self._loop.time()  # it is the reader who is slow
        left = self._heard + self._silence - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_silence)
        else:
            self.fail(partial(TimeoutError, "the server said nothing"))
            self._connection.cancel(self._number)


class Connection(asyncio.BufferedProtocol):
    """One connection to the server. Everything happens on its loop.

    ``layers`` stand between the socket and HTTP, the one next to the socket first: TLS to a proxy,
    a proxy's tunnel, TLS to the server. ``buffer`` is what sockets are read into. All connections
    of a loop can share it, since each read is processed before the next one.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        http: Callable[[], Engine],
        buffer: bytearray,
        on_change: Callable[[], None],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.used = False
        """A request has been answered over it."""
        self.is_http2 = False
        self.socket: socket.socket | None = None
        self._layers = layers
        self._http = http  # makes the engine, once all layers are established
        self._buffer = memoryview(buffer)
        self._on_change = on_change  # called when there may be more room, and at the end
        self._engine: Engine | None = None
        self._streams: dict[int, Stream] = {}
        self._transport: asyncio.Transport | None = None
        self._ready: asyncio.Future[None] = self.loop.create_future()
        self._over: Callable[[], BaseException] | None = None
        self._heard = self.loop.time()
        self._asked_at: float | None = None  # when a PING was sent that is not answered
        self._patience = _PATIENCE
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False

    # -- for the pool --------------------------------------------------------------------

    async def established(self) -> None:
        """Wait until requests can be sent. Raises what went wrong."""
        await self._ready

    @property
    def is_open(self) -> bool:
        """It is established, and has not ended."""
        return self._engine is not None and self._over is None

    @property
    def room(self) -> int:
        """How many more requests can begin now."""
        return self._engine.room if self.is_open and self._engine is not None else 0

    @property
    def requests(self) -> int:
        """How many are under way."""
        return len(self._streams)

    def begin(self, request: Outgoing, silence: float, window: int = WINDOW) -> Stream:
        """Send a request. Call only while there is `room`."""
        assert self._engine is not None  # noqa: S101 - there is room
        number = self._engine.send(request, window=window)
        self._streams[number] = stream = Stream(self, number, silence)
        if self.is_http2 and self.loop.time() - self._heard > _QUIET:
            self._ping(_HURRY)
        self._flush()
        self._look_again()
        return stream

    def cancel(self, number: int) -> None:
        """Drop a stream."""
        if self._streams.pop(number, None) is None or self._engine is None or self._over:
            return
        self._engine.cancel(number)
        self._flush()
        self._leave()

    def consumed(self, number: int, size: int) -> None:
        """The reader of a stream has taken so many bytes."""
        if self._engine is not None and not self._over:
            self._engine.consumed(number, size)
            self._flush()
            if self._paused:
                self._resume()

    def close(self) -> None:
        """End it, and every request on it."""
        self.fail(ConnectionAbortedError("the connection was closed"))

    def leave_to_parent(self) -> None:
        """In a forked child: close the socket, which shuts nothing down.

        The object that asyncio has of it gets no number, so that it cannot close another file.
        """
        if self.socket is not None:
            with suppress(OSError):
                os.close(self.socket.detach())

    def fail(self, error: BaseException) -> None:
        """End it. The readers of its streams get a `LostConnectionError`, for this reason."""
        if self._over is not None:
            return
        self._over = partial(_lost, error)
        if self._timer is not None:
            self._timer.cancel()
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # it may be that the pool does not wait for it any more
        for stream in list(self._streams.values()):
            stream.fail(self._over)
        self._streams.clear()
        if self._transport is not None:
            self._transport.abort()
        self._on_change()

    # -- for asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin what is next to the socket."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport
        self._guarded(self._advance)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next read goes."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Work off a read."""
        self._heard = self.loop.time()
        if self._asked_at is not None:
            self._asked_at = None
            self._look_again()
        self._guarded(partial(self._receive, self._buffer[:nbytes]))
        if nbytes >= _FULL and not self._paused and self._over is None:
            self._pause()
            self.loop.call_later(_PAUSE, self._resume)

    def eof_received(self) -> bool:
        """The server has closed its side."""
        self._guarded(self._receive_end)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self.fail(exc or RemoteDisconnected("the server closed the connection"))

    # -- inside --------------------------------------------------------------------------

    def _guarded(self, act: Callable[[], None]) -> None:
        """Act, and send what comes of it. What the server does wrong ends the connection."""
        try:
            act()
            self._flush()
        except (ProtocolError, ssl.SSLError, OSError) as error:
            self._flush_quietly()  # it tells the server why
            self.fail(error)

    def _receive(self, data: memoryview) -> None:
        found: bytes | memoryview = data
        for layer in self._layers:
            found = layer.receive(found)
            if not layer.established:
                self._advance()
                return
        if self._engine is None:
            self._advance()
        if found and self._engine is not None:
            for part in self._engine.receive(bytes(found)):
                self._dispatch(part)
        if any(layer.closed for layer in self._layers):
            self._receive_end()

    def _receive_end(self) -> None:
        if self._engine is None:
            raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "EOF occurred in violation of protocol")
        if self._streams and not all(layer.closed for layer in self._layers[-1:]):
            raise ProtocolError("the connection was cut in the middle of an answer")
        for part in self._engine.receive_end():
            self._dispatch(part)
        self.fail(RemoteDisconnected("the server closed the connection"))

    def _advance(self) -> None:
        """Begin the first layer that is not established; if all are, HTTP."""
        for layer in self._layers:
            if not layer.established:
                layer.begin()
                if not layer.established:
                    return
        self._engine = self._http()
        self.is_http2 = isinstance(self._engine, Http2)
        self._ready.set_result(None)
        self._look_again()

    def _dispatch(self, part: Part) -> None:
        if isinstance(part, Head | Data):
            stream = self._streams.get(part.stream)
            if stream is not None:
                stream.take(part)
                if not self.is_http2 and stream.buffered > _MOST_BUFFERED:
                    self._pause()
        elif isinstance(part, End):
            self.used = True
            if (stream := self._streams.pop(part.stream, None)) is not None:
                stream.take(part)
            self._leave()
        elif isinstance(part, Reset):
            if (stream := self._streams.pop(part.stream, None)) is not None:
                kind = UnprocessedError if part.unprocessed else LostConnectionError
                stream.fail(partial(kind, f"the server ended the request ({part.reason})"))
            self._leave()
        elif isinstance(part, GoingAway):
            self._leave()

    def _leave(self) -> None:
        """A request is over: there is more room, or the connection is of no more use."""
        if self._engine is not None and not self._streams and not self._engine.room:
            self.fail(ConnectionAbortedError("the connection is of no more use"))
        else:
            if not self._streams:
                self._look_again()
            self._on_change()

    def _flush(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        data = b"" if self._engine is None else self._engine.output()
        for layer in reversed(self._layers):
            layer.send(data)
            data = layer.output()
        if data:
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > _MOST_UNSENT:
                self.fail(ProtocolError("the server asks for more answers than it reads"))

    def _flush_quietly(self) -> None:
        with suppress(ProtocolError, ssl.SSLError, OSError):
            self._flush()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        """Read on, unless a reader has yet to take what came."""
        if not self._paused or self._over is not None or self._transport is None:
            return
        slow = not self.is_http2 and any(
            stream.buffered > _MOST_BUFFERED for stream in self._streams.values()
        )
        if not slow:
            self._paused = False
            self._transport.resume_reading()

    # -- signs of life -------------------------------------------------------------------

    def _ping(self, patience: float) -> None:
        if self._asked_at is None and self._engine is not None and self._engine.ping():
            self._asked_at, self._patience = self.loop.time(), patience

    def _look_again(self) -> None:
        """See to it that the connection is looked at when something may be due."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asked_at is not None:
            due = self._asked_at + self._patience
        elif self._streams and self.is_http2:
            due = self._heard + _QUIET
        else:
            due = self._heard + _IDLE
        self._timer = self.loop.call_at(due, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        if self._asked_at is not None and now >= self._asked_at + self._patience:
            self.fail(TimeoutError("the server did not answer a PING"))
            return
        if not self._streams and now >= self._heard + _IDLE:
            self.close()
            return
        if self._streams and self.is_http2 and now >= self._heard + _QUIET:
            self._ping(_PATIENCE)
            self._guarded(lambda: None)
        self._look_again()


def _lost(error: BaseException) -> LostConnectionError:
    found = LostConnectionError(str(error))
    found.__cause__ = error
    return found
