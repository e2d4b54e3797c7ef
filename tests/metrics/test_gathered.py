"""Metrics that are asked, and that end with what they are of."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator

import pytest
from kubernetes.client import ApiClient, Configuration

from dyninformer import (
    DynamicSharedInformerFactory,
    GroupVersionResource,
    SharedIndexInformer,
    open_informer,
)
from dyninformer.informer import Runtime
from dyninformer.metrics import COUNTERS, GAUGES, HISTOGRAMS, Distribution, GatheredMetrics
from dyninformer.metrics.names import OWN_LABELS, unit
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus
from dyninformer.types import Object
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until

PODS = GroupVersionResource("", "v1", "pods")


class Found:
    """What metrics have at a moment, by name and one label."""

    def __init__(self, metrics: GatheredMetrics) -> None:
        self._metrics = metrics

    def value(self, name: str, **labels: str) -> float | Distribution:
        """The one value with these labels; 0 if there is none."""
        found = [
            each.value
            for each in self._metrics.gather()
            if each.name == name and labels.items() <= each.labels.items()
        ]
        assert len(found) <= 1
        return found[0] if found else 0

    def names(self) -> set[str]:
        """All names."""
        return {each.name for each in self._metrics.gather()}


@pytest.fixture
def metrics() -> GatheredMetrics:
    """None so far."""
    return GatheredMetrics()


@pytest.fixture
def found(metrics: GatheredMetrics) -> Found:
    """What they have."""
    return Found(metrics)


@pytest.fixture
def factory(server: ApiServer, metrics: GatheredMetrics) -> Iterator[DynamicSharedInformerFactory]:
    """One that reports."""
    with DynamicSharedInformerFactory(server.client(), metrics=metrics) as factory:
        yield factory


def test_every_value_of_an_informer_is_there_while_it_runs(
    server: ApiServer, factory: DynamicSharedInformerFactory, found: Found
) -> None:
    """Objects, bytes, ages, events, requests, handlers' times and lags."""
    maps = factory.for_resource(MAPS, namespaces="default")
    registration = maps.informer.add_event_handler(on_event=lambda event: None, name="mine")
    factory.sync(PATIENCE)
    for number in range(3):
        write(server, f"a{number}")
    until(lambda: found.value("objects") == 3, PATIENCE)
    until(lambda: registration.backlog == 0, PATIENCE)
    until(lambda: isinstance(found.value("event_lag_seconds"), Distribution), PATIENCE)
    assert found.names() >= {
        *("objects", "cache_held_bytes", "cache_raw_bytes", "synced", "live", "failed_attempts"),
        *("contact_age_seconds", "cache_age_seconds", "untransformed_objects", "backlog"),
        *("requests", "relists", "events"),
        *("event_lag_seconds", "handler_duration_seconds", "write_lag_seconds"),
    }
    assert found.value("cache_raw_bytes") == found.value("cache_held_bytes") != 0
    assert found.value("events", type="ADDED") == 3
    assert found.value("synced") == found.value("live") == 1
    assert found.value("handled", handler="mine") == 3
    lag = found.value("event_lag_seconds", handler="mine")
    assert isinstance(lag, Distribution)
    assert lag.count == 3
    assert 0 < lag.sum < PATIENCE


def test_what_is_held_before_a_handler_comes_has_no_lag(
    server: ApiServer, factory: DynamicSharedInformerFactory, found: Found
) -> None:
    """Nor has a resync: only what a watch brings does."""
    write(server, "a")
    maps = factory.for_resource(MAPS, namespaces="default")
    factory.sync(PATIENCE)
    maps.informer.add_event_handler(on_add=lambda obj: None, name="late")
    until(lambda: found.value("handled", handler="late") == 1, PATIENCE)
    assert isinstance(found.value("handler_duration_seconds"), Distribution)
    assert found.value("event_lag_seconds") == 0


