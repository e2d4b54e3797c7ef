"""An API server of another process, in the shape that `Objects` needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from dyninformer.testing.cluster.resources import Resource, Resources
from dyninformer.testing.messages import Request, Response

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class RemoteApi:
    """Carries requests to a server over HTTPS, and knows what it serves."""

    def __init__(self, url: str, token: str, ca: str) -> None:
        self._url = url
        self._token = token
        self._pool = urllib3.PoolManager(ca_certs=ca, retries=False)
        self._discovered: dict[str, tuple[str, Resources]] = {}

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def handle(self, request: Request, timeout: float = 60) -> Response:
        """The server's answer; urllib3's HTTPError if it gives none."""
        path = quote(request.path)
        url = f"{self._url}{path}?{urlencode(request.query)}" if request.query else self._url + path
        answer = self._pool.request(
            request.method, url, body=request.body, headers=request.headers, timeout=timeout
        )
        return Response(answer.status, tuple(answer.headers.items()), answer.data)

    def answers(self, path: str) -> bool:
        """Whether the path is answered 200 now."""
        try:
            return self._get(path, "*/*", timeout=5).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def all(self) -> Resources:
        """Every resource in every version, asked anew; the server says if nothing has changed."""
        return self._discover("/api") + self._discover("/apis")

    def _discover(self, path: str) -> Resources:
        etag, known = self._discovered.get(path, ("", ()))
        answer = self._get(path, _AGGREGATED, etag)
        if answer.status == 304:
            return known
        found = tuple(_resources(json.loads(_bytes(answer))))
        headers = {name.lower(): value for name, value in answer.headers}
        self._discovered[path] = (headers.get("etag", ""), found)
        return found

    def _get(self, path: str, accept: str, etag: str = "", timeout: float = 60) -> Response:
        headers = {"authorization": f"Bearer {self._token}", "accept": accept}
        if etag:
            headers["if-none-match"] = etag
        return self.handle(Request("GET", path, headers=headers), timeout)


def _bytes(answer: Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)


def _resources(discovery: dict[str, Any]) -> Iterator[Resource]:
    for group in discovery["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for entry in version.get("resources", ()):
                yield Resource(
                    name,
                    version["version"],
                    entry["resource"],
                    entry["responseKind"]["kind"],
                    entry["scope"] == "Namespaced",
                    singular=entry.get("singularResource", ""),
                    short_names=tuple(entry.get("shortNames", ())),
                    builtin="." not in name or name.endswith(".k8s.io"),
                )
