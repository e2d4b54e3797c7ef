"""GET and LIST: what the query asks, which versions a read sees, at which resourceVersion, by page.

The query of a LIST or WATCH is parsed and judged before any data is looked at.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from dyninformer.selectors import FieldSelector, LabelSelector, SelectorError
from dyninformer.testing.cluster.bodies import type_name
from dyninformer.testing.cluster.causes import unsupported
from dyninformer.testing.cluster.log import CompactedError, Contents, Key, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import (
    ANY_FIELDS,
    ANY_LABELS,
    Selection,
    ShardSelector,
    check_field_labels,
    parse_shard_selector,
)
from dyninformer.testing.cluster.watch_cache import ReadSettings, WatchCaches, cold_cache, too_large
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError, bad_request, cause, invalid, not_found
from dyninformer.types import Object

_MATCH = "resourceVersionMatch"
_NOT_OLDER = "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a request asks of a collection, already found valid."""

    limit: int = 0
    """0: none."""
    resume: ContinueToken | None = None
    revision: int | None = None
    """None: unset, the newest; 0: whatever the cache has."""
    match: str = ""
    labels: LabelSelector = ANY_LABELS
    fields: FieldSelector = ANY_FIELDS
    shard: ShardSelector | None = None
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool = False
    """A watch begins with an ADDED for every object."""
    initial_events_end: bool = False
    """A bookmark follows the initial events."""


def parse_list_options(
    request: Request, resource: Resource, verb: str, settings: ReadSettings
) -> ListOptions:
    """``verb`` is list, watch or deletecollection; raises the ApiError that the server answers."""
    timeout = integer(request.param("timeoutSeconds"))
    limit = integer(request.param("limit"))
    try:
        labels = LabelSelector.parse(request.param("labelSelector") or "")
        fields = FieldSelector.parse(request.param("fieldSelector") or "")
    except SelectorError as error:
        raise bad_request(str(error)) from None
    watch = verb == "watch"
    causes = list(_watch_causes(request, settings) if watch else _list_causes(request))
    if causes:
        raise invalid("meta.k8s.io", "ListOptions", "", causes)
    check_field_labels(fields, resource)
    shard = request.param("shardSelector") if settings.sharding else None
    resume = request.param("continue")
    common = ListOptions(
        limit=max(limit or 0, 0),
        labels=labels,
        fields=fields,
        shard=parse_shard_selector(shard) if shard else None,
        timeout_seconds=timeout,
        allow_bookmarks=truthy(request.param("allowWatchBookmarks")),
        match=request.param(_MATCH) or "",
        resume=parse_continue(resume) if resume else None,
    )
    return _of_watch(request, common, settings) if watch else _of_list(request, common)


def truthy(value: str | None) -> bool:
    """How the server reads a boolean parameter: everything except ``0`` and ``false`` is true."""
    return value is not None and value.lower() not in ("0", "false")


def _parse_revision(text: str | None) -> int | None:
    """A resourceVersion, None if unset; the complaint is a bare 500, as GET and WATCH give it."""
    if not text:
        return None
    complaint = "invalid syntax"
    if re.fullmatch("[0-9]+", text):
        if len(text.lstrip("0")) <= 20 and int(text) < 1 << 64:
            return int(text)
        complaint = "value out of range"
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    parse = f'strconv.ParseUint: parsing "{shown}": {complaint}'
    raise ApiError(500, None, f'resourceVersion: Invalid value: "{shown}": {parse}')


