"""Labels that a factory's metrics have beside their own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.metrics import GatheredMetrics, PrometheusMetrics, labelled
from dyninformer.testing import ApiServer
from tests.config_maps import MAPS, PATIENCE

PODS = GroupVersionResource("", "v1", "pods")


class Noted:
    """Metrics of a user's own."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Note it."""
        self.told.append((name, labels))

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Note it."""
        self.told.append((name, labels))


def test_two_factories_of_one_registry_are_told_apart_by_their_labels(server: ApiServer) -> None:
    """As those of two clusters are."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    for cluster in ("eu", "us"):
        with DynamicSharedInformerFactory(
            server.client(), metrics=labelled(metrics, cluster=cluster)
        ) as factory:
            factory.for_resource(MAPS)
            factory.sync(PATIENCE)
            labels = {"resource": str(MAPS), "cluster": cluster}
            assert registry.get_sample_value("dyninformer_synced", labels) == 1.0


def test_a_users_own_metrics_are_told_with_the_labels(server: ApiServer) -> None:
    """In each call, beside those of the metric."""
    noted = Noted()
    with DynamicSharedInformerFactory(
        server.client(), metrics=labelled(noted, cluster="eu")
    ) as factory:
        factory.for_resource(MAPS)
        factory.sync(PATIENCE)
    assert ("relists", {"cluster": "eu", "reason": "start"}) in noted.told
    assert all(labels["cluster"] == "eu" for _, labels in noted.told)


def test_labels_come_on_top_of_labels() -> None:
    """The later one of a name counts."""
    metrics = GatheredMetrics(labels={"cluster": "eu", "team": "a"})
    metrics.labelled(team="b").count("relists", PODS, reason="start")
    (reading,) = metrics.gather()
    own = {"resource": "pods.v1", "reason": "start"}
    assert reading.labels == {"cluster": "eu", "team": "b", **own}


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({"a-b": "c"}, "'a-b' is no name for a label: letters, digits and _ make one"),
        ({"__name__": "c"}, "'__name__' is no name for a label"),
        ({"resource": "c"}, "metrics have a label 'resource' already: give it another name"),
        ({"cluster": 1}, "the label cluster is 1: give a text"),
        ("cluster", """labels is 'cluster': give a mapping such as {"cluster": "eu"}"""),
    ],
)
def test_a_label_that_cannot_be_is_an_error_that_says_why(labels: Any, says: str) -> None:
    """Where it is given, and not at the first scrape."""
    with pytest.raises((TypeError, ValueError), match=re.escape(says)):
        GatheredMetrics(labels=labels)
