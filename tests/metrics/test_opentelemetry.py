"""What a reader of OpenTelemetry collects."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dyninformer import GroupVersionResource, open_informer
from dyninformer.metrics import COUNTERS, GAUGES, HISTOGRAMS, OpenTelemetryMetrics
from dyninformer.testing import ApiServer
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until

PODS = GroupVersionResource("", "v1", "pods")


class Collected:
    """A provider, and what its reader collects."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.meter = MeterProvider([self._reader]).get_meter("mine")

    def metrics(self) -> dict[str, Any]:
        """All metrics that have values now, by name."""
        found = self._reader.get_metrics_data()
        if found is None:
            return {}
        return {
            metric.name: metric
            for resource in found.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """The attributes and values of one."""
        metric = self.metrics().get(name)
        return [] if metric is None else [(dict(p.attributes), p) for p in metric.data.data_points]


def test_what_is_of_an_informer_is_there_until_it_stops(server: ApiServer) -> None:
    """Under names and units as OpenTelemetry has them; what has stopped is collected no more."""
    collected = Collected()
    metrics = OpenTelemetryMetrics(collected.meter, labels={"cluster": "eu"})
    with open_informer(MAPS, client=server.client(), metrics=metrics) as maps:
        maps.informer.add_event_handler(on_add=lambda obj: None, name="mine")
        write(server, "a")
        until(lambda: collected.points("dyninformer.event_lag.count"), PATIENCE)
        (attributes, point) = collected.points("dyninformer.objects")[0]
        assert attributes == {"cluster": "eu", "resource": "configmaps.v1"}
        assert point.value == len(maps.lister)
        found = collected.metrics()
        assert found["dyninformer.cache_held"].unit == "By"
        assert found["dyninformer.contact_age"].unit == "s"
        assert found["dyninformer.events"].unit == "{event}"
        assert collected.points("dyninformer.event_lag.count")[0][0]["handler"] == "mine"
    left = collected.metrics()
    assert {name for name in left if not left[name].data.data_points} == set()
    assert set(left) <= {f"dyninformer.{name.removesuffix('_seconds')}" for name in HISTOGRAMS}
    for metric in left.values():
        assert [dict(point.attributes) for point in metric.data.data_points] == [{"cluster": "eu"}]


def test_a_reader_gets_the_values_of_its_own_moment(server: ApiServer) -> None:
    """Not those of the collection before."""
    collected = Collected()
    metrics = OpenTelemetryMetrics(collected.meter)
    for amount in (1, 2, 3):
        metrics.count("relists", PODS, reason="start")
        assert [point.value for _, point in collected.points("dyninformer.relists")] == [amount]


def test_every_name_in_the_tables_is_an_instrument() -> None:
    """Each with its own name."""
    collected = Collected()
    metrics = OpenTelemetryMetrics(collected.meter)
    for name in COUNTERS:
        metrics.count(name, PODS)
    for name in GAUGES:
        metrics.gauge(name, PODS, 1)
    for name in HISTOGRAMS:
        metrics.observe(name, PODS, 1)
    assert len(collected.metrics()) == len(COUNTERS) + len(GAUGES) + 3 * len(HISTOGRAMS)


def test_several_metrics_of_one_meter_are_collected_once() -> None:
    """The instruments are made once."""
    collected = Collected()
    OpenTelemetryMetrics(collected.meter).count("relists", PODS)
    OpenTelemetryMetrics(collected.meter).labelled(cluster="us").count("relists", PODS)
    attributes = [found for found, _ in collected.points("dyninformer.relists")]
    assert attributes == [{"resource": "pods.v1"}, {"resource": "pods.v1", "cluster": "us"}]


def test_without_a_provider_nothing_happens(server: ApiServer) -> None:
    """The API alone does nothing, and costs little."""
    with open_informer(MAPS, client=server.client(), metrics=OpenTelemetryMetrics()) as maps:
        assert maps.informer.has_synced()


GLOBAL = """
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from dyninformer import GroupVersionResource
from dyninformer.metrics import OpenTelemetryMetrics

made = [OpenTelemetryMetrics(labels={"made": "early"})]
reader = InMemoryMetricReader()
provider = MeterProvider([reader])
set_meter_provider(provider)
made.append(OpenTelemetryMetrics(labels={"made": "late"}))
made.append(OpenTelemetryMetrics(provider.get_meter("dyninformer"), labels={"made": "by hand"}))
for metrics in made:
    metrics.count("relists", GroupVersionResource("", "v1", "pods"), reason="start")
(metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
print(*sorted(each.attributes["made"] for each in metric.data.data_points), sep=", ", end="")
"""


def test_however_the_global_meter_is_found_it_is_one() -> None:
    """Before there is a provider, after that, and by its name."""
    done = subprocess.run(
        [sys.executable, "-c", GLOBAL], timeout=60, check=False, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("by hand, early, late", "")
