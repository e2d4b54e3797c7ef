"""Objects written to any API server over HTTP, addressed by what they are."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from dyninformer.testing.status import ApiError

Object = dict[str, Any]
Patch = Mapping[str, Any] | list[Any]
Source = str | os.PathLike[str] | Mapping[str, Any]

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LONG_AGO = "2000-01-01T00:00:00Z"


def manifests(source: Source) -> Iterator[Object]:
    """The objects of a mapping, a YAML or JSON file, or a folder of such files in name order.

    A List counts as its items.
    """
    if isinstance(source, Mapping):
        documents: list[Any] = [dict(source)]
    else:
        path = Path(source)
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.suffix in {".yaml", ".yml", ".json"}:
                    yield from manifests(file)
            return
        with path.open("rb") as stream:
            documents = list(yaml.safe_load_all(stream))
    for document in documents:
        if not document:
            continue
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from document["items"]
        else:
            yield document


class Rest:
    """A writer with a bearer token. Refusals are ApiErrors, as the server worded them."""

    def __init__(self, url: str, token: str, ca: str | None) -> None:
        self._url = url
        self._token = token
        self._pool = urllib3.PoolManager(ca_certs=ca, retries=False, timeout=60)
        self._resources: dict[tuple[str, str], Object] = {}

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def forget(self) -> None:
        """Ask discovery again: what was learned may have changed."""
        self._resources.clear()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        timeout: float = 60,
        **query: str,
    ) -> Object:
        """One request; its answer as a dict, or the ApiError that the server answered."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        url = f"{self._url}{path}?{urlencode(query)}" if query else self._url + path
        answer = self._pool.request(method, url, body=data, headers=headers, timeout=timeout)
        found = _decode(answer.data)
        if answer.status < 400:
            return found
        message = found.get("message") or answer.data.decode(errors="replace").strip()
        raise ApiError(
            answer.status, found.get("reason"), message or f"{method} {path}: no explanation",
            details=found.get("details"), metadata=found.get("metadata"),
        )  # fmt: skip

    def install(self, *sources: Source, timeout: float = 30) -> None:
        """Create what manifests hold, CRDs first, and wait until every CRD is served.

        A CRD or namespace that is there already is taken as it is.
        """
        objects = [obj for source in sources for obj in manifests(source)]
        crds = [obj for obj in objects if obj.get("kind") == "CustomResourceDefinition"]
        for crd in crds:
            self._create_unless_there(crd)
        for crd in crds:
            self._wait_until_served(crd["metadata"]["name"], time.monotonic() + timeout)
        namespaces = [obj for obj in objects if obj.get("kind") == "Namespace"]
        for obj in namespaces:
            self._create_unless_there(obj)
        for obj in objects:
            if obj not in crds and obj not in namespaces:
                self.create(obj)

    def create(self, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Create an object; it says itself what it is and, unless ``namespace`` does, where."""
        return self.ask("POST", self.collection_of(obj, namespace), dict(obj))

    def collection_of(self, obj: Mapping[str, Any], namespace: str | None = None) -> str:
        """The path that objects like this are created under."""
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        if not api_version or not kind:
            raise ValueError("an object to create needs apiVersion and kind")
        resource = self._resource(api_version, kind)
        where = ""
        if resource["namespaced"]:
            chosen = namespace or obj.get("metadata", {}).get("namespace") or "default"
            where = f"/namespaces/{chosen}"
        return f"{_root(api_version)}{where}/{resource['name']}"

    def _resource(self, api_version: str, kind: str) -> Object:
        key = (api_version, kind)
        if key not in self._resources:
            for entry in self.ask("GET", _root(api_version))["resources"]:
                if "/" not in entry["name"]:
                    self._resources[(api_version, entry["kind"])] = entry
        try:
            return self._resources[key]
        except KeyError:
            kinds = ", ".join(sorted(k for v, k in self._resources if v == api_version))
            message = f"{api_version} has no kind {kind!r}; it has {kinds or 'none'}"
            raise LookupError(message) from None

    def _create_unless_there(self, obj: Object) -> None:
        try:
            self.create(obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def _wait_until_served(self, name: str, deadline: float) -> None:
        while not _is_established(crd := self.ask("GET", f"{_CRDS}/{name}")):
            if time.monotonic() > deadline:
                state = crd.get("status", {}).get("conditions")
                raise TimeoutError(f"the CRD {name} is not established; its conditions: {state}")
            time.sleep(0.01)
        self._let_creates_through(crd)
        spec = crd["spec"]
        for version in spec["versions"]:
            while version["served"] and not self._lists(spec, version["name"]):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} in {version['name']} is established, not served")
                time.sleep(0.01)

    def _let_creates_through(self, crd: Object) -> None:
        """Make the CRD look long established.

        For 2 s after it was established a server holds every create back, so that
        other servers learn of the CRD first. Here there is only one.
        """
        conditions = [{**c, "lastTransitionTime": _LONG_AGO} for c in crd["status"]["conditions"]]
        self.ask(
            "PATCH", f"{_CRDS}/{crd['metadata']['name']}/status",
            {"status": {"conditions": conditions}}, content_type="application/merge-patch+json",
        )  # fmt: skip

    def _lists(self, spec: Object, version: str) -> bool:
        try:
            self.ask("GET", f"/apis/{spec['group']}/{version}")
            self.ask("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")
        except ApiError as error:
            if error.code not in {404, 429, 503}:
                raise
            return False
        return True


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _is_established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _decode(body: bytes) -> Object:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
