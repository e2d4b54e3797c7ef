"""Metrics that are asked: numbers by informer, handler and queue, which end with these (S48).

Each of them has a `Tally`, which it alone counts in. A `Ledger` knows all that are in use, and puts
together what those of the same labels have when somebody collects. So nothing is pushed, no value
outlives what it was a value of, and a count costs a number in a dict.
"""

from __future__ import annotations

import copy
import logging
import re
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, TypeAlias

from dyninformer.checked import checked_object, wrong
from dyninformer.metrics.names import OWN_LABELS, bounds, together
from dyninformer.threads import ReentrantLock, in_forked_child

if TYPE_CHECKING:
    from dyninformer.resource import GroupVersionResource

Labels: TypeAlias = tuple[tuple[str, str], ...]
Read: TypeAlias = Callable[[], Iterable[tuple[str, float]] | None]
"""The values that something has now, by name; None once it is over."""
Record: TypeAlias = Callable[[str, float, Labels], object]
_Series: TypeAlias = tuple[str, Labels]

_LONGEST: Final = 120  # characters of a label's value, which may be a name that a user gave
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

_logger = logging.getLogger(__name__)


class Distribution(NamedTuple):
    """How many values fell between which bounds, and their sum.

    >>> Distribution((0.1, 1), (2, 1, 0), 0.7).count
    3
    """

    bounds: tuple[float, ...]
    """The upper bounds, the lowest first."""
    counts: tuple[int, ...]
    """How many values were at most each bound and above the one before; last, those above all."""
    sum: float

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many values there were."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one metric, at the moment in which it was asked for.

    >>> Reading("objects", "gauge", {"resource": "pods.v1"}, 3).labels["resource"]
    'pods.v1'
    """

    name: str
    """A name in `COUNTERS`, `GAUGES` or `HISTOGRAMS`."""
    kind: Literal["counter", "gauge", "histogram"]
    labels: Mapping[str, str]
    value: float | Distribution
    """A `Distribution` for a histogram."""


Readings: TypeAlias = list[Reading]


class _Histogram:
    """Counts by bucket; its tally's lock guards it."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, name: str) -> None:
        self.bounds = bounds(name)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def absorb(self, other: _Histogram) -> None:
        """Add all of another one."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class Tally:
    """What one informer, handler or queue has counted. It is told by any thread.

    Who begins it keeps it: one that nobody keeps is over, as is one after `end`. Not for import.
    """

    def __init__(self, ledger: Ledger, labels: Labels, read: Read, record: Record | None) -> None:
        self.labels = labels
        self.read = read
        self._ledger = ledger
        self._record = record
        # Guards the numbers. A signal handler that shuts down may count while its own thread holds
        # it, hence one that can be taken twice: at worst one count is lost.
        self._lock = ReentrantLock()
        self._counts: dict[_Series, int] = {}
        self._histograms: dict[_Series, _Histogram] = {}
        self._gauges: dict[_Series, float] = {}
        in_forked_child(self, "_lock")

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Something happened ``amount`` times."""
        del gvr
        series = name, tuple(labels.items())
        with self._lock:
            counts = self._counts
            counts[series] = counts.get(series, 0) + amount

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Nothing: it is looked at when somebody asks."""

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something had this value."""
        del gvr
        series = name, tuple(labels.items())
        with self._lock:
            histogram = self._histograms.get(series)
            if histogram is None:
                histogram = self._histograms[series] = _Histogram(name)
            histogram.counts[bisect_left(histogram.bounds, value)] += 1
            histogram.total += value
        if self._record is not None:
            self._record(name, value, self.labels)

    def hold(self, name: str, value: float, labels: Labels) -> None:
        """A gauge has this value until it is told another."""
        self._gauges[name, labels] = value

    def begin(self, read: Read, **labels: str) -> Tally:
        """Another one, for a part of what this is for, with these labels as well."""
        return self._ledger.begin((*self.labels, *_clean(labels)), read, self._record)

    def end(self) -> None:
        """It is over: nobody is told of it any more. Again is fine."""
        self._ledger.end(self)

    def absorb(self, other: Tally) -> None:
        """Go on from what another one of the same labels has counted, which is over."""
        with other._lock:
            counts, histograms = dict(other._counts), dict(other._histograms)
        with self._lock:
            for series, amount in counts.items():
                self._counts[series] = self._counts.get(series, 0) + amount
            for series, histogram in histograms.items():
                self._histograms.setdefault(series, _Histogram(series[0])).absorb(histogram)

    def add_to(self, counts: dict[_Series, float], histograms: dict[_Series, _Histogram]) -> None:
        """Add what was counted."""
        with self._lock:
            for (name, more), amount in self._counts.items():
                series = name, self._with(more)
                counts[series] = counts.get(series, 0) + amount
            for (name, more), histogram in self._histograms.items():
                series = name, self._with(more)
                histograms.setdefault(series, _Histogram(name)).absorb(histogram)

    def _with(self, more: Labels) -> Labels:
        """All labels of what was counted with these: they may be names that a user gave."""
        return _ordered((*self.labels, *_clean(dict(more))))

    def gauges(self) -> Iterable[tuple[_Series, float]] | None:
        """The values that there are now; None if it is over."""
        found = self.read()
        if found is None:
            return None
        held = [((name, (*self.labels, *more)), value) for (name, more), value in self._held()]
        return [*(((name, self.labels), value) for name, value in found), *held]

    def _held(self) -> list[tuple[_Series, float]]:
        return list(self._gauges.items())


