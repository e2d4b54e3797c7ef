"""A collection's recent events, as the API server keeps them in front of etcd, and its settings.

One `WatchCache` is one generation of a served collection: a CRD whose spec changes, or
that is deleted and created again, gets a new one, and the old one ends its watches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from dyninformer.checked import check_fields
from dyninformer.errors import DynInformerError
from dyninformer.testing.clock import Clock
from dyninformer.testing.cluster.log import CompactedError, GroupResource, Log, Version
from dyninformer.testing.status import ApiError


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

    def __post_init__(self) -> None:
        check_fields(self)


class CacheEvent:
    """One write and the state it replaced: a selector's watch knows from both what entered or left.

    It holds the old state itself, because the log drops it at compaction.
    """

    __slots__ = ("_left", "at", "previous", "version")

    def __init__(self, version: Version, at: float) -> None:
        self.version = version
        self.previous = version.previous
        self.at = at
        self._left: Version | None = None

    @property
    def left(self) -> Version:
        """What a selector's watch gets for an object that left: its old content, at this RV."""
        if self._left is None:
            assert self.previous is not None  # noqa: S101 - only what was there can leave
            old, revision = self.previous.object, self.version.revision
            stamped = {**old, "metadata": {**old["metadata"], "resourceVersion": str(revision)}}
            self._left = Version(
                self.version.collection, self.version.key, revision, stamped, deleted=True
            )
        return self._left


class CacheListener(Protocol):
    """A recipient of a cache's events: the watches that share one view of it."""

    def changed(self, change: CacheEvent) -> None:
        """A write has happened."""

    def ending(self) -> None:
        """The cache's watches will end at its ``ends_at``."""


class TooOldError(DynInformerError):
    """A watch asks for events that are forgotten; its text is the server's."""


_Listeners = dict[object, CacheListener]


