"""Faults in what is said: refusals, wrong types, and watches with odd lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from dyninformer.testing.exchange import EditedStream, Ending, Step
from dyninformer.testing.faults.strike import Fault, Strike
from dyninformer.testing.messages import Headers, Response
from dyninformer.testing.status import ApiError

_BOOKMARK = b'{"type":"BOOKMARK"'
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
    405: "MethodNotAllowed", 406: "NotAcceptable", 409: "Conflict", 410: "Expired",
    413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid",
    429: "TooManyRequests", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HttpStatus(Fault):
    """The request is refused with ``code``, and a Status as its body.

    ``text`` replaces the Status by plain text ("" is no body at all), as proxies and
    overloaded servers do. ``retry_after`` is in seconds, or a moment in UTC.
    """

    code: int
    message: str = "injected fault"
    reason: str | None = None
    retry_after: int | datetime | None = None
    text: str | None = None

    def before(self, strike: Strike) -> None:
        """Nobody handles the request."""
        strike.answer(Response(self.code, self._headers(), self._body()))

    def _headers(self) -> Headers:
        kind = "application/json" if self.text is None else "text/plain; charset=utf-8"
        headers: Headers = (("Cache-Control", "no-cache, private"), ("Content-Type", kind))
        if isinstance(self.retry_after, datetime):
            return (*headers, ("Retry-After", format_datetime(self.retry_after, usegmt=True)))
        if self.retry_after is not None:
            return (*headers, ("Retry-After", str(self.retry_after)))
        return headers

    def _body(self) -> bytes:
        if self.text is not None:
            return self.text.encode()
        details = None
        if isinstance(self.retry_after, int):
            details = {"retryAfterSeconds": self.retry_after}
        reason = self.reason or _REASONS.get(self.code)
        return _json(ApiError(self.code, reason, self.message, details=details).body())


@dataclass(frozen=True, slots=True)
class ContentType(Fault):
    """The answer claims to be of another type; ``body``, if given, replaces what it says."""

    value: str = "text/html"
    body: bytes | None = None

    def after(self, strike: Strike) -> None:
        """A watch with a body of its own is a finished answer."""
        answer = strike.exchange.answer
        if answer is None:
            return
        headers = _retyped(answer.headers, self.value)
        if self.body is not None:
            status = answer.status if isinstance(answer, Response) else 200
            strike.answer(Response(status, headers, self.body))
            return
        if isinstance(answer, Response):
            strike.exchange.answer = replace(answer, headers=headers)
        else:
            strike.exchange.answer = EditedStream(answer, headers=headers)
        strike.hit()


@dataclass(frozen=True, slots=True)
class StreamError(Fault):
    """A watch gets an ERROR line and a clean end, after some lines.

    ``code`` None leaves the code out of the Status.
    """

    code: int | None = 410
    message: str = "too old resource version: 1 (2)"
    reason: str | None = None
    after_lines: int = 0

    def after(self, strike: Strike) -> None:
        """The head of the answer has said 200 by then."""
        code = self.code or 0
        status = ApiError(code, self.reason or _REASONS.get(code), self.message).body()
        if self.code is None:
            del status["code"]
        line = _json({"type": "ERROR", "object": status})
        strike.after_lines(self.after_lines, (line, Ending.CLEAN))


@dataclass(frozen=True, slots=True)
class DuplicateLines(Fault):
    """Every line of a watch comes twice."""

    def after(self, strike: Strike) -> None:
        """Bookmarks too."""

        def edit(line: bytes) -> Iterator[Step]:
            strike.hit()
            yield line
            yield line

        strike.edit(edit)


@dataclass(frozen=True, slots=True)
class WithholdBookmarks(Fault):
    """A watch gets no BOOKMARK: neither the usual ones nor the end mark of a streaming list."""

    def after(self, strike: Strike) -> None:
        """Everything else passes."""

        def edit(line: bytes) -> Iterator[Step]:
            if line.startswith(_BOOKMARK):
                strike.hit()
            else:
                yield line

        strike.edit(edit)


@dataclass(frozen=True, slots=True)
class InjectLine(Fault):
    """A watch gets a line that no server would send: garbage, half a character, a blank."""

    line: bytes = b"\xff\xfe{not json"
    after_lines: int = 0

    def after(self, strike: Strike) -> None:
        """The lines of the server follow."""
        strike.after_lines(self.after_lines, (self.line + b"\n",))


@dataclass(frozen=True, slots=True)
class OversizedLine(Fault):
    """One line of a watch, the one after ``after_lines``, is blown up to ``size`` bytes.

    It is filled with blanks before its last brace, so it means what it meant.
    """

    size: int = 32 << 20
    after_lines: int = 0

    def after(self, strike: Strike) -> None:
        """Only one line."""
        left = self.after_lines

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            left -= 1
            if left == -1:
                strike.hit()
                line = line[:-2] + b" " * (self.size - len(line)) + line[-2:]
            yield line

        strike.edit(edit)


def _retyped(headers: Headers, value: str) -> Headers:
    kept = tuple(pair for pair in headers if pair[0].lower() != "content-type")
    return (*kept, ("Content-Type", value))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
