"""Sending an answer as it is planned: head, body or lines, pauses and endings.

`Sender` is the part that HTTP/1.1 and HTTP/2 share. `Http1Sender` writes the head by h11, and the
body in chunks: each line of a watch is one chunk, made once for all that watch.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from email.utils import formatdate
from http import HTTPStatus
from itertools import chain
from typing import Protocol
from uuid import uuid4

import h11

from dyninformer.testing.http import websocket
from dyninformer.testing.http.wire import Limits, Wire, do_nothing
from dyninformer.testing.messages import (
    AnswerPlan,
    AnyStream,
    ConnectionStep,
    Ending,
    Headers,
    Pause,
    Response,
    Step,
    is_stream,
)

_PIECE = 1 << 16


def chunk(data: bytes) -> bytes:
    """``data`` as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    """``data`` as chunks of ``size`` bytes, cut wherever that falls."""
    for start in range(0, len(data), size):
        yield chunk(data[start : start + size])


def gathered(pieces: Iterable[bytes], size: int = _PIECE) -> Iterator[bytes]:
    """The same bytes in pieces of at least ``size``, except the last."""
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(held)
            held.clear()
            length = 0
    if length:
        yield b"".join(held)


class Frames:
    """The frames of the lines sent last.

    A line is known by identity: every watch of an event is given the same bytes object,
    so the first to send it frames it for all. An entry holds its line, so that an id is
    never met again while the entry lives. Owned by the loop's thread.
    """

    def __init__(self, limit: int = 4 << 20) -> None:
        self._limit = limit
        self._held = 0
        self._frames: dict[int, tuple[bytes, bytes]] = {}
        self._order: deque[int] = deque()

    def frame(self, line: bytes) -> bytes:
        """The line as one chunk."""
        known = self._frames.get(id(line))
        if known is not None:
            return known[1]
        framed = chunk(line)
        self._frames[id(line)] = (line, framed)
        self._order.append(id(line))
        self._held += len(framed)
        while self._held > self._limit and self._order:
            _, old = self._frames.pop(self._order.popleft())
            self._held -= len(old)
        return framed


Frame = Callable[[bytes], bytes]
SendLines = Callable[[Frame, Callable[[], bool]], Awaitable[Ending]]
"""Send the lines of a watch, each framed, for as long as the client is there."""

BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_SHORT = 2048
"""A shorter body is sent with Content-Length, as the real server does."""
_TURN = 1 << 18
"""After so many bytes for one client, the others get their turn."""


class Outlet(Protocol):
    """Where the bytes of an answer go: the `Wire` of HTTP/1.1, or one stream of HTTP/2."""

    on_gone: Callable[[], None]

    @property
    def gone(self) -> bool:
        """The client waits for no more of the answer."""

    @property
    def closed(self) -> bool:
        """Nothing can be sent."""

    def write(self, data: bytes) -> None:
        """Send, or keep until it can be sent."""

    async def drain(self, stall: float) -> None:
        """Return once there is room for more; drop a client that makes none for ``stall`` s."""