def test_a_handler_that_merges_is_as_late_as_the_first_change_that_it_was_not_told(
    server: ApiServer, factory: DynamicSharedInformerFactory, found: Found
) -> None:
    """However many came since."""
    maps = factory.for_resource(MAPS, namespaces="default")
    go_on, stands = threading.Event(), threading.Event()

    def slow(obj: Object) -> None:
        stands.set()
        go_on.wait(PATIENCE)

    maps.informer.add_event_handler(
        on_add=slow, on_update=lambda old, new: None, coalesce=True, name="slow"
    )
    factory.sync(PATIENCE)
    write(server, "first")
    assert stands.wait(PATIENCE)
    write(server, "second")
    for number in range(20):
        server.patch("configmaps/second", {"data": {"value": str(number)}}, "default")
    until(lambda: "default/second" in maps.lister, PATIENCE)
    until(lambda: maps.lister.get("second", "default")["data"].get("value") == "19", PATIENCE)
    go_on.set()
    until(lambda: found.value("handled", handler="slow") == 2, PATIENCE)
    lag = found.value("event_lag_seconds")
    assert isinstance(lag, Distribution)
    assert lag.count == 2


def test_failures_are_counted_by_their_kind(
    server: ApiServer, factory: DynamicSharedInformerFactory, found: Found
) -> None:
    """In the words of InformerTrouble; and how long nothing was heard is known without any."""
    with server.faults.add(HttpStatus(403), resource="configmaps", times=2) as fault:
        factory.for_resource(MAPS)
        factory.start()
        assert fault.wait_hit(timeout=PATIENCE)
        until(lambda: found.value("errors", trouble="forbidden"), PATIENCE)
    assert found.value("synced") == 0
    assert found.value("failed_attempts") != 0


def test_what_is_of_a_handler_ends_when_it_is_removed(
    server: ApiServer, factory: DynamicSharedInformerFactory, found: Found
) -> None:
    """Also if another thread is in the middle of it; the informer's own goes on."""
    write(server, "a")
    maps = factory.for_resource(MAPS, namespaces="default")
    go_on, stands = threading.Event(), threading.Event()

    def slow(obj: Object) -> None:
        stands.set()
        go_on.wait(PATIENCE)

    registration = maps.informer.add_event_handler(on_add=slow, name="mine")
    factory.sync(PATIENCE)
    assert stands.wait(PATIENCE)
    assert found.value("backlog", handler="mine") == 1
    registration.remove()
    go_on.set()
    assert maps.informer.stop(PATIENCE) is True
    assert found.names() == set()


def test_a_second_informer_of_a_resource_goes_on_from_the_counts_of_the_first(
    server: ApiServer, metrics: GatheredMetrics, found: Found
) -> None:
    """The sum of two does not fall when one ends, which Prometheus would take for a restart."""
    write(server, "a")
    with open_informer(MAPS, client=server.client(), metrics=metrics) as first:
        with open_informer(MAPS, client=server.client(), metrics=metrics):
            assert found.value("relists") == 2
            assert found.value("objects") == 2 * len(first.lister)
        assert found.value("relists") == 2
        assert found.value("objects") == len(first.lister)
    assert metrics.gather() == []


def test_what_ends_twice_is_counted_on_from_once(metrics: GatheredMetrics, found: Found) -> None:
    """Also where another one of its labels is no longer held, and has not ended."""
    ended, kept, lost = [metrics.begin(PODS, list) for _ in range(3)]
    ended.count("relists", PODS, reason="start")
    ended.end()
    del lost
    ended.end()
    kept.count("relists", PODS, reason="start")
    assert found.value("relists") == 2


def test_an_informer_that_nobody_holds_has_no_metrics(server: ApiServer) -> None:
    """Also one that was never started or stopped."""
    metrics = GatheredMetrics()
    informer = SharedIndexInformer(server.client(), PODS, metrics=metrics)
    informer.add_event_handler(on_add=print)
    assert [each.name for each in metrics.gather()] == ["backlog"]
    del informer
    gc.collect()
    assert metrics.gather() == []


def test_a_label_that_cannot_be_written_does_not_spoil_the_others(
    server: ApiServer, factory: DynamicSharedInformerFactory, metrics: GatheredMetrics
) -> None:
    """A name may be of any length, and have half of a surrogate pair in it."""
    maps = factory.for_resource(MAPS)
    maps.informer.add_event_handler(on_add=print, name="\ud800" + "x" * 1000)
    handlers = [each.labels["handler"] for each in metrics.gather() if "handler" in each.labels]
    assert handlers == ["?" + "x" * 119]


