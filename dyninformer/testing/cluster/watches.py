"""Open watches: where each starts, what it has yet to send, and when it ends."""

from __future__ import annotations

from dyninformer.testing.cluster.list_options import ListOptions
from dyninformer.testing.cluster.representation import Representation
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watch_cache import WatchCaches
from dyninformer.testing.messages import Stream


def open_watch(
    caches: WatchCaches,
    resource: Resource,
    namespace: str,
    options: ListOptions,
    representation: Representation,
) -> Stream:
    """A stream as ``options`` ask for it; raises the ApiErrors that come before a stream."""
    raise NotImplementedError
