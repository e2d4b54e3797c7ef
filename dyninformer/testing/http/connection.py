"""One client's connection: requests in, exchanges out, until one side has had enough."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import h11

from dyninformer.testing.exchange import Ending, Exchange
from dyninformer.testing.http.framing import Frames
from dyninformer.testing.http.limits import Limits
from dyninformer.testing.http.requests import BodyTooLargeError, RefusedError, read_request
from dyninformer.testing.http.sending import Sender
from dyninformer.testing.http.wire import Wire
from dyninformer.testing.messages import Request, Response
from dyninformer.testing.status import ApiError

Handle = Callable[[Request], Exchange]

_log = logging.getLogger(__name__)


class Connection:
    """The conversation on one wire.

    ``handle`` is called on the loop's thread, once for each request, in order.
    """

    def __init__(
        self, wire: Wire, handle: Handle, limits: Limits, clock: Callable[[], float], frames: Frames
    ) -> None:
        self._wire = wire
        self._handle = handle
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._sender = Sender(wire, self._http, limits, clock, frames)

    async def run(self) -> None:
        """Serve requests until the connection has ended. Never raises but for cancellation."""
        try:
            while await self._serve_one():
                self._http.start_next_cycle()
        except Exception:  # noqa: BLE001 - a mistake of ours costs one connection, not the server
            _log.exception("a connection failed inside the server, and is closed")
            self._wire.abort()

    async def _serve_one(self) -> bool:
        """One request and its answer; false when the connection is over."""
        try:
            request = await read_request(self._wire, self._http, self._limits)
        except RefusedError as refused:
            await self._refuse(refused)
            return False
        except BodyTooLargeError as large:
            answer = _too_large(self._limits.body_bytes, last=not large.read)
            ending = await self._sender.send(Exchange(large.request, answer))
            if large.read:
                return await self._act_on(ending)
            await self._wire.linger(self._limits.linger_seconds)
            return False
        if request is None:
            self._wire.close()
            return False
        return await self._act_on(await self._sender.send(self._exchange(request)))

    def _exchange(self, request: Request) -> Exchange:
        """What is to be sent; a failure of the server itself is a 500 that says no more."""
        try:
            return self._handle(request)
        except Exception:  # noqa: BLE001 - a mistake of ours is the client's 500
            _log.exception("%s %s failed inside the server", request.method, request.path)
            error = ApiError(500, "InternalError", "the embedded API server failed; see its log")
            return Exchange(request, status_response(error))

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

    async def _refuse(self, refused: RefusedError) -> None:
        """Answer what was no request, as far as the protocol still allows an answer."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = refused.text.encode()
            headers = [
                ("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close"),
                ("Content-Length", str(len(body))),
            ]  # fmt: skip
            reason = refused.text.partition(" ")[2].partition(":")[0]
            head = h11.Response(status_code=refused.status, headers=headers, reason=reason)
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self._wire.write(self._http.send(event) or b"")
        await self._wire.linger(self._limits.linger_seconds)


def status_response(error: ApiError) -> Response:
    """An ApiError as the answer that carries it."""
    headers = [("Cache-Control", "no-cache, private")]
    if error.text is not None:
        headers.append(("Content-Type", "text/plain; charset=utf-8"))
        body = error.text.encode()
    else:
        headers.append(("Content-Type", "application/json"))
        body = json.dumps(error.body(), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    if error.retry_after is not None:
        headers.append(("Retry-After", str(error.retry_after)))
    return Response(error.code, (*headers, *error.headers), body, error.delay)


def _too_large(limit: int, *, last: bool) -> Response:
    message = f"Request entity too large: limit is {limit}"
    headers = (("Connection", "close"),) if last else ()
    return status_response(ApiError(413, "RequestEntityTooLarge", message, headers=headers))
