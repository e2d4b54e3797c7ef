"""Objects read and written as an administrator does, below HTTP: no socket, no fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from dyninformer.testing.cluster.resources import Resource, Resources
from dyninformer.testing.exchange import body_of
from dyninformer.testing.messages import Answer, Query, Request, Response
from dyninformer.testing.status import ApiError
from dyninformer.types import Names, Object

ObjectList = list[Object]
Patch = Mapping[str, Any] | list[Any]
Reference = str | Mapping[str, Any]
"""``"widgets"``, ``"widgets/a"``, ``"widgets.ex.io/a"``, ``"Widget/a"``, or the object itself."""

_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Served(Protocol):
    """What the server serves now."""

    def all(self) -> Resources:
        """Every resource in every version, the preferred one first."""


class Objects:
    """Reads and writes through the API itself, on the thread that owns the state.

    Refusals are ApiErrors with the message of the Status. The objects given and
    returned are the caller's own.
    """

    def __init__(self, handle: Callable[[Request], Answer], table: Served, token: str) -> None:
        self._handle = handle
        self._table = table
        self._token = token

    def create(self, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Create an object, in its own namespace, or in ``namespace``, or in "default"."""
        resource = self.resource_of(obj)
        where = namespace or _namespace_of(obj)
        return self.ask("POST", _path(resource, where), body=obj)

    def replace(self, obj: Mapping[str, Any]) -> Object:
        """Write an object over the one that is there."""
        return self.ask("PUT", self._path_to(obj, None), body=obj)

    def get(self, reference: Reference, namespace: str | None = None) -> Object:
        """One object as it is now."""
        return self.ask("GET", self._path_to(reference, namespace))

    def list(
        self, reference: str, namespace: str | None = None, *, label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> ObjectList:  # fmt: skip
        """The objects of a collection, in all namespaces or one."""
        resource, _ = self._resolve(reference)
        chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = tuple((name, value) for name, value in chosen.items() if value)
        path = _path(resource, namespace, everywhere=namespace is None)
        answer = self.ask("GET", path, query=query)
        items: ObjectList = answer["items"]
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**kind, **item} for item in items]

    def patch(
        self, reference: Reference, patch: Patch,
        namespace: str | None = None, *, kind: str | None = None, subresource: str = "",
    ) -> Object:  # fmt: skip
        """Change an object: by a merge patch, by a list of JSON patch operations, or "apply"."""
        chosen = kind or ("json" if isinstance(patch, list) else "merge")
        if chosen not in _PATCHES:
            raise ValueError(f"no patch of kind {chosen!r}: it is one of {', '.join(_PATCHES)}")
        query: Query = ()
        if chosen == "apply":
            query = (("fieldManager", "dyninformer"), ("force", "true"))
        path = self._path_to(reference, namespace)
        path = f"{path}/{subresource}" if subresource else path
        return self.ask("PATCH", path, body=patch, content_type=_PATCHES[chosen], query=query)

    def delete(self, reference: Reference, namespace: str | None = None) -> Object:
        """Delete an object; the answer is a Status, or the object if it waits for finalizers."""
        return self.ask("DELETE", self._path_to(reference, namespace))

    def put_in_place(self, obj: Mapping[str, Any]) -> Object:
        """Create an object, or write it over the one that is there."""
        try:
            return self.create(obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        held = self.get(obj)
        version = held["metadata"]["resourceVersion"]
        return self.replace({**obj, "metadata": {**obj["metadata"], "resourceVersion": version}})

    def unestablished(self, crds: Iterable[str]) -> Names:
        """Those of the CRDs that are not yet served."""
        found = {name: self.get(f"customresourcedefinitions/{name}") for name in crds}
        return [name for name, crd in found.items() if not _established(crd)]

    def ask(
        self, method: str, path: str, *, body: object = None,
        content_type: str = "application/json", query: Query = (),
    ) -> Object:  # fmt: skip
        """One request as an administrator: the object that is answered, or an ApiError."""
        headers = {
            "authorization": f"Bearer {self._token}", "accept": "application/json",
            "content-type": content_type, "user-agent": "dyninformer",
        }  # fmt: skip
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        answer = self._handle(Request(method, path, query, headers, data))
        assert isinstance(answer, Response)  # noqa: S101 - none of these is a watch
        raw = body_of(answer)
        try:
            found: Object = json.loads(raw)
        except ValueError:
            found = {"message": raw.decode(errors="replace").strip()}
        if answer.status < 400:
            return found
        raise ApiError(
            answer.status, found.get("reason"), found.get("message") or f"{method} {path}",
            details=found.get("details"),
        )  # fmt: skip

    def _path_to(self, reference: Reference, namespace: str | None) -> str:
        if isinstance(reference, str):
            resource, name = self._resolve(reference)
        else:
            resource, name = self.resource_of(reference), reference["metadata"]["name"]
            namespace = namespace or _namespace_of(reference)
        if not name:
            raise ValueError(f'{reference!r} names no object: say "{resource.plural}/NAME"')
        return f"{_path(resource, namespace)}/{name}"

    def resource_of(self, obj: Mapping[str, Any]) -> Resource:
        """The resource that an object is of, by its apiVersion and kind."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not api_version or not kind:
            raise ValueError("an object needs apiVersion and kind")
        known = self._table.all()
        for resource in known:
            if resource.api_version == api_version and resource.kind == kind:
                return resource
        kinds = sorted(each.kind for each in known if each.api_version == api_version)
        raise LookupError(
            f"the server has no {kind} in {api_version} ({_some(kinds)}); install its CRD first"
        )

    def _resolve(self, reference: str) -> tuple[Resource, str]:
        word, _, name = reference.partition("/")
        plain, _, group = word.partition(".")
        for resource in self._table.all():
            if plain.lower() in _spellings(resource) and group in ("", resource.group):
                return resource, name
        plurals = sorted({each.full_name for each in self._table.all() if not each.builtin})
        raise LookupError(f"the server has no {word!r} ({_some(plurals)})")


def _spellings(resource: Resource) -> tuple[str, ...]:
    kind = resource.kind.lower()
    return (resource.plural, resource.singular, kind, *resource.short_names)


def _path(resource: Resource, namespace: str | None, *, everywhere: bool = False) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    if resource.namespaced and not everywhere:
        root = f"{root}/namespaces/{namespace or 'default'}"
    return f"{root}/{resource.plural}"


def _namespace_of(obj: Mapping[str, Any]) -> str | None:
    namespace: str | None = (obj.get("metadata") or {}).get("namespace")
    return namespace


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _some(names: list[str]) -> str:
    return f"it has {', '.join(names[:8])}" if names else "it has no CRD installed"
