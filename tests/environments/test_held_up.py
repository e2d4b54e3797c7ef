"""Threads are held up at a few lines, the same for a seed."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.environments.held_up import wait_at

_PACKAGE = Path(__file__).parents[2] / "dyninformer"


def waits(file: Path, seed: str = "1", test: str = "test_a") -> list[float]:
    """At each of many lines."""
    return [wait_at(seed, test, str(file), line) for line in range(20_000)]


def test_of_the_packages_lines_one_in_a_hundred_is_held_up() -> None:
    """For a tenth of a second at most; the embedded server's half as often, others never."""
    found = waits(_PACKAGE / "informer.py")
    held = [each for each in found if each]
    assert 150 < len(held) < 250
    assert 0.04 < sum(held) / len(held) < 0.06
    assert max(held) <= 0.1
    assert 60 < sum(map(bool, waits(_PACKAGE / "testing" / "api_server.py"))) < 140
    assert not any(waits(Path(threading.__file__)))


def test_a_seed_and_a_test_choose_their_lines() -> None:
    """And the same ones each time."""
    file = _PACKAGE / "informer.py"
    assert waits(file) == waits(file)
    assert waits(file) != waits(file, seed="2")
    assert waits(file) != waits(file, test="test_b")
