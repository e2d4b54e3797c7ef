"""Which silent stream the server is asked about, and when (S35): pure functions.

A stream that brings nothing may have nothing to bring, or be dead: the server at its other end
stands still, or what is between has lost that server, and goes on acknowledging in its place. TCP
cannot tell. So a second watch is opened beside it, over a connection of its own, from the version
that the stream has come to: what that brings, the stream should bring, too.

A *heartbeat* is such a watch of half a minute, of one of the streams that have been silent for
long. Its head is due at once, its end half a minute later, so that one request in a minute for a
whole cluster shows twice that a server runs, and for half of the time what that stream may be
missing. All heartbeats go over one connection, which is *kept*: it begins with the first stream,
and what befalls all connections that are open befalls it, too, whatever their streams have to
bring. So if it does not answer, and a new one does, those that are as old are dead (`witness`). A
*look* is a watch of three seconds, of a stream that lacks a bookmark: servers send one about each
minute, once they have come further than where the stream began, and at once to a watch that is
about to end. Where all is well, none is made.

One dead stream is seldom alone: once it is found, those that are silent, too, are left as well,
spread over some time, and seldom, lest a server that is only slow has its clients come anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

NEVER = float("-inf")

QUIET = 25.0
"""Seconds without a byte, after which a stream may have a heartbeat."""
_ALIKE = 5.0  # seconds between two of them that make no difference
KEEP_AFTER = 1.0
"""Seconds from the first stream to the connection that is kept: what is over sooner needs none."""
_KEEP_EVERY = 10.0  # seconds, at least, from one such connection to the next
HEARTBEAT_EVERY = 60.0
"""Seconds from one to the next: no less, and no more, since servers close what lies idle."""
HOLDS = 30
"""Seconds that it lasts."""
ANSWER_WITHIN = 10.0
"""Seconds in which a server that does not stand still says something that is due."""

OVERDUE = 64.0
"""Seconds without a byte, after which a bookmark is missing: kube-apiserver takes 62 at most..."""
FIRST_OVERDUE = 126.0
"""...and 122 to the first one, if it had not come further than where the stream began..."""
FIRST_TURN = 62.0
"""...so many seconds after that: it sends the first one a minute after, or else after another..."""
_TURN_EVERY = 60.0  # ...and so on
LOOK_EVERY = 60.0
"""Seconds from one look that has shown nothing to the next, on average..."""
SAVED = 240.0
"""...and so many seconds can be saved up."""
LOOKS = 3
"""Seconds that it lasts; servers send a bookmark 2 s before the end."""
BEHIND = 3.0
"""Seconds that a stream may bring later what a second watch has brought..."""
BEFORE = 2.0
"""...or have brought it sooner, and still be busy with it."""

ALSO_SILENT = 10.0
"""Seconds without a byte, after which a stream is left when others were found dead."""
_WAVE_EVERY = 60.0  # seconds until that may be done again, doubled each time...
_CALM = 900.0  # ...until there was no need for so long
_LEFT_PER_SECOND = 50.0
_LONGEST_SPREAD = 10.0


@dataclass(frozen=True, slots=True)
class Stream:
    """One open stream, and what was asked about it since it is silent."""

    heard: float
    """When its last byte came."""
    advanced: bool = False
    """It has brought something newer than where it began: bookmarks are due."""
    version: int = 0
    """What it has come to. Where something changed last, something is likely to change next."""
    listened: float = NEVER
    """When a heartbeat of it ended."""
    looks: int = 0
    """How many have shown nothing: the next one is after twice the time."""
    beside: int = 0
    """How far the server has come, by what watches beside it have brought."""
    passed: float = float("inf")
    """When it was first known that the server has come further than the stream."""

    def now(self, heard: float, version: int, *, advanced: bool) -> Stream:
        """As it is now; what was asked in an earlier silence counts no more."""
        return self if heard == self.heard else Stream(heard, advanced, version)

    def server_at(self, version: int, since: float) -> Stream:
        """The server is known since then to have come so far with the same resource."""
        known = self.passed <= since or version <= self.version
        return self if known else replace(self, passed=since)

    def lacks_bookmark(self, now: float) -> bool:
        """One was due, however little happens, since its turn came after the server's progress."""
        turns = (now - self.heard + _TURN_EVERY - OVERDUE) // _TURN_EVERY
        seen_by = self.heard + FIRST_TURN + (turns - 1) * _TURN_EVERY
        return turns >= 1 and (self.advanced or self.passed <= seen_by)

    @property
    def quiet_at(self) -> float:
        """When it may have a heartbeat."""
        return max(self.heard, self.listened) + QUIET

    @property
    def overdue_at(self) -> float:
        """When a bookmark is missing, or was for so long that it is worth another look."""
        likely = self.advanced or self.passed <= self.heard + OVERDUE
        return self.heard + (OVERDUE if likely else FIRST_OVERDUE) * 2.0**self.looks


