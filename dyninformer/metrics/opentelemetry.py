"""Metrics as OpenTelemetry has them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from dyninformer.metrics.gathered import (
    Distribution,
    GatheredMetrics,
    Labels,
    Ledger,
    Readings,
)
from dyninformer.metrics.names import (
    COUNTERS,
    GAUGES,
    HISTOGRAMS,
    OWN_LABELS,
    adds_up,
    bounds,
    unit,
)
from dyninformer.threads import ReentrantLock, in_forked_child

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider, Observation

_logger = logging.getLogger(__name__)


class OpenTelemetryMetrics(GatheredMetrics):
    """Metrics as OpenTelemetry has them, each named ``dyninformer.…``, with its unit.

    ``meter`` is by default that of the global provider, named ``dyninformer``; it may be given to
    several. Counters and gauges are observable: looked at when a reader collects. They have the
    attributes that `PrometheusMetrics` has as labels, and are there until their informer stops.

    What OpenTelemetry has recorded in a histogram it keeps until the process ends. So histograms
    are of the whole process, with ``labels`` as their only attributes. Of each informer and handler
    there are beside a histogram ``x`` the counters ``x.count`` and ``x.sum``, which end with it.

    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> from dyninformer import GroupVersionResource
    >>> reader = InMemoryMetricReader()
    >>> meter = MeterProvider([reader]).get_meter("dyninformer")
    >>> metrics = OpenTelemetryMetrics(meter, labels={"cluster": "eu"})
    >>> metrics.count("relists", GroupVersionResource("", "v1", "pods"), reason="start")
    >>> found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics[0]
    >>> found.name, found.unit, found.data.data_points[0].value
    ('dyninformer.relists', '{list}', 1)
    """

    def __init__(
        self, meter: Meter | None = None, *, labels: Mapping[str, str] | None = None
    ) -> None:
        try:
            from opentelemetry import metrics  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ImportError(
                "OpenTelemetryMetrics needs opentelemetry-api: pip install 'dyninformer[otel]'"
            ) from error
        super().__init__(labels=labels)
        instruments = _METERS.of(meter, metrics)
        self._ledger, self._record = instruments.ledger, instruments.record


class _Instruments:
    """The instruments of one meter, and what they are asked for."""

    def __init__(self, meter: Meter, observation: type[Observation]) -> None:
        self.ledger = Ledger()
        self._observation = observation
        self._lock = ReentrantLock()  # guards the next two
        self._gathered: dict[str, Readings] = {}
        self._asked: set[str] = set()  # what of it was already given
        in_forked_child(self, "_lock")
        self._failed = False
        for name, text in COUNTERS.items():
            self._observe(meter.create_observable_counter, name, text)
        for name, text in GAUGES.items():
            adds = adds_up(name)
            make = (
                meter.create_observable_up_down_counter if adds else meter.create_observable_gauge
            )
            self._observe(make, name, text)
        self._histograms = {}
        for name, text in HISTOGRAMS.items():
            self._histograms[name] = meter.create_histogram(
                _named(name), "s", text, explicit_bucket_boundaries_advisory=bounds(name)
            )
            self._observe(meter.create_observable_counter, name, text, ".count")
            self._observe(meter.create_observable_counter, name, text, ".sum")

    def record(self, name: str, value: float, labels: Labels) -> None:
        """A histogram has one value more. What goes wrong there harms nobody."""
        try:
            kept = {name: value for name, value in labels if name not in OWN_LABELS}
            self._histograms[name].record(value, kept)
        except Exception:
            if not self._failed:
                self._failed = True
                _logger.exception("OpenTelemetry failed on %r (later ones are not logged)", name)

    def _observe(self, make: Callable[..., object], name: str, text: str, part: str = "") -> None:
        def values(options: object) -> Iterable[Observation]:
            del options
            return [
                self._observation(_part(each.value, part), dict(each.labels))
                for each in self._of(name, part)
            ]

        counted = "{value}" if part == ".count" else unit(name)
        make(_named(name) + part, [values], counted, text)

    def _of(self, name: str, part: str) -> Readings:
        """The values of one metric. A reader asks for each once: that makes one moment of all."""
        asked = name + part
        with self._lock:
            again = not self._gathered or asked in self._asked
        gathered: dict[str, Readings] = {}
        for reading in self.ledger.gather() if again else ():
            gathered.setdefault(reading.name, []).append(reading)
        with self._lock:
            if again:
                self._gathered, self._asked = gathered, set()
            self._asked.add(asked)
            return self._gathered.get(name, [])


def _named(name: str) -> str:
    """A metric's name: the unit is said beside it."""
    stem = name.removesuffix("_seconds").removesuffix("_bytes")
    return "dyninformer." + stem.replace("workqueue_", "workqueue.")


def _part(value: float | Distribution, part: str) -> float:
    if not isinstance(value, Distribution):
        return value
    return value.count if part == ".count" else value.sum


class _Meters:
    """The instruments of each meter, made once: of two that have one name only the first is asked.

    That of the global provider is one, be it found before there is a real provider or after, or
    given by hand.
    """

    def __init__(self) -> None:
        # Guards the next two; under it a meter makes instruments, with its own locks.
        self._lock = ReentrantLock()
        self._made: WeakKeyDictionary[Any, _Instruments] = WeakKeyDictionary()
        self._usual: _Instruments | None = None
        in_forked_child(self, "_lock")

    def of(self, given: Meter | MeterProvider | None, api: Any) -> _Instruments:
        """Those of a meter, or of a provider's that is named for this package."""
        with self._lock:
            usual = api.get_meter_provider()
            source = given or usual
            meter = _meter_of(source)
            is_usual = given is None or meter is _meter_of(usual)
            found = self._made.get(source) or self._made.get(meter)
            if found is None and is_usual:
                found = self._usual
            if found is None:
                found = _Instruments(meter, api.Observation)
            self._made[source] = self._made[meter] = found
            if is_usual:
                self._usual = found
            return found


def _meter_of(source: Any) -> Any:
    get = getattr(source, "get_meter", None)
    return source if get is None else get("dyninformer")


_METERS: Final = _Meters()
