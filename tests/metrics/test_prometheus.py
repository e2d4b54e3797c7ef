"""What Prometheus scrapes."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dyninformer import DynamicSharedInformerFactory, GroupVersionResource, open_informer
from dyninformer.metrics import COUNTERS, GAUGES, HISTOGRAMS, PrometheusMetrics
from dyninformer.testing import ApiServer
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until

PODS = GroupVersionResource("", "v1", "pods")


def test_a_page_has_what_runs_and_nothing_of_what_has_stopped(server: ApiServer) -> None:
    """The text is what a scrape gets."""
    registry = CollectorRegistry()
    with open_informer(MAPS, client=server.client(), metrics=PrometheusMetrics(registry)) as maps:
        page = generate_latest(registry).decode()
        assert f'dyninformer_objects{{resource="configmaps.v1"}} {len(maps.lister)}.0' in page
        assert 'dyninformer_relists_total{reason="start",resource="configmaps.v1"} 1.0' in page
    assert generate_latest(registry) == b""


def test_a_histogram_is_one_that_prometheus_reads(server: ApiServer) -> None:
    """Each bucket has what is in those below it as well."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    for value in (0.0001, 0.0002, 0.7, 400.0):
        metrics.observe("handler_duration_seconds", PODS, value, handler="a")
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())
    buckets = {
        each.labels["le"]: each.value for each in family.samples if each.name.endswith("_bucket")
    }
    assert family.type == "histogram"
    assert (buckets["0.0001"], buckets["0.0005"], buckets["1.0"], buckets["+Inf"]) == (1, 2, 3, 4)
    labels = {"resource": "pods.v1", "handler": "a"}
    assert registry.get_sample_value("dyninformer_handler_duration_seconds_count", labels) == 4


def test_several_metrics_of_one_registry_are_one_page(server: ApiServer) -> None:
    """A program that opens two informers need not pass the first one's metrics on."""
    registry = CollectorRegistry()
    PrometheusMetrics(registry).count("relists", PODS, reason="start")
    PrometheusMetrics(registry).count("relists", PODS, reason="start")
    labels = {"resource": "pods.v1", "reason": "start"}
    assert registry.get_sample_value("dyninformer_relists_total", labels) == 2


def test_the_name_of_a_metric_is_taken_before_it_has_a_value() -> None:
    """Another collector that has it is an error where it is made, not in a scrape."""
    registry = CollectorRegistry()
    PrometheusMetrics(registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        Counter("dyninformer_relists", "Mine", registry=registry)


def test_every_name_in_the_tables_can_be_a_metric() -> None:
    """And each is told apart from the others."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    for name in COUNTERS:
        metrics.count(name, PODS)
    for name in GAUGES:
        metrics.gauge(name, PODS, 1)
    for name in HISTOGRAMS:
        metrics.observe(name, PODS, 1)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert len(families) == len(COUNTERS) + len(GAUGES) + len(HISTOGRAMS)


def test_it_is_scraped_while_informers_come_and_go(server: ApiServer) -> None:
    """From another thread."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    with DynamicSharedInformerFactory(server.client(), metrics=metrics) as factory:
        for number in range(10):
            maps = factory.for_resource(MAPS, namespaces="default")
            maps.informer.add_event_handler(on_add=lambda obj: None, name="mine", coalesce=True)
            factory.sync(PATIENCE)
            write(server, f"a{number}")
            labels = {"resource": str(MAPS)}
            until(
                lambda: registry.get_sample_value("dyninformer_objects", labels) == number + 1,  # noqa: B023
                PATIENCE,
            )
            factory.remove(MAPS)
            assert generate_latest(registry) == b""
