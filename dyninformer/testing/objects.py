"""Objects put into a server and taken out of it: the same on every kind of server.

`ObjectMethods` reads and writes through the API itself, as an administrator does; on the embedded
servers below HTTP, so that no fault meets it. `manifests` reads objects as they lie in files.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from dyninformer.checked import (
    checked_number,
    checked_object,
    checked_or_none,
    checked_path,
    checked_text,
    wrong,
)
from dyninformer.testing.cluster.resources import Resource, Resources
from dyninformer.testing.messages import Answer, Query, Request, Response, body_of
from dyninformer.testing.status import ApiError
from dyninformer.types import Names, Object, Objects

Patch = Mapping[str, Any] | list[Any]
Reference = str | Mapping[str, Any]
"""``"widgets"``, ``"widgets/a"``, ``"widgets.ex.io/a"``, ``"Widget/a"``, or the object itself."""
Source = str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...]

T = TypeVar("T")

_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ObjectMethods(ABC):
    """What a test writes to a server before and while it is tested.

    References to objects read as in kubectl: ``"widgets/a"``, ``"widgets.ex.io/a"``,
    ``"Widget/a"``, or the object itself. Without a namespace, "default" is meant.
    Refusals are ApiErrors with the message of the server's Status. The objects given and
    returned are the caller's own.
    """

    @property
    @abstractmethod
    def token(self) -> str:
        """The bearer token of a user who may do all."""

    @abstractmethod
    def _call(self, function: Callable[[], T]) -> T:
        """Run a function where the server's objects may be touched; calls may nest."""

    @abstractmethod
    def _handle(self, request: Request) -> Answer:
        """What the API answers; within a `_call`."""

    @abstractmethod
    def _served(self) -> Resources:
        """Every resource in every version, the preferred one first; within a `_call`."""

    @abstractmethod
    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Let time pass until ``condition`` holds; false if it does not in time."""

    def install(self, *sources: Source, timeout: float = 10) -> None:
        """Put in place what YAML or JSON files, folders of them, dicts, or lists of these hold.

        CRDs come first, then namespaces, and every CRD is served before the rest is
        written. What is there already is written over.
        """
        checked_number("timeout", timeout, "seconds")
        objects = [obj for source in sources for obj in manifests(source)]
        for each in objects:
            name_of(each)
        objects.sort(key=_precedence)
        crds = [obj["metadata"]["name"] for obj in objects if _precedence(obj) == 0]
        for obj in objects[: len(crds)]:
            self._put_in_place(obj)
        waiting = self._unestablished(crds)
        if not self._wait_until(lambda: not self._unestablished(waiting), timeout):
            names = ", ".join(self._unestablished(waiting))
            raise TimeoutError(
                f"not established after {timeout:g} s: {names}; their status.conditions say why"
            )
        for obj in objects[len(crds) :]:
            self._put_in_place(obj)

    def create(self, obj: Mapping[str, Any], namespace: str | None = None) -> Object:
        """Create an object, and return it as it is stored."""

        def create() -> Object:
            resource = self._resource_of(obj)
            where = _checked_namespace(namespace) or _namespace_of(obj)
            return self._ask("POST", _path(resource, where), body=obj)

        return self._call(create)

    def get(self, reference: Reference, namespace: str | None = None) -> Object:
        """One object as it is now."""
        return self._call(lambda: self._ask("GET", self._path_to(reference, namespace)))

    def list(
        self,
        reference: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Objects:
        """The objects of a collection, in one namespace or in all."""
        checked_text("a reference", reference, "text such as 'widgets' or 'widgets.ex.io'")
        _checked_namespace(namespace)
        for name, selector in (
            ("label_selector", label_selector),
            ("field_selector", field_selector),
        ):
            checked_or_none(name, selector, str, "text, or None")
        chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = tuple((name, value) for name, value in chosen.items() if value)

        def items() -> Objects:
            resource, _ = self._resolve(reference)
            path = _path(resource, namespace, everywhere=namespace is None)
            answer = self._ask("GET", path, query=query)
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            return [{**kind, **item} for item in answer["items"]]

        return self._call(items)

    def replace(self, obj: Mapping[str, Any]) -> Object:
        """Write an object over the one that is there; it must carry its resourceVersion."""
        return self._call(lambda: self._ask("PUT", self._path_to(obj, None), body=obj))

    def patch(
        self,
        reference: Reference,
        patch: Patch,
        namespace: str | None = None,
        *,
        kind: str | None = None,
        subresource: str = "",
    ) -> Object:
        """Change an object: a dict is a merge patch, a list the operations of a JSON patch.

        ``kind="apply"`` applies the dict, as a server-side apply that wins conflicts.
        """
        if not isinstance(patch, Mapping | list):
            raise wrong("the patch", patch, "a dict to merge, or a list of operations")
        checked_or_none("kind", kind, str, "'merge', 'json' or 'apply', or None")
        checked_text("subresource", subresource, "its name, such as 'status'")
        chosen = kind or ("json" if isinstance(patch, list) else "merge")
        if chosen not in _PATCHES:
            raise ValueError(f"no patch of kind {chosen!r}: it is one of {', '.join(_PATCHES)}")
        applied: Query = (("fieldManager", "dyninformer"), ("force", "true"))

        def change() -> Object:
            path = self._path_to(reference, namespace)
            return self._ask(
                "PATCH",
                f"{path}/{subresource}" if subresource else path,
                body=patch,
                content_type=_PATCHES[chosen],
                query=applied if chosen == "apply" else (),
            )

        return self._call(change)

    def delete(self, reference: Reference, namespace: str | None = None) -> Object:
        """Delete an object; the answer is a Status, or the object if finalizers hold it."""
        return self._call(lambda: self._ask("DELETE", self._path_to(reference, namespace)))

    # -- inside --------------------------------------------------------------------------

    def _put_in_place(self, obj: Mapping[str, Any]) -> None:
        """Create an object, or write it over the one that is there."""

        def put() -> None:
            try:
                self.create(obj)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                version = self.get(obj)["metadata"]["resourceVersion"]
                metadata = {**obj["metadata"], "resourceVersion": version}
                self.replace({**obj, "metadata": metadata})

        self._call(put)

    def _unestablished(self, crds: Iterable[str]) -> Names:
        """Those of the CRDs that are not yet served."""
        found = {name: self.get(f"customresourcedefinitions/{name}") for name in crds}
        return [name for name, crd in found.items() if not _established(crd)]

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        query: Query = (),
    ) -> Object:
        """One request as an administrator: the object that is answered, or an ApiError."""
        headers = {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json",
            "content-type": content_type,
            "user-agent": "dyninformer",
        }
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
        message = found.get("message") or f"{method} {path}"
        details = found.get("details")
        raise ApiError(answer.status, found.get("reason"), message, details=details)

    def _path_to(self, reference: Reference, namespace: str | None) -> str:
        _checked_namespace(namespace)
        if isinstance(reference, str):
            resource, name = self._resolve(reference)
        else:
            give = "text such as 'widgets/a', or the object itself"
            checked_object("a reference", reference, give)
            resource, name = self._resource_of(reference), name_of(reference)
            namespace = namespace or _namespace_of(reference)
        if not name:
            raise ValueError(f'{reference!r} names no object: say "{resource.plural}/NAME"')
        return f"{_path(resource, namespace)}/{name}"

    def _resource_of(self, obj: Mapping[str, Any]) -> Resource:
        """The resource that an object is of, by its apiVersion and kind."""
        checked_object("an object", obj, "a dict with apiVersion, kind and metadata")
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not api_version or not kind:
            raise ValueError("an object needs apiVersion and kind")
        known = self._served()
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
        known = self._served()
        for resource in known:
            if plain.lower() in _spellings(resource) and group in ("", resource.group):
                return resource, name
        plurals = sorted({each.full_name for each in known if not each.builtin})
        raise LookupError(f"the server has no {word!r} ({_some(plurals)})")


def manifests(source: Source) -> Iterator[Object]:
    """The objects of a mapping, a YAML or JSON file, or a folder of such files in name order.

    A List counts as its items, and a list of such sources as each of them.
    """
    if isinstance(source, (list, tuple)):
        for each in source:
            yield from manifests(each)
        return
    if isinstance(source, Mapping):
        documents: list[Any] = [dict(source)]
    else:
        path = Path(checked_path("a source", source, "a file, a folder, an object, or several"))
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
        if not isinstance(document, dict):
            where = "" if isinstance(source, Mapping) else f"{source}: "
            raise TypeError(f"{where}a {type(document).__name__} is no object of Kubernetes")
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from document["items"]
        else:
            yield document


def _precedence(obj: Mapping[str, Any]) -> int:
    return {"CustomResourceDefinition": 0, "Namespace": 1}.get(obj.get("kind", ""), 2)


def _spellings(resource: Resource) -> tuple[str, ...]:
    kind = resource.kind.lower()
    return (resource.plural, resource.singular, kind, *resource.short_names)


def _path(resource: Resource, namespace: str | None, *, everywhere: bool = False) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    if resource.namespaced and not everywhere:
        root = f"{root}/namespaces/{namespace or 'default'}"
    return f"{root}/{resource.plural}"


def _namespace_of(obj: Mapping[str, Any]) -> str | None:
    namespace: str | None = _metadata_of(obj).get("namespace")
    return namespace


def name_of(obj: Mapping[str, Any]) -> str:
    """An object's name; ValueError if it has none."""
    name = _metadata_of(obj).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"an object needs metadata.name: {obj.get('kind') or 'one'} has none")
    return name


def _metadata_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return checked_object("metadata", obj.get("metadata") or {}, "a dict with the object's name")


def _checked_namespace(namespace: object) -> str | None:
    return checked_or_none("namespace", namespace, str, "a name, or None for 'default'")


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _some(names: Names) -> str:
    return f"it has {', '.join(names[:8])}" if names else "it has no CRD installed"
