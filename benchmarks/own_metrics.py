"""dyninformer with metrics of one kind, for bench_metrics.

``python -m benchmarks.own_metrics prometheus URL ...``
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from kubernetes.client import ApiClient, Configuration
from prometheus_client import CollectorRegistry

from benchmarks.measuring import run
from benchmarks.own_informer import Informer
from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.metrics import Metrics, OpenTelemetryMetrics, PrometheusMetrics


class Ignored:
    """A class of a user's own, which does nothing."""

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Ignore it."""

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Ignore it."""


def open_telemetry() -> Metrics:
    """With the SDK behind it."""
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - others do without
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415

    return OpenTelemetryMetrics(MeterProvider([InMemoryMetricReader()]).get_meter("dyninformer"))


KINDS: dict[str, Callable[[], Metrics]] = {
    "ignored": Ignored,
    "prometheus": lambda: PrometheusMetrics(CollectorRegistry()),
    "opentelemetry": open_telemetry,
}


class MeasuredInformer(Informer):
    """A factory with one informer, and metrics."""

    def __init__(self, url: str, metrics: Metrics) -> None:
        client = ApiClient(Configuration(host=url))
        self.factory = DynamicSharedInformerFactory(client, metrics=metrics)


if __name__ == "__main__":
    kind, url, _, *numbers = sys.argv[1:]
    run(MeasuredInformer(url, KINDS[kind]()), *map(int, numbers))
