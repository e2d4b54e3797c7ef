"""What is counted, and what a user's metrics may do."""

from __future__ import annotations

import threading

import pytest

from dyninformer import DynamicSharedInformerFactory, GroupVersionResource, SharedIndexInformer
from dyninformer.metrics.told import NO_METRICS, contained
from dyninformer.testing import ApiServer
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until

PODS = GroupVersionResource("", "v1", "pods")


class Told:
    """Metrics that remember what they were told, and do as a test says."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []
        self.lock = threading.Lock()
        self.error: BaseException | None = None
        self.during: list[str] = []

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Take it, under a lock that nobody can take twice."""
        if self.error is not None:
            raise self.error
        with self.lock:
            while self.during:
                guarded.count(self.during.pop(), gvr)
            self.told.append((name, amount))

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Take it."""
        self.count(name, gvr, int(value), **labels)


told = Told()
guarded = contained(told)


@pytest.fixture(autouse=True)
def _as_new() -> None:
    told.__init__()  # type: ignore[misc]


def test_nobody_listens_by_default() -> None:
    """And that stays as cheap as it is."""
    assert contained(NO_METRICS) is NO_METRICS
    assert contained(guarded) is guarded


def test_what_comes_in_the_middle_of_a_call_is_told_after_it() -> None:
    """As from a signal handler that shuts down, on the same thread: no lock is taken twice."""
    told.during = ["dropped_events"]
    guarded.count("handled", PODS, 3)
    assert told.told == [("handled", 3), ("dropped_events", 1)]


@pytest.mark.parametrize("error", [ValueError("label"), SystemExit(1), KeyboardInterrupt()])
def test_what_metrics_raise_ends_no_reflector(
    server: ApiServer, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """It is logged once for each name, and the informer goes on as if nobody listened."""
    with DynamicSharedInformerFactory(server.client(), metrics=told) as factory:
        maps = factory.for_resource(MAPS, namespaces="default")
        factory.sync(PATIENCE)
        told.error = error
        server.restart()
        write(server, "a")
        until(lambda: "default/a" in maps.lister, PATIENCE)
    assert caplog.text.count("the metrics failed on 'requests'") == 1


def test_synced_is_0_from_the_start_and_1_with_the_first_whole_state(
    server: ApiServer,
) -> None:
    """Of an informer that never syncs there is a 0 to be seen."""
    informer = SharedIndexInformer(server.client(), MAPS, metrics=told)
    informer.start()
    until(lambda: ("synced", 1) in told.told, PATIENCE)
    assert [value for name, value in told.told if name == "synced"] == [0, 1]
    assert informer.stop(5)
