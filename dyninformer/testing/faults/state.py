"""Faults of the state: a replica left behind, a compaction, a backup, at the worst moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dyninformer.testing.faults.strike import Fault, Handler, Strike, World

Moment = Literal["before", "after"]
"""Before the request is handled, or after, when the answer is made and not yet sent."""


@dataclass(frozen=True, slots=True)
class _AtMoment(Fault):
    """Something done to the state by the way; the request itself is answered as usual."""

    when: Moment = "before"

    def act(self, world: World) -> None:
        """Do it."""
        raise NotImplementedError

    def before(self, strike: Strike) -> None:
        """If it is the moment."""
        if self.when == "before":
            self._strike(strike)

    def after(self, strike: Strike) -> None:
        """If it is the moment."""
        if self.when == "after":
            self._strike(strike)

    def _strike(self, strike: Strike) -> None:
        self.act(strike.world)
        strike.hit()


@dataclass(frozen=True, slots=True)
class Compact(_AtMoment):
    """Everything handed out so far becomes too old: resourceVersions and continue tokens.

    ``verb="list", when="after"`` is a compaction behind page one; ``verb="watch"`` is
    one between list and watch.
    """

    def act(self, world: World) -> None:
        """Compact."""
        world.compact()


@dataclass(frozen=True, slots=True)
class RestoreBackup(_AtMoment):
    """The cluster goes back to a state saved earlier by ``server.snapshot()``."""

    snapshot: object = None

    def act(self, world: World) -> None:
        """Restore."""
        world.restore(self.snapshot)


@dataclass(frozen=True, slots=True)
class Call(_AtMoment):
    """A function is called at that moment: to write, to delete, to restart.

    It runs where the server runs, which waits for it, so it may use the server's
    methods, but must not make requests to it and wait for the answers.
    """

    function: Callable[[], object] = object

    def act(self, world: World) -> None:
        """Call."""
        del world
        self.function()


@dataclass(frozen=True, slots=True)
class Stale(Fault):
    """Reads are answered by a replica that stopped hearing of writes when this was added."""

    def armed(self, world: World) -> Fault:
        """The replica is copied now."""
        return _StaleReplica(world.replica())


@dataclass(frozen=True, slots=True)
class _StaleReplica(Fault):
    handle: Handler

    def before(self, strike: Strike) -> None:
        """Writes go to a server that is up to date."""
        if strike.exchange.request.method in ("GET", "HEAD"):
            strike.answer(self.handle(strike.exchange.request))
