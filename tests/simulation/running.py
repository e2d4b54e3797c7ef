"""Runs of a seed: whole, by some of their steps, and by as few as still fail."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dyninformer import NotSyncedWarning
from tests.simulation.scheduler import simulated
from tests.simulation.world import World

STEPS: Final = 20
_TRIES: Final = 60  # to make a failure shorter

Steps = tuple[int, ...]
ALL: Final[Steps] = tuple(range(STEPS))


@dataclass(frozen=True)
class Run:
    """One run, and how it ended."""

    seed: int
    steps: Steps
    said: Sequence[str]
    """What happened, line by line."""
    digest: int
    """Which thread ran when, in one number: the same for the same run."""
    error: BaseException | None

    def __str__(self) -> str:
        steps = ",".join(map(str, self.steps))
        again = f"DYNINFORMER_SEEDS={self.seed} DYNINFORMER_STEPS={steps}"
        lines = "\n  ".join(self.said)
        return f"{again} runs it again:\n  {lines}"


def run(seed: int, steps: Steps = ALL) -> Run:
    """One life of a world, with these of its steps."""
    world, error = World(seed), None
    try:
        with life(world):
            for number in steps:
                world.step(number)
    except Exception as raised:  # noqa: BLE001 - whatever it raises is what was looked for
        error = raised
    return Run(seed, steps, tuple(world.said), world.scheduler.digest, error)


@contextmanager
def life(world: World) -> Iterator[None]:
    """From its beginning to where nothing happens any more, what one does within it included."""
    with quiet(), simulated(world.scheduler, world.seed):
        try:
            world.begin()
            yield
            world.settle()
            world.finish()
        finally:
            world.end()


def shrunk(failed: Run, again: Callable[[int, Steps], Run] = run) -> Run:
    """A run of fewer of the steps that fails in the same way: none of them can be left out."""
    best, size, tries = failed, max(1, len(failed.steps) // 2), 0
    while size and tries < _TRIES:
        shorter = None
        for start in range(0, len(best.steps), size):
            tries += 1
            found = again(best.seed, (*best.steps[:start], *best.steps[start + size :]))
            if type(found.error) is type(failed.error):
                shorter = found
                break
        if shorter is not None:
            best = shorter
        elif size > 1 or not best.steps:
            size //= 2
        else:
            break
    return best


@contextmanager
def quiet() -> Iterator[None]:
    """No collection in the midst of it, whose moment no seed decides, and no warnings of reads.

    And nobody hears what is logged but the world: whoever keeps a record with its error, as pytest
    does, keeps the frames of what failed, and what they hold is finalized later than without.
    """
    logger = logging.getLogger("dyninformer")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [], False
    logger.setLevel(logging.ERROR)  # what the world looks at
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotSyncedWarning)
            yield
    finally:
        gc.enable()
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])
