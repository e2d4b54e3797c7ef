"""One HTTP/1.1 connection: requests in, within limits, and answers out, until one side ends it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import parse_qsl, unquote

import h11

from dyninformer.testing.api.answers import error_response
from dyninformer.testing.api.bodies import too_large
from dyninformer.testing.http.sending import Frames, Http1Sender
from dyninformer.testing.http.wire import Limits, Wire
from dyninformer.testing.messages import AnswerPlan, Ending, Request
from dyninformer.testing.status import ApiError

Handle = Callable[[Request], AnswerPlan]

_logger = logging.getLogger(__name__)


class Connection:
    """One client on one wire.

    ``handle`` is called on the loop's thread, once for each request, in order.
    """

    def __init__(
        self, wire: Wire, handle: Handle, limits: Limits, clock: Callable[[], float], frames: Frames
    ) -> None:
        self._wire = wire
        self._handle = handle
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._sender = Http1Sender(wire, self._http, limits, clock, frames)

    async def run(self) -> None:
        """Serve requests until the connection has ended. Raises nothing except cancellation."""
        try:
            while await self._serve_one():
                self._http.start_next_cycle()
        except Exception:  # a mistake of ours costs one connection, not the server
            _logger.exception("a connection failed inside the server, and is closed")
            self._wire.abort()

    async def _serve_one(self) -> bool:
        """One request and its answer; false when the connection is over."""
        try:
            request = await _read_request(self._wire, self._http, self._limits)
        except RefusedRequestError as refused:
            await self._refuse(refused)
            return False
        except BodyTooLargeError as large:
            headers = () if large.read else (("Connection", "close"),)
            error = too_large(self._limits.body_bytes, headers)
            answer = error_response(large.request, error)
            ending = await self._sender.send(AnswerPlan(large.request, answer))
            if large.read:
                return await self._act_on(ending)
            await self._wire.linger(self._limits.linger_seconds)
            return False
        if request is None:
            self._wire.close()
            return False
        return await self._act_on(await self._sender.send(planned(request, self._handle)))

    async def _act_on(self, ending: Ending) -> bool:
        if ending is Ending.CLEAN:
            if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
                return True
            self._wire.close()
            return False
        if ending is Ending.SILENCE:
            while await self._wire.read():
                pass
        if ending is Ending.RESET:
            await self._wire.flush(self._limits.stall_seconds)
            self._wire.reset()
        else:
            self._wire.close()
        return False

    async def _refuse(self, refused: RefusedRequestError) -> None:
        """Answer what was not a request, as far as the protocol still allows an answer."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = refused.text.encode()
            headers = [
                ("Content-Type", "text/plain; charset=utf-8"),
                ("Connection", "close"),
                ("Content-Length", str(len(body))),
            ]
            reason = refused.text.partition(" ")[2].partition(":")[0]
            head = h11.Response(status_code=refused.status, headers=headers, reason=reason)
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self._wire.write(self._http.send(event) or b"")
        await self._wire.linger(self._limits.linger_seconds)


def planned(request: Request, handle: Handle) -> AnswerPlan:
    """What is to be sent; a failure of the server itself is a 500 that says no more."""
    try:
        return handle(request)
    except Exception:  # a mistake of ours is the client's 500
        _logger.exception("%s %s failed inside the server", request.method, request.path)
        error = ApiError(500, "InternalError", "the embedded API server failed; see its log")
        return AnswerPlan(request, error_response(request, error))


# -- from the bytes of a connection to a Request -----------------------------------------------

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class RefusedRequestError(Exception):
    """A request that is answered by the connection itself, which is then closed."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class BodyTooLargeError(Exception):
    """A request whose body is over the limit. ``request`` is the rest of it.

    ``read`` says that the body has been read to its end, so the connection can go on.
    """

    def __init__(self, request: Request, *, read: bool) -> None:
        super().__init__(f"{request.method} {request.path}")
        self.request = request
        self.read = read


def request_of(
    method: bytes, target_bytes: bytes, raw: Iterable[tuple[bytes, bytes]], http_version: str
) -> Request:
    """The request in the API's words, its body to come. RefusedRequestError: the target is none."""
    if method == b"CONNECT":
        raise RefusedRequestError(405, "405 Method Not Allowed: this is no proxy")
    target = _ABSOLUTE.sub("", target_bytes.decode("ascii", "replace"), count=1)
    path, _, query = target.partition("?")
    if _BAD_ESCAPE.search(path):
        raise RefusedRequestError(400, "400 Bad Request: invalid URL escape")
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        between = "\n" if name == "impersonate-group" else ", "  # a group may have commas
        headers[name] = f"{headers[name]}{between}{value}" if name in headers else value
    return Request(
        method=method.decode("latin-1"),
        path=unquote(path) or "/",
        query=tuple(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
        http_version=http_version,
    )


async def _read_request(wire: Wire, http: h11.Connection, limits: Limits) -> Request | None:
    """The next request of a connection, None when there is none: the client has left, or idles.

    Raises RefusedRequestError for what is no HTTP, is too slow or too long, and
    BodyTooLargeError with the body read as far as is reasonable.
    """
    try:
        head = await _head(wire, http, limits)
        if head is None:
            return None
        request = request_of(head.method, head.target, head.headers, head.http_version.decode())
        try:
            async with asyncio.timeout(limits.body_seconds):
                body = await _body(wire, http, limits)
        except TimeoutError:
            raise RefusedRequestError(408, "408 Request Timeout") from None
    except h11.RemoteProtocolError as error:
        if wire.closed:
            return None
        raise RefusedRequestError(*_complaint(error)) from error
    if body is None:
        raise BodyTooLargeError(request, read=http.their_state is not h11.SEND_BODY)
    return replace(request, body=body) if body else request


async def _head(wire: Wire, http: h11.Connection, limits: Limits) -> h11.Request | None:
    event = http.next_event()
    if event is h11.NEED_DATA and not http.trailing_data[0]:
        try:
            async with asyncio.timeout(limits.idle_seconds):
                http.receive_data(await wire.read())
        except TimeoutError:
            return None
        event = http.next_event()
    try:
        async with asyncio.timeout(limits.head_seconds):
            while event is h11.NEED_DATA:
                http.receive_data(await wire.read())
                event = http.next_event()
    except TimeoutError:
        raise RefusedRequestError(408, "408 Request Timeout") from None
    return event if isinstance(event, h11.Request) else None


async def _body(wire: Wire, http: h11.Connection, limits: Limits) -> bytes | None:
    """The whole body, None if it is over the limit (read on to its end, or to 16 times that)."""
    body = bytearray()
    length = 0
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            if http.they_are_waiting_for_100_continue:
                wire.write(http.send(h11.InformationalResponse(status_code=100, headers=[])))
            http.receive_data(await wire.read())
        elif isinstance(event, h11.Data):
            length += len(event.data)
            if length <= limits.body_bytes:
                body += event.data
            elif length > 16 * limits.body_bytes:
                return None
        else:
            return bytes(body) if length <= limits.body_bytes else None


def _complaint(error: h11.RemoteProtocolError) -> tuple[int, str]:
    if error.error_status_hint == 431:
        return 431, "431 Request Header Fields Too Large"
    if error.error_status_hint == 501:
        return 501, "501 Not Implemented: unsupported transfer encoding"
    return 400, "400 Bad Request"