Streams: TypeAlias = Sequence[Stream]


@dataclass(frozen=True, slots=True)
class Due:
    """A question, when it is due, and the place of the stream that it is about."""

    at: float
    stream: int


@dataclass(frozen=True, slots=True)
class Silence:
    """What was asked about the streams of a cluster."""

    heartbeat_after: float = NEVER
    heartbeat_by: float = float("inf")
    unkept: bool = True
    """There is no connection that is kept, or it is not as old as the streams."""
    keep_at: float | None = None
    """When to open it; None if it is there, or nobody needs it."""
    keep_after: float = NEVER
    look_after: float = NEVER
    wave_after: float = NEVER
    wave_gap: float = _WAVE_EVERY

    def heartbeat(self, streams: Streams) -> Due | None:
        """The next one; None while no stream is open.

        Of streams that are silent since about the same time, the one that had something last; where
        all of them bring something, of any.
        """
        if not streams:
            return None
        at = max(min(each.quiet_at for each in streams), self.heartbeat_after)
        at = min(at, self.heartbeat_by)
        everyone = range(len(streams))
        quiet = [place for place in everyone if streams[place].quiet_at <= at + _ALIKE] or everyone
        first = min(quiet, key=lambda place: (streams[place].listened, -streams[place].version))
        return Due(at, first)

    def look(self, streams: Streams) -> Due | None:
        """The next one; None while no stream is open."""
        if not streams:
            return None
        first = min(range(len(streams)), key=lambda place: streams[place].overdue_at)
        return Due(max(streams[first].overdue_at, self.look_after), first)

    def streams_open(self, now: float) -> Silence:
        """There are streams: a connection is to be kept beside them."""
        if not self.unkept or self.keep_at is not None:
            return self
        return replace(self, keep_at=max(now + KEEP_AFTER, self.keep_after))

    def keeps(self, now: float) -> Silence:
        """It is opened: a heartbeat has it answer again before servers close it."""
        by, after = min(self.heartbeat_by, now + HEARTBEAT_EVERY), now + _KEEP_EVERY
        return replace(self, unkept=False, keep_at=None, keep_after=after, heartbeat_by=by)

    def without(self) -> Silence:
        """No stream is open, or that connection has ended: there is to be another one."""
        known = self.unkept and self.keep_at is None
        return self if known else replace(self, unkept=True, keep_at=None)

    def slept(self, now: float) -> Silence:
        """The connection that is kept is from before a sleep: no heartbeat goes over it."""
        never = float("inf")
        return replace(
            self.without(), keep_after=now, heartbeat_after=now + QUIET, heartbeat_by=never
        )

    def listened(self, now: float) -> Silence:
        """A heartbeat is asked for."""
        after = now + HEARTBEAT_EVERY
        return replace(self.keeps(now), heartbeat_after=after, heartbeat_by=after)

    def looked(self, now: float) -> Silence:
        """A look begins."""
        return replace(self, look_after=max(self.look_after, now - SAVED) + LOOK_EVERY)

    def found_dead(
        self, streams: Streams, now: float, random: Random
    ) -> tuple[Silence, list[float | None]]:
        """Some are dead. When to leave each of these, unless it is heard of until then.

        None if it stays. Whichever does may be looked at as soon as it is overdue.
        """
        silence = replace(self, look_after=min(self.look_after, now))
        if now < self.wave_after:
            return silence, [None] * len(streams)
        gap = _WAVE_EVERY if now > self.wave_after + _CALM else self.wave_gap
        silence = replace(silence, wave_after=now + gap, wave_gap=min(2 * gap, _CALM))
        spread = min(_LONGEST_SPREAD, len(streams) / _LEFT_PER_SECOND)
        silent = [max(now, each.heard + ALSO_SILENT) for each in streams]
        return silence, [at + random.uniform(0, spread) for at in silent]
