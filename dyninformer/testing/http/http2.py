"""One HTTP/2 connection: many requests at once, each on a stream, and their answers.

The package h2 knows the protocol. This module connects it to the wire, to the handler of requests
and to `Sender`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame, PingFrame

from dyninformer.testing.api.answers import error_response
from dyninformer.testing.api.bodies import too_large
from dyninformer.testing.http.connection import Handle, RefusedRequestError, planned, request_of
from dyninformer.testing.http.sending import BODILESS, Frame, Sender, as_it_is
from dyninformer.testing.http.wire import Limits, Wire, do_nothing
from dyninformer.testing.messages import (
    AnswerPlan,
    ConnectionStep,
    Ending,
    Headers,
    Request,
    Response,
)

RawHeaders = list[tuple[bytes, bytes]]
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

_UNLIMITED = (1 << 31) - 1
_FRAME_HEAD_SIZE = 9

_logger = logging.getLogger(__name__)


class Http2Connection:
    """One client on one wire, which has agreed to HTTP/2.

    ``handle`` is called on the loop's thread, once for each request. ``spawn`` starts the task
    that serves a stream.
    """

    def __init__(
        self, wire: Wire, handle: Handle, limits: Limits, clock: Callable[[], float], spawn: Spawn
    ) -> None:
        self.wire = wire
        self.http = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._handle = handle
        self._limits = limits
        self._clock = clock
        self._spawn = spawn
        self._streams: dict[int, Stream] = {}
        self._waiting: deque[Stream] = deque()  # streams with something to send, in turn
        self._newest = 0
        self._last: int | None = None  # the last stream that is answered, once GOAWAY was sent
        self._idle_timer: asyncio.TimerHandle | None = None
        self._ignores_pings = False
        self._frozen = False

    async def run(self) -> None:
        """Serve requests until the connection has ended. Raises nothing except cancellation."""
        try:
            self._begin()
            while (data := await self.wire.read()) and not self.wire.closed:
                try:
                    events = self.http.receive_data(data)
                except ProtocolError:
                    self._flush()  # a GOAWAY that says what is wrong
                    return
                for event in events:
                    if isinstance(event, ConnectionTerminated):
                        return  # h2 can send nothing after the client's GOAWAY
                    self._receive(event)
                self.pump()
        except Exception:  # a mistake of ours costs one connection, not the server
            _logger.exception("a connection failed inside the server, and is closed")
            self.wire.abort()
        finally:
            self.wire.close()
            self._stop_idle_timer()
            for stream in self._streams.values():
                stream.task.cancel()

    def _begin(self) -> None:
        """Send the settings."""
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: self._limits.max_streams,
            SettingCodes.MAX_HEADER_LIST_SIZE: self._limits.head_bytes,
        }
        self.http.local_settings = Settings(client=False, initial_values=values)
        self.http.decoder.max_header_list_size = self._limits.head_bytes
        self.http.initiate_connection()
        # At one stream too many h2 would end the connection; `_open` refuses the stream instead.
        values[SettingCodes.MAX_CONCURRENT_STREAMS] = _UNLIMITED
        self.http.local_settings = Settings(client=False, initial_values=values)
        self._flush()
        self._start_idle_timer()

    # -- requests in ---------------------------------------------------------------------

    def _receive(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._open(event.stream_id, event.headers)
        elif isinstance(event, DataReceived):
            # Give the window back at once: a long body is refused, not slowed down.
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if stream := self._streams.get(event.stream_id):
                stream.receive(event.data, self._limits.body_bytes)
        elif isinstance(event, StreamEnded):
            if stream := self._streams.get(event.stream_id):
                stream.request_ended = True
                stream.received.set()
        elif isinstance(event, StreamReset) and (stream := self._streams.get(event.stream_id)):
            stream.closed = True
            stream.task.cancel()
            self.forget(stream)

    def _open(self, number: int, headers: Iterable[Any]) -> None:
        if self._last is not None:
            return  # GOAWAY has told the client that this stream is ignored
        self._newest = number
        if len(self._streams) >= self._limits.max_streams:
            self.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            return
        self._stop_idle_timer()
        stream = self._streams[number] = Stream(number, self)
        stream.task = self._spawn(self._serve(stream, [(name, value) for name, value in headers]))

    async def _serve(self, stream: Stream, headers: RawHeaders) -> None:
        """Read one request to its end, and answer it."""
        try:
            plan = await self._plan(stream, headers)
            sender = StreamSender(stream, self, self._limits, self._clock)
            await self._act_on(await sender.send(plan), stream, plan)
        except Exception:  # a mistake of ours costs one stream
            _logger.exception("a stream failed inside the server, and is reset")
        finally:
            stream.reset(ErrorCodes.INTERNAL_ERROR)

    async def _plan(self, stream: Stream, headers: RawHeaders) -> AnswerPlan:
        """The answer, once the request has been read."""
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        host = [(b"host", pseudo[b":authority"])] if b":authority" in pseudo else []
        fields = [*host, *(each for each in headers if each[0] not in pseudo)]
        method, path = pseudo[b":method"], pseudo.get(b":path", b"/")
        try:
            request = request_of(method, path, fields, "2")
            if request.headers.get("expect", "").lower() == "100-continue":
                stream.send_head([(b":status", b"100")], interim=True)
            async with asyncio.timeout(self._limits.body_seconds):
                await stream.received.wait()
        except RefusedRequestError as refused:
            return _refusal(refused.status, refused.text)
        except TimeoutError:
            return _refusal(408, "408 Request Timeout")
        if stream.length > self._limits.body_bytes:
            return AnswerPlan(request, error_response(request, too_large(self._limits.body_bytes)))
        return planned(replace(request, body=bytes(stream.body)), self._handle)

    async def _act_on(self, ending: Ending, stream: Stream, plan: AnswerPlan) -> None:
        stall = self._limits.stall_seconds
        if ending is Ending.SILENCE:
            await asyncio.Event().wait()  # until the client resets the stream, or leaves
        await stream.drain(stall)
        if stream.closed:
            return
        if ending is Ending.RESET_STREAM:
            stream.reset(plan.reset_code)
            return
        await self.wire.flush(stall)
        if ending is Ending.RESET:
            self.wire.reset()
        else:
            self.wire.close()

    # -- answers out ---------------------------------------------------------------------

    def wait_to_send(self, stream: Stream) -> None:
        """Put a stream with something to send in the queue, and send what can be sent."""
        if stream not in self._waiting:
            self._waiting.append(stream)
        self.pump()

    def pump(self) -> None:
        """Send what the client's windows allow, one frame of each stream in turn."""
        stuck = 0
        while stuck < len(self._waiting):
            stream = self._waiting.popleft()
            stuck = 0 if stream.send_frame() else stuck + 1
            if stream.pending:
                self._waiting.append(stream)
        self._flush()

    def write_raw(self, data: bytes) -> None:
        """Send bytes that need not be frames."""
        self._flush()
        if not self._frozen:
            self.wire.write(data)

    def reset_stream(self, number: int, code: int) -> None:
        """Send RST_STREAM, unless the client was faster."""
        if not self.wire.closed:
            with suppress(StreamClosedError):
                self.http.reset_stream(number, code)
            self._flush()

    def forget(self, stream: Stream) -> None:
        """The stream has ended, or is ignored."""
        self._streams.pop(stream.number, None)
        if self._streams or self._frozen:
            return
        if self._last is not None:
            self._flush()
            self.wire.close()
        else:
            self._start_idle_timer()

    def change(self, step: ConnectionStep, stream: Stream) -> None:
        """Do to the connection what a fault of the answer on ``stream`` says."""
        if step is ConnectionStep.GO_AWAY:
            self._go_away(self._newest)
        elif step is ConnectionStep.GO_AWAY_BEFORE:
            self._go_away(stream.number - 2)
        elif step is ConnectionStep.IGNORE_PINGS:
            self._ignores_pings = True
        else:
            self._frozen = True
            self._stop_idle_timer()

    def _go_away(self, last: int) -> None:
        """Send GOAWAY, ignore the streams above ``last``, and close when the others have ended.

        h2 would send nothing after a GOAWAY of its own.
        """
        if self._last is not None and self._last <= last:
            return
        self._last = max(last, 0)
        self.write_raw(GoAwayFrame(0, last_stream_id=self._last).serialize())
        for stream in [each for each in self._streams.values() if each.number > self._last]:
            stream.closed = True
            if stream.task is not asyncio.current_task():
                stream.task.cancel()
            self.forget(stream)

    def _flush(self) -> None:
        data = self.http.data_to_send()
        if self._ignores_pings:
            data = _without_pings(data)
        if data and not self._frozen:
            self.wire.write(data)

    def _start_idle_timer(self) -> None:
        self._stop_idle_timer()
        if not self.wire.closed:
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._limits.idle_seconds, self._close_idle)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _close_idle(self) -> None:
        self._go_away(self._newest)
        self.wire.close()


