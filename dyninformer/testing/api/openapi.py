"""OpenAPI v3: as much of it as kubectl needs to validate, apply and explain.

Paths carry the operations, their group, version and kind, and the query parameters of
writes; schemas are those of the CRDs, and open objects for built-ins. kubectl asks this
before every create, apply and replace, to learn whether the server validates fields.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from dyninformer.testing.cluster.resources import Resource, ResourceTable
from dyninformer.types import Object

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_MERGE, _JSON, _APPLY = (
    "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
)  # fmt: skip
_METHODS = {"list": "get", "create": "post", "update": "put", "deletecollection": "delete"}
_DESCRIPTIONS = {
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
    "metadata": "Standard object's metadata.",
}

SWAGGER_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class OpenApi:
    """The documents of each group version, made when first asked for."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table
        self._documents: dict[str, tuple[bytes, str]] = {}
        table.listen(self._documents.clear)

    def index(self) -> bytes:
        """``/openapi/v3``: where each group version's document is, by its hash."""
        paths = {}
        for name in sorted({_path(each) for each in self._table.all()}):
            document = self.document(name)
            if document is not None:
                url = f"/openapi/v3/{name}?hash={document[1]}"
                paths[name] = {"serverRelativeURL": url}
        return _compact({"paths": paths})

    def document(self, name: str) -> tuple[bytes, str] | None:
        """The document of ``apis/GROUP/VERSION`` or ``api/v1`` and its hash, None if unknown."""
        found = self._documents.get(name)
        if found is None:
            resources = [each for each in self._table.all() if _path(each) == name]
            if not resources:
                return None
            document = _compact(_document(resources))
            digest = hashlib.sha512(document).hexdigest().upper()
            found = self._documents[name] = (document, digest)
        return found

    def swagger(self) -> bytes:
        """``/openapi/v2``, which describes nothing: kubectl asks v3 first."""
        info = {"title": "Kubernetes", "version": "1.36"}
        return _compact({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})

    def swagger_protobuf(self) -> bytes:
        """The same in protobuf: swagger is field 1, info 2 (of title and version), paths 8."""
        return b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36B\x00"


def _path(resource: Resource) -> str:
    return f"{'apis' if resource.group else 'api'}/{resource.api_version}"


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _document(resources: list[Resource]) -> Object:
    paths: Object = {}
    schemas: Object = {f"{_META}.ObjectMeta": _OBJECT_META}
    for resource in resources:
        paths |= _paths(resource)
        schemas[_schema_name(resource)] = _schema(resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _paths(resource: Resource) -> Object:
    root = f"/{_path(resource)}"
    everywhere = f"{root}/{resource.plural}"
    home = f"{root}/namespaces/{{namespace}}/{resource.plural}"
    collection = home if resource.namespaced else everywhere
    one = f"{collection}/{{name}}"
    found = {
        collection: _operations(resource, ("list", "create", "deletecollection")),
        one: _operations(resource, ("get", "update", "patch", "delete")),
    }
    if resource.status:
        found[f"{one}/status"] = _operations(resource, ("get", "update", "patch"))
    if resource.namespaced:
        found[everywhere] = _operations(resource, ("list",))
    for path, operations in found.items():
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in ("name", "namespace")
            if f"{{{name}}}" in path
        ]
        if parameters:
            operations["parameters"] = parameters
    return found


def _operations(resource: Resource, verbs: tuple[str, ...]) -> Object:
    return {
        _METHODS.get(verb, verb): _operation(resource, verb)
        for verb in verbs
        if verb in resource.verbs
    }


def _operation(resource: Resource, verb: str) -> Object:
    answer = {"schema": {"$ref": f"#/components/schemas/{_schema_name(resource)}"}}
    parameters = _WRITE_PARAMETERS if verb in ("create", "update", "patch") else ()
    if verb == "patch":
        parameters = (*parameters, "force")
    operation: Object = {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters
        ],
        "responses": {"200": {"description": "OK", "content": {"application/json": answer}}},
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if verb in ("create", "update"):
        operation["requestBody"] = {"content": {"application/json": answer}, "required": True}
    if verb == "patch":
        # Strategic merge patches are taken and not named: named, kubectl looks for merge keys
        # in schemas that built-ins do not have here, and warns; unnamed, it uses its own.
        patch = {"schema": {"type": "object"}}
        taken = dict.fromkeys((_APPLY, _JSON, _MERGE), patch)
        operation["requestBody"] = {"content": taken, "required": True}
    return operation


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: Resource) -> str:
    """As the real server names them: the group reversed, ``io.k8s.api`` for built-ins."""
    if resource.builtin:
        group = resource.group.partition(".")[0] or "core"
        return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _schema(resource: Resource) -> Object:
    schema: Object = {"type": "object", **(resource.schema or {})}
    schema["properties"] = {
        "apiVersion": {"description": _DESCRIPTIONS["apiVersion"], "type": "string"},
        "kind": {"description": _DESCRIPTIONS["kind"], "type": "string"},
        "metadata": {
            "description": _DESCRIPTIONS["metadata"],
            "allOf": [{"$ref": f"#/components/schemas/{_META}.ObjectMeta"}],
        },
        **{
            name: below
            for name, below in (schema.get("properties") or {}).items()
            if name not in _DESCRIPTIONS
        },
    }
    if resource.schema is None:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


_STRING: Object = {"type": "string"}
_STRINGS: Object = {"type": "object", "additionalProperties": _STRING}
_TIME: Object = {"type": "string", "format": "date-time"}
_OBJECTS: Object = {"type": "array", "items": {"type": "object"}}
_OBJECT_META: Object = {
    "description": "ObjectMeta is metadata that all persisted resources must have.",
    "type": "object",
    "properties": {
        "annotations": _STRINGS, "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "deletionTimestamp": _TIME, "finalizers": {"type": "array", "items": _STRING},
        "generateName": _STRING, "generation": {"type": "integer", "format": "int64"},
        "labels": _STRINGS, "managedFields": _OBJECTS, "name": _STRING, "namespace": _STRING,
        "ownerReferences": _OBJECTS, "resourceVersion": _STRING, "selfLink": _STRING,
        "uid": _STRING,
    },
}  # fmt: skip
