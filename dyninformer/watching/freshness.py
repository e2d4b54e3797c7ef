"""When a cache was last known to be as the server has it, and whether changes reach it (S35).

Pure functions of what came, beside the protocol: nothing here changes what is asked. A watch that
is open says little by itself: a server may be silent because nothing happens, or because it is
gone. What tells is a version that was not held before, or a `Claim`, the outcome of a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dyninformer.store import versions
from dyninformer.watching.states import (
    Answer,
    Batch,
    Checking,
    Crashed,
    Listing,
    Lost,
    PageEnd,
    Refused,
    Repairing,
    State,
    Streaming,
    Watching,
)

AT_ONCE = 2.0
"""Seconds: what happened while a list was read for so long is as good as now."""
ON_THE_WAY = 2.0
"""Seconds that a change may take to come: until then something older may be behind what came."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Once this version is held, the cache is as the server had it at that moment."""

    version: str
    as_of: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """What the streams and lists of one scope have shown so far."""

    as_of: float | None = None
    """When what is held was last known to be the server's state; None before the first list."""
    listed: float | None = None
    """When the last list was asked for. All that had been written by then is held."""
    live: bool = False
    """A stream is open, or the next one follows one that ended as it should."""
    history: str | None = ""
    """Up to this version the stream brings what happened before it began; "" if that is over,
    None if nobody knows where it ends."""


def heard(
    fresh: Freshness, was: State, answer: Answer, state: State, *, asked: float, now: float
) -> Freshness:
    """What is known after an answer.

    ``asked`` is when what was answered had been asked: a list is the server's state of then.
    """
    if isinstance(was, Watching) and isinstance(state, Watching) and was.asked == state.asked:
        if isinstance(answer, Batch):
            return _more(fresh, was, answer, state, now)
    elif isinstance(was, Streaming | Listing) and state.memory.position.current:
        history = "" if now - asked <= AT_ONCE else None
        fresh = Freshness(asked, asked, history=history)
    elif isinstance(state, Watching) and not isinstance(was, Watching):
        # After a look the server's version is known (S30), after a wait it is not.
        history = answer.version if isinstance(answer, PageEnd) else ""
        fresh = replace(fresh, history=None if versions.number(history) is None else history)
    live = _live(fresh, answer, state)
    return fresh if live == fresh.live else replace(fresh, live=live)


def _more(fresh: Freshness, was: Watching, batch: Batch, state: Watching, now: float) -> Freshness:
    """A batch that brings a newer version brings it as it happens, unless it is history.

    A server sends a bookmark only when it has nothing else to send: history is over then. That
    the newest version is of none of the events shows one, unless objects came that are not among
    these.
    """
    if state.version == was.version:
        return fresh
    past = fresh.history
    if past is None:
        left_out = batch.foreign or bool(batch.unusable)
        over = not left_out and (not batch.events or batch.events[-1][1].version != batch.version)
    else:
        over = not past or reached(state.version, past)
    return Freshness(now, fresh.listed, live=True) if over else fresh


def _live(fresh: Freshness, answer: Answer, state: State) -> bool:
    if isinstance(state, Watching) and state.opened is not None:
        return True
    goes_on = isinstance(state, Watching | Repairing | Checking)
    return fresh.live and goes_on and not isinstance(answer, Lost | Refused | Crashed)


def reached(version: str, wanted: str) -> bool:
    """``version`` is certainly not from before ``wanted``."""
    return version == wanted or versions.older(wanted, version)


def _met(version: str, claims: Iterable[Claim]) -> Iterator[float]:
    """Of when the claims are that hold with this version."""
    return (claim.as_of for claim in claims if reached(version, claim.version))


def best(fresh: Freshness, version: str, claims: Iterable[Claim]) -> float | None:
    """When the cache was last known to be the server's state, with this version held.

    >>> best(Freshness(5.0), "10", [Claim("10", 7.0), Claim("11", 9.0)])
    7.0
    """
    if fresh.as_of is None:
        return None
    return max([fresh.as_of, *_met(version, claims)])


def certain(fresh: Freshness, version: str, claims: Iterable[Claim]) -> float | None:
    """When the cache certainly had all that had been written, with this version held.

    What a stream brings shows this of a moment before: something written earlier may be behind it.

    >>> certain(Freshness(20.0, 3.0), "10", [Claim("10", 7.0)])
    18.0
    """
    if fresh.as_of is None or fresh.listed is None:
        return None
    return max([fresh.listed, fresh.as_of - ON_THE_WAY, *_met(version, claims)])


def has_all_of(since: float, fresh: Freshness, version: str, claims: Sequence[Claim]) -> bool:
    """The cache certainly has all that had been written by then.

    It has not where the server is known to have been further, however much comes meanwhile.

    >>> has_all_of(6.0, Freshness(20.0, 3.0), "10", [Claim("11", 7.0)])
    False
    """
    if fresh.listed is not None and max([fresh.listed, *_met(version, claims)]) >= since:
        return True
    found = certain(fresh, version, claims)
    behind = any(c.as_of >= since and versions.older(version, c.version) for c in claims)
    return found is not None and found >= since and not behind
