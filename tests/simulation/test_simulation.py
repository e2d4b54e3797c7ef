"""Whatever happens to a cluster, in the end the cache holds what the cluster holds.

A seed that fails is a test of its own, named in pytest's report, and reruns exactly.
"""

from __future__ import annotations

import logging

import pytest

from tests.simulation.world import World

STEPS = 40


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures are meant to be logged here, and nobody reads it."""
    caplog.set_level(logging.CRITICAL, logger="dyninformer")


def live(seed: int) -> None:
    """One life of a world."""
    world = World(seed)
    world.live(STEPS)
    world.settle()
    world.check()


@pytest.mark.parametrize("seed", range(300))
def test_in_the_end_the_cache_is_the_cluster(seed: int) -> None:
    """And the state that a handler was told, in order, is the cache (S6, S8, S13, S24-S33)."""
    live(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300, 10_000))
def test_in_the_end_the_cache_is_the_cluster_for_many_more_seeds(seed: int) -> None:
    """The same, for as long as one has patience."""
    live(seed)