_Refs: TypeAlias = list["weakref.ref[Tally]"]


class Ledger:
    """The tallies that are in use; it keeps none alive but those that last. Not for import."""

    def __init__(self) -> None:
        # Guards _tallies; each tally's own is taken under it, and nothing is called. Twice for the
        # reason of `Tally._lock`.
        self._lock = ReentrantLock()
        self._tallies: dict[Labels, _Refs] = {}
        self._lasting: dict[Labels, Tally] = {}  # each change is one call of C
        self._failed = False
        in_forked_child(self, "_lock", _tallies=dict, _lasting=dict)

    def begin(self, labels: Labels, read: Read, record: Record | None) -> Tally:
        """A new one. It is in use until `end`, or until nobody keeps it."""
        tally = Tally(self, _ordered(labels), read, record)
        with self._lock:
            alive = [each for each in self._tallies.get(tally.labels, ()) if each() is not None]
            self._tallies[tally.labels] = [*alive, weakref.ref(tally)]
        return tally

    def lasting(self, labels: Labels, record: Record | None) -> Tally:
        """The one of these labels that never ends."""
        found = self._lasting.get(labels)
        if found is None:
            found = self._lasting.setdefault(labels, self.begin(labels, _nothing, record))
        return found

    def end(self, tally: Tally) -> None:
        """It is over. If another one has its labels, that goes on from its counts.

        So the sum of both does not fall, which a counter must not while it is there.
        """
        with self._lock:
            refs = self._tallies.get(tally.labels, [])
            if all(each() is not tally for each in refs):
                return  # it was over already
            rest = [each for each in refs if each() is not None and each() is not tally]
            if not rest:
                del self._tallies[tally.labels]
                return
            self._tallies[tally.labels] = rest
            heir = rest[0]()
            if heir is not None:
                heir.absorb(tally)

    def gather(self) -> Readings:
        """All values, of this moment: those of equal labels put together."""
        counts: dict[_Series, float] = {}
        histograms: dict[_Series, _Histogram] = {}
        gauges: dict[_Series, float] = {}
        for tally in self._alive():
            self._look(tally, gauges)
        with self._lock:
            for tally in self._alive():
                tally.add_to(counts, histograms)
        return [
            *(Reading(name, "counter", dict(labels), n) for (name, labels), n in counts.items()),
            *(Reading(name, "gauge", dict(labels), v) for (name, labels), v in gauges.items()),
            *(
                Reading(
                    name,
                    "histogram",
                    dict(labels),
                    Distribution(h.bounds, tuple(h.counts), h.total),
                )
                for (name, labels), h in histograms.items()
            ),
        ]

    def _alive(self) -> list[Tally]:
        """Those in use; of what nobody keeps any more, nothing is left."""
        with self._lock:
            found: list[Tally] = []
            for labels, refs in list(self._tallies.items()):
                alive = [tally for each in refs if (tally := each()) is not None]
                found += alive
                if not alive:
                    del self._tallies[labels]
        return found

    def _look(self, tally: Tally, gauges: dict[_Series, float]) -> None:
        """What its gauges say, without a lock: a store's is taken for some."""
        try:
            values = tally.gauges()
        except Exception:
            if not self._failed:
                self._failed = True
                _logger.exception("a metric could not be read (later failures are not logged)")
            return
        if values is None:
            tally.end()
            return
        for (name, labels), value in values:
            series = name, _ordered(labels)
            before = gauges.get(series)
            gauges[series] = value if before is None else together(name, before, value)


