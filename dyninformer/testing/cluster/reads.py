"""GET and LIST: which versions a read sees, at which resourceVersion, page by page."""

from __future__ import annotations

from dyninformer.testing.cluster.continue_tokens import ContinueToken
from dyninformer.testing.cluster.list_options import ListOptions, parse_revision
from dyninformer.testing.cluster.log import CompactedError, Key, Snapshot, Version
from dyninformer.testing.cluster.representation import Page
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import Selection
from dyninformer.testing.cluster.watch_cache import WatchCaches, cold_cache, too_large
from dyninformer.testing.status import ApiError, not_found

_TOO_OLD_TO_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


def get_version(
    caches: WatchCaches, resource: Resource, key: Key, resource_version: str | None = None
) -> Version:
    """The live version of one object; raises the 404, or the 504 of a future resourceVersion."""
    asked = parse_revision(resource_version)
    if asked is not None and asked > caches.log.revision:
        raise too_large(asked, caches)
    found = caches.log.get(resource.collection, key)
    if found is None:
        raise not_found(resource.group, resource.plural, key.name)
    return found


def list_versions(
    caches: WatchCaches, resource: Resource, namespace: str, options: ListOptions
) -> Page:
    """The page that ``options`` ask for; ``namespace`` is "" for all.

    Raises the ApiErrors that depend on the data: a cold cache, a future or compacted
    resourceVersion, an expired token.
    """
    warm = caches.of(resource.collection).touch()
    limit = options.limit
    if not warm and (not limit or options.labels or options.fields):
        raise cold_cache()
    cached = warm and caches.settings.watch_cache
    if options.revision == 0 and cached:
        limit = 0
    listing = _Listing(caches, resource, namespace, options, limit, cached=cached)
    return listing.resumed(options.resume) if options.resume else listing.first()


class _Listing:
    """One list request, on its way to a page."""

    def __init__(
        self,
        caches: WatchCaches,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        limit: int,
        *,
        cached: bool,
    ) -> None:
        self._caches = caches
        self._resource = resource
        self._namespace = namespace
        self._options = options
        self._limit = limit
        self._cached = cached and options.shard is None  # sharded pages come from etcd

    def first(self) -> Page:
        """A list without a continue token."""
        log, cache = self._caches.log, self._caches.of(self._resource.collection)
        asked, match = self._options.revision, self._options.match
        if asked and asked > log.revision:
            raise too_large(asked, self._caches)
        if asked and (match == "Exact" or (self._limit and not match)):
            try:
                found = log.snapshot(self._resource.collection, at=asked)
            except CompactedError:
                message = "The resourceVersion for the provided list is too old."
                raise ApiError(410, "Expired", message) from None
            return self._page(found, asked)
        if asked is None or asked > cache.revision or not self._cached:
            self._caches.progress()
        return self._page(log.snapshot(self._resource.collection), cache.revision)

    def resumed(self, token: ContinueToken) -> Page:
        """The page a token asks for, at the token's revision."""
        log, revision = self._caches.log, token.revision
        path = self._path(token.start)
        if revision < 0:
            self._caches.progress()
            return self._page(log.snapshot(self._resource.collection), log.revision, path)
        if revision > log.revision:
            raise too_large(revision, self._caches)
        try:
            found = log.snapshot(self._resource.collection, at=revision)
        except CompactedError:
            newest = ContinueToken(-1, token.start).encode(from_cache=False)
            raise ApiError(
                410, "Expired", _TOO_OLD_TO_CONTINUE, metadata={"continue": newest}
            ) from None
        return self._page(found, revision, path)

    def _page(self, found: Snapshot, revision: int, path: str = "") -> Page:
        begin, end = self._bounds(found)
        if path:
            begin = min(max(begin, found.position(path)), end)
        limit, options = self._limit, self._options
        selection = Selection("", options.labels, options.fields, options.shard)
        if selection.everything:
            stop = min(begin + limit, end) if limit else end
            versions = found.versions[begin:stop]
        else:
            versions, stop = self._selected(found, begin, end, selection)
        shard = options.shard.text if options.shard is not None else None
        if stop == end:
            return Page(versions, revision, shard_selector=shard)
        token = ContinueToken(revision, self._start(versions[-1].key))
        remaining = None
        if not options.labels and not options.fields:
            remaining = end - stop if shard is None else _etcd_count(begin, stop, end, limit)
        return Page(versions, revision, token.encode(from_cache=self._cached), remaining, shard)

    def _bounds(self, found: Snapshot) -> tuple[int, int]:
        """Where in the collection this list looks: at one place, if it names the object."""
        name = self._options.fields.exact("metadata.name")
        if name is None or not self._by_name:
            return found.bounds(self._namespace)
        path = self._path(name)
        begin = found.position(path)
        return begin, begin + (found.paths[begin : begin + 1] == [path])

    def _selected(
        self, found: Snapshot, begin: int, end: int, selection: Selection
    ) -> tuple[list[Version], int]:
        """What matches, up to the limit, and where the next page would begin."""
        matches, resource, limit = selection.matches, self._resource, self._limit
        if not limit:
            window = found.versions[begin:end]
            return [each for each in window if matches(each, resource)], end
        versions: list[Version] = []
        for place in range(begin, end):
            version = found.versions[place]
            if matches(version, resource):
                versions.append(version)
                if len(versions) == limit:
                    return versions, place + 1
        return versions, end

    @property
    def _by_name(self) -> bool:
        """Whether a place in this list is told by the name alone."""
        return bool(self._namespace) or not self._resource.namespaced

    def _start(self, last: Key) -> str:
        return f"{last.name}\0" if self._by_name else f"{last.path}\0"

    def _path(self, start: str) -> str:
        return f"{self._namespace}/{start}" if self._by_name else start


def _etcd_count(begin: int, stop: int, end: int, limit: int) -> int:
    """The remainingItemCount as etcd's paging counts it for a shard.

    Objects are fetched in rounds, each twice as large as the one before, until enough
    are in the shard; counted is what lay beyond the last round's start, less the limit.
    """
    fetched, size = 0, limit
    while begin + fetched + size < stop:
        fetched += size
        size *= 2
    return end - begin - fetched - limit