def _of_list(request: Request, common: ListOptions) -> ListOptions:
    text = request.param("resourceVersion")
    if common.resume is not None:
        if text not in (None, "", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return replace(common, revision=0 if text else None)
    try:
        return replace(common, revision=_parse_revision(text))
    except ApiError as error:
        raise bad_request(f"invalid resource version: {error.message}") from None


def _of_watch(request: Request, common: ListOptions, settings: ReadSettings) -> ListOptions:
    revision = _parse_revision(request.param("resourceVersion"))
    asked = request.param("sendInitialEvents")
    # Without a version to start from, a watch is a streaming list in disguise.
    initial = truthy(asked) if asked is not None else not revision
    return replace(
        common,
        revision=revision,
        send_initial_events=initial,
        initial_events_end=initial and common.allow_bookmarks and settings.watch_list,
    )


def integer(text: str | None) -> int | None:
    """A parameter that is an int64, None if it is not given; a 400 in Go's words if it is none."""
    if text is None:
        return None
    complaint = "invalid syntax"
    if re.fullmatch("[+-]?[0-9]+", text):
        if len(text.lstrip("+-0")) <= 19 and -(1 << 63) <= int(text) < 1 << 63:
            return int(text)
        complaint = "value out of range"
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    raise bad_request(f'strconv.ParseInt: parsing "{shown}": {complaint}')


def _forbidden(why: str, field: str = _MATCH) -> Object:
    return cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _list_causes(request: Request) -> Iterator[Object]:
    match, revision = request.param(_MATCH), request.param("resourceVersion")
    if match:
        if not revision:
            yield _forbidden(f"{_MATCH} is forbidden unless resourceVersion is provided")
        if request.param("continue"):
            yield _forbidden(f"{_MATCH} is forbidden when continue is provided")
        if match not in ("Exact", _NOT_OLDER):
            yield unsupported(_MATCH, match, ("Exact", _NOT_OLDER, ""))
        if match == "Exact" and revision == "0":
            yield _forbidden(f'{_MATCH} "exact" is forbidden for resourceVersion "0"')
    if request.param("sendInitialEvents") is not None:
        yield _forbidden("sendInitialEvents is forbidden for list", "sendInitialEvents")


def _watch_causes(request: Request, settings: ReadSettings) -> Iterator[Object]:
    match, initial = request.param(_MATCH), request.param("sendInitialEvents")
    if initial is not None:
        if match != _NOT_OLDER:
            yield _forbidden(f"sendInitialEvents requires setting {_MATCH} to {_NOT_OLDER}")
        if not settings.watch_list:
            gate = "unless the WatchList feature gate is enabled"
            why = f"sendInitialEvents is forbidden for watch {gate}"
            yield _forbidden(why, "sendInitialEvents")
    if match:
        if initial is None:
            why = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            yield _forbidden(why)
        if match != _NOT_OLDER:
            yield unsupported(_MATCH, match, (_NOT_OLDER,))
    if request.param("continue"):
        yield _forbidden(f"{_MATCH} is forbidden when continue is provided")


_VERSION = "meta.k8s.io/v1"


class ContinueToken(NamedTuple):
    """``revision`` below zero is "the newest": the list goes on, though not consistently.

    ``start`` is relative to what is listed: ``namespace/name`` of a whole collection,
    ``name`` of one namespace or of cluster-scoped objects, with a NUL after the last one read.
    """

    revision: int
    start: str

    def encode(self, *, from_cache: bool) -> str:
        """The token's text; a watch cache writes a slash before the start, etcd does not."""
        start = f"/{self.start}" if from_cache else self.start
        content = {"v": _VERSION, "rv": self.revision, "start": start}
        data = json.dumps(content, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_continue(text: str) -> ContinueToken:
    """Raises the 400 that says what is wrong with the token."""
    content = _content(text)
    version, revision, start = (content.get(name) for name in ("v", "rv", "start"))
    if version != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {version or ''}")
    if not revision:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    key = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in key.split("/")) and key:
        raise _invalid(start)
    return ContinueToken(revision, key)


def _invalid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _content(text: str) -> dict[str, Any]:
    data = _decoded(text)
    stripped = data.lstrip(b" \t\r\n")
    if stripped and stripped[:1] not in b'{["-0123456789tfn':
        raise _invalid(f"invalid character {_shown(stripped[0])} looking for beginning of value")
    try:
        content = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise _invalid(_complaint(stripped, error)) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        kind = type_name(content)
        raise _invalid(f"json: cannot unmarshal {kind} into Go value of type storage.continueToken")
    for name, wanted, go in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is not None and type(value) is not wanted:
            kind = type_name(value)
            raise _invalid(
                f"json: cannot unmarshal {kind} into Go struct field "
                f"continueToken.{name} of type {go}"
            )
    return content


def _decoded(text: str) -> bytes:
    bad = re.search(r"[^-_A-Za-z0-9]", text)
    if bad is not None:
        raise _invalid(f"illegal base64 data at input byte {len(text[: bad.start()].encode())}")
    if len(text) % 4 == 1:
        raise _invalid(f"illegal base64 data at input byte {len(text) - 1}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _complaint(data: bytes, error: Exception) -> str:
    """In the words of Go's encoding/json where that is one look away."""
    if not isinstance(error, json.JSONDecodeError):
        return "exceeded max depth"
    if error.pos >= len(error.doc.rstrip()):
        return "unexpected end of JSON input"
    if error.msg == "Extra data":
        return f"invalid character {_shown(ord(error.doc[error.pos]))} after top-level value"
    if error.msg == "Expecting ':' delimiter":
        return f"invalid character {_shown(ord(error.doc[error.pos]))} after object key"
    return f"invalid character {_shown(data[0])} looking for beginning of value"


def _shown(code: int) -> str:
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"'\\x{code:02x}'" if code < 0x80 else f"'\\u{code:04x}'"
    return f"'{chr(code)}'"


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a LIST, not yet in any representation."""

    versions: list[Version]
    """What matched, in etcd's order; not to be changed."""
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    shard_selector: str | None = None
    """The shardSelector that was obeyed; built-in lists echo it."""


class Representation(Protocol):
    """Objects as one kind of client wants them: plain JSON, Table, metadata only.

    Instances live as long as the server: they keep what they encode in
    ``Version.encoded`` under keys of their own, so that one event is one bytes object.
    """

    first_line_differs: bool
    """The first line of a watch is not like the later ones (a Table's column definitions)."""

    def item(self, version: Version, resource: Resource) -> bytes:
        """One object as it stands in a list, without a newline."""

    def single(self, version: Version, resource: Resource) -> bytes:
        """One object as a GET answers it, with the newline."""

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The whole list, in pieces to be sent one after another."""

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:
        """One watch line; None ends the stream cleanly in its place.

        ``first`` is only ever true if ``first_line_differs``.
        """

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        """A BOOKMARK line, or the one that ends the initial events; None as in `event`."""


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
    asked = _parse_revision(resource_version)
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
                found = log.contents(self._resource.collection, at=asked)
            except CompactedError:
                message = "The resourceVersion for the provided list is too old."
                raise ApiError(410, "Expired", message) from None
            return self._page(found, asked)
        if asked is None or asked > cache.revision or not self._cached:
            self._caches.progress()
        return self._page(log.contents(self._resource.collection), cache.revision)

    def resumed(self, token: ContinueToken) -> Page:
        """The page a token asks for, at the token's revision."""
        log, revision = self._caches.log, token.revision
        path = self._path(token.start)
        if revision < 0:
            self._caches.progress()
            return self._page(log.contents(self._resource.collection), log.revision, path)
        if revision > log.revision:
            raise too_large(revision, self._caches)
        try:
            found = log.contents(self._resource.collection, at=revision)
        except CompactedError:
            newest = ContinueToken(-1, token.start).encode(from_cache=False)
            raise ApiError(
                410, "Expired", _TOO_OLD_TO_CONTINUE, metadata={"continue": newest}
            ) from None
        return self._page(found, revision, path)

    def _page(self, found: Contents, revision: int, path: str = "") -> Page:
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

    def _bounds(self, found: Contents) -> tuple[int, int]:
        """Where in the collection this list looks: at one place if it names the object."""
        name = self._options.fields.exact("metadata.name")
        if name is None or not self._by_name:
            return found.bounds(self._namespace)
        path = self._path(name)
        begin = found.position(path)
        return begin, begin + (found.paths[begin : begin + 1] == [path])

    def _selected(
        self, found: Contents, begin: int, end: int, selection: Selection
    ) -> tuple[list[Version], int]:
        """The versions that match, up to the limit, and where the next page would begin."""
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
        """Whether the name alone says where an object is in this list."""
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
