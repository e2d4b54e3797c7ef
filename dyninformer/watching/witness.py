"""Whether connections that were open still bring what comes, shown by one that is kept (S35).

A stream that is silent shows nothing, and what a second watch beside it brings is seldom news. But
what befalls all connections at once, such as a balancer that has lost the server behind them,
befalls also one that is kept for questions, and that one owes an answer: the head of a heartbeat
at once, its end at the time that was asked for. Where it owes that for long, and a new connection
is answered quickly, it is not the server that is slow. A server that is slow to both shows
nothing: who is asked too often is not to be asked more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dyninformer.threads import since_boot
from dyninformer.transport.requests import SilentError
from dyninformer.watching.silence import ANSWER_WITHIN

KEPT_WITHIN = 3.0
"""Seconds in which the kept connection brings what is due..."""
QUICKLY = 2.0
"""...and in which a new one is answered then, if the kept one is dead."""


@dataclass(frozen=True, slots=True)
class Way:
    """Over which connection a second watch goes, and how long what is due may take."""

    kept: bool
    anew: bool
    within: float


ASIDE = Way(kept=False, anew=True, within=ANSWER_WITHIN)
"""Over one of its own."""
KEPT = Way(kept=True, anew=False, within=KEPT_WITHIN)
"""Over the one that is kept, if it is still there."""
RENEWED = Way(kept=True, anew=True, within=ANSWER_WITHIN)
"""Over a new one, which is kept from now on."""

Listen: TypeAlias = Callable[[Callable[[], None], Way], None]
"""Holds a second watch to its end: what it calls at each sign of life, and over what it goes."""


class Witness:
    """What is known of the kept connection; one heartbeat at a time."""

    def __init__(self) -> None:
        self._endless = False  # no watch has ended at its time since one did not

    def hold(self, listen: Listen, heard: Callable[[], None], died: Callable[[], None]) -> None:
        """A heartbeat, to its end. ``heard`` is called at each sign of life.

        ``died`` is called if the kept connection has died, and so those that are as old. Raises
        what ``listen`` does: where the kept one was silent, what became of a new one.
        """
        answered = False

        def note() -> None:
            nonlocal answered
            answered = True
            heard()

        try:
            listen(note, KEPT)
        except SilentError as silent:
            # A server, or what is between, that never ends a watch at its time says so only once.
            dead = silent.reused or (answered and not self._endless)
            self._endless = answered
        else:
            self._endless = False
            return
        begun = since_boot()

        def compare() -> None:
            nonlocal dead
            heard()
            if dead and since_boot() - begun <= QUICKLY:
                died()
            dead = False

        listen(compare, RENEWED)
        self._endless = False
