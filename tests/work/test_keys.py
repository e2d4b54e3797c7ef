"""The core of a work queue: no key twice at a time, none lost, retries later and later."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dyninformer import RateLimited
from dyninformer.work.keys import Turn, WorkKeys, checked_key, seconds


class Clock:
    """Time as a test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """It."""
        return self.now


def keys_with(retry: RateLimited | None = None, *, chance: float = 0.0) -> tuple[WorkKeys, Clock]:
    """A core, and the clock that it reads."""
    clock = Clock()
    return WorkKeys(retry, clock=clock, chance=lambda: chance), clock


def take(keys: WorkKeys) -> Turn | None:
    """The next turn, if there is one."""
    turn = Turn()
    return turn if keys.take(turn) else None


def taken(keys: WorkKeys) -> list[str]:
    """The keys of all turns that there are, each done at once."""
    found = []
    while (turn := take(keys)) is not None:
        found.append(turn.key)
        keys.done(turn)
    return found


def test_keys_are_taken_in_the_order_in_which_they_came() -> None:
    """And one that was added again keeps its place."""
    keys, _ = keys_with()
    assert [keys.add(key) for key in ("b", "a", "b", "c")] == [True, True, False, True]
    assert taken(keys) == ["b", "a", "c"]


def test_a_key_that_is_added_while_at_work_comes_again_once() -> None:
    """Not before it is done, however often it was added."""
    keys, _ = keys_with()
    keys.add("a")
    turn = take(keys)
    assert turn is not None
    assert not keys.add("a")
    assert not keys.add("a")
    assert take(keys) is None
    assert keys.depth == 1
    assert keys.done(turn)
    assert taken(keys) == ["a"]


def test_done_counts_once_and_for_its_own_turn_alone() -> None:
    """A late one does not end the turn that the key has by then."""
    keys, _ = keys_with()
    keys.add("a")
    first = take(keys)
    assert first is not None
    keys.done(first)
    keys.add("a")
    second = take(keys)
    assert second is not None
    assert not keys.done(first)
    assert (keys.at_work, keys.lasts(first), keys.lasts(second)) == (["a"], False, True)


def test_a_delayed_key_comes_when_it_is_due_and_the_earlier_of_two_delays_counts() -> None:
    """A later one changes nothing; those who wait are to wake for an earlier one alone."""
    keys, clock = keys_with()
    assert keys.add_after("a", 10)
    assert not keys.add_after("a", 20)
    assert not keys.add_after("b", 15)
    assert keys.add_after("a", 5)
    assert keys.next_due() == 105
    clock.now += 4.9
    assert taken(keys) == []
    clock.now += 0.2
    assert keys.next_due() <= clock.now
    assert taken(keys) == ["a"]
    clock.now += 100
    assert taken(keys) == ["b"]
    assert keys.next_due() == math.inf
    assert keys.add_after("c", 0)
    assert taken(keys) == ["c"]


def test_a_due_key_does_not_starve_under_steady_additions() -> None:
    """Its turn comes behind those that wait when it is due, and before what comes later."""
    keys, clock = keys_with()
    keys.add_after("due", 1)
    found = []
    for number in range(4):
        keys.add(f"k{number}")
        keys.add(f"m{number}")
        clock.now += 0.6
        turn = take(keys)
        assert turn is not None
        found.append(turn.key)
        keys.done(turn)
    assert taken(keys)[0] == "due"
    assert found == ["k0", "m0", "k1", "m1"]


def test_many_delays_of_one_key_do_not_pile_up() -> None:
    """Each shorter than the one before."""
    keys, clock = keys_with()
    for number in range(5000):
        keys.add_after("a", 10_000 - number)
    assert len(keys._heap) < 200
    clock.now += 5001
    assert taken(keys) == ["a"]


