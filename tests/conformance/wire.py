"""Raw HTTP to an API server: what was sent is what the test says, what came is kept as bytes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import ReadTimeoutError

from dyninformer.types import Object

Params = Mapping[str, object]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Answer:
    """A finished answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def names(self) -> list[str]:
        """The names of the items of a list, in the order of the answer."""
        return [item["metadata"]["name"] for item in self.json["items"]]

    @property
    def version(self) -> str:
        """The resourceVersion of a list or an object."""
        return str(self.json["metadata"]["resourceVersion"])

    @property
    def token(self) -> str:
        """The continue token of a list, "" if it is the last page."""
        return str(self.json["metadata"].get("continue", ""))


class Watch:
    """An open watch, read line by line; every wait ends after ``patience`` seconds."""

    def __init__(self, response: urllib3.HTTPResponse, patience: float) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._patience = patience
        self._buffer = b""
        self._ended = False

    def line(self) -> bytes:
        """The next line without its newline; EOFError at a clean end."""
        deadline = time.monotonic() + self._patience
        while b"\n" not in self._buffer:
            if self._ended:
                if self._buffer:
                    raise AssertionError(f"the stream ended in mid line: {self._buffer[:200]!r}")
                raise EOFError
            if time.monotonic() > deadline:
                raise TimeoutError(f"no line in {self._patience} s, only {self._buffer[:200]!r}")
            try:
                piece = self._response.read1(65536)
            except ReadTimeoutError:
                raise TimeoutError(f"no line in {self._patience} s") from None
            self._ended = not piece
            self._buffer += piece
        found, _, self._buffer = self._buffer.partition(b"\n")
        return found

    def event(self) -> Object:
        """The next event."""
        found: Object = json.loads(self.line())
        return found

    def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next ``count`` events."""
        events = [self.event() for _ in range(count)]
        return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]

    def changes(self, count: int) -> list[tuple[str, str]]:
        """The same without bookmarks, which a watch that allows them may bring at any moment."""
        found: list[tuple[str, str]] = []
        while len(found) < count:
            found += [each for each in self.take(1) if each[0] != "BOOKMARK"]
        return found

    def rest(self) -> list[Object]:
        """Every event up to the clean end of the stream."""
        events = []
        while True:
            try:
                events.append(self.event())
            except EOFError:
                return events

    def close(self) -> None:
        """Hang up."""
        self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Wire:
    """One user's connections to one server."""

    def __init__(self, url: str, token: str | None, ca: str | None) -> None:
        self._url = url
        self._token = token
        self._pool = urllib3.PoolManager(
            ca_certs=ca, retries=False, timeout=30, headers={}, maxsize=8
        )

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Params | None = None,
        content_type: str | None = None,
        accept: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request. ``body`` is bytes as they are, or what JSON makes of it."""
        data, sent = self._prepare(body, content_type, accept, headers)
        response = self._pool.request(
            method, self._at(path, params), body=data, headers=sent, decode_content=False
        )
        return Answer(response.status, response.headers, response.data)

    def get(
        self,
        path: str,
        params: Params | None = None,
        *,
        accept: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """GET."""
        return self.send("GET", path, params=params, accept=accept, headers=headers)

    def post(self, path: str, body: object, params: Params | None = None) -> Answer:
        """POST."""
        return self.send("POST", path, body, params=params)

    def put(self, path: str, body: object, params: Params | None = None) -> Answer:
        """PUT."""
        return self.send("PUT", path, body, params=params)

    def patch(
        self, path: str, body: object, content_type: str = MERGE, params: Params | None = None
    ) -> Answer:
        """PATCH."""
        return self.send("PATCH", path, body, content_type=content_type, params=params)

    def delete(self, path: str, body: object = None, params: Params | None = None) -> Answer:
        """DELETE."""
        return self.send("DELETE", path, body, params=params)

    def watch(
        self,
        path: str,
        params: Params | None = None,
        *,
        accept: str = "application/json",
        patience: float = 10,
    ) -> Watch:
        """Open a watch; its status may be an error, with the body as its lines."""
        _, sent = self._prepare(None, None, accept, None)
        response = self._pool.request(
            "GET",
            self._at(path, {"watch": "1", **(params or {})}),
            headers=sent,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(connect=5, read=patience),
        )
        assert isinstance(response, urllib3.HTTPResponse)
        return Watch(response, patience)

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def _prepare(
        self,
        body: object,
        content_type: str | None,
        accept: str | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[bytes | None, dict[str, str]]:
        sent = {"User-Agent": "conformance/1"}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        if accept is not None:
            sent["Accept"] = accept
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = content_type or "application/json"
        return data, {**sent, **(headers or {})}

    def _at(self, path: str, params: Params | None) -> str:
        return f"{self._url}{path}?{urlencode(params)}" if params else self._url + path


def until(condition: Any, patience: float = 10, why: object = "") -> Any:
    """Call ``condition`` until it is true, and return what it said."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{why}: not so within {patience} s"
        threading.Event().wait(0.01)
    return found


def pages(wire: Wire, path: str, params: Params) -> Iterator[Answer]:
    """Every page of a list, following its continue tokens."""
    answer = wire.get(path, params)
    yield answer
    while answer.token:
        answer = wire.get(path, {**params, "continue": answer.token})
        yield answer
