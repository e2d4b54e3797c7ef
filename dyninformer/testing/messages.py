"""Requests and answers between the API and whatever serves it, and the plan of how one goes out.

`Request` is what came, `RequestInfo` what it is about. An `Answer` is finished (`Response`) or
grows (`Stream`). An `AnswerPlan` is an answer as faults leave it: steps that a socket, or
`InProcessServer`, takes one after another. It says nothing of bytes on a wire beyond what
a fault must control.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias, TypeGuard

from h2.errors import ErrorCodes

from dyninformer.checked import check_fields, checked_text

Headers = tuple[tuple[str, str], ...]
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, read whole.

    ``path`` is percent-decoded, ``query`` keeps order and repeats (the first of a
    name counts, as on the real server), header names are lower case.

    >>> from dyninformer.testing import InProcessServer
    >>> InProcessServer().send(Request("GET", "/version")).status
    200
    """

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    http_version: str = "1.1"
    """The version that the client speaks: 1.0, 1.1 or 2."""

    def __post_init__(self) -> None:
        check_fields(self)

    def param(self, name: str) -> str | None:
        """The first value of a query parameter, None if it is not there."""
        checked_text("the name of a parameter", name)
        return next((value for key, value in self.query if key == name), None)


# -- what a request is about ----------------------------------------------------------------

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_ON_NAMESPACE_ITSELF = ("status", "finalize")
_NAME_TERM = re.compile(r"\s*metadata\.name\s*={1,2}\s*([^,=!\s]+)\s*")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What is asked: verb, group, version, resource, subresource, namespace, name.

    For a path that is no resource only ``path`` and ``verb`` mean something.
    Not for import.
    """

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    selected_name: str = ""
    """The one name that the field selector of a list or watch asks for."""

    @property
    def authorised_name(self) -> str:
        """The name that rights are judged by: such a list or watch is judged as that name."""
        return self.name or self.selected_name

    @property
    def authorised_resource(self) -> str:
        """``widgets`` or ``widgets/status``, as rules and refusals name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def read_request_info(request: Request) -> RequestInfo:
    """What ``request`` asks, from its method, path and query alone.

    The rules are the real server's, odd corners included: they decide what is asked of
    the authoriser before anything is known to exist.
    """
    path = request.path
    parts = path.strip("/").split("/")
    if parts[0] == "apis":
        group, rest = parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        rest = []
    if len(rest) < 2:
        return RequestInfo(path, request.method.lower())
    version, *rest = rest
    verb = _VERBS.get(request.method, "")
    forced_watch = rest[0] == "watch"
    if forced_watch:
        verb, rest = "watch", rest[1:]
        if not rest:
            return RequestInfo(path, request.method.lower())
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _ON_NAMESPACE_ITSELF:
            rest = rest[2:]
    resource, name, subresource = [*rest, "", "", ""][:3]
    if not name and not forced_watch:
        verb = _collection_verb(request, verb)
    return RequestInfo(
        path,
        verb,
        is_resource=True,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
        selected_name="" if name or verb not in ("list", "watch") else _selected_name(request),
    )


def _collection_verb(request: Request, verb: str) -> str:
    """``watch`` with any value other than 0 and false is yes, also without a value."""
    if verb == "get":
        asked = request.param("watch")
        return "list" if asked is None or asked.lower() in ("0", "false") else "watch"
    return "deletecollection" if verb == "delete" else verb


def _selected_name(request: Request) -> str:
    for term in (request.param("fieldSelector") or "").split(","):
        found = _NAME_TERM.fullmatch(term)
        if found:
            return found[1]
    return ""


# -- what is answered -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Response:
    """A finished answer. ``body`` is bytes, or pieces of bytes to be sent one after another.

    ``delay`` is how many seconds the server takes before it says this (the wait for
    a future resourceVersion); whatever sends the answer waits, the state does not.
    Not for import.
    """

    status: int
    headers: Headers
    body: bytes | Iterable[bytes] = b""
    delay: float = 0.0


class Stream(Protocol):
    """An open watch: a 200 whose body grows.

    Its sender calls ``take`` whenever ``on_ready`` has fired or ``deadline`` has
    passed, sends what it gets, and stops when ``ended`` is true after a take.
    All calls come from the sender's one thread. Not for import.
    """

    headers: Headers
    on_ready: Callable[[], None]
    """Set by the sender; called when there is something to take. It may be called too often."""

    @property
    def deadline(self) -> float | None:
        """The clock's time at which ``take`` has something to do even if nothing happens."""

    @property
    def ended(self) -> bool:
        """Nothing more will come: end the body cleanly."""

    def take(self, limit: int = 1 << 18) -> list[bytes]:
        """What is to be sent now: whole lines, each with its newline, about ``limit`` bytes.

        The same event in the same representation is the same bytes object for every
        stream. More may be left: take again until the list is empty.
        """

    def close(self) -> None:
        """The reader is gone: forget it. Idempotent."""


