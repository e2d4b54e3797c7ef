"""Whether a shard is ours at this moment (S51, S54)."""

from __future__ import annotations

import pytest

from dyninformer import LostShardError
from dyninformer.scale.fences import Fence, Ownership, Tenure


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


def owned() -> tuple[Clock, Tenure, Ownership]:
    """A shard until 10."""
    clock = Clock()
    tenure = Tenure(clock, 10.0)
    return clock, tenure, Ownership("shard 3 of 8 of certs", 3, "me", 7, tenure)


def test_what_is_ours_is_so_until_its_time_is_over() -> None:
    """By our own clock, without a question to anybody."""
    clock, _, owner = owned()
    fence = Fence(owner)
    fence.check()
    clock.now = 10.0
    with pytest.raises(LostShardError, match="shard 3 of 8 of certs is not ours"):
        fence.check()


def test_a_time_that_was_renewed_lasts_longer() -> None:
    """If it was not over before."""
    clock, tenure, owner = owned()
    assert tenure.extend(20.0)
    clock.now = 15.0
    assert owner.holds()
    clock.now = 20.0
    assert not tenure.extend(30.0)
    assert not owner.holds()


def test_a_time_that_somebody_found_over_is_over_for_all() -> None:
    """Even if a renewal comes that would have lasted: what was left out would be missed."""
    clock, tenure, owner = owned()
    clock.now = 10.0
    assert not owner.holds()
    clock.now = 9.0
    assert not tenure.extend(20.0)


def test_what_is_let_go_of_begins_nothing_and_ends_what_has_begun() -> None:
    """Only then it is idle."""
    _, _, owner = owned()
    assert owner.enter()
    owner.close()
    assert not owner.enter()
    assert not owner.idle
    owner.leave()
    assert owner.idle


def test_a_fence_says_of_which_term_it_is() -> None:
    """For what is written."""
    fence = Fence(owned()[2])
    assert (fence.shard, fence.holder, fence.term) == (3, "me", 7)


def test_s54_a_fence_holds_for_work_that_began_before_it_was_let_go_of() -> None:
    """Until the work ends: nobody else has it before that."""
    _, _, owner = owned()
    fence = Fence(owner)
    assert owner.enter()
    owner.close()
    fence.check()
    owner.leave()
    with pytest.raises(LostShardError):
        fence.check()


def test_s51_a_fence_of_work_that_goes_on_ends_with_the_lease() -> None:
    """Whatever still works: others need not wait for it any longer."""
    clock, _, owner = owned()
    assert owner.enter()
    owner.close()
    clock.now = 10.0
    assert not Fence(owner).holds()


def test_s51_a_fence_of_what_may_be_anothers_holds_for_nobody() -> None:
    """Though work that has begun goes on."""
    _, _, owner = owned()
    assert owner.enter()
    owner.close(lost=True)
    assert not Fence(owner).holds()
