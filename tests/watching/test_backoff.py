"""Waits and budgets (S29)."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.watching.backoff import ALLOWANCE, PERIOD, Backoff, Budget


@given(st.integers(1, 10_000), st.integers())
def test_a_wait_is_between_its_base_and_half_as_much_again(failures: int, seed: int) -> None:
    """The base doubles from 0.8 s to 30 s."""
    backoff = Backoff(failures)
    assert backoff.base == min(30.0, 0.8 * 2 ** min(failures - 1, 20))
    assert backoff.base <= backoff.delay(Random(seed)) <= 1.5 * backoff.base


@given(st.integers(1, 20), st.floats(-10, 1e6), st.integers())
def test_what_the_server_asks_is_waited_at_least_up_to_a_minute(
    failures: int, asked: float, seed: int
) -> None:
    """And never more than a minute and a half."""
    wait = Backoff(failures).delay(Random(seed), asked)
    assert min(max(asked, 0.0), 60.0) <= wait <= 90


@given(st.lists(st.floats(0, 5), max_size=400))
def test_no_period_has_more_requests_than_the_allowance(pauses: list[float]) -> None:
    """Whenever one is asked for, it waits until it may be made."""
    budget, now, made = Budget(), 0.0, []
    for pause in pauses:
        now = budget.free_at(now + pause / 10)
        budget = budget.spend(now)
        made.append(now)
    for first, last in zip(made, made[ALLOWANCE:], strict=False):
        assert last - first >= PERIOD


def test_a_request_that_brought_something_counts_no_longer() -> None:
    """Its place is free again."""
    budget = Budget()
    for moment in range(ALLOWANCE):
        budget = budget.spend(float(moment))
    assert budget.free_at(59.0) == 60.0
    assert budget.refund(30.0).free_at(59.0) == 59.0
    assert budget.refund(12.5) == budget


def test_room_for_several_requests_is_later_than_for_one() -> None:
    """So many must have left the period."""
    budget = Budget()
    for moment in range(ALLOWANCE):
        budget = budget.spend(float(moment))
    assert budget.free_at(59.0, 3) == 62.0


def test_a_request_that_is_told_late_counts_from_when_it_was_made() -> None:
    """It takes its place among the others."""
    budget = Budget((1.0, 5.0)).spent_at(3.0)
    assert budget.spent == (1.0, 3.0, 5.0)
