"""What the conversation wants done: requests, changes of the store, reports.

Whoever carries it does these in order. What was under way is ended as soon as the state no
longer has it, and before the next request begins: one stream or list at a time owns the
scope (S33).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dyninformer.watching.answers import Events, Keys


@dataclass(frozen=True, slots=True)
class StreamState:
    """Ask for a streaming list (S24): the state now, a mark, and then what changes."""

    timeout: int


@dataclass(frozen=True, slots=True)
class ListPage:
    """Ask for a page of a list (S25), or for all that is left in one, with ``limited`` false."""

    continue_: str = ""
    limited: bool = True


@dataclass(frozen=True, slots=True)
class WatchFrom:
    """Ask for what changes after a version (S26)."""

    version: str
    timeout: int


@dataclass(frozen=True, slots=True)
class AskRevision:
    """Ask for a list of one item: its version is how far the server has come (S30)."""

    key: str = ""
    """The object to ask for; "" for any."""


@dataclass(frozen=True, slots=True)
class AskDocument:
    """Ask for something else than our collection, fresh: proof that it exists or does not."""

    path: str


Want: TypeAlias = StreamState | ListPage | WatchFrom | AskRevision | AskDocument


@dataclass(frozen=True, slots=True)
class Ask:
    """End what is under way, and make a request."""

    want: Want
    fresh_credentials: bool = False
    """Have the credentials read anew before."""


@dataclass(frozen=True, slots=True)
class Collect:
    """Put this into the state apart, beginning one if there is none."""

    events: Events
    unusable: Keys


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw the state apart away, if there is one."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Make the state apart the store's, even if nothing came for it."""

    first: bool
    cause: str
    """Why the collection was read, for metrics."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Put changes into the store."""

    events: Events


@dataclass(frozen=True, slots=True)
class Clear:
    """Delete what the store holds of our scope (S33)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something failed: a sentence for who watches over it.

    ``news`` is false when it is the same as at the last try: worth no line in a log.
    """

    reason: str
    news: bool
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """Something happened that a log should hold, though nothing failed."""

    text: str


Effect: TypeAlias = Ask | Collect | Discard | Swap | Apply | Clear | Failed | Noted
Effects: TypeAlias = tuple[Effect, ...]
