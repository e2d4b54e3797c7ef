"""What is counted and measured, and where it is reported.

The library reports to a `Metrics`. The default ignores all of it, which costs a call of an
empty method. `PrometheusMetrics` needs the extra ``metrics``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from dyninformer.checked import wrong
from dyninformer.threads import in_forked_child, is_interrupt

if TYPE_CHECKING:
    from dyninformer.resource import GroupVersionResource

_logger = logging.getLogger(__name__)
__all__ = ["COUNTERS", "GAUGES", "HISTOGRAMS", "Metrics", "PrometheusMetrics"]

COUNTERS: Final = {
    "requests": "Requests to the API server, by verb and code",
    "relists": "Times the whole collection was read again, by reason",
    "events": "Changes that the cache took, by type",
    "audits": "Audits that ended, by result: equal, different or failed",
    "audit_repairs": "Objects that an audit found otherwise than the server had them, by type",
    "unusable_objects": "Objects from the server that could not be read and were skipped",
    "broken_frames": "Stream lines that were no JSON",
    "transform_errors": "Objects on which the transform raised",
    "index_errors": "Objects on which an index function raised, by index",
    "handler_errors": "Events on which a handler raised, by handler",
    "handled": "Events that handlers have finished, by handler",
    "dropped_events": "Events that a stop left undelivered, by handler",
    "backlogs_merged": "Times that more than max_backlog events would have waited, by handler",
    "resyncs_skipped": "Resyncs skipped since the handler had not finished the last, by handler",
    "workqueue_adds": "Times that a key came to wait, by queue",
    "workqueue_retries": "Times that a key was given another try, by queue",
    "workqueue_dropped": "Keys that a queue's end left undone, by queue",
}
"""What is counted, by the name that ``count`` is called with."""
GAUGES: Final = {
    "objects": "Objects in the cache",
    "synced": "1 once the first whole state is there",
    "backlog": "Events waiting for a handler, by handler",
    "workqueue_depth": "Keys that wait for their turn, by queue",
    "workqueue_unfinished_work_seconds": "For how long all that is at work is, by queue",
    "workqueue_longest_running_processor_seconds": "For how long the longest is, by queue",
}
"""What is measured, by the name that ``gauge`` is called with."""
HISTOGRAMS: Final = {
    "workqueue_queue_duration_seconds": "For how long a key waited for its turn, by queue",
    "workqueue_work_duration_seconds": "How long the work on a key took, by queue",
}
"""What is measured each time, by the name that ``observe`` is called with."""
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300)


class Metrics(Protocol):
    """Receives all that `COUNTERS` and `GAUGES` name, from many threads.

    What it raises is logged, once for each name, and goes no further. One that has a method
    ``observe(name, gvr, value, **labels)`` as well receives all that `HISTOGRAMS` names.

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
    if metrics is NO_METRICS or isinstance(metrics, _Contained):
        return metrics
    return _Contained(metrics)


class _Contained:
    """Hands on to a user's metrics: what those raise goes no further.

    A signal handler that shuts down may come in the middle of a call, on the same thread, where
    the user's lock (prometheus-client's, say) is taken. What it has to tell is told after that.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._failed: set[str] = set()
        self._here = threading.local()  # ``waiting``: what is to be told, while a call goes on

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        self._tell(name, partial(self._metrics.count, name, gvr, amount, **labels))

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        self._tell(name, partial(self._metrics.gauge, name, gvr, value, **labels))

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        self._tell(name, partial(observe, self._metrics, name, gvr, value, **labels))

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


class PrometheusMetrics:
    """Metrics as prometheus-client has them, each named ``dyninformer_...``.

    ``registry`` is by default the client's global one.

    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> from dyninformer import GroupVersionResource
    >>> registry = CollectorRegistry()
    >>> metrics = PrometheusMetrics(registry)
    >>> metrics.gauge("objects", GroupVersionResource("", "v1", "pods"), 3)
    >>> registry.get_sample_value("dyninformer_objects", {"resource": "pods.v1"})
    3.0
    """

    def __init__(self, registry: Any = None) -> None:
        try:
            import prometheus_client  # noqa: PLC0415 - an extra, which the rest does without
        except ImportError as error:
            raise ImportError(
                "PrometheusMetrics needs prometheus-client: pip install 'dyninformer[metrics]'"
            ) from error
        self._client = prometheus_client
        self._registry = registry or prometheus_client.REGISTRY
        # Guards _made. Under it prometheus-client makes a metric, with its registry's lock.
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        in_forked_child(self, "_lock")

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Add to ``dyninformer_<name>_total``."""
        self._labelled("Counter", name, COUNTERS[name], gvr, labels).inc(amount)

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Set ``dyninformer_<name>``."""
        self._labelled("Gauge", name, GAUGES[name], gvr, labels).set(value)

    def observe(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Observe it in the histogram ``dyninformer_<name>``."""
        text = HISTOGRAMS[name]
        self._labelled("Histogram", name, text, gvr, labels, buckets=_SECONDS).observe(value)

    def _labelled(
        self,
        kind: str,
        name: str,
        text: str,
        gvr: GroupVersionResource,
        labels: dict[str, str],
        **options: Any,
    ) -> Any:
        with self._lock:
            metric = self._made.get(name)
            if metric is None:
                make = getattr(self._client, kind)
                names = ("resource", *sorted(labels))
                metric = make(
                    f"dyninformer_{name}", text, names, registry=self._registry, **options
                )
                self._made[name] = metric
        return metric.labels(resource=str(gvr), **labels)
