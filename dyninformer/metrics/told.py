"""Metrics that are told what happens, and how the library tells any of them.

A user's own class is told each thing as it happens. What is asked instead (`gathered`) is given a
tally for each thing that ends. `begin` and `end` are for both, so that nobody else need know which
of them there is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from dyninformer.checked import wrong
from dyninformer.metrics.gathered import GatheredMetrics, Read, Tally, checked_labels
from dyninformer.threads import is_interrupt

if TYPE_CHECKING:
    from dyninformer.resource import GroupVersionResource

_logger = logging.getLogger(__name__)


class Metrics(Protocol):
    """Is told all that `COUNTERS` names and some of `GAUGES`, from many threads.

    What it raises is logged, once for each name, and goes no further. One that has a method
    ``observe(name, gvr, value, **labels)`` as well is told all that `HISTOGRAMS` names. What is to
    be there at any moment, `GatheredMetrics` have, which are asked.

    A class of your own needs the two methods, and nothing else:

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> class Relists:
    ...     seen = 0
    ...
    ...     def count(self, name, gvr, amount=1, **labels):
    ...         self.seen += amount if name == "relists" else 0
    ...
    ...     def gauge(self, name, gvr, value, **labels):
    ...         pass
    >>> relists = Relists()
    >>> with ApiServer() as server, DynamicSharedInformerFactory(
    ...     server.client(), metrics=relists
    ... ) as factory:
    ...     pods = factory.for_resource("v1/pods")
    ...     synced = factory.sync(timeout=30)
    >>> relists.seen
    1
    """

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Something happened ``amount`` times."""

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something has this value now."""


class _NoMetrics:
    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        pass

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        pass


NO_METRICS: Final[Metrics] = _NoMetrics()


def observe(
    metrics: Metrics, name: str, gvr: GroupVersionResource, value: float, **labels: str
) -> None:
    """Something took this long, say; nothing to metrics that have no ``observe``."""
    told = getattr(metrics, "observe", None)
    if told is not None:
        told(name, gvr, value, **labels)


def check_metrics(metrics: object) -> None:
    """It has the two methods; TypeError if it does not."""
    if not all(callable(getattr(metrics, name, None)) for name in ("count", "gauge")):
        raise wrong("metrics", metrics, "what has count and gauge, as PrometheusMetrics() does")


def contained(metrics: Metrics) -> Metrics:
    """The same metrics, whose errors harm nothing: see `_Contained`."""
    if metrics is NO_METRICS or isinstance(metrics, _Contained | GatheredMetrics | Tally):
        return metrics
    return _Contained(metrics)


def begin(metrics: Metrics, gvr: GroupVersionResource, read: Read, **labels: str) -> Metrics:
    """Metrics for something that ends, whose labels all that they are told gets as well.

    ``read`` gives the values it has at any moment; metrics that are asked look at it, and it must
    not hold what is to end by being held no longer. To be kept for as long as it is there.
    """
    if metrics is NO_METRICS:
        return metrics
    if isinstance(metrics, GatheredMetrics):
        return metrics.begin(gvr, read, **labels)
    if isinstance(metrics, Tally):
        return metrics.begin(read, **labels)
    return _Labelled(metrics, labels) if labels else metrics


def end(metrics: Metrics) -> None:
    """What they were begun for is over; again is fine."""
    if isinstance(metrics, Tally):
        metrics.end()


def is_asked(metrics: Metrics) -> bool:
    """It looks at values when it wants them; there is no need to tell it."""
    return metrics is NO_METRICS or isinstance(metrics, GatheredMetrics | Tally)


def observes(metrics: Metrics) -> bool:
    """It takes what `HISTOGRAMS` names."""
    while isinstance(metrics, _Contained | _Labelled):
        metrics = metrics.metrics
    return hasattr(metrics, "observe")


def labelled(metrics: Metrics, **labels: str) -> Metrics:
    """The same metrics, told with more labels: what a factory of each cluster is given, say.

    >>> from dyninformer.metrics import GatheredMetrics
    >>> eu, us = [labelled(GatheredMetrics(), cluster=name) for name in ("eu", "us")]
    """
    check_metrics(metrics)
    if isinstance(metrics, GatheredMetrics):
        return metrics.labelled(**labels)
    return _Labelled(metrics, checked_labels(labels)) if metrics is not NO_METRICS else metrics


class _Labelled:
    """Hands on with labels that are the same each time."""

    def __init__(self, metrics: Metrics, labels: dict[str, str]) -> None:
        self.metrics = metrics
        self._labels = labels

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        self.metrics.count(name, gvr, amount, **self._labels, **labels)

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        self.metrics.gauge(name, gvr, value, **self._labels, **labels)

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        observe(self.metrics, name, gvr, value, **self._labels, **labels)


class _Contained:
    """Hands on to a user's metrics: what those raise goes no further.

    A signal handler that shuts down may come in the middle of a call, on the same thread, where
    the user's lock (prometheus-client's, say) is taken. What it has to tell is told after that.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._failed: set[str] = set()
        self._here = threading.local()  # ``waiting``: what is to be told, while a call goes on

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        self._tell(name, partial(self.metrics.count, name, gvr, amount, **labels))

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        self._tell(name, partial(self.metrics.gauge, name, gvr, value, **labels))

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        self._tell(name, partial(observe, self.metrics, name, gvr, value, **labels))

    def _tell(self, name: str, call: Callable[[], None]) -> None:
        waiting: deque[tuple[str, Callable[[], None]]] | None
        waiting = getattr(self._here, "waiting", None)
        if waiting is not None:
            waiting.append((name, call))
            return
        self._here.waiting = waiting = deque([(name, call)])
        try:
            while waiting:
                self._call(*waiting.popleft())
        finally:
            self._here.waiting = None

    def _call(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            if is_interrupt(error):  # S23
                raise
            if name not in self._failed:
                self._failed.add(name)
                _logger.exception("the metrics failed on %r (later failures are not logged)", name)