class Stream:
    """One request and its answer. It is the `Outlet` of its `StreamSender`."""

    task: asyncio.Task[None]
    """The task that serves it. It is cancelled when the client resets the stream or leaves."""

    def __init__(self, number: int, connection: Http2Connection) -> None:
        self.number = number
        self.on_gone = do_nothing
        self.closed = False
        """Nothing can be sent: the stream has ended, or is ignored."""
        self.received = asyncio.Event()
        """The whole request has come, or more of it than is read."""
        self.request_ended = False
        self.length = 0
        """The length of the request's body so far."""
        self.body = bytearray()
        self.largest_frame: int | None = None
        self._connection = connection
        self._begun = False
        self._ending = False
        self._unsent = bytearray()
        self._sent = asyncio.Event()

    def receive(self, data: bytes, limit: int) -> None:
        """Keep a part of the request's body, up to a limit."""
        self.length += len(data)
        if self.length > limit:
            self.received.set()
        else:
            self.body += data

    @property
    def gone(self) -> bool:
        """The client waits for no more of the answer."""
        return self.closed

    @property
    def pending(self) -> bool:
        """There is something to send."""
        return not self.closed and (bool(self._unsent) or self._ending)

    def send_head(self, headers: RawHeaders, *, interim: bool = False) -> None:
        """Send the head of the answer, or of an interim answer."""
        if not self.closed:
            self._begun = not interim
            self._connection.http.send_headers(self.number, headers)
            self._connection.pump()

    def write(self, data: bytes) -> None:
        """Send a part of the body, or keep it until the client's windows allow it.

        Bytes before the head, which only a fault sends, go to the connection as they are.
        """
        if not data or self.closed:
            return
        if self._begun:
            self._unsent += data
            self._connection.wait_to_send(self)
        else:
            self._connection.write_raw(data)

    def end(self) -> None:
        """End the answer, after what is still to be sent."""
        if not self.closed:
            self._ending = True
            self._connection.wait_to_send(self)

    def send_frame(self) -> bool:
        """Send one frame, if there is something to send and the windows allow it."""
        if not self.pending:
            return False
        http = self._connection.http
        room = min(http.local_flow_control_window(self.number), http.max_outbound_frame_size)
        if self.largest_frame is not None:
            room = min(room, self.largest_frame)
        if self._unsent and room <= 0:
            return False
        data = bytes(self._unsent[:room])
        del self._unsent[:room]
        last = self._ending and not self._unsent
        http.send_data(self.number, data, end_stream=last)
        if last:
            self.closed = True
            if not self.request_ended:
                self._connection.reset_stream(self.number, ErrorCodes.NO_ERROR)
            self._connection.forget(self)
        self._sent.set()
        return True

    async def drain(self, stall: float) -> None:
        """Return once everything has been sent; reset a stream that stalls for so many seconds."""
        try:
            while self.pending:
                self._sent.clear()
                async with asyncio.timeout(stall):
                    await self._sent.wait()
        except TimeoutError:
            self.reset(ErrorCodes.INTERNAL_ERROR)
        await self._connection.wire.drain(stall)

    def reset(self, code: int) -> None:
        """End the stream with RST_STREAM, unless it has ended."""
        if not self.closed:
            self.closed = True
            self._connection.reset_stream(self.number, code)
            self._connection.forget(self)


