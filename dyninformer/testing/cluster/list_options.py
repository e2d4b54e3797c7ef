"""The query of a LIST or WATCH, parsed and judged before any data is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dyninformer.selectors import FieldSelector, LabelSelector, SelectorError
from dyninformer.testing.cluster.continue_tokens import ContinueToken, parse_continue
from dyninformer.testing.cluster.read_settings import ReadSettings
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import ANY_FIELDS, ANY_LABELS, check_field_labels
from dyninformer.testing.cluster.sharding import ShardSelector, parse_shard_selector
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError, bad_request, cause, invalid
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
    """None: unset, the newest; 0: whatever is at hand."""
    match: str = ""
    labels: LabelSelector = ANY_LABELS
    fields: FieldSelector = ANY_FIELDS
    shard: ShardSelector | None = None
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool = False
    """A watch begins with an ADDED for every object."""
    initial_events_end: bool = False
    """And with a bookmark after them."""


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
    """How the server reads a boolean parameter: all but ``0`` and ``false`` is true."""
    return value is not None and value.lower() not in ("0", "false")


def parse_revision(text: str | None) -> int | None:
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
        return replace(common, revision=parse_revision(text))
    except ApiError as error:
        raise bad_request(f"invalid resource version: {error.message}") from None


def _of_watch(request: Request, common: ListOptions, settings: ReadSettings) -> ListOptions:
    revision = parse_revision(request.param("resourceVersion"))
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


def _unsupported(value: str, supported: str) -> Object:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return cause("FieldValueNotSupported", message, _MATCH)


def _list_causes(request: Request) -> Iterator[Object]:
    match, revision = request.param(_MATCH), request.param("resourceVersion")
    if match:
        if not revision:
            yield _forbidden(f"{_MATCH} is forbidden unless resourceVersion is provided")
        if request.param("continue"):
            yield _forbidden(f"{_MATCH} is forbidden when continue is provided")
        if match not in ("Exact", _NOT_OLDER):
            yield _unsupported(match, '"Exact", "NotOlderThan", ""')
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
            yield _unsupported(match, '"NotOlderThan"')
    if request.param("continue"):
        yield _forbidden(f"{_MATCH} is forbidden when continue is provided")
