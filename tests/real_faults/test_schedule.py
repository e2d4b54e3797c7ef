"""Schedules of faults: a seed is the same faults again."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.real_faults.faults import FAULTS
from tests.real_faults.schedule import ACCESS, LAYERS, LONG, NETWORK, SERVER, schedule


def test_a_seed_is_the_same_schedule_again() -> None:
    """Else a failure could not be found again; another seed is another one."""
    assert list(islice(schedule(7), 50)) == list(islice(schedule(7), 50))
    assert list(islice(schedule(7), 50)) != list(islice(schedule(8), 50))


@pytest.mark.parametrize("long", [False, True])
def test_each_fault_comes_before_one_comes_again(long: bool) -> None:
    """And those that take long only where there is time for them."""
    names = {*SERVER, *NETWORK, *ACCESS, *(LONG if long else ())}
    rounds = list(islice(schedule(3, long=long), len(names)))
    assert {name for each in rounds for name in each.faults} == names
    assert all(set(each.faults) & names for each in rounds)


def test_several_at_a_time_are_of_different_kinds_the_outermost_first() -> None:
    """Two of a kind would undo each other, and rights are taken while a server is there."""
    rounds = list(islice(schedule(5, long=True), 200))
    for each in rounds:
        kinds = [
            number for name in each.faults for number, layer in enumerate(LAYERS) if name in layer
        ]
        assert kinds == sorted(set(kinds))
        assert 0 <= each.late <= each.seconds
    assert {len(each.faults) for each in rounds} == {1, 2, 3}


def test_whatever_is_scheduled_can_be_done() -> None:
    """And nothing that can be done is never scheduled."""
    assert FAULTS.keys() == {name for layer in LAYERS for name in layer}
