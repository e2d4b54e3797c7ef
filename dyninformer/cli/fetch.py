"""Objects as they are now, by the requests that kubectl makes: no watch, and no right to one."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from dyninformer.cli.connection import Server, Target
from dyninformer.cli.errors import FAILED, UNREACHABLE, WRONG_USAGE, CommandError
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.errors import UnreachableError
from dyninformer.transport.requests import (
    NO_HEADERS,
    BrokenAnswerError,
    DocumentSource,
    JsonReply,
)
from dyninformer.types import Object, Objects

Query: TypeAlias = list[tuple[str, str]]
Cells: TypeAlias = Sequence[Any]

_PAGE: Final = 500
_JSON: Final = {"Accept": "application/json"}
_TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
_METADATA: Final = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
}
_PASSING: Final = (429, 500, 502, 503, 504)
_WRONG: Final = (400, 405, 422)
_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 10.0
_SHORTEST_SECONDS: Final = 0.1
"""That a request is given, however late it is."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column that the server declares for a resource."""

    name: str
    priority: int


@dataclass
class Answer:
    """What the server has of one resource: rows as it would show them, or the objects alone."""

    objects: Objects = field(default_factory=list)
    """Whole, or of a table's rows perhaps only their metadata."""
    columns: list[TableColumn] = field(default_factory=list)
    """Empty if the server makes no tables of this resource."""
    cells: list[Cells] = field(default_factory=list)
    """One row for each object."""
    missing: list[str] = field(default_factory=list)
    """The names that were asked for and are not there."""

    def only(self, fits: Callable[[Object], bool]) -> Answer:
        """The objects that fit, with their rows."""
        return self._at([at for at, obj in enumerate(self.objects) if fits(obj)])

    def sorted(self, rank: Callable[[Object], Any]) -> Answer:
        """The same, in another order."""
        return self._at(sorted(range(len(self.objects)), key=lambda at: rank(self.objects[at])))

    def _at(self, places: Sequence[int]) -> Answer:
        return Answer(
            [self.objects[at] for at in places],
            self.columns,
            [self.cells[at] for at in places] if self.columns else [],
            self.missing,
        )


@contextmanager
def fetching(target: Target) -> Iterator[Fetch]:
    """A way to ask for the objects of a target, for as long as the command runs."""
    source = target.asked_briefly()
    collecting = gc.isenabled()
    gc.disable()  # of what is fetched nothing is garbage until it is printed, and walking it costs
    try:
        within = _Within(source, target.request_timeout)
        discovery = Discovery(within, patience=target.request_timeout)
        yield Fetch(Server(target, discovery, source.namespace), within)
    finally:
        if collecting:
            gc.enable()
        source.close()