class WatchCache:
    """The events of one collection since the cache was filled. Filled by the first request."""

    def __init__(
        self, log: Log, collection: GroupResource, clock: Clock, settings: ReadSettings
    ) -> None:
        self.collection = collection
        self.revision = 0
        """The newest revision it knows of: by its own events, and by consistent reads anywhere."""
        self.filled_at: int | None = None
        self.ends_at: float | None = None
        """When its watches end; None while it serves."""
        self.listeners: _Listeners = {}
        """By the view that each shows. A listener without watches takes itself out."""
        self._log = log
        self._clock = clock
        self._settings = settings
        self._window: deque[CacheEvent] = deque()
        self._forgotten = 0
        self._ready_at = 0.0
        self._stop_listening: Callable[[], None] | None = None

    def touch(self) -> bool:
        """Begin to fill a cold cache, as the first request does; returns whether it can serve."""
        if self.filled_at is None:
            self.filled_at = self._forgotten = self.revision = self._log.revision
            self._ready_at = self._clock.now()
            if self._settings.watch_cache:
                self._ready_at += self._settings.warm_up
            self._stop_listening = self._log.listen(self.collection, self._on_write)
        return self.ready

    @property
    def ready(self) -> bool:
        """Whether the cache is warm: it was filled, and the time that filling takes has passed."""
        return self.filled_at is not None and self._clock.now() >= self._ready_at

    def progress(self) -> None:
        """The cache learns the log's revision, as from etcd's progress notification."""
        if self.filled_at is not None and self._stop_listening is not None:
            self.revision = self._log.revision

    def since(self, revision: int) -> Iterable[CacheEvent]:
        """The events above ``revision``; raises TooOldError if some are forgotten."""
        if not self._settings.watch_cache:
            return self._of_log(revision)
        if revision < self._forgotten:
            raise TooOldError(f"too old resource version: {revision} ({self._forgotten})")
        return [each for each in self._window if each.version.revision > revision]

    def forget(self, revision: int) -> None:
        """Events up to ``revision`` are no longer there for new watches."""
        while self._window and self._window[0].version.revision <= revision:
            self._window.popleft()
        self._forgotten = max(self._forgotten, min(revision, self._log.revision))

    def retire(self, *, after: float, silent: bool) -> None:
        """End all watches in ``after`` seconds; if ``silent``, they get no events until then."""
        self.ends_at = self._clock.now() + after
        if silent or not self.listeners:
            self._stop_following()
        for listener in tuple(self.listeners.values()):
            listener.ending()

    def _of_log(self, revision: int) -> list[CacheEvent]:
        try:
            found = self._log.since(self.collection, revision)
        except CompactedError:
            raise TooOldError("The resourceVersion for the provided watch is too old.") from None
        return [CacheEvent(version, 0.0) for version in found]

    def _stop_following(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def _on_write(self, version: Version) -> None:
        now = self._clock.now()
        if self.ends_at is not None and (now >= self.ends_at or not self.listeners):
            self._stop_following()
            return
        self.revision = version.revision
        change = CacheEvent(version, now)
        self._window.append(change)
        self._evict(now)
        for listener in tuple(self.listeners.values()):
            listener.changed(change)

    def _evict(self, now: float) -> None:
        settings, window = self._settings, self._window
        while len(window) > settings.window_events and (
            now - window[0].at > settings.window_seconds or len(window) > settings.window_limit
        ):
            self._forgotten = window.popleft().version.revision


class WatchCaches:
    """The watch cache of each collection, one generation at a time."""

    def __init__(
        self, log: Log, clock: Clock, settings: ReadSettings | None = None, *, seed: int = 0
    ) -> None:
        """``seed`` decides the lengths of watches without timeoutSeconds."""
        self.log = log
        self.clock = clock
        self.settings = settings or ReadSettings()
        self._random = Random(seed)  # noqa: S311 - it spreads timeouts, and a seed must repeat them
        self._caches: dict[GroupResource, WatchCache] = {}

    def of(self, collection: GroupResource) -> WatchCache:
        """The cache that serves a collection now; it is cold before the first request."""
        found = self._caches.get(collection)
        if found is None:
            found = WatchCache(self.log, collection, self.clock, self.settings)
            self._caches[collection] = found
        return found

    def progress(self) -> None:
        """A consistent read: every cache learns the current revision."""
        for cache in self._caches.values():
            cache.progress()

    def rebuild(self, collection: GroupResource) -> None:
        """The CRD's spec changed: a cold cache serves it; open watches end in a second."""
        self._replace(collection, silent=False)
        for version in self.log.items(collection):
            version.encoded.clear()  # what was encoded for the old spec is not asked for again

    def drop(self, collection: GroupResource) -> None:
        """The CRD has gone: open watches get no more events, and end in a second."""
        self._replace(collection, silent=True)

    def reset_all(self) -> None:
        """The server restarted, or the log restored: watches have ended, caches are cold."""
        caches, self._caches = self._caches, {}
        for cache in caches.values():
            cache.retire(after=0.0, silent=True)

    def forget_events(self, revision: int) -> None:
        """Watches from below ``revision`` are now too old (on the real server: by time alone)."""
        for cache in self._caches.values():
            if cache.filled_at is not None:
                cache.forget(revision)

    def timeout(self, asked: int | None) -> float:
        """How many seconds a watch lives; ``asked`` is its timeoutSeconds, 0 or None for none."""
        if asked:
            return float(asked)
        return self.settings.min_request_timeout * (1 + self._random.random())

    def _replace(self, collection: GroupResource, *, silent: bool) -> None:
        cache = self._caches.pop(collection, None)
        if cache is not None:
            cache.retire(after=self.settings.end_after_rebuild, silent=silent)


def cold_cache() -> ApiError:
    """The 429 of a collection whose cache is not filled yet."""
    message, details = "storage is (re)initializing", {"retryAfterSeconds": 1}
    return ApiError(429, "TooManyRequests", message, details=details, retry_after=1)


def too_large(revision: int, caches: WatchCaches) -> ApiError:
    """The 504 of a resourceVersion that is not reached in time."""
    settings = caches.settings
    details: dict[str, object] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    }
    message = f"Timeout: Too large resource version: {revision}, current: {caches.log.revision}"
    if not settings.watch_cache:
        return ApiError(504, "Timeout", message, details=details)
    details["retryAfterSeconds"] = 1
    delay = settings.freshness_wait
    return ApiError(504, "Timeout", message, details=details, retry_after=1, delay=delay)
