"""The faults there are: in what is said, in the connection that carries it, and in the state."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import format_datetime
from itertools import chain, repeat
from typing import Any, ClassVar, Literal

from dyninformer.testing.faults.injection import Fault, Handler, Intervention, ServerState
from dyninformer.testing.messages import (
    Drip,
    EditedStream,
    Ending,
    Headers,
    Pause,
    Response,
    Step,
    body_of,
)
from dyninformer.testing.status import ApiError

_BOOKMARK = b'{"type":"BOOKMARK"'
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class _WatchFault(Fault):
    """A fault in the lines of a watch, whether the watch is open already or opens later."""

    def for_open_watch(self) -> Fault:
        """Act as on a new watch."""
        return self


# -- what is said: refusals, wrong types, watches with odd lines ------------------------------


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

    def before(self, intervention: Intervention) -> None:
        """The request is not handled."""
        intervention.answer(Response(self.code, self._headers(), self._body()))

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

    def after(self, intervention: Intervention) -> None:
        """A watch with a body of its own is a finished answer."""
        answer = intervention.plan.answer
        if answer is None:
            return
        headers = _retyped(answer.headers, self.value)
        if self.body is not None:
            status = answer.status if isinstance(answer, Response) else 200
            intervention.answer(Response(status, headers, self.body))
            return
        if isinstance(answer, Response):
            intervention.plan.answer = replace(answer, headers=headers)
        else:
            intervention.plan.answer = EditedStream(answer, headers=headers)
        intervention.hit()


@dataclass(frozen=True, slots=True)
class StreamError(_WatchFault):
    """A watch gets an ERROR line and a clean end, after some lines.

    ``code`` None leaves the code out of the Status.
    """

    code: int | None = 410
    message: str = "too old resource version: 1 (2)"
    reason: str | None = None
    after_lines: int = 0

    def after(self, intervention: Intervention) -> None:
        """The head of the answer has said 200 by then."""
        code = self.code or 0
        status = ApiError(code, self.reason or _REASONS.get(code), self.message).body()
        if self.code is None:
            del status["code"]
        line = _json({"type": "ERROR", "object": status})
        intervention.after_lines(self.after_lines, (line, Ending.CLEAN))


@dataclass(frozen=True, slots=True)
class DuplicateLines(_WatchFault):
    """Every line of a watch comes twice."""

    def after(self, intervention: Intervention) -> None:
        """Bookmarks too."""

        def edit(line: bytes) -> Iterator[Step]:
            intervention.hit()
            yield line
            yield line

        intervention.edit(edit)


@dataclass(frozen=True, slots=True)
class WithholdBookmarks(_WatchFault):
    """A watch gets no BOOKMARK: neither the usual ones nor the end mark of a streaming list."""

    def after(self, intervention: Intervention) -> None:
        """Everything else passes."""

        def edit(line: bytes) -> Iterator[Step]:
            if line.startswith(_BOOKMARK):
                intervention.hit()
            else:
                yield line

        intervention.edit(edit)


@dataclass(frozen=True, slots=True)
class LoseEvents(_WatchFault):
    """A watch is not told of changes of one type; all that follows comes, bookmarks too.

    So does a server whose watch cache has lost events. ``count`` is how many each watch misses,
    None for all of them; ``name`` is that of the object.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"] = "DELETED"
    name: str | None = None
    count: int | None = None

    def after(self, intervention: Intervention) -> None:
        """Nothing else is different."""
        beginning = b'{"type":"%b"' % self.type.encode()
        left = self.count

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            if left != 0 and line.startswith(beginning) and self._is_meant(line):
                left = None if left is None else left - 1
                intervention.hit()
            else:
                yield line

        intervention.edit(edit)

    def _is_meant(self, line: bytes) -> bool:
        return self.name in (None, json.loads(line)["object"]["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class InjectLine(_WatchFault):
    """A watch gets a line that no server would send: garbage, half a character, a blank."""

    line: bytes = b"\xff\xfe{not json"
    after_lines: int = 0

    def after(self, intervention: Intervention) -> None:
        """The lines of the server follow."""
        intervention.after_lines(self.after_lines, (self.line + b"\n",))


@dataclass(frozen=True, slots=True)
class OversizedLine(_WatchFault):
    """One line of a watch, the one after ``after_lines``, is blown up to ``size`` bytes.

    It is filled with blanks before its last brace, so it means what it meant.
    """

    size: int = 32 << 20
    after_lines: int = 0

    def after(self, intervention: Intervention) -> None:
        """Only one line."""
        left = self.after_lines

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            left -= 1
            if left == -1:
                intervention.hit()
                line = line[:-2] + b" " * (self.size - len(line)) + line[-2:]
            yield line

        intervention.edit(edit)


# -- the connection: refused, reset, silent, slow, cut ----------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse(Fault):
    """The port is closed: new connections are refused, those that are open go on.

    It begins when it is added, and ends when it is removed or after the ``seconds`` of
    ``add``. It cannot be aimed at some requests only.
    """

    closes_port: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Reset(Fault):
    """The connection is reset (RST): before the request is handled, or in the middle.

    In the middle is ``after_lines`` of a watch, or ``after_bytes`` of any other body.
    """

    after_lines: int | None = None
    after_bytes: int | None = None

    def before(self, intervention: Intervention) -> None:
        """Instead of handling the request, unless told to wait."""
        if self.after_lines is None and self.after_bytes is None:
            intervention.instead((Ending.RESET,))

    def after(self, intervention: Intervention) -> None:
        """In the middle."""
        if self.after_lines is not None:
            intervention.after_lines(self.after_lines, (Ending.RESET,))
        elif self.after_bytes is not None:
            intervention.cut(self.after_bytes, Ending.RESET)

    def for_open_watch(self) -> Fault:
        """Reset it at once, or after some lines."""
        if self.after_bytes is not None:
            raise ValueError(
                "an open watch is reset at once, or with after_lines=, not after_bytes="
            )
        return replace(self, after_lines=self.after_lines or 0)


@dataclass(frozen=True, slots=True)
class LoseAnswer(Fault):
    """The request is handled, a write takes effect, but the connection is reset: no answer."""

    def after(self, intervention: Intervention) -> None:
        """Handled it has been."""
        intervention.instead((Ending.RESET,))


@dataclass(frozen=True, slots=True)
class BlackHole(Fault):
    """The connection stays open and nothing comes; with ``after_lines``, nothing more comes."""

    after_lines: int | None = None

    def before(self, intervention: Intervention) -> None:
        """Instead of handling the request, unless told to wait."""
        if self.after_lines is None:
            intervention.instead((Ending.SILENCE,))

    def after(self, intervention: Intervention) -> None:
        """After some lines of a watch."""
        if self.after_lines is not None:
            intervention.after_lines(self.after_lines, (Ending.SILENCE,))

    def for_open_watch(self) -> Fault:
        """Fall silent at once, or after some lines."""
        return replace(self, after_lines=self.after_lines or 0)


@dataclass(frozen=True, slots=True)
class Delay(Fault):
    """Nothing is sent for some seconds: before the answer, or ``after_lines`` of a watch."""

    seconds: float
    after_lines: int | None = None

    def after(self, intervention: Intervention) -> None:
        """The state is read first, as by a server that is slow to answer."""
        if self.after_lines is not None:
            intervention.after_lines(self.after_lines, (Pause(self.seconds),))
        else:
            intervention.plan.delay += self.seconds
            intervention.hit()

    def for_open_watch(self) -> Fault:
        """Pause at once, or after some lines."""
        return replace(self, after_lines=self.after_lines or 0)


@dataclass(frozen=True, slots=True)
class SlowDrip(_WatchFault):
    """The answer comes ``size`` bytes at a time, with ``seconds`` after each."""

    size: int = 1
    seconds: float = 0.01

    def after(self, intervention: Intervention) -> None:
        """Head, body and all."""
        intervention.plan.drip = Drip(self.size, self.seconds)
        intervention.hit()


@dataclass(frozen=True, slots=True)
class EndlessHeaders(Fault):
    """A status line, then headers without end, one every ``seconds``."""

    seconds: float = 0.01

    def before(self, intervention: Intervention) -> None:
        """The request is not handled."""
        head: tuple[Step, ...] = (b"HTTP/1.1 200 OK\r\n",)
        more: tuple[Step, ...] = (b"X-More: and more\r\n", Pause(self.seconds))
        intervention.instead(chain(head, chain.from_iterable(repeat(more))))


@dataclass(frozen=True, slots=True)
class RawAnswer(Fault):
    """These bytes are all that is sent, whatever they mean, and the connection is closed."""

    data: bytes

    def before(self, intervention: Intervention) -> None:
        """The request is not handled."""
        intervention.instead((self.data, Ending.CLOSE))


@dataclass(frozen=True, slots=True)
class Truncate(_WatchFault):
    """The answer stops in the middle, by default with a connection closed too early.

    A watch stops after ``after_lines`` whole lines and half of the next; another body
    after ``after_bytes``, or at half of it. ``ending=Ending.CLEAN`` makes the framing
    of HTTP look complete.
    """

    after_lines: int = 0
    after_bytes: int | None = None
    ending: Ending = Ending.CLOSE

    def after(self, intervention: Intervention) -> None:
        """Cut what would have been sent."""
        answer = intervention.plan.answer
        if isinstance(answer, Response):
            body = body_of(answer)
            intervention.plan.answer = replace(answer, body=body)
            intervention.cut(
                len(body) // 2 if self.after_bytes is None else self.after_bytes, self.ending
            )
            return
        left = self.after_lines

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            if left:
                left -= 1
                yield line
                return
            intervention.hit()
            yield line[: len(line) // 2]
            yield self.ending

        intervention.edit(edit)


@dataclass(frozen=True, slots=True)
class TruncateGzip(Fault):
    """The body is compressed, whether asked or not, and cut at half, in complete framing."""

    def after(self, intervention: Intervention) -> None:
        """Only a finished answer is ever compressed."""
        answer = intervention.plan.answer
        if not isinstance(answer, Response):
            return
        body = body_of(answer)
        headers = answer.headers
        if not any(name.lower() == "content-encoding" for name, _ in headers):
            body = gzip.compress(body, 1)
            headers = (*headers, ("Content-Encoding", "gzip"))
        intervention.plan.answer = replace(answer, headers=headers, body=body[: len(body) // 2])
        intervention.hit()


@dataclass(frozen=True, slots=True)
class CutChunks(Fault):
    """The body comes in chunks of ``size`` bytes, which cut lines and characters anywhere."""

    size: int = 7

    def after(self, intervention: Intervention) -> None:
        """The bytes are the same."""
        intervention.plan.frame = self.size
        intervention.hit()


@dataclass(frozen=True, slots=True)
class EndEarly(_WatchFault):
    """A watch ends cleanly, long before its time, after some lines."""

    after_lines: int = 0

    def after(self, intervention: Intervention) -> None:
        """A clean end: the terminating chunk."""
        intervention.after_lines(self.after_lines, (Ending.CLEAN,))


# -- the state: a replica left behind, a compaction, a backup, at the worst moment -------------

Moment = Literal["before", "after"]
"""Before the request is handled, or after, when the answer is made and not yet sent."""


@dataclass(frozen=True, slots=True)
class _AtMoment(Fault):
    """Something done to the state by the way; the request itself is answered as usual."""

    when: Moment = "before"

    def act(self, state: ServerState) -> None:
        """Do it."""
        raise NotImplementedError

    def before(self, intervention: Intervention) -> None:
        """If it is the moment."""
        if self.when == "before":
            self._act_now(intervention)

    def after(self, intervention: Intervention) -> None:
        """If it is the moment."""
        if self.when == "after":
            self._act_now(intervention)

    def _act_now(self, intervention: Intervention) -> None:
        self.act(intervention.state)
        intervention.hit()


@dataclass(frozen=True, slots=True)
class Compact(_AtMoment):
    """Everything handed out so far becomes too old: resourceVersions and continue tokens.

    ``verb="list", when="after"`` is a compaction behind page one; ``verb="watch"`` is
    one between list and watch.
    """

    def act(self, state: ServerState) -> None:
        """Compact."""
        state.compact()


@dataclass(frozen=True, slots=True)
class RestoreBackup(_AtMoment):
    """The cluster goes back to a state saved earlier by ``server.snapshot()``."""

    snapshot: object = None

    def act(self, state: ServerState) -> None:
        """Restore."""
        state.restore(self.snapshot)


@dataclass(frozen=True, slots=True)
class Call(_AtMoment):
    """A function is called at that moment: to write, to delete, to restart.

    It runs where the server runs, which waits for it, so it may use the server's
    methods, but must not make requests to it and wait for the answers.
    """

    function: Callable[[], object] = object

    def act(self, state: ServerState) -> None:
        """Call."""
        del state
        self.function()


@dataclass(frozen=True, slots=True)
class Stale(Fault):
    """Reads are answered by a replica that stopped hearing of writes when this was added."""

    def armed(self, state: ServerState) -> Fault:
        """The replica is copied now."""
        return _StaleReplica(state.replica())


@dataclass(frozen=True, slots=True)
class _StaleReplica(Fault):
    handle: Handler

    def before(self, intervention: Intervention) -> None:
        """Writes go to a server that is up to date."""
        if intervention.received.request.method in ("GET", "HEAD"):
            intervention.answer(self.handle(intervention.received))


def _retyped(headers: Headers, value: str) -> Headers:
    kept = tuple(pair for pair in headers if pair[0].lower() != "content-type")
    return (*kept, ("Content-Type", value))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
