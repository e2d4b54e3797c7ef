"""The numbers and switches of the read side, in one frozen record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How lists and watches are served; the defaults are those of kube-apiserver 1.36.

    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer(settings=ReadSettings(window_events=10)) as server:
    ...     len(server.list("namespaces"))
    4
    """

    warm_up: float = 0.0
    """Seconds a watch cache stays cold after the first request that needs it (429 meanwhile)."""
    window_events: int = 100
    """Events a watch cache keeps however old they are."""
    window_limit: int = 102_400
    """Events a watch cache keeps at most."""
    window_seconds: float = 75.0
    """Beyond ``window_events``, events older than this are forgotten."""
    bookmark_interval: float = 60.0
    min_request_timeout: float = 1800.0
    """A watch without timeoutSeconds ends between this and twice this."""
    freshness_wait: float = 3.0
    """How long a read waits for a resourceVersion of the future."""
    end_after_rebuild: float = 1.0
    """Open watches end this long after their CRD's spec changed or the CRD has gone."""
    slow_reader_events: int = 10_000
    slow_reader_bytes: int = 64 << 20
    slow_reader_seconds: float = 1.0
    """A watch this long further behind than these events or bytes is cut off."""
    watch_list: bool = True
    """The feature gate WatchList: sendInitialEvents is understood."""
    sharding: bool = False
    """The feature gate ShardedListAndWatch: shardSelector is obeyed, else ignored."""
    watch_cache: bool = True
    """False is --watch-cache=false: everything is read from the log itself."""