class Sender(ABC):
    """Sends answers to one outlet, one after another.

    ``clock`` is the time that the deadlines of streams are in.
    """

    def __init__(self, outlet: Outlet, limits: Limits, clock: Callable[[], float]) -> None:
        self._outlet = outlet
        self._limits = limits
        self._clock = clock
        self._sent_in_turn = 0

    @abstractmethod
    def _head(self, status: int, headers: Headers, length: int | None) -> bytes:
        """Begin the answer; return the bytes of the head that are still to be written.

        ``length`` is that of the body, if it is known.
        """

    @abstractmethod
    def _framing(self, plan: AnswerPlan, length: int | None) -> Frame:
        """Return how bytes of the body are framed, behind a head with this ``length``."""

    @abstractmethod
    def _end(self) -> Ending:
        """End the answer cleanly."""

    @abstractmethod
    def _connection_step(self, step: ConnectionStep) -> None:
        """Change the connection."""

    async def send(self, plan: AnswerPlan) -> Ending:
        """Send all of it, and return how it ended, for the connection to act on."""
        if plan.waits:
            await self._sleep(plan.waits)
        if self._outlet.closed:
            return Ending.CLOSE
        for step in plan.opening:
            self._connection_step(step)
        if plan.instead is not None:
            return await self._steps(plan.instead, as_it_is, plan) or Ending.CLOSE
        answer = plan.answer
        if answer is None:
            raise ValueError(f"nobody answered {plan.request.method} {plan.request.path}")
        if is_stream(answer):
            return await self._stream(answer, plan)
        assert isinstance(answer, Response)  # noqa: S101 - what is no stream is a Response
        return await self._response(answer, plan)

    async def _response(self, answer: Response, plan: AnswerPlan) -> Ending:
        body = answer.body
        length = None
        if isinstance(body, bytes) and len(body) < _SHORT and plan.frame is None:
            length = len(body)
        await self._write(self._head(answer.status, _complete(answer.headers), length), plan)
        if plan.request.method == "HEAD" or answer.status in BODILESS:
            return self._end()
        pieces = gathered((body,) if isinstance(body, bytes) else body)
        ending = None
        if plan.cut is not None:
            limit, ending = plan.cut
            pieces = _first(pieces, limit)
        frame = self._framing(plan, length)
        return await self._steps(pieces, frame, plan) or ending or self._end()

    async def _stream(self, stream: AnyStream, plan: AnswerPlan) -> Ending:
        wake = asyncio.Event()
        stream.on_ready = self._outlet.on_gone = wake.set
        alarm = _Alarm(self._clock, wake.set)

        async def lines(frame: Frame, goes_on: Callable[[], bool]) -> Ending:
            while goes_on():
                wake.clear()
                stream = _stream_of(plan)
                if steps := stream.take():
                    ending = await self._steps(steps, frame, plan)
                    if ending is not None:
                        return ending
                elif stream.ended:
                    return Ending.CLEAN
                else:
                    alarm.set(stream.deadline)
                    await wake.wait()
            return Ending.CLOSE

        try:
            return await self._watch(stream, plan, lines, wake)
        finally:
            alarm.set(None)
            self._outlet.on_gone = do_nothing
            _stream_of(plan).close()

    async def _watch(
        self, stream: AnyStream, plan: AnswerPlan, lines: SendLines, wake: asyncio.Event
    ) -> Ending:
        """Send a watch as the body of an answer; setting ``wake`` has it look at its client."""
        del wake
        await self._write(self._head(HTTPStatus.OK, _complete(stream.headers), None), plan)
        if plan.request.method == "HEAD":
            return self._end()
        ending = await lines(self._framing(plan, None), lambda: not self._outlet.gone)
        return self._end() if ending is Ending.CLEAN else ending

    async def _steps(self, steps: Iterable[Step], frame: Frame, plan: AnswerPlan) -> Ending | None:
        """Do what the steps say; the Ending among them, None if there was none.

        Frames that follow one another go out in one write.
        """
        held: list[bytes] = []
        size = 0
        for step in chain(steps, (None,)):
            if isinstance(step, bytes):
                held.append(frame(step))
                size += len(step)
                if size < _TURN:
                    continue
            if held:
                await self._write(b"".join(held), plan)
                held.clear()
                size = 0
            if self._outlet.closed:
                return Ending.CLOSE
            if isinstance(step, Pause):
                await self._sleep(step.seconds)
            elif isinstance(step, ConnectionStep):
                self._connection_step(step)
            elif isinstance(step, Ending):
                return step
        return None

    async def _write(self, data: bytes, plan: AnswerPlan) -> None:
        """Write, at the pace of the client, of the others, and of a fault."""
        if (drip := plan.drip) is not None:
            for start in range(0, len(data), drip.size):
                self._outlet.write(data[start : start + drip.size])
                await self._sleep(drip.seconds)
                if self._outlet.closed:
                    return
            return
        self._outlet.write(data)
        await self._outlet.drain(self._limits.stall_seconds)
        self._sent_in_turn += len(data)
        if self._sent_in_turn >= _TURN:
            self._sent_in_turn = 0
            await asyncio.sleep(0)

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not for longer than the client does."""
        left = asyncio.Event()
        before, self._outlet.on_gone = self._outlet.on_gone, left.set
        try:
            if not self._outlet.closed:
                async with asyncio.timeout(seconds):
                    while not self._outlet.closed:
                        left.clear()
                        await left.wait()
        except TimeoutError:
            pass
        finally:
            self._outlet.on_gone = before


class Http1Sender(Sender):
    """Sends the answers of one HTTP/1.1 connection. ``frames`` is shared by all connections."""

    def __init__(
        self,
        wire: Wire,
        http: h11.Connection,
        limits: Limits,
        clock: Callable[[], float],
        frames: Frames,
    ) -> None:
        super().__init__(wire, limits, clock)
        self._wire = wire
        self._http = http
        self._frames = frames

    async def _watch(
        self, stream: AnyStream, plan: AnswerPlan, lines: SendLines, wake: asyncio.Event
    ) -> Ending:
        if websocket.asked_for(plan.request):
            return await self._websocket(plan, lines, wake)
        return await super()._watch(stream, plan, lines, wake)

    async def _websocket(self, plan: AnswerPlan, lines: SendLines, wake: asyncio.Event) -> Ending:
        """Send the lines of a watch in a websocket, and hear what its client says there."""
        request, incoming = plan.request, websocket.Incoming()
        if refused := websocket.refusal(request):
            return await self._steps((refused,), as_it_is, plan) or Ending.CLOSE
        switch = h11.InformationalResponse(
            status_code=HTTPStatus.SWITCHING_PROTOCOLS,
            headers=[(k.encode(), v.encode("latin-1")) for k, v in websocket.acceptance(request)],
            reason="Switching Protocols",
        )
        await self._write(self._http.send(switch) or b"", plan)
        incoming.feed(self._http.trailing_data[0])

        async def listen() -> None:
            while not incoming.closed and (data := await self._wire.read()):
                incoming.feed(data)
                wake.set()

        def goes_on() -> bool:
            # Between two lines, as an answer must not stand in the middle of a frame.
            self._wire.write(incoming.answers())
            return not (self._wire.gone or incoming.closed)

        listening = asyncio.create_task(listen())
        try:
            ending = await lines(websocket.text_frame, goes_on)
            if ending is not Ending.CLEAN:
                return ending
            self._wire.write(websocket.CLOSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.linger_seconds):
                    await listening
            return Ending.CLOSE
        finally:
            listening.cancel()

    def _head(self, status: int, headers: Headers, length: int | None) -> bytes:
        if status not in BODILESS:
            chunked = ("Transfer-Encoding", "chunked")
            headers += (chunked if length is None else ("Content-Length", str(length)),)
        sent = [(name.encode(), text.encode("utf-8", "replace")) for name, text in headers]
        reason = _REASONS.get(status, "Unknown")
        return self._http.send(h11.Response(status_code=status, headers=sent, reason=reason)) or b""

    def _framing(self, plan: AnswerPlan, length: int | None) -> Frame:
        if length is not None:
            return lambda data: self._http.send(h11.Data(data=data)) or b""
        if self._http.their_http_version == b"1.0":
            return as_it_is
        if (size := plan.frame) is not None:
            return lambda data: b"".join(chunks(data, size))
        return self._frames.frame if is_stream(plan.answer) else chunk

    def _end(self) -> Ending:
        self._wire.write(self._http.send(h11.EndOfMessage()) or b"")
        return Ending.CLEAN

    def _connection_step(self, step: ConnectionStep) -> None:
        del step


class _Alarm:
    """One timer of the loop, moved when the deadline moves."""

    def __init__(self, clock: Callable[[], float], ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, deadline: float | None) -> None:
        """Ring at ``deadline``; None takes it back. A passed one rings soon."""
        pending = self._timer is not None and not self._timer.cancelled()
        if deadline == self._deadline and pending and deadline is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._deadline = deadline
        self._timer = None
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, deadline - self._clock()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._ring()


def _complete(headers: Headers) -> Headers:
    """The headers of an answer, with those that every answer has."""
    full = (*headers, ("Date", formatdate(usegmt=True)))
    if any(name.lower() == "audit-id" for name, _ in headers):
        return full
    return (("Audit-Id", str(uuid4())), *full)


def _first(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    for piece in pieces:
        if len(piece) >= limit:
            yield piece[:limit]
            return
        limit -= len(piece)
        yield piece


def _stream_of(plan: AnswerPlan) -> AnyStream:
    """The watch as it is now: a fault may have replaced it since it was opened."""
    assert is_stream(plan.answer)  # noqa: S101 - it is replaced by another watch only
    return plan.answer


def as_it_is(data: bytes) -> bytes:
    """Bytes without framing."""
    return data
