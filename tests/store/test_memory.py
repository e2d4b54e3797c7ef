"""What is free of the process's memory is given back, soon after there is some, and seldom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dyninformer.store import memory
from dyninformer.store.memory import EVERY, FREED, Freed
from tests.delivery.harness import Harness


class Trims:
    """The C library, and the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.trimmed = 0

    def __call__(self, keep: int) -> None:
        """What ``malloc_trim`` does."""
        assert keep == 0
        self.trimmed += 1

    def later(self, seconds: float) -> int:
        """How often it has been trimmed by then, if it is looked at then."""
        self.now += seconds
        FREED.give_back()
        return self.trimmed


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trims]:
    """In place of both."""
    found = Trims()
    monkeypatch.setattr(memory, "monotonic", lambda: found.now)
    monkeypatch.setattr(memory, "_malloc_trim", lambda: found)
    FREED.due = None
    yield found
    FREED.due = None


def test_what_was_freed_is_given_back_once_in_a_while(trims: Trims) -> None:
    """However often something is freed meanwhile, and only if something was."""
    assert trims.later(100) == 0
    FREED.note()
    assert trims.later(EVERY / 2) == 0
    FREED.note()
    assert trims.later(EVERY / 2) == 1
    assert trims.later(100) == 1
    FREED.note()
    assert trims.later(EVERY) == 2


def test_a_relist_frees_memory_and_a_large_one_gives_it_back_at_once(trims: Trims) -> None:
    """A list of many objects leaves megabytes at one time, small ones add up."""
    harness = Harness()
    harness.relist("a", "b", first=True)
    assert trims.trimmed == 0
    assert trims.later(EVERY) == 1
    harness.relist(*(f"k{number}" for number in range(10_000)))
    assert (trims.trimmed, FREED.due) == (2, None)


def test_a_queue_that_was_long_has_freed_memory(
    trims: Trims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short one has not."""
    monkeypatch.setattr("dyninformer.delivery.queue.MANY", 5)
    harness = Harness()
    harness.sync()
    for most in (0, 5):
        stream = harness.dispatcher.events(max_backlog=most, initial=False)
        FREED.due = None
        for number in range(3):
            harness.put("a", x=number)
        while stream.take(0):
            pass
        assert FREED.due is None
        for number in range(9):
            harness.put("a", x=number)
        while stream.take(0):
            pass
        assert FREED.due is not None
        stream.close()
    harness.close()


def test_where_the_c_library_has_no_such_call_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other systems than Linux, and other C libraries there."""
    memory._malloc_trim.cache_clear()
    monkeypatch.setattr("sys.platform", "darwin")
    freed = Freed()
    freed.note()
    monkeypatch.setattr(memory, "monotonic", lambda: float("inf"))
    freed.give_back()
    assert memory._malloc_trim() is None
    memory._malloc_trim.cache_clear()
