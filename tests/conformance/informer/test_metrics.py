"""What metrics say of an informer, and that they end with it, on both servers."""

from __future__ import annotations

from typing import TypeAlias

from dyninformer.metrics import Distribution, GatheredMetrics
from tests.conformance.cluster import Collection
from tests.conformance.informer.conftest import Running
from tests.conformance.informer.recorders import PATIENCE, Heard
from tests.conformance.wire import until

Values: TypeAlias = dict[str, float | Distribution]


def values(metrics: GatheredMetrics) -> Values:
    """By name; of a name with several values the last."""
    return {each.name: each.value for each in metrics.gather()}


def test_s48_metrics_say_how_late_a_change_comes_and_end_with_their_informer(
    running: Running, widgets: Collection
) -> None:
    """The server's time of a write is in the object, whichever server it is."""
    metrics, heard = GatheredMetrics(), Heard()
    found = running(metrics=metrics)
    registration = found.informer.add_event_handler(heard, name="mine")
    widgets.fill("a", "b", size=1)
    heard.wait_count(2)
    until(lambda: registration.backlog == 0, PATIENCE)
    until(lambda: "event_lag_seconds" in values(metrics), PATIENCE)
    now = values(metrics)
    assert (now["objects"], now["synced"], now["live"]) == (2, 1, 1)
    assert 0 <= float(str(now["contact_age_seconds"])) < PATIENCE
    lag = now["write_lag_seconds"]
    assert isinstance(lag, Distribution)
    assert 0 <= lag.sum / lag.count < PATIENCE
    registration.remove()
    assert not [each for each in metrics.gather() if "handler" in each.labels]
    assert found.informer.stop(PATIENCE)
    assert metrics.gather() == []
