"""When to look at discovery: by the news of CRDs, and by the clock."""

from __future__ import annotations

PERIOD = 30.0  # seconds between two looks, where no news of CRDs come
QUIET_PERIOD = 300.0  # ...and where they do: API groups also come without a CRD
SETTLING = (0.0, 1.0, 5.0)  # discovery follows a CRD within a moment, or within seconds
CROWDED = 0.25  # seconds between two looks, at least, however many CRDs change
CROWDED_FAILING = 1.0  # ...and after one that failed: no more than a reflector asks (S29)


class Agenda:
    """When to look at discovery next. Used by one thread; ``next`` is a moment of its clock."""

    def __init__(self, now: float) -> None:
        self.next = now
        self._soonest = now
        self._settling: list[float] = []

    def woken(self, now: float) -> None:
        """A CRD changed: look soon, and again when its news may have come everywhere."""
        first = max(now, self._soonest)
        self._settling = [first + later for later in SETTLING]
        self.next = min(self.next, first)

    def looked(self, now: float, *, news: bool) -> None:
        """It was looked at; ``news`` says that CRDs are watched."""
        self._soonest = now + CROWDED
        self._settling = [moment for moment in self._settling if moment > now]
        self.next = min([now + (QUIET_PERIOD if news else PERIOD), *self._settling])

    def failed(self, now: float, delay: float) -> None:
        """It could not be looked at."""
        self._soonest = now + min(delay, CROWDED_FAILING)
        self._settling = []
        self.next = now + delay