def _nothing() -> tuple[()]:
    return ()


class GatheredMetrics:
    """Metrics that keep their numbers until somebody asks for them, with `gather`.

    It needs no other package: for a page of your own, or a line in a log once a minute. What it has
    of an informer ends when that stops, of a handler when it is removed, of a work queue when it is
    closed. ``labels`` are added to all that it has; `labelled` gives the same with more of them.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> metrics = GatheredMetrics(labels={"cluster": "eu"})
    >>> with ApiServer() as server, DynamicSharedInformerFactory(
    ...     server.client(), metrics=metrics
    ... ) as factory:
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     synced = factory.sync(timeout=30)
    ...     [(each.labels, each.value) for each in metrics.gather() if each.name == "objects"]
    [({'cluster': 'eu', 'resource': 'namespaces.v1'}, 4)]
    >>> metrics.gather()
    []

    Values that are told to `count`, `gauge` and `observe`, as by a class of yours that hands on
    what it is told, never end.
    """

    def __init__(self, *, labels: Mapping[str, str] | None = None) -> None:
        self._labels = checked_labels(labels or {})
        self._ledger = Ledger()
        self._record: Record | None = None

    def labelled(self, **labels: str) -> Self:
        """The same with more labels: what it is told is gathered here, too.

        >>> metrics = GatheredMetrics()
        >>> eu = metrics.labelled(cluster="eu")
        """
        other = copy.copy(self)
        vars(other).update(_labels={**self._labels, **checked_labels(labels)})
        return other

    def gather(self) -> Readings:
        """All values, of this moment."""
        return self._ledger.gather()

    def begin(self, gvr: GroupVersionResource, read: Read, **labels: str) -> Tally:
        """Numbers that end. Not for import."""
        return self._ledger.begin(self._own(gvr, labels), read, self._record)

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Something happened ``amount`` times."""
        self._tally(gvr).count(name, gvr, amount, **labels)

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something has this value, until it is told another."""
        self._tally(gvr).hold(name, value, _clean(labels))

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something had this value."""
        self._tally(gvr).observe(name, gvr, value, **labels)

    def _tally(self, gvr: GroupVersionResource) -> Tally:
        return self._ledger.lasting(self._own(gvr, {}), self._record)

    def _own(self, gvr: GroupVersionResource, labels: Mapping[str, str]) -> Labels:
        return _clean({**self._labels, "resource": str(gvr), **labels})


def checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels that a user gave; an error says what is wrong with them."""
    given = dict(checked_object("labels", labels, 'a mapping such as {"cluster": "eu"}'))
    for name, value in given.items():
        if type(name) is not str or not _LABEL.fullmatch(name) or name.startswith("__"):
            raise ValueError(f"{name!r} is no name for a label: letters, digits and _ make one")
        if name in OWN_LABELS or name in {"le", "quantile"}:
            raise ValueError(f"metrics have a label {name!r} already: give it another name")
        if type(value) is not str:
            raise wrong(f"the label {name}", value, "a text")
    return given


def _clean(labels: Mapping[str, str]) -> Labels:
    """Values that are short, and can be written: one that cannot would spoil the whole page."""
    return tuple(
        (name, value[:_LONGEST].encode(errors="replace").decode()) for name, value in labels.items()
    )


def _ordered(labels: Labels) -> Labels:
    return tuple(sorted(labels))
