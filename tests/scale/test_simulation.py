"""Replicas on clocks that go wrong, with pauses, partitions, conflicts, lost answers (S50 to S54).

``make sharing SHARING_SEEDS=1-10000`` runs all, as does a soak, and each change a share. Every 50th
seed has 200 replicas.
"""

from __future__ import annotations

import os

import pytest

from tests.scale.worlds import play

_PIECE = 25
_FIRST, _, _LAST = os.environ.get("DYNINFORMER_SHARING_SEEDS", "1-300").partition("-")
SEEDS = range(int(_FIRST), int(_LAST or _FIRST) + 1)
ALL_SEEDS = range(1, 10_001)


@pytest.mark.parametrize("first", SEEDS[::_PIECE])
def test_no_shard_has_two_owners_and_none_is_left(first: int) -> None:
    """In equal parts, in time, and with the fewest moves, once nothing goes wrong any more."""
    run(SEEDS[first - SEEDS.start :][:_PIECE])


@pytest.mark.soak
@pytest.mark.parametrize("first", ALL_SEEDS[::_PIECE])
def test_no_shard_of_any_seed_has_two_owners(first: int) -> None:
    """The same, for all of them."""
    run(ALL_SEEDS[first - 1 :][:_PIECE])


def run(seeds: range) -> None:
    """Play them, and say of the first that fails what came before."""
    for seed in seeds:
        story: list[str] = []
        try:
            story.extend(play(seed))
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error} ({'; '.join(story)})")
