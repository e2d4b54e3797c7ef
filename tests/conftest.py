"""What the tests of every room may use."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dyninformer.testing.pytest_plugin import need_real

pytest_plugins = ["pytester", "tests.config_maps"]

# What tests start is not measured, for the sake of its speed and of its Ctrl-C: one that comes
# while coverage notes a line leaves its lock taken, and then nothing ends any more. The process
# that starts xdist's workers passes it on to them.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a job that a script put in the background: what tests start would inherit it, and
    # no Ctrl-C would end that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says what else the machine is doing, and nothing about the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def _stop_tracing() -> None:
    sys.settrace(None)
    threading.settrace(None)


# A forked child is not measured: another thread may have held the lock under which coverage
# notes a line, and in the child nobody frees it. Here, before the package's own fork handlers
# are registered, which are measured too.
os.register_at_fork(after_in_child=_stop_tracing)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test marked ``real`` runs where a real kube-apiserver is at hand."""
    need_real(config, [item for item in items if item.get_closest_marker("real")])


@pytest.fixture
def unmeasured() -> Iterator[None]:
    """For tests that interrupt the main thread wherever it is: nothing looks at its lines.

    Coverage would keep its lock. And where a line is looked at an interrupt can come between any
    two of them, even behind the last one of a ``with`` block and before its lock is freed.
    """
    tracer = sys.gettrace()
    sys.settrace(None)
    before = _monitored_by(lambda tool, event: None)
    yield
    _monitored_by(lambda tool, event: before[tool, event])
    sys.settrace(tracer)


def _monitored_by(callback: Callable[[int, int], Any]) -> dict[tuple[int, int], Any]:
    """Have tools call this at each event; what they called before. None is nothing."""
    if sys.version_info < (3, 12):
        return {}
    events = [each for each in vars(sys.monitoring.events).values() if each]
    tools = [each for each in range(6) if sys.monitoring.get_tool(each) is not None]
    return {
        (tool, event): sys.monitoring.register_callback(tool, event, callback(tool, event))
        for tool in tools
        for event in events
    }


@pytest.fixture(autouse=True, scope="module")
def nothing_runs_on() -> Iterator[None]:
    """Tests end what they start: no thread of the package is there that was not before them.

    But for API servers, which may be those of all tests, begun for the first one that needs them.
    """
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 10
    for each in threading.enumerate():
        ours = each.name.startswith("dyninformer") and each.name != "dyninformer API server"
        if ours and each not in before:
            each.join(max(0.0, until - time.monotonic()))
            assert not each.is_alive(), f"{each.name} still runs"
