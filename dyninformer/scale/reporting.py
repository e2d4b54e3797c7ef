"""Metrics of what is held by leases: the shards of a replica, or a lead."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from dyninformer.metrics.told import NO_METRICS, Metrics, begin, check_metrics, contained, end
from dyninformer.resource import GroupVersionResource

if TYPE_CHECKING:
    from dyninformer.factory import DynamicSharedInformerFactory

LEASES: Final = GroupVersionResource("coordination.k8s.io", "v1", "leases")

Values: TypeAlias = list[tuple[str, float]]


def metrics_of(given: Metrics | None, factory: DynamicSharedInformerFactory | None) -> Metrics:
    """Return the given metrics, or else those of the factory."""
    if given is not None:
        check_metrics(given)
        return contained(given)
    return NO_METRICS if factory is None else factory.runtime.metrics


class LeaseReport:
    """Reports the gauges of one holder, and what it counts, with the name of its lease."""

    def __init__(self, metrics: Metrics, lease: str, values: Callable[[], Values]) -> None:
        """``values`` is a method that returns the gauges; metrics end with its object."""
        method = weakref.WeakMethod(values)

        def read() -> Values | None:
            values = method()
            return None if values is None else values()

        self._read = read
        self._metrics = begin(metrics, LEASES, read, lease=lease)

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Count something."""
        self._metrics.count(name, LEASES, amount, **labels)

    def now(self) -> None:
        """Report the gauges to metrics that do not read them by themselves."""
        for name, value in self._read() or ():
            self._metrics.gauge(name, LEASES, value)

    def end(self) -> None:
        """Report the gauges for the last time. Idempotent."""
        self.now()
        end(self._metrics)
