"""Requests: what the protocol wants in the API server's own words, and what can answer them.

`Source` answers them over sockets, and `Source.channel()` gives a `Transport` to each reflector
whose `close` ends the requests of that reflector alone, be it before their headers came.
Anything else with these methods does as well: an in-memory server, a recording.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeAlias

from dyninformer.errors import UnreachableError
from dyninformer.watching.states import (
    ANSWER_WITHIN,
    AskDocument,
    AskRevision,
    ListPage,
    Scope,
    StreamState,
    Want,
    WatchFrom,
)

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_UNSAFE = re.compile(r"[\\,=]")
_ESCAPED = r"\\\g<0>"
"""How a field selector has a value with a character of its own grammar."""

_JSON = MappingProxyType({"Accept": "application/json"})
_FRESH = MappingProxyType({"Accept": "application/json", "Cache-Control": "no-cache"})
_PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io,application/json"
_PARTIAL_LIST = MappingProxyType({"Accept": _PARTIAL.format("List")})
_PARTIAL_ITEM = MappingProxyType({"Accept": _PARTIAL.format("")})

Query: TypeAlias = list[tuple[str, str]]


class SilentError(UnreachableError):
    """Nothing came for as long as the request's ``deadline`` allows."""


class BrokenAnswerError(UnreachableError):
    """The answer began, and the connection broke before its end."""


@dataclass(frozen=True, slots=True)
class Request:
    """A GET, or with a ``body`` a POST, without what the connection adds: host, credentials.

    ``deadline`` is silence, not duration: so many seconds without a byte, from the
    request to the end of the answer, and the connection counts as dead.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    deadline: float = 60.0
    body: Mapping[str, object] | None = None


class Reply(Protocol):
    """An answer whose head has come, whatever its status."""

    @property
    def status(self) -> int:
        """The HTTP status: 200, 404, ..."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers; the names' case does not matter to a lookup."""

    def chunks(self) -> Generator[bytes, None, None]:
        """The body, decoded, as it arrives and cut anywhere; by one thread, once.

        It ends with the body, and also when the reply was closed. Raises `SilentError`
        or `BrokenAnswerError`.
        """

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, so many seconds without a byte are no failure.

        A stream that has told the initial state may be quiet for longer than before. Called
        by the thread that reads.
        """

    def body(self) -> bytes:
        """The body of a refusal, or as much of its beginning as an error message needs.

        Never raises: what broke off ends there. The reply is closed afterwards.
        """

    def close(self) -> None:
        """End it at once, from any thread; a read that is under way ends. Idempotent."""


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A whole answer. ``body`` is the parsed JSON, None where it was none."""

    status: int
    headers: Mapping[str, str]
    body: object


class Transport(Protocol):
    """Asks one API server. Every method may be called from any thread.

    Each request raises `UnreachableError` if no answer came, and `StoppedError` once the
    transport is closed, be it in the middle of the request.
    """

    def list(self, request: Request) -> Reply:
        """Ask for a collection."""

    def watch(self, request: Request) -> Reply:
        """Ask for a stream of events."""

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew: call it once after a 401.

        Callers that come while a reload is under way share it. Raises `ConfigError` if
        they cannot be read.
        """

    def close(self) -> None:
        """End every request of this transport at once, and refuse new ones. Idempotent."""


def request_for(scope: Scope, want: Want) -> Request:
    """The request; its query is a list of its own."""
    if isinstance(want, AskDocument):
        return Request(want.path, [], _FRESH, ANSWER_WITHIN)
    namespace, fields, headers = scope.namespace, scope.field_selector, _headers(scope, want)
    if isinstance(want, AskRevision) and want.key:
        # What the user may list is what is asked for: in one of its namespaces, by its selectors.
        inside, _, name = want.key.rpartition("/")
        namespace = namespace or inside
        fields = ",".join(filter(None, (fields, f"metadata.name={_UNSAFE.sub(_ESCAPED, name)}")))
        headers = _PARTIAL_LIST
    query = _parameters(scope, want)
    for parameter, selector in (
        ("labelSelector", scope.label_selector),
        ("fieldSelector", fields),
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
        case AskDocument():
            return []


def _headers(scope: Scope, want: Want) -> Mapping[str, str]:
    if not scope.metadata_only:
        return _JSON
    return _PARTIAL_ITEM if isinstance(want, StreamState | WatchFrom) else _PARTIAL_LIST
