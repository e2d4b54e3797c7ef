"""Handlers and streams that believe what they are told, and object to what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dyninformer.delivery.events import Event, EventType
from dyninformer.delivery.handlers import Registration
from dyninformer.types import Object

if TYPE_CHECKING:
    from tests.simulation.scheduler import Scheduler


class MeantError(Exception):
    """What a handler raises that is meant to."""


class Replay:
    """What somebody holds who believes each event as it is told."""

    def __init__(self, name: str, *, merges: bool) -> None:
        self.name = name
        self.merges = merges
        self.held: dict[str, Object] = {}
        self.versions: dict[str, int] = {}
        self.initial: set[str] = set()
        self.went_back: list[str] = []
        """Keys that were told an older version after a newer one."""
        self.backlog: Callable[[], int] = int
        """How much was told that it has not heard."""
        self.heard = 0
        """How many events it has heard."""
        self._behind: tuple[float, int] | None = None
        self.over = False
        """It was removed, or what tells it has stopped."""

    def hear(self, event: Event) -> None:
        """One event further."""
        self.heard += 1
        key, told = event.key, f"{self.name} is told {event!r}"
        assert not self.over, f"{told} after its end"
        before = self.held.get(key)
        if event.initial:
            assert key not in self.initial, f"{told} as initial once more"
            self.initial.add(key)
        match event.type:
            case EventType.ADDED:
                assert before is None, f"{told}, and holds it"
            case EventType.UPDATED:
                assert event.old == before, f"{told} from {event.old}, and holds {before}"
                assert self.merges or event.object != before, f"{told}, which is no change"
                self._check_recreated(event, told)
            case EventType.SYNC:
                assert event.old == event.object == before, f"{told}, and holds {before}"
            case _:
                assert before is not None, f"{told}, and does not hold it"
                assert self.merges or event.object == before, f"{told}, and holds {before}"
                del self.held[key]
                return
        self.held[key] = event.object
        version = int(event.resource_version)
        if version < self.versions.get(key, 0):
            self.went_back.append(key)
        self.versions[key] = version

    def check_goes_on(self, now: float) -> None:
        """Whoever has something left to hear hears something within a minute."""
        if not self.backlog():
            self._behind = None
        elif self._behind is None or self._behind[1] != self.heard:
            self._behind = now, self.heard
        else:
            assert now - self._behind[0] < 60, f"{self.name} hears nothing of {self.backlog()}"

    def _check_recreated(self, event: Event, told: str) -> None:
        old = event.old or {}
        other = old["metadata"]["uid"] != event.object["metadata"]["uid"]
        assert event.recreated == other, f"{told}, recreated: {event.recreated}"


class Listening(Replay):
    """A handler: it may raise, and take its time."""

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        chance: Random,
        objections: list[AssertionError],
        *,
        merges: bool,
        raises: float,
        stalls: float,
    ) -> None:
        """``objections`` is where it notes its own: what a handler raises is only logged."""
        super().__init__(name, merges=merges)
        self.registration: Registration | None = None
        self._objections = objections
        self._scheduler = scheduler
        self._chance = chance
        self._raises = raises
        self._stalls = stalls

    def on_event(self, event: Event) -> None:
        """Hear it."""
        try:
            if event.initial and self.registration is not None:
                assert not self.registration.has_synced(), f"{self.name} had synced too early"
            self.hear(event)
        except AssertionError as error:
            self._objections.append(error)
            raise
        self._scheduler.point()
        if self._chance.random() < self._stalls:
            self._scheduler.sleep(self._chance.choice((0.0, 0.1, 3.0, 20.0)))
        if self._chance.random() < self._raises:
            raise self._chance.choice((MeantError, SystemExit))("as it is meant to")
