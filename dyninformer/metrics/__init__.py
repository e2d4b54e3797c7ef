"""What is counted and measured, and where it is reported.

The library reports to a `Metrics`; by default to none, which costs nothing that could be measured.
`PrometheusMetrics` needs the extra ``metrics``, `OpenTelemetryMetrics` the extra ``otel``. Both are
`GatheredMetrics`: they are asked for values, and what they tell of an informer ends with it (S48).
"""

from typing import Final

from dyninformer.metrics import names
from dyninformer.metrics.gathered import Distribution, GatheredMetrics, Reading
from dyninformer.metrics.opentelemetry import OpenTelemetryMetrics
from dyninformer.metrics.prometheus import PrometheusMetrics
from dyninformer.metrics.told import Metrics, labelled

__all__ = [
    "COUNTERS",
    "GAUGES",
    "HISTOGRAMS",
    "Distribution",
    "GatheredMetrics",
    "Metrics",
    "OpenTelemetryMetrics",
    "PrometheusMetrics",
    "Reading",
    "labelled",
]

COUNTERS: Final = names.COUNTERS
"""What is counted, by the name that ``count`` is called with."""
GAUGES: Final = names.GAUGES
"""What has a value at any moment. `GatheredMetrics` look at it when they are asked. ``gauge`` is
called with ``objects``, ``synced``, ``backlog`` and those of work queues, shards and leaders alone,
as they change."""
HISTOGRAMS: Final = names.HISTOGRAMS
"""What is measured each time, by the name that ``observe`` is called with."""
