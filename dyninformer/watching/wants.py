"""What the protocol wants, as a request in the API server's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from dyninformer.transport.requests import Request
from dyninformer.watching.states import (
    ANSWER_WITHIN,
    AskDocument,
    AskObject,
    AskRevision,
    ListPage,
    Scope,
    StreamState,
    Want,
    WatchFrom,
)

_UNSAFE = re.compile(r"[\\,=]")
_ESCAPED = r"\\\g<0>"
"""How a field selector has a value with a character of its own grammar."""

_JSON = MappingProxyType({"Accept": "application/json"})
_FRESH = MappingProxyType({"Accept": "application/json", "Cache-Control": "no-cache"})
_PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io,application/json"
_PARTIAL_LIST = MappingProxyType({"Accept": _PARTIAL.format("List")})
_PARTIAL_ITEM = MappingProxyType({"Accept": _PARTIAL.format("")})

Query: TypeAlias = list[tuple[str, str]]


def request_for(scope: Scope, want: Want) -> Request:
    """The request; its query is a list of its own."""
    if isinstance(want, AskDocument):
        return Request(want.path, [], _FRESH, ANSWER_WITHIN)
    namespace, fields, headers = scope.namespace, scope.field_selector, _headers(scope, want)
    if isinstance(want, AskRevision | AskObject) and want.key:
        # What the user may list is what is asked for: in one of its namespaces, by its selectors.
        inside, _, name = want.key.rpartition("/")
        namespace = namespace or inside
        fields = ",".join(filter(None, (fields, f"metadata.name={_UNSAFE.sub(_ESCAPED, name)}")))
        headers = _PARTIAL_LIST if isinstance(want, AskRevision) else headers
    query = _parameters(scope, want)
    for parameter, selector in (
        ("labelSelector", scope.label_selector),
        ("fieldSelector", fields),
        ("shardSelector", _shard_selector(scope)),
    ):
        if selector:
            query.append((parameter, selector))
    return Request(scope.gvr.path(namespace), query, headers, ANSWER_WITHIN)


def verb(want: Want) -> str:
    """What RBAC calls it."""
    if isinstance(want, StreamState | WatchFrom):
        return "watch"
    return "get" if isinstance(want, AskDocument) else "list"


def _parameters(scope: Scope, want: Want) -> Query:
    match want:
        case StreamState(timeout):
            return [
                ("watch", "true"),
                ("sendInitialEvents", "true"),
                ("resourceVersionMatch", "NotOlderThan"),
                ("allowWatchBookmarks", "true"),
                ("timeoutSeconds", str(timeout)),
            ]
        case WatchFrom(version, timeout):
            return [
                ("watch", "true"),
                ("resourceVersion", version),
                ("allowWatchBookmarks", "true"),
                ("timeoutSeconds", str(timeout)),
            ]
        case ListPage(continue_, limited):
            # Never with a resourceVersion: with a limit it would mean that very version.
            query = [("limit", str(scope.page_size))] if limited and scope.page_size else []
            return [*query, ("continue", continue_)] if continue_ else query
        case AskRevision():
            return [("limit", "1")]
        case AskObject(_, version):
            # By name, and of one version: that is read from etcd, never from the watch cache.
            return [("resourceVersion", version), ("resourceVersionMatch", "Exact")]
        case AskDocument():
            return []


def _shard_selector(scope: Scope) -> str:
    """An old server ignores it, so what comes is looked at all the same (S49)."""
    return scope.shard.selector if scope.shard is not None and scope.shards_named else ""


def _headers(scope: Scope, want: Want) -> Mapping[str, str]:
    if not scope.metadata_only:
        return _JSON
    return _PARTIAL_ITEM if isinstance(want, StreamState | WatchFrom) else _PARTIAL_LIST
