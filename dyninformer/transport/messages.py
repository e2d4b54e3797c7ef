"""What goes over a connection, whatever the version of HTTP: requests, and the parts of answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Protocol, TypeAlias

from dyninformer.errors import DynInformerError

Pairs: TypeAlias = Sequence[tuple[str, str]]


class ProtocolError(DynInformerError, HTTPException):
    """The server's bytes break the rules of HTTP. The connection cannot be used any more."""


class LostConnectionError(ConnectionError):
    """The connection ended before the answer did. ``__cause__`` says why."""


class UnprocessedError(LostConnectionError):
    """The server has not looked at the request, so it can be sent again."""


class Headers(Mapping[str, str]):
    """The headers of an answer. The case of a name does not matter.

    Values of a repeated header are joined by a comma, as HTTP defines it; `all` keeps them apart.

    >>> headers = Headers([("Warning", "one"), ("warning", "two"), ("Age", "3")])
    >>> headers["WARNING"], headers.all("warning"), "age" in headers, dict(headers)
    ('one, two', ['one', 'two'], True, {'warning': 'one, two', 'age': '3'})
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values[name.lower()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Headers {', '.join(self._values)}>"  # a value may be a secret

    def all(self, name: str) -> list[str]:
        """Return the values of a header that may be repeated."""
        return list(self._values.get(name.lower(), ()))


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it is sent: the target includes the query, the headers the credentials."""

    method: str
    target: str
    headers: Pairs
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Head:
    """The status and the headers of the final answer on a stream."""

    stream: int
    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Data:
    """A part of the body, cut anywhere."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The answer is complete."""

    stream: int


@dataclass(frozen=True, slots=True)
class Reset:
    """The server ended one stream. ``unprocessed``: it did not look at the request."""

    stream: int
    reason: str
    unprocessed: bool = False


@dataclass(frozen=True, slots=True)
class GoingAway:
    """The server takes no new streams on this connection. Those up to ``last`` go on."""

    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class Pong:
    """The server answered a PING."""


Part: TypeAlias = Head | Data | End | Reset | GoingAway | Pong


class Engine(Protocol):
    """One connection's side of HTTP, without I/O: bytes in, parts of answers out."""

    @property
    def room(self) -> int:
        """How many more requests can begin now."""

    def send(self, request: Outgoing, *, window: int) -> int:
        """Begin a request and return its stream. Call only while there is `room`.

        ``window`` is how many bytes of the answer's body may come before `consumed` is called.
        """

    def receive(self, data: bytes) -> list[Part]:
        """Take bytes from the server. Raises `ProtocolError`."""

    def receive_end(self) -> list[Part]:
        """Take the end of the server's bytes. Raises `ProtocolError` in the middle of an answer."""

    def consumed(self, stream: int, size: int) -> None:
        """The reader has taken so many bytes of the body: let the server send as many more."""

    def cancel(self, stream: int) -> None:
        """Drop a stream: nothing more of it is reported."""

    def ping(self) -> bool:
        """Ask for a sign of life, if this version of HTTP can."""

    def output(self) -> bytes:
        """Take the bytes that are to be sent to the server."""
