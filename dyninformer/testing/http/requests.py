"""From the bytes of a connection to a Request, within limits."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qsl, unquote

import h11

from dyninformer.testing.http.limits import Limits
from dyninformer.testing.http.wire import Wire
from dyninformer.testing.messages import Request

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class RefusedError(Exception):
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


def request_of(head: h11.Request, body: bytes = b"") -> Request:
    """The request in the API's words; RefusedError for a target that is none."""
    if head.method == b"CONNECT":
        raise RefusedError(405, "405 Method Not Allowed: this is no proxy")
    target = _ABSOLUTE.sub("", head.target.decode("ascii"), count=1)
    path, _, query = target.partition("?")
    if _BAD_ESCAPE.search(path):
        raise RefusedError(400, "400 Bad Request: invalid URL escape")
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Request(
        method=head.method.decode("ascii"),
        path=unquote(path) or "/",
        query=tuple(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
        body=body,
    )


async def read_request(wire: Wire, http: h11.Connection, limits: Limits) -> Request | None:
    """The next request of a connection, None when there is none: the client has left, or idles.

    Raises RefusedError for what is no HTTP, is too slow or too long, and
    BodyTooLargeError with the body read as far as is reasonable.
    """
    try:
        head = await _head(wire, http, limits)
        if head is None:
            return None
        request = request_of(head)
        try:
            async with asyncio.timeout(limits.body_seconds):
                body = await _body(wire, http, limits)
        except TimeoutError:
            raise RefusedError(408, "408 Request Timeout") from None
    except h11.RemoteProtocolError as error:
        if wire.closed:
            return None
        raise RefusedError(*_complaint(error)) from error
    if body is None:
        raise BodyTooLargeError(request, read=http.their_state is not h11.SEND_BODY)
    return Request(request.method, request.path, request.query, request.headers, body)


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
        raise RefusedError(408, "408 Request Timeout") from None
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