Answer = Response | Stream


def body_of(response: Response) -> bytes:
    """The whole body in one piece."""
    body = response.body
    return body if isinstance(body, bytes) else b"".join(body)


# -- how an answer goes out -----------------------------------------------------------------


class Ending(Enum):
    """How an answer ends."""

    CLEAN = "clean"
    """As it should: the body is complete in its framing, the connection can go on."""
    CLOSE = "close"
    """The connection is closed with the body unfinished."""
    RESET = "reset"
    """The connection is reset (RST)."""
    SILENCE = "silence"
    """Nothing more comes, and the connection stays open."""
    RESET_STREAM = "reset stream"
    """The HTTP/2 stream is reset (RST_STREAM); over HTTP/1.1 the connection is closed."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for so many seconds."""

    seconds: float


class ConnectionStep(Enum):
    """A change of the whole HTTP/2 connection. An answer over HTTP/1.1 skips it."""

    GO_AWAY = "go away"
    """Send GOAWAY: the streams that are open go on, later streams are ignored."""
    GO_AWAY_BEFORE = "go away before"
    """Send GOAWAY, and ignore this stream as well."""
    IGNORE_PINGS = "ignore pings"
    """Answer no PING from now on."""
    FREEZE = "freeze"
    """Send nothing from now on, and stay open."""


Step: TypeAlias = bytes | Pause | Ending | ConnectionStep
"""What the sender does next: send bytes, wait, change the connection, or end."""

LineEdit: TypeAlias = Callable[[bytes], Iterable[Step]]
"""What one line of a watch becomes."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Send slowly: so many bytes, then so many seconds."""

    size: int
    seconds: float


@dataclass(slots=True, eq=False, weakref_slot=True)
class AnswerPlan:
    """How one request's answer goes out: the server's answer, as shaped by faults.

    ``instead``, when set, is what happens in place of an HTTP answer: raw bytes,
    pauses, an ending. ``cut`` ends the body of a Response after so many bytes, behind a
    head that promised all of it. ``frame`` is the size of the chunks of the body.
    ``opening`` are steps before the answer. ``reset_code`` goes with `Ending.RESET_STREAM`.
    While a watch is sent, a fault may replace ``answer`` or ``drip``.
    Not for import.
    """

    request: Request
    answer: Response | AnyStream | None = None
    delay: float = 0.0
    instead: Iterable[Step] | None = None
    cut: tuple[int, Ending] | None = None
    frame: int | None = None
    drip: Drip | None = None
    opening: tuple[ConnectionStep, ...] = ()
    reset_code: int = ErrorCodes.INTERNAL_ERROR

    @property
    def decided(self) -> bool:
        """There is an answer of some kind already."""
        return self.answer is not None or self.instead is not None

    @property
    def waits(self) -> float:
        """Seconds until the first byte: the fault's, and the server's own."""
        own = self.answer.delay if isinstance(self.answer, Response) else 0.0
        return self.delay + own


class EditedStream:
    """A watch whose lines pass through an edit on their way out.

    ``opening`` comes before the first line. ``take`` gives steps; after an Ending there
    is nothing more, and the watch itself has been closed.
    """

    def __init__(
        self,
        inner: AnyStream,
        edit: LineEdit = lambda line: (line,),
        opening: Iterable[Step] = (),
        headers: Headers | None = None,
    ) -> None:
        self._inner = inner
        self._edit = edit
        self._opening = tuple(opening)
        self._over = False
        self.headers: Headers = inner.headers if headers is None else headers

    @property
    def on_ready(self) -> Callable[[], None]:
        """Called when there is something to take."""
        return self._inner.on_ready

    @on_ready.setter
    def on_ready(self, ready: Callable[[], None]) -> None:
        self._inner.on_ready = ready

    @property
    def deadline(self) -> float | None:
        """The watch's own."""
        return None if self._over else self._inner.deadline

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        return self._over or self._inner.ended

    def take(self, limit: int = 1 << 18) -> list[Step]:
        """What to do now, in order; an Ending is the last step of all."""
        if self._over:
            return []
        steps: list[Step] = []
        opening, self._opening = self._opening, ()
        if not self._add(steps, opening):
            for step in self._inner.take(limit):
                if self._add(steps, self._edit(step) if type(step) is bytes else (step,)):
                    break
        return steps

    def close(self) -> None:
        """The reader is gone."""
        self._over = True
        self._inner.close()

    def _add(self, steps: list[Step], more: Iterable[Step]) -> bool:
        """Append, up to and with an Ending; true if there was one."""
        for step in more:
            steps.append(step)
            if isinstance(step, Ending):
                self.close()
                return True
        return False


AnyStream: TypeAlias = "Stream | EditedStream"


def is_stream(answer: Response | AnyStream | None) -> TypeGuard[AnyStream]:
    """An answer whose body grows."""
    return answer is not None and not isinstance(answer, Response)
