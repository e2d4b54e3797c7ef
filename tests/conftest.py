"""What the tests of every room may use."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

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
    """For tests that interrupt the main thread: in coverage, that would leave its lock taken."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)
