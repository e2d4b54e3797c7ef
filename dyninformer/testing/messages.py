"""The words between the pure API and whatever carries them: a request, an answer, a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

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

    def param(self, name: str) -> str | None:
        """The first value of a query parameter, None if it is not there."""
        return next((value for key, value in self.query if key == name), None)


@dataclass(frozen=True, slots=True)
class Response:
    """A finished answer. ``body`` is bytes, or pieces of bytes to be sent one after another.

    ``delay`` is how many seconds the server takes before it says this (the wait for
    a future resourceVersion); the carrier waits, the state does not.
    """

    status: int
    headers: Headers
    body: bytes | Iterable[bytes] = b""
    delay: float = 0.0


class Stream(Protocol):
    """An open watch: a 200 whose body grows.

    The carrier calls ``take`` whenever ``on_ready`` has fired or ``deadline`` has
    passed, sends what it gets, and stops when ``ended`` is true after a take.
    All calls come from the carrier's one thread.
    """

    headers: Headers
    on_ready: Callable[[], None]
    """Set by the carrier; called when there is something to take. It may be called too often."""

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