class StreamSender(Sender):
    """Sends the answer on one stream."""

    def __init__(
        self,
        stream: Stream,
        connection: Http2Connection,
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(stream, limits, clock)
        self._own = stream
        self._connection = connection

    def _head(self, status: int, headers: Headers, length: int | None) -> bytes:
        if length is not None and status not in BODILESS:
            headers += (("Content-Length", str(length)),)
        sent = [(name.lower().encode(), text.encode("utf-8", "replace")) for name, text in headers]
        self._own.send_head([(b":status", b"%d" % status), *sent])
        return b""

    def _framing(self, plan: AnswerPlan, length: int | None) -> Frame:
        del length
        self._own.largest_frame = plan.frame
        return as_it_is

    def _end(self) -> Ending:
        self._own.end()
        return Ending.CLEAN

    def _connection_step(self, step: ConnectionStep) -> None:
        self._connection.change(step, self._own)


def _refusal(status: int, text: str) -> AnswerPlan:
    """The answer to what is no request of the API."""
    headers: Headers = (("Content-Type", "text/plain; charset=utf-8"),)
    return AnswerPlan(Request("GET", "/"), Response(status, headers, text.encode()))


def _without_pings(frames: bytes) -> bytes:
    """Whole frames, except for PING. This server sends none but answers."""
    kept = bytearray()
    while frames:
        size = _FRAME_HEAD_SIZE + int.from_bytes(frames[:3], "big")
        if frames[3] != PingFrame.type:
            kept += frames[:size]
        frames = frames[size:]
    return bytes(kept)
