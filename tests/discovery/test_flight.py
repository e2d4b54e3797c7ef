"""Who asks for the same thing at the same time shares one answer."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NoReturn

import pytest

from dyninformer.discovery.flight import SingleFlight


class Gate:
    """Work that waits to be let through, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.first = threading.Event()
        self.open = threading.Event()

    def work(self) -> int:
        """Wait, and say how many have begun."""
        self.begun += 1
        self.first.set()
        assert self.open.wait(30)
        return self.begun


def test_all_who_come_meanwhile_share_one_answer() -> None:
    """Nobody else works on it before it is there; another thing does not wait for it."""
    flight: SingleFlight[str, int] = SingleFlight()
    gate = Gate()

    def late() -> int:
        assert gate.open.is_set(), "two worked at the same time"
        return 99

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(flight.share, "a", gate.work)
        assert gate.first.wait(30)
        others: list[Future[int]] = [pool.submit(flight.share, "a", late) for _ in range(4)]
        other = pool.submit(flight.share, "b", lambda: 7)
        assert other.result(30) == 7
        gate.open.set()
        assert first.result(30) == 1
        assert {each.result(30) for each in others} <= {1, 99}


def test_an_error_is_shared_and_not_kept() -> None:
    """The next one who asks has the work done anew."""
    flight: SingleFlight[str, int] = SingleFlight()

    def fail() -> NoReturn:
        raise LookupError("no")

    with pytest.raises(LookupError):
        flight.share("a", fail)
    assert flight.share("a", lambda: 3) == 3


def test_an_interrupt_is_for_one_alone() -> None:
    """Whoever waits for the interrupted one does the work in his place."""
    flight: SingleFlight[str, int] = SingleFlight()
    begun, go = threading.Event(), threading.Event()

    def interrupted() -> NoReturn:
        begun.set()
        assert go.wait(30)
        raise KeyboardInterrupt

    def lead() -> str:
        with pytest.raises(KeyboardInterrupt):
            flight.share("a", interrupted)
        return "interrupted"

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(lead)
        assert begun.wait(30)
        follower = pool.submit(flight.share, "a", lambda: 5)
        go.set()
        assert leader.result(30) == "interrupted"
        assert follower.result(30) == 5


def test_who_asks_in_the_middle_of_its_own_work_does_not_wait_for_itself() -> None:
    """As a signal handler does that comes meanwhile, on the same thread."""
    flight: SingleFlight[str, int] = SingleFlight()
    assert flight.share("a", lambda: flight.share("a", lambda: 1) + 1) == 2
    assert flight.share("a", lambda: 7) == 7