def test_each_retry_of_a_key_comes_later_and_forgetting_begins_anew() -> None:
    """Up to the longest delay, however often it fails."""
    keys, _ = keys_with(RateLimited(first=1, longest=5, jitter=0, per_second=None))
    assert [keys.retry("a")[0] for _ in range(5)] == [1, 2, 4, 5, 5]
    assert keys.retry("b")[0] == 1
    assert (keys.retries("a"), keys.retries("b"), keys.retries("c")) == (5, 1, 0)
    keys.forget("a")
    assert (keys.retries("a"), keys.retry("a")[0]) == (0, 1)
    assert RateLimited().delay(100_000) == 1000


def test_jitter_lengthens_a_delay_by_a_part_of_it() -> None:
    """From nothing up to that part."""
    retry = RateLimited(first=2, jitter=0.5, per_second=None)
    assert keys_with(retry, chance=0.0)[0].retry("a")[0] == 2
    assert keys_with(retry, chance=1.0)[0].retry("a")[0] == 3


def test_the_bucket_spreads_the_retries_of_many_keys() -> None:
    """As many as it holds at once, the others at its rate; it fills again with time."""
    retry = RateLimited(first=0.001, jitter=0, per_second=10, burst=3)
    keys, clock = keys_with(retry)
    assert [round(keys.retry(f"k{number}")[0], 3) for number in range(6)] == [
        *[0.001] * 3,
        *(0.1, 0.2, 0.3),
    ]
    clock.now += 60
    assert [round(keys.retry(f"m{number}")[0], 3) for number in range(4)] == [*[0.001] * 3, 0.1]


def test_closing_drops_what_waits_or_drains_it() -> None:
    """What is due later is dropped in either case, and nothing is added any more."""
    for drain in (False, True):
        keys, clock = keys_with()
        for key in "abc":
            keys.add(key)
        turn = take(keys)
        assert turn is not None
        keys.add("a")
        keys.add_after("d", 1)
        assert keys.close(drain=drain) == (1 if drain else 4)
        assert not keys.add("e")
        assert not keys.add_after("f", 1)
        clock.now += 10
        assert keys.done(turn) == drain
        assert taken(keys) == (["b", "c", "a"] if drain else [])
        assert keys.over
        assert keys.at_work == []


def test_what_fails_after_the_end_is_not_tried_again() -> None:
    """It is counted as dropped."""
    keys, _ = keys_with()
    keys.add("a")
    turn = take(keys)
    assert turn is not None
    keys.close(drain=True)
    assert keys.retry("a") == (0.0, False)
    keys.done(turn)
    assert (keys.over, keys.dropped, keys.later) == (True, 1, 0)


def test_it_says_how_long_work_has_gone_on() -> None:
    """All together, and the longest; and how long a key waited."""
    keys, clock = keys_with()
    keys.add("a")
    clock.now += 2
    first = take(keys)
    assert first is not None
    assert first.began - first.came == 2
    clock.now += 3
    keys.add("b")
    second = take(keys)
    clock.now += 1
    assert second is not None
    assert keys.unfinished() == (5, 4)
    assert keys.spent(second) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"first": 0},
        {"first": -1},
        {"first": math.nan},
        {"first": 2, "longest": 1},
        {"longest": math.inf},
        {"jitter": -0.1},
        {"per_second": 0},
        {"burst": 0},
        {"burst": True},
        {"burst": 1.5},
    ],
)
def test_limits_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    """With the name of the option."""
    with pytest.raises(ValueError, match="|".join(options)):
        RateLimited(**options)


@pytest.mark.parametrize("value", [True, "1", None, [1]])
def test_seconds_are_numbers(value: object) -> None:
    """A bool is none, although Python has it as one."""
    with pytest.raises(TypeError, match="delay is"):
        seconds("delay", value)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_seconds_are_finite_and_not_negative(value: float) -> None:
    """NaN is neither."""
    with pytest.raises(ValueError, match="from 0 on"):
        seconds("delay", value)


def test_a_key_is_a_text() -> None:
    """With a word on what to give."""
    assert checked_key("prod/shop") == "prod/shop"
    with pytest.raises(TypeError, match="namespace/name"):
        checked_key(("prod", "shop"))
    with pytest.raises(ValueError, match="empty"):
        checked_key("")


KEYS = st.sampled_from("abcdef")


