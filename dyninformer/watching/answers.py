"""What the conversation is told: answers of the server, and what else happens meanwhile.

Whoever carries the conversation makes these from bytes, errors and clocks, and hands each
to `protocol.step`. They are data, and final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dyninformer.store.receive import Received

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Event: TypeAlias = tuple[EventType, Received]
Events: TypeAlias = Sequence[Event]
Keys: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    """The reflector was started."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The reflector is to end, whatever it is doing."""


@dataclass(frozen=True, slots=True)
class Due:
    """The moment that the state waits for has come."""


@dataclass(frozen=True, slots=True)
class CrdSeen:
    """The shared watch on CRDs has something to say: about our CRD, or that it opened or ended.

    A wake-up: it says that it may be worth asking again, never what the server would answer.
    """

    available: bool
    """CRDs can be watched at present."""
    generation: int | None
    """Of the spec of our resource's CRD; None if there is no such CRD, or nobody can tell."""
    version: str = ""
    """The CRD's own resourceVersion, "" where there is no generation."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The head of an answer that is not refused: 200, and JSON."""


@dataclass(frozen=True, slots=True)
class StatusError:
    """A Status in place of what was asked for: the body of a refusal, or an ERROR event."""

    code: int = 0
    reason: str = ""
    message: str = ""
    name: str = ""
    """``details.name``: the object that it is about."""

    @property
    def too_old(self) -> bool:
        """The version that was asked for is no longer known."""
        return self.code == 410 or self.reason in ("Expired", "Gone")


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer with another HTTP status than 200, or of another type than JSON."""

    status: StatusError
    retry_after: float | None = None
    """Seconds that the server asks to wait."""


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer, or one that broke off: what happened, in a few words."""

    complaint: str
    silent: bool = False
    """It was this side that gave up, as nothing came for long."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Something raised on our own side that nobody expected, in the middle of whatever it was.

    What was under way may be done by half: nothing of it is believed.
    """

    complaint: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Part of a list or stream, as it came in one piece. At most one of its three ends is set.

    What is skipped, as stale or unusable, is not among the ``events``.
    """

    events: Events = ()
    version: str = ""
    """The newest version in it, of events, bookmarks and what was skipped; "" if there is none."""
    live: bool = False
    """Something in it is no ADDED: the initial events of a stream are over."""
    unusable: Keys = ()
    """Keys of objects that cannot be kept; None where even the key cannot be read (S32)."""
    mark: bool = False
    """It ends with the bookmark that ends the initial events."""
    error: StatusError | None = None
    """It ends with an ERROR event."""
    broken: str = ""
    """It ends where the bytes make no sense; what is wrong with them."""
    failed: int = 0
    """On how many of the events' objects the transform failed."""
    failure: str = ""
    """What it did to the first of those."""


@dataclass(frozen=True, slots=True)
class PageEnd:
    """A page of a list has come whole: its metadata."""

    version: str
    continue_: str = ""
    items: int = 0
    """How many items the page had, kept or not."""
    remaining: int | None = None
    """How many the later pages have, if the server says so."""
    first: str = ""
    """The key of the first item that has one."""
    first_version: str = ""
    """The resourceVersion of that item, where one item was asked for."""
    repeats: bool = False
    """It begins with an object that an earlier page of the same list began with."""


@dataclass(frozen=True, slots=True)
class Document:
    """A small JSON body that has come whole; empty if it was no JSON object."""

    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """A stream came to a clean end."""


Answer: TypeAlias = (
    Begin
    | Stop
    | Due
    | CrdSeen
    | Opened
    | Refused
    | Lost
    | Crashed
    | Batch
    | PageEnd
    | Document
    | Ended
)
