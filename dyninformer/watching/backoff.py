"""How long to wait after a failure, and how often to ask at all (S29)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

FIRST_DELAY = 0.8
LONGEST_DELAY = 30.0
STEADY_AFTER = 60.0  # seconds synced and alive, after which failures are forgotten
LONGEST_RETRY_AFTER = 60.0  # what a server may ask for, at most
ALLOWANCE = 60  # requests that bring nothing, at most so many...
PERIOD = 60.0  # ...in so many seconds
_SPREAD = 1.5


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures in a row; a connection that is accepted does not end the row.

    >>> Backoff(failures=3).base
    3.2
    """

    failures: int = 0

    @property
    def base(self) -> float:
        """The shortest wait after this many failures."""
        return float(min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(self.failures - 1, 10)))

    def failed(self) -> Backoff:
        """One failure more."""
        return Backoff(self.failures + 1)

    def delay(self, random: Random, retry_after: float | None = None) -> float:
        """Seconds to wait: drawn from one to one and a half times the base.

        What the server asked for is the least, within bounds, and also spread upwards.
        """
        chosen = random.uniform(self.base, _SPREAD * self.base)
        if retry_after is None:
            return chosen
        asked = min(max(0.0, retry_after), LONGEST_RETRY_AFTER)
        return max(chosen, random.uniform(asked, _SPREAD * asked))


@dataclass(frozen=True, slots=True)
class Budget:
    """When the requests were made that brought nothing, in order, none older than the period.

    However the server answers, at most `ALLOWANCE` of them are made in any `PERIOD`.
    """

    spent: tuple[float, ...] = ()

    def free_at(self, now: float, requests: int = 1) -> float:
        """The first moment at which so many requests may be made; ``now`` if they may be now."""
        excess = len(self.spent) + requests - ALLOWANCE
        if excess <= 0:
            return now
        return max(now, self.spent[excess - 1] + PERIOD)

    def spend(self, now: float) -> Budget:
        """A request is made."""
        spent = self.spent
        if spent and spent[0] <= now - PERIOD:
            spent = tuple(moment for moment in spent if moment > now - PERIOD)
        return Budget((*spent, now))

    def spent_at(self, moment: float) -> Budget:
        """A request was made at a moment that may be past."""
        return Budget(tuple(sorted((*self.spent, moment))))

    def refund(self, moment: float) -> Budget:
        """The request made at that moment did bring something after all."""
        spent = list(self.spent)
        if moment in spent:
            spent.remove(moment)
        return Budget(tuple(spent))