class Work(RuleBasedStateMachine):
    """Any order of additions, delays, failures and turns, beside what was promised."""

    def __init__(self) -> None:
        super().__init__()
        retry = RateLimited(first=0.5, longest=8, jitter=0.5, per_second=3, burst=2)
        self.clock = Clock()
        self.keys = WorkKeys(retry, clock=self.clock, chance=lambda: 0.5)
        self.wanted: set[str] = set()  # added, and not begun since then
        self.due: dict[str, float] = {}  # wanted, once it is that late
        self.turns: dict[str, Turn] = {}
        self.failures: Counter[str] = Counter()
        self.closed = False

    def expect_due(self) -> None:
        """What is due now is wanted."""
        for key, when in list(self.due.items()):
            if when <= self.clock.now:
                del self.due[key]
                self.wanted.add(key)

    def later(self, key: str, delay: float) -> None:
        """It is wanted then, if not before."""
        when = self.clock.now + delay
        self.due[key] = min(when, self.due.get(key, when))
        self.expect_due()  # a delay may be too small to make a difference

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        """Somebody wakes exactly if there is one key more to take."""
        self.expect_due()
        takeable = key not in self.turns
        before = self.keys.depth
        wake = self.keys.add(key)
        assert wake == (not self.closed and takeable and self.keys.depth > before)
        if not self.closed:
            self.wanted.add(key)

    @rule(key=KEYS, delay=st.floats(0, 10))
    def add_after(self, key: str, delay: float) -> None:
        """It is wanted later."""
        due = self.keys.next_due()
        wake = self.keys.add_after(key, delay)
        if self.closed:
            assert not wake
        elif delay <= 0:
            self.wanted.add(key)
        else:
            self.later(key, delay)
            if self.clock.now + delay < due:
                assert wake, "a sleeper would sleep too long"

    @rule(passed=st.floats(0.01, 5))
    def time_passes(self, passed: float) -> None:
        """And brings what is due."""
        self.clock.now += passed
        self.expect_due()

    @rule()
    def take(self) -> None:
        """One of those wanted that is not at work, if there is one."""
        self.expect_due()
        turn = take(self.keys)
        free = self.wanted - self.turns.keys()
        if turn is None:
            assert not free, "a key is wanted and was not given"
            return
        assert turn.key in free, "a key was given that is at work, or was not wanted"
        self.wanted.discard(turn.key)
        self.turns[turn.key] = turn

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), failed=st.booleans())
    def end_a_turn(self, data: Any, failed: bool) -> None:
        """It is done, or failed and comes later; late calls for it change nothing."""
        key = data.draw(st.sampled_from(sorted(self.turns)))
        turn = self.turns.pop(key)
        if failed:
            delay, _ = self.keys.retry(key)
            if not self.closed:
                self.failures[key] += 1
                assert delay >= min(8, 0.5 * 2 ** (self.failures[key] - 1)) * 1.25
                self.later(key, delay)
        else:
            self.keys.forget(key)
            del self.failures[key]
        assert self.keys.done(turn) == (key in self.keys._waiting)
        assert not self.keys.done(turn)

    @precondition(lambda self: not self.closed)
    @rule(drain=st.booleans())
    def close(self, drain: bool) -> None:
        """Nothing is wanted any more; with ``drain`` only what waits."""
        self.closed = True
        waiting = set(self.keys._waiting) | set(self.keys._again)
        self.keys.close(drain=drain)
        self.due = {}
        self.wanted = waiting if drain else set()

    @invariant()
    def stands_as_promised(self) -> None:
        """What is at work is what was taken; failures are counted; sleepers do not oversleep."""
        assert set(self.keys.at_work) == self.turns.keys()
        assert {key: self.keys.retries(key) for key in "abcdef"} == {
            key: self.failures[key] for key in "abcdef"
        }
        free = self.wanted - self.turns.keys()
        if free:
            assert self.keys.next_due() <= self.clock.now
        elif self.due and not self.closed:
            assert self.keys.next_due() <= min(self.due.values())
        assert self.keys.over == (self.closed and not free)


Work.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_whatever_happens_no_key_is_lost_or_worked_on_twice = Work.TestCase