class _Within:
    """A source whose requests, those of discovery too, are silent no longer than time is left."""

    def __init__(self, source: DocumentSource, seconds: float) -> None:
        self._source = source
        self._until = time.monotonic() + seconds

    @property
    def host(self) -> str:
        """Where the API server is."""
        return self._source.host

    @property
    def left(self) -> float:
        """Seconds."""
        return self._until - time.monotonic()

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = NO_HEADERS,
        deadline: float = math.inf,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        # A little less than is left: what the request says of it beats "no answer in time".
        most = min(deadline, max(_SHORTEST_SECONDS, round(self.left - _SHORTEST_SECONDS, 1)))
        return self._source.get_json(path, query, headers, most)

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew."""
        self._source.reload_credentials()


class Fetch:
    """Asks for objects once. What can pass is asked again, until the target's time is over."""

    def __init__(self, server: Server, source: _Within) -> None:
        self.server = server
        self._source = source
        self._random = Random()  # noqa: S311 - it spreads retries
        self._renewed = False

    def answer(
        self, resource: ResolvedResource, names: Sequence[str], *, table: bool, whole: bool
    ) -> Answer:
        """What is there of a resource: these names, or all that the target selects.

        ``table`` asks for the server's own columns, and ``whole`` for the objects beside them.

        Raises:
            CommandError: The server refuses, or does not answer in time.
        """
        found = Answer()
        for namespace in self.server.namespaces_of(resource):
            path = resource.gvr.path(namespace)
            query: Query = [("includeObject", "Object")] if table and whole else []
            headers = _TABLE if table else _JSON
            if not names:
                for page in self._pages(resource, path, query, headers):
                    _add(found, page, resource)
            for name in names:
                there = len(found.objects)
                if resource.namespaced and not namespace:  # of whichever namespace
                    named = [*query, ("fieldSelector", f"metadata.name={name}")]
                    for page in self._pages(resource, path, named, headers):
                        _add(found, page, resource)
                else:
                    one = f"{path}/{quote(name, safe='')}"
                    body = self._ask("get", resource, one, query, headers)
                    if body is not None:
                        _add(found, body, resource)
                if len(found.objects) == there:
                    found.missing.append(name)
        return found

    def metadata(self, resource: ResolvedResource, namespace: str) -> Objects:
        """The metadata of all objects of a namespace; "" for all. One try: others are waiting.

        Raises:
            CommandError: The server refuses, or fails.
        """
        found = Answer()
        for page in self._pages(
            resource, resource.gvr.path(namespace), [], _METADATA, patient=False
        ):
            _add(found, page, resource)
        return [
            {**each, "apiVersion": resource.gvr.group_version, "kind": resource.kind}
            for each in found.objects
            if isinstance(each.get("metadata"), dict)
        ]

    def one(self, resource: ResolvedResource, namespace: str, name: str) -> Object | None:
        """An object, None if it is not there.

        Raises:
            CommandError: The server refuses, or fails.
        """
        path = resource.gvr.path(namespace if resource.namespaced else "")
        return self._ask(
            "get", resource, f"{path}/{quote(name, safe='')}", [], _JSON, patient=False
        )

    def _pages(
        self,
        resource: ResolvedResource,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        *,
        patient: bool = True,
    ) -> Objects:
        """All pages of a list, of one moment."""
        target = self.server.target
        selectors = {"labelSelector": target.selector, "fieldSelector": target.field_selector}
        query = [*query, *((name, text) for name, text in selectors.items() if text)]
        pages: Objects = []
        limit, token = _PAGE, ""
        while True:
            size = [("limit", str(limit))] if limit else []
            rest = [("continue", token)] if token else []
            try:
                body = self._ask(
                    "list", resource, path, [*query, *size, *rest], headers, patient=patient
                )
            except BrokenAnswerError:
                if limit <= 1:
                    raise
                limit //= 10  # it broke off, or its objects are so large that a page is too long
                continue
            if body is None:
                what = resource.group_resource
                raise CommandError(f"the server has no {what} any more", code=FAILED)
            if body.get("kind") == "Status":  # the moment of the first page is forgotten
                pages, limit, token = [], 0, ""
                continue
            pages.append(body)
            metadata = body.get("metadata")
            token = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            if not token:
                return pages

    def _ask(
        self,
        verb: str,
        resource: ResolvedResource,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        *,
        patient: bool = True,
    ) -> Object | None:
        """A JSON object; None for what is not there, a Status for a page that is too old."""
        source = self._source
        delay = _RETRY_SECONDS
        while True:
            try:
                reply = source.get_json(path, query, headers)
            except BrokenAnswerError:
                raise
            except UnreachableError as error:
                failure = CommandError(str(error), code=UNREACHABLE)
            else:
                body = reply.body
                if reply.status in (200, 410) and isinstance(body, dict):
                    return body
                if reply.status == 404:
                    return None
                if reply.status == 401 and not self._renewed:
                    self._renewed = True  # a token may have expired since it was read
                    source.reload_credentials()
                    continue
                failure = _refusal(verb, resource, reply)
                if reply.status not in _PASSING:
                    raise failure
                delay = _retry_after(reply.headers, delay)
            pause = self._random.uniform(delay, 1.5 * delay)
            if not patient or pause >= source.left:
                raise failure
            time.sleep(pause)
            delay = min(2 * delay, _LONGEST_RETRY_SECONDS)


def _refusal(verb: str, resource: ResolvedResource, reply: JsonReply) -> CommandError:
    said = str(reply.body.get("message") or "") if isinstance(reply.body, dict) else ""
    why = said or f"the server answered {reply.status}"
    if reply.status == 403:
        why = f"forbidden ({said.split(' is forbidden: ', 1)[-1]})"
    code = UNREACHABLE
    if reply.status in _WRONG:
        why, code = f"{why}. Check the selectors.", WRONG_USAGE
    return CommandError(f"cannot {verb} {resource.group_resource}: {why}", code=code)


def _retry_after(headers: Mapping[str, str], default: float) -> float:
    try:
        return min(float(headers.get("Retry-After", default)), _LONGEST_RETRY_SECONDS)
    except ValueError:
        return default


def _add(found: Answer, body: Object, resource: ResolvedResource) -> None:
    """Take an object, a list or a table in."""
    if body.get("kind") == "Table":
        found.columns = [
            TableColumn(str(each.get("name", "")), int(each.get("priority") or 0))
            for each in body.get("columnDefinitions") or ()
        ]
        for row in body.get("rows") or ():
            found.cells.append(row.get("cells") or ())
            found.objects.append(_complete(row.get("object") or {}, resource))
        return
    items = body.get("items")
    if isinstance(items, list):
        found.objects += [_complete(each, resource) for each in items]
    else:
        found.objects.append(body)


def _complete(obj: Object, resource: ResolvedResource) -> Object:
    """An item of a list of a built-in resource names neither its kind nor its version."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.gvr.group_version, "kind": resource.kind, **obj}
