"""A plugin of pytest's: threads are held up at lines that a seed and the test's name choose.

It finds tests that pass only because a thread is mostly quick: ``make held-up SEED=7``. A test that
fails prints where its threads were held up; the same seed chooses the same lines again, though not
who comes first. Needs ``sys.monitoring``, and so Python 3.12.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_SHARES: Final = {  # of the lines of such files
    _ROOT / "dyninformer" / "testing": 0.005,
    _ROOT / "dyninformer": 0.01,
    _ROOT / "tests": 0.05,
}
_LONGEST: Final = 0.1  # seconds, of one time
_MOST: Final = 1.5  # seconds, of a test
_TIMES: Final = 3  # that a line is held up in a test
_TOOL: Final = 3  # of sys.monitoring's, which nobody has reserved
_monitoring: Any = getattr(sys, "monitoring", None)


def wait_at(seed: str, test: str, file: str, line: int) -> float:
    """For how many seconds a thread is held up at a line; 0 at nearly all.

    >>> wait_at("1", "test_a", __file__, 1) == wait_at("1", "test_a", __file__, 1)
    True
    """
    share = _share(file)
    chance = zlib.crc32(f"{seed}|{test}|{file}|{line}".encode()) / 2**32
    return _LONGEST * chance / share if chance < share else 0.0


@cache
def _share(file: str) -> float:
    return next((share for at, share in _SHARES.items() if Path(file).is_relative_to(at)), 0.0)


class HeldUp:
    """Holds threads up while a test runs."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._test = ""
        self._left = 0.0
        self._times = Counter[tuple[str, int]]()
        self._said: list[str] = []
        _monitoring.use_tool_id(_TOOL, "held up")
        _monitoring.register_callback(_TOOL, _monitoring.events.LINE, self._line)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Other lines for each test."""
        self._test, self._left = item.nodeid, _MOST
        self._times.clear()
        self._said.clear()
        _monitoring.restart_events()
        _monitoring.set_events(_TOOL, _monitoring.events.LINE)
        try:
            return (yield)
        finally:
            _monitoring.set_events(_TOOL, 0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say where."""
        report = yield
        if report.failed:
            report.sections.append(("held up", "\n".join(self._said)))
        return report

    def _line(self, code: CodeType, line: int) -> Any:
        seconds = wait_at(self._seed, self._test, code.co_filename, line)
        place = code.co_filename, line
        done = self._times[place] >= _TIMES or self._left <= 0
        if not seconds or done or threading.active_count() == 1:
            return _monitoring.DISABLE
        self._times[place] += 1
        self._left -= seconds
        thread = threading.current_thread().name
        where = Path(code.co_filename).relative_to(_ROOT)
        self._said.append(f"{thread} at {where}:{line} for {seconds:.3f} s")
        time.sleep(seconds)
        return None


def pytest_configure(config: pytest.Config) -> None:
    """In each worker of xdist's, where the tests run."""
    if _monitoring is None:
        raise pytest.UsageError("threads are held up by sys.monitoring: this needs Python 3.12")
    config.pluginmanager.register(HeldUp(os.environ.get("DYNINFORMER_HELD_UP", "1")))
