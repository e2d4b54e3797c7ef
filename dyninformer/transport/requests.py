"""Requests, their answers, and what can answer them.

`Source` answers them over sockets, and `Source.channel()` gives a `Transport` to each reflector
whose `close` ends the requests of that reflector alone, be it before their headers came.
Anything else with these methods does as well: an in-memory server, a recording.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from dyninformer.errors import UnreachableError
from dyninformer.printable import printable

_SHOWN = 300  # characters of what a server says

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class SilentError(UnreachableError):
    """Nothing came for as long as the request's ``deadline`` allows."""

    reused = False
    """It was asked over a connection that had answered before."""


class BrokenAnswerError(UnreachableError):
    """The answer began, and the connection broke before its end."""


@dataclass(frozen=True, slots=True)
class Request:
    """A GET, or with a ``body`` a POST, without what the connection adds: host, credentials.

    ``deadline`` is silence, not duration: so many seconds without a byte, from the
    request to the end of the answer, and the connection counts as dead.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    deadline: float = 60.0
    body: Mapping[str, object] | None = None
    anew: bool = False
    """Over a connection of its own: none that has lain idle, since that may be dead."""
    kept: bool = False
    """Over a connection that no other requests use than these, and that is kept for the next."""


class Reply(Protocol):
    """An answer whose head has come, whatever its status."""

    @property
    def status(self) -> int:
        """The HTTP status: 200, 404, ..."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers; the names' case does not matter to a lookup."""

    def chunks(self) -> Generator[bytes, None, None]:
        """The body, decoded, as it arrives and cut anywhere; by one thread, once.

        It ends with the body, and also when the reply was closed. Raises `SilentError`
        or `BrokenAnswerError`.
        """

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, so many seconds without a byte are no failure.

        A stream that has told the initial state may be quiet for longer than before. Called
        by the thread that reads.
        """

    def body(self) -> bytes:
        """The body of a refusal, or as much of its beginning as an error message needs.

        Never raises: what broke off ends there. The reply is closed afterwards.
        """

    def close(self) -> None:
        """End it at once, from any thread; a read that is under way ends. Idempotent."""


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A whole answer. ``body`` is the parsed JSON, None where it was none."""

    status: int
    headers: Mapping[str, str]
    body: object


class Transport(Protocol):
    """Asks one API server. Every method may be called from any thread.

    Each request raises `UnreachableError` if no answer came, and `StoppedError` once the
    transport is closed, be it in the middle of the request.
    """

    def list(self, request: Request) -> Reply:
        """Ask for a collection."""

    def watch(self, request: Request) -> Reply:
        """Ask for a stream of events."""

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew: call it once after a 401.

        Callers that come while a reload is under way share it. Raises `ConfigError` if
        they cannot be read.
        """

    def close(self) -> None:
        """End every request of this transport at once, and refuse new ones. Idempotent."""


class DocumentSource(Protocol):
    """Asks one API server for documents, each read whole: all that discovery and one look need.

    Requests raise as those of a `Transport`.
    """

    @property
    def host(self) -> str:
        """Where the API server is, as messages name it."""

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew: call it once after a 401."""


def short(text: str) -> str:
    """One line of another program's text, without its full stop, control characters visible."""
    line = printable(" ".join(text.split()).rstrip("."))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def without_password(url: str) -> str:
    """A URL that may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
