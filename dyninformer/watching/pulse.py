"""When to ask whether a server that did not answer is there again (S29, S35): pure functions.

A *probe* is made for all reflectors of a cluster together that wait since the server did not
answer: is it ready? If it is, they need not wait longer, however long their failures have made
that. What is asked while streams are open is in `silence`, what was refused in `grants`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple, TypeAlias

from dyninformer.resource import GroupVersionResource
from dyninformer.watching.status import InformerTrouble

NEVER = float("-inf")

PROBE_EVERY = 1.0
"""Seconds from one probe to the next, at least..."""
_SPREAD = 1.5  # ...and at most so many times that
_SOON = 1.0  # a reflector that tries again by itself within so many seconds needs no probe
_THERE = 5.0  # seconds to the next probe of a server that was ready all the time, at least...
_TRIES_PER_SECOND = 20.0  # ...and so long that those that it woke are so many at most

_RETURNS = 10.0  # seconds in which what was asked of a server before it was back may still fail
_AT_ONCE_PER_SECOND = 200.0
_LONGEST_SPREAD = 3.0
_JUMP = 5.0


class Seen(NamedTuple):
    """How one reflector stands: made of each whenever its prober looks, so that it is a tuple."""

    waits_until: float | None = None
    """It waits since the server did not answer, or not as it should, and would try again then."""
    broke: bool = False
    """That is since no answer came, or one that broke off; not since the server refused."""
    heard: float | None = None
    """Its stream is open; when the last byte came."""
    resource: GroupVersionResource | None = None
    version: str = ""
    """What that stream has come to."""
    advanced: bool = False
    """It has brought something newer than where it began."""
    asked: float = NEVER
    """When it last asked for something."""
    refused: InformerTrouble | None = None
    """It waits since the server has refused it what it asked for: the kind of trouble."""
    granted: bool = False
    """A watch that it asked for is answered."""


Sight: TypeAlias = Sequence[Seen]


@dataclass(frozen=True, slots=True)
class Pulse:
    """What was asked of a server, and what it said."""

    probe_after: float = NEVER
    away: bool = False
    """The last probe was not answered as it should be."""
    back: float = NEVER
    """When one was, after others that were not."""

    def probe_at(self, seen: Sight, now: float) -> float | None:
        """When to probe; None as long as nobody would be the wiser for it."""
        if not any(_waits(each, now) for each in seen):
            return None
        return max(now, self.probe_after)

    def probed(self, now: float, random: Random) -> Pulse:
        """A probe begins."""
        return replace(self, probe_after=now + random.uniform(PROBE_EVERY, _SPREAD * PROBE_EVERY))

    def answered(self, now: float, *, ready: bool, woken: int = 0) -> Pulse:
        """What came of a probe, and how many were woken for it."""
        back = now if ready and self.away else self.back
        after = self.probe_after
        if ready and now > back + _RETURNS:
            after = now + max(_THERE, woken / _TRIES_PER_SECOND)
        return replace(self, away=not ready, back=back, probe_after=after)

    def wakes(self, seen: Sight, now: float, random: Random) -> list[float | None]:
        """Of a server that is ready: when each of them should try again; None if as it would.

        When it is back, that are all without a stream, those that have just asked, too: it is no
        longer away for them either, whatever comes of that. For a while after that it is who came
        to wait since, for what was asked before.

        Where it was ready all the time, those that it has refused have trouble of another kind,
        and wait as they would. Those whose connections broke need wait no longer than the network
        was broken; whether it still is only their own next try will show.
        """
        if self.away:
            wake = [each.heard is None for each in seen]
        elif now <= self.back + _RETURNS:
            wake = [each.waits_until is not None and self.was_away(each) for each in seen]
        else:
            wake = [_waits(each, now) and each.broke for each in seen]
        spread = min(_LONGEST_SPREAD, sum(wake) / _AT_ONCE_PER_SECOND)
        return [
            min(now + random.uniform(0, spread), one.waits_until or now) if wakes else None
            for one, wakes in zip(seen, wake, strict=True)
        ]

    def was_away(self, seen: Seen) -> bool:
        """The server was, when this one asked last."""
        return self.away or seen.asked < self.back


def _waits(seen: Seen, now: float) -> bool:
    """It waits for the server, and for long."""
    return seen.waits_until is not None and seen.waits_until > now + _SOON


@dataclass(frozen=True, slots=True)
class Clocks:
    """Three clocks at one moment; those of a machine that slept, or was stopped, differ after."""

    awake: float
    """The monotonic one, which stands still meanwhile on Linux."""
    booted: float
    wall: float

    def slept(self, later: Clocks) -> bool:
        """Between the two moments, time has passed that no thread has seen."""
        seen = later.awake - self.awake
        return max(later.booted - self.booted, later.wall - self.wall) - seen > _JUMP
