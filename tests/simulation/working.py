"""Work queues, and the work that is done for their keys (S23)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from dyninformer import DynInformerError, RateLimited, WorkQueue
from dyninformer.types import Object
from tests.simulation.interrupting import interrupted
from tests.simulation.listening import MeantError

if TYPE_CHECKING:
    from dyninformer import SharedIndexInformer
    from tests.simulation.scheduler import Scheduler


class Working:
    """A queue of an informer's keys: workers of its own, or loops that users interrupt.

    The work on a key looks it up, takes its time, and fails now and then.
    """

    def __init__(
        self,
        name: str,
        informer: SharedIndexInformer,
        scheduler: Scheduler,
        chance: Random,
        objections: list[AssertionError],
    ) -> None:
        """``objections`` is where it notes what is wrong: what work raises is only logged."""
        self.name = name
        self.seen: dict[str, Object | None] = {}
        """What the last work on a key that succeeded has found under it."""
        self._objections = objections
        self.over = False
        """It was closed."""
        self._informer = informer
        self._scheduler = scheduler
        self._chance = chance
        self._fails = chance.choice((0.0, 0.0, 0.3))
        self._stalls = chance.choice((0.0, 0.05, 0.3))
        self._at_work: set[str] = set()
        self.queue = WorkQueue(
            {informer: None},
            workers=chance.randrange(1, 4),
            retry=RateLimited(longest=5, per_second=None),
            name=name,
        )

    def begin(self) -> str:
        """Have somebody work; what is said of it."""
        if self._chance.random() < 0.5:
            self.queue.start(self._work)
            return f"{self.queue.workers} workers"
        for number in range(self.queue.workers):
            self._scheduler.spawn(f"{self.name} loop {number}", self._loop)
        return f"{self.queue.workers} loops that are interrupted"

    def close(self) -> None:
        """Work on nothing more."""
        drains = self._chance.random() < 0.5
        assert self.queue.close(drain=drains, timeout=60), f"{self.name} did not end in time"
        assert not self._at_work, f"{self.name} is closed, and works on {self._at_work}"
        self.over = True

    def backlog(self) -> int:
        """How many keys are to be worked on, also later, or are at work."""
        return self.queue.depth + self.queue._keys.later + len(self._at_work)

    def not_worked_on(self, expected: Mapping[str, Object]) -> list[str]:
        """The keys whose last state no work has seen that succeeded."""
        keys = sorted(self.seen.keys() | expected.keys())
        return [key for key in keys if self.seen.get(key) != expected.get(key)]

    def _loop(self) -> None:
        """A user's loop, which goes on after an interrupt."""
        chance = Random(self._chance.random())
        with suppress(DynInformerError):
            for _ in range(chance.randrange(10)):
                if not interrupted(self._scheduler, chance, self._take_all):
                    return
            self._take_all()

    def _take_all(self) -> None:
        for item in self.queue:
            with item:
                self._work(item.key)

    def _work(self, key: str) -> None:
        if self.over or key in self._at_work:
            what = "after the end" if self.over else "twice at a time"
            self._objections.append(AssertionError(f"{self.name} works on {key} {what}"))
        self._at_work.add(key)
        try:
            found = self._informer.store.get_by_key(key)
            self._scheduler.point()
            if self._chance.random() < self._stalls:
                self._scheduler.sleep(self._chance.choice((0.0, 0.1, 3.0)))
            if self._chance.random() < self._fails:
                raise self._chance.choice((MeantError, ValueError))("as it is meant to")
            self.seen[key] = found
        finally:
            self._at_work.discard(key)
