"""Many objects are made without being walked by the garbage collector.

The first two of its thresholds are looked at: since Python 3.14 the third is always 0.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from dyninformer.store.collector import made_at_once


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    """Put back what the test changes."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def collections() -> int:
    """How often the collector has run."""
    return sum(generation["collections"] for generation in gc.get_stats())


def test_what_is_made_at_once_is_not_walked_meanwhile() -> None:
    """Not once, of many times the usual threshold."""
    gc.collect()
    before = collections()
    assert len(made_at_once(lambda: [[] for _ in range(50_000)])) == 50_000
    assert collections() == before


def test_the_thresholds_are_as_before_also_after_an_error() -> None:
    """Whatever is raised."""
    assert made_at_once(gc.get_threshold)[0] > 700

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_at_once(fail)
    assert gc.get_threshold()[:2] == (700, 10)


def test_one_inside_of_another_leaves_the_thresholds_as_they_were() -> None:
    """So do two threads at a time."""
    assert made_at_once(lambda: made_at_once(lambda: "done")) == "done"
    assert gc.get_threshold()[:2] == (700, 10)


def test_thresholds_that_somebody_sets_meanwhile_stay() -> None:
    """They are not ours to undo."""
    made_at_once(lambda: gc.set_threshold(500, 5, 5))
    assert gc.get_threshold()[:2] == (500, 5)


def test_thresholds_that_the_program_sets_stay_when_several_threads_read() -> None:
    """A thread that began with the older thresholds does not bring them back at its end."""
    inside, leave = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(3)]

    def read(number: int) -> None:
        def wait() -> None:
            inside[number].set()
            assert leave[number].wait(30)

        made_at_once(wait)

    with ThreadPoolExecutor() as pool:

        def begin(number: int) -> Future[None]:
            reading = pool.submit(read, number)
            assert inside[number].wait(30)
            return reading

        def end(number: int, reading: Future[None]) -> None:
            leave[number].set()
            reading.result(30)

        first, second = begin(0), begin(1)
        end(0, first)
        gc.set_threshold(1234, 5, 5)
        third = begin(2)
        end(1, second)
        end(2, third)
    assert gc.get_threshold()[:2] == (1234, 5)


@pytest.mark.parametrize("first", [0, 10_000_000])
def test_a_collector_that_waits_longer_is_left_alone(first: int) -> None:
    """0 is for ever."""
    gc.set_threshold(first, 10, 10)
    assert made_at_once(gc.get_threshold)[:2] == (first, 10)
    assert gc.get_threshold()[:2] == (first, 10)


def test_a_collector_that_is_switched_off_stays_so() -> None:
    """And one that somebody switches off meanwhile."""
    made_at_once(gc.disable)
    try:
        assert not gc.isenabled()
        made_at_once(list)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_threshold_that_was_left_raised_is_put_back_by_the_next_call() -> None:
    """As after a fork, or an interrupt at the worst moment."""
    raised = made_at_once(gc.get_threshold)
    gc.set_threshold(*raised)
    made_at_once(list)
    assert gc.get_threshold()[:2] == (700, 10)