def test_neither_does_one_of_what_is_counted(
    server: ApiServer, factory: DynamicSharedInformerFactory, metrics: GatheredMetrics
) -> None:
    """An index whose function fails has its name on the page."""
    write(server, "a")
    factory.for_resource(MAPS, indexers={"\ud800" + "x" * 1000: lambda obj: obj["nope"]})
    factory.sync(PATIENCE)
    indexes = [each.labels["index"] for each in metrics.gather() if each.name == "index_errors"]
    assert indexes == ["?" + "x" * 119]


def test_what_cannot_be_read_is_logged_once_and_the_rest_is_there(
    metrics: GatheredMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    """A page of metrics is not to fail with one of them."""

    def fails() -> list[tuple[str, float]]:
        raise ValueError("not now")

    bad = metrics.begin(PODS, fails)
    good = metrics.begin(PODS, lambda: [("objects", 3)])
    for _ in range(2):
        assert [each.value for each in metrics.gather()] == [3]
    assert caplog.text.count("a metric could not be read") == 1
    bad.end()
    good.end()


def test_what_ends_while_it_is_counted_is_lost_with_its_end(metrics: GatheredMetrics) -> None:
    """A thread that counts once more brings nothing back."""
    tally = metrics.begin(PODS, list)
    tally.count("handled", PODS)
    tally.end()
    tally.end()
    tally.count("handled", PODS)
    assert metrics.gather() == []


def test_no_metric_has_a_label_without_bounds() -> None:
    """Neither keys nor uids, nor what is in objects: the tables say all labels that there are."""
    assert {
        *("code", "handler", "index", "lease", "queue", "reason", "resource", "result", "trouble"),
        *("type", "verb"),
    } == OWN_LABELS
    assert not COUNTERS.keys() & GAUGES.keys()
    assert all(unit(name) != "1" for name in COUNTERS if name != "backlogs_merged")
    assert all(unit(name) == "s" for name in HISTOGRAMS)


def starts_and_stops(runtime: Runtime, times: int, *, start: bool) -> None:
    """Of informers that never connect, each with a handler and a queue, of other names each."""
    for number in range(times):
        gvr = GroupVersionResource("", "v1", f"kind{number}")
        informer = SharedIndexInformer(None, gvr, runtime=runtime)
        informer.add_event_handler(on_add=print, name=f"handler {number}")
        queue = informer.work_queue(name=f"queue {number}")
        queue.add("a")
        if start:
            informer.start()
        informer.signal_stop()
        assert informer.wait_stopped(PATIENCE) == []
        queue.close()


def ours() -> int:
    """How many objects of the package there are that are in use."""
    gc.collect()
    return sum(str(type(each).__module__).startswith("dyninformer.") for each in gc.get_objects())


@pytest.fixture
def runtime(metrics: GatheredMetrics, caplog: pytest.LogCaptureFixture) -> Iterator[Runtime]:
    """What informers share, whose server is not there."""
    caplog.set_level(logging.CRITICAL, "dyninformer")
    nowhere = ApiClient(Configuration(host="http://127.0.0.1:1"))
    runtime = Runtime.connect(nowhere, metrics=metrics)
    yield runtime
    runtime.close()
    assert runtime.wait_closed(PATIENCE) == []


@pytest.mark.parametrize(
    ("times", "start"),
    [
        pytest.param(2_000, False, id="2,000 that were never started"),
        pytest.param(500, True, id="500"),
        pytest.param(10_000, True, id="10,000", marks=pytest.mark.soak),
    ],
)
def test_starts_and_stops_leave_no_series_no_threads_and_no_memory(
    runtime: Runtime, metrics: GatheredMetrics, times: int, start: bool
) -> None:
    """Whatever the names of resources, handlers and queues are."""
    starts_and_stops(runtime, 20, start=start)  # what there is once
    threads, objects = threading.active_count(), ours()
    starts_and_stops(runtime, times, start=start)
    assert metrics.gather() == []
    until(lambda: threading.active_count() <= threads, PATIENCE)
    until(lambda: ours() - objects < times / 10, PATIENCE)
