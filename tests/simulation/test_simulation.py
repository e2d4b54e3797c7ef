"""Whatever happens to a cluster, in the end the cache holds what the cluster holds.

A seed that fails says so, and runs again exactly: ``DYNINFORMER_SEEDS=1234`` or ``=0-1999``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import pytest

from tests.simulation.running import ALL, Run, Steps, life, run, shrunk
from tests.simulation.world import World

_BLOCK = 25


def chosen() -> range:
    """The seeds of a usual run, or those that the environment asks for."""
    first, _, last = os.environ.get("DYNINFORMER_SEEDS", "0-149").partition("-")
    return range(int(first), int(last or first) + 1)


def steps() -> Steps:
    """The steps of each: all, or those that the environment asks for."""
    given = os.environ.get("DYNINFORMER_STEPS")
    return ALL if given is None else tuple(int(each) for each in given.split(",") if each)


def live(seed: int) -> None:
    """One seed; what fails is made as short as it can be."""
    found = run(seed, steps())
    if found.error is None:
        return
    short = shrunk(found)
    error = short.error or found.error
    error.add_note(
        f"This was seed {seed}: DYNINFORMER_SEEDS={seed} runs it again. Of its "
        f"{len(found.steps)} steps {len(short.steps)} are enough. {short}"
    )
    raise error


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", chosen()[::_BLOCK])
def test_in_the_end_the_cache_is_the_cluster(first: int) -> None:
    """And so is what handlers and streams were told; indexes are as recomputed (S1-S33)."""
    for seed in chosen()[first - chosen().start :][:_BLOCK]:
        live(seed)


_AHEAD: Steps = (1, 10, 12, 15, 16, 17, 18, 19)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        pytest.param(1238, ALL, id="a schema's change that goes unseen"),
        pytest.param(67, ALL, id="an audit beside a watch that comes to where it was"),
        pytest.param(102599, ALL, id="a bookmark ahead"),
        pytest.param(102599, _AHEAD, id="a bookmark ahead, at the version of a compaction"),
        pytest.param(100637, ALL, id="a handler interrupted when it had begun to hear"),
        pytest.param(102646, ALL, id="an interrupt in a finalizer"),
        pytest.param(100346, ALL, id="a watch that ends as it is looked at"),
    ],
)
def test_what_once_failed_does_not_fail_again(seed: int, steps: Steps) -> None:
    """Of the package, or of the simulation."""
    assert run(seed, steps).error is None


@pytest.mark.parametrize("seed", range(4))
def test_a_crd_that_goes_while_nobody_can_look_takes_its_objects(seed: int) -> None:
    """A burial comes in few seeds, and unseen in half of those."""
    world = World(seed)
    with life(world):
        world.pass_time(120)
        world.write(Random(1))
        world.pass_time(120)
        assert world.lister.keys()
        world.bury_crd(Random(1), unseen=True)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_in_the_end_the_cache_is_the_cluster_for_as_long_as_one_has_patience() -> None:
    """``DYNINFORMER_SOAK`` is how many seeds: a million take a day and a half."""
    for seed in range(100_000, 100_000 + int(os.environ.get("DYNINFORMER_SOAK", "20000"))):
        live(seed)


def test_the_same_seed_is_the_same_run() -> None:
    """Else a failure could not be found again."""
    assert run(7) == run(7)
    assert run(7).digest != run(8).digest


def test_the_same_seed_is_the_same_run_in_another_process() -> None:
    """Whatever the order of its sets is, and wherever its objects are in memory."""
    seeds = [7, 20, 21, 22]  # the first one may switch before any line
    program = (
        f"from tests.simulation.running import run\nprint([run(seed).digest for seed in {seeds}])"
    )
    for hash_seed in "1", "2":
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == str([run(seed).digest for seed in seeds])


def test_a_failure_is_shrunk_to_the_steps_that_make_it() -> None:
    """Those that can be left out are; another failure is not taken for this one."""

    def again(seed: int, steps: Steps) -> Run:
        error: Exception | None = None
        if {3, 17} <= set(steps):
            error = AssertionError("both")
        elif not steps:
            error = ValueError("another one")
        return Run(seed, steps, (), 0, error)

    short = shrunk(again(5, ALL), again)
    assert short.steps == (3, 17)
    assert "DYNINFORMER_SEEDS=5 DYNINFORMER_STEPS=3,17" in str(short)
