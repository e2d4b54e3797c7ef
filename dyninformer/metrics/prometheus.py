"""Metrics as prometheus-client has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from dyninformer.metrics.gathered import Distribution, GatheredMetrics, Ledger, Reading
from dyninformer.metrics.names import COUNTERS, GAUGES, HISTOGRAMS
from dyninformer.threads import ReentrantLock, in_forked_child

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric


class PrometheusMetrics(GatheredMetrics):
    """Metrics as prometheus-client has them, each named ``dyninformer_...``.

    ``registry`` is by default the client's global one; it may be given to several. Values are
    looked at when the registry is collected, and those of an informer are there until it stops.
    ``labels`` are added to all of them. It has no part in the client's multiprocess mode: let each
    process have a page of its own.

    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> from dyninformer import GroupVersionResource
    >>> registry = CollectorRegistry()
    >>> metrics = PrometheusMetrics(registry)
    >>> metrics.gauge("objects", GroupVersionResource("", "v1", "pods"), 3)
    >>> registry.get_sample_value("dyninformer_objects", {"resource": "pods.v1"})
    3.0
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        try:
            import prometheus_client  # noqa: PLC0415 - an extra, which the rest does without
        except ImportError as error:
            raise ImportError(
                "PrometheusMetrics needs prometheus-client: pip install 'dyninformer[metrics]'"
            ) from error
        super().__init__(labels=labels)
        self._ledger = _COLLECTORS.of(registry or prometheus_client.REGISTRY, prometheus_client)


class _Collector:
    """What a registry asks for all that is reported to it."""

    def __init__(self, client: Any, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger

    def describe(self) -> list[Metric]:
        """All metrics there may be, without values: another of the same name is an error."""
        return list(self._families().values())

    def collect(self) -> Iterator[Metric]:
        """Those that have values now."""
        families = self._families()
        for reading in self._ledger.gather():
            self._add(families[reading.name], reading)
        yield from (each for each in families.values() if each.samples)

    def _families(self) -> dict[str, Any]:
        kinds = {"counter": COUNTERS, "gauge": GAUGES, "histogram": HISTOGRAMS}
        return {
            name: self._client.Metric(f"dyninformer_{name}", text, kind)
            for kind, table in kinds.items()
            for name, text in table.items()
        }

    def _add(self, family: Any, reading: Reading) -> None:
        labels, value = dict(reading.labels), reading.value
        if not isinstance(value, Distribution):
            ending = "_total" if reading.kind == "counter" else ""
            family.add_sample(family.name + ending, labels, float(value))
            return
        so_far = 0
        for bound, number in zip((*value.bounds, float("inf")), value.counts, strict=True):
            so_far += number
            below = {**labels, "le": _bound(bound)}
            family.add_sample(f"{family.name}_bucket", below, float(so_far))
        family.add_sample(f"{family.name}_count", labels, float(so_far))
        family.add_sample(f"{family.name}_sum", labels, value.sum)


def _bound(bound: float) -> str:
    """A bucket's upper bound, as prometheus-client and Go write it."""
    return "+Inf" if bound == float("inf") else repr(float(bound))


class _Collectors:
    """One collector for each registry: the metrics of one name are collected once."""

    def __init__(self) -> None:
        # Guards _ledgers; under it prometheus-client registers a collector, with its own lock.
        self._lock = ReentrantLock()
        self._ledgers: WeakKeyDictionary[Any, Ledger] = WeakKeyDictionary()
        in_forked_child(self, "_lock")

    def of(self, registry: Any, client: Any) -> Ledger:
        """The ledger that a registry's collector reads."""
        with self._lock:
            found = self._ledgers.get(registry)
            if found is None:
                found = Ledger()
                registry.register(_Collector(client, found))
                self._ledgers[registry] = found
            return found


_COLLECTORS: Final = _Collectors()
