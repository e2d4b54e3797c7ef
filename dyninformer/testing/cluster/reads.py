"""GET and LIST: which versions a read sees, at which resourceVersion, page by page."""

from __future__ import annotations

from dyninformer.testing.cluster.list_options import ListOptions
from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.representation import Page
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watch_cache import WatchCaches


def get_version(
    caches: WatchCaches, resource: Resource, key: Key, resource_version: str | None = None
) -> Version:
    """The live version of one object; raises the 404, or the 504 of a future resourceVersion."""
    raise NotImplementedError


def list_versions(
    caches: WatchCaches, resource: Resource, namespace: str, options: ListOptions
) -> Page:
    """The page that ``options`` ask for; ``namespace`` is "" for all. Raises ApiErrors."""
    raise NotImplementedError
