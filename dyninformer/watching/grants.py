"""When what the server has refused is asked for again, for all reflectors of a cluster (S29).

Rights and credentials give no sign when they are given back. Each reflector asks again by itself,
at a distance that grows to half a minute or more; together they can ask sooner, at no greater cost:
one of them tries for all that wait for the same cause, first after a second, then at distances up
to three or four. What it is granted, the others may be, too. A right that is never given should
not fill the server's audit log: after three minutes in which nobody new has come to wait, one try
in half a minute is made. Pure functions; `prober` carries them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

NEVER = float("-inf")

SHORTEST = 1.0
"""Seconds from a refusal to the first try, and from one try to the next, at least..."""
LONGEST = 3.0
"""...and at most, while the refusal is recent, but for the spread."""
RECENT = 180.0
"""Seconds for which a refusal is recent."""
LATER = 30.0
"""Seconds from one try to the next after that, at least."""
_SPREAD = 1.25
_AT_ONCE_PER_SECOND = 100.0
_LONGEST_SPREAD = 3.0


@dataclass(frozen=True, slots=True)
class Refused:
    """One that waits, since the server has refused what it asked for."""

    since: float
    """When it was first seen to wait, since it was last granted anything."""
    tried: float = NEVER
    """When it last tried for all."""


Waiting: TypeAlias = Sequence[Refused]


@dataclass(frozen=True, slots=True)
class Grants:
    """One cause, such as rights, and when it was tried for last."""

    tried: float = NEVER
    distance: float = 0.0

    def next_try(self, waiting: Waiting, now: float) -> tuple[float, int]:
        """When one of them is to try for all, and its place; at least one waits.

        One of those that came to wait lately, if there are any, by turns.
        """
        everyone = range(len(waiting))
        places = [each for each in everyone if now - waiting[each].since < RECENT] or everyone
        chosen = min(places, key=lambda place: waiting[place].tried)
        newest = max(waiting[place].since for place in places)
        return (newest + SHORTEST if self.tried < newest else self.tried + self.distance), chosen

    def begin(self, waiting: Waiting, now: float, random: Random) -> Grants:
        """A try begins: each as long after the one before as that was after the refusal."""
        age = now - max(each.since for each in waiting)
        distance = LATER if age >= RECENT else min(LONGEST, max(SHORTEST, age))
        return Grants(now, random.uniform(distance, _SPREAD * distance))


def spread(count: int, now: float, random: Random) -> list[float]:
    """When each of so many should try, once one of them was granted what it asked for."""
    over = min(_LONGEST_SPREAD, count / _AT_ONCE_PER_SECOND)
    return [now + random.uniform(0, over) for _ in range(count)]
