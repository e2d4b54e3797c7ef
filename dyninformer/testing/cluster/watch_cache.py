"""A collection's recent events, as the API server keeps them in front of etcd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dyninformer.testing.cluster.log import GroupResource, Log
from dyninformer.testing.cluster.read_settings import ReadSettings


class Clock(Protocol):
    """Where time comes from: the carrier's monotonic clock, or a test's own."""

    def now(self) -> float:
        """Seconds since some fixed moment."""


class WatchCache:
    """The events of one collection since the cache was filled."""


class WatchCaches:
    """The watch cache of each collection, one generation at a time."""

    def __init__(
        self,
        log: Log,
        clock: Clock,
        settings: ReadSettings = ReadSettings(),  # noqa: B008 - frozen
        *,
        chance: Callable[[], float],
    ) -> None:
        """``chance`` gives a number in [0, 1): it spreads the ends of watches without timeout."""
        raise NotImplementedError

    def of(self, collection: GroupResource) -> WatchCache:
        """The cache that serves a collection now."""
        raise NotImplementedError

    def rebuild(self, collection: GroupResource) -> None:
        """The CRD's spec changed: a cold cache; open watches go on for a second, then end."""
        raise NotImplementedError

    def drop(self, collection: GroupResource) -> None:
        """The CRD has gone: open watches hear nothing more, and end in a second."""
        raise NotImplementedError

    def reset_all(self, log: Log | None = None) -> None:
        """The server restarted: every watch has ended, every cache is cold."""
        raise NotImplementedError

    def forget_events(self, revision: int) -> None:
        """Watches from before ``revision`` are now too old."""
        raise NotImplementedError
