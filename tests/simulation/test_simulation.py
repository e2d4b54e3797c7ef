"""Whatever happens to a cluster, in the end the cache holds what the cluster holds.

A seed that fails says so, and runs again exactly: ``DYNINFORMER_SEEDS=1234`` or ``=0-99``.
"""

from __future__ import annotations

import logging
import os

import pytest

from tests.simulation.world import World

STEPS = 40
_BLOCK = 100


def chosen() -> range:
    """The seeds of a usual run, or those that the environment asks for."""
    first, _, last = os.environ.get("DYNINFORMER_SEEDS", "0-249").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures are meant to be logged here, and nobody reads it."""
    caplog.set_level(logging.CRITICAL, logger="dyninformer")


def live(seed: int) -> None:
    """One life of a world."""
    try:
        world = World(seed)
        world.live(STEPS)
        world.settle()
        world.check()
    except BaseException as error:
        error.add_note(f"This was seed {seed}: DYNINFORMER_SEEDS={seed} runs it again.")
        raise


@pytest.mark.parametrize("seed", chosen())
def test_in_the_end_the_cache_is_the_cluster(seed: int) -> None:
    """And the state that a handler was told, in order, is the cache (S6, S8, S13, S24-S33)."""
    live(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 11_000, _BLOCK))
def test_in_the_end_the_cache_is_the_cluster_for_many_more_seeds(first: int) -> None:
    """The same, for as long as one has patience."""
    for seed in range(first, first + _BLOCK):
        live(seed)


def test_the_same_seed_is_the_same_run() -> None:
    """Else a failure could not be found again."""

    def requests(seed: int) -> list[float]:
        world = World(seed)
        world.live(STEPS)
        return [moment for reflector in world.reflectors for moment in reflector.barren]

    assert requests(7) == requests(7)
    assert requests(7) != requests(8)
