"""Paths other than resources: discovery, OpenAPI, version and health.

`Endpoints` serves them; `DiscoveryDocuments` and `OpenApi` make the documents from the table of
what is served, and keep them until that changes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dyninformer.testing.api.access import REVIEWS
from dyninformer.testing.api.answers import (
    NOSNIFF,
    PRIVATE,
    Conversion,
    Media,
    document_response,
    method_not_allowed,
    negotiate,
    nothing_there,
    text_response,
)
from dyninformer.testing.api.encoding import encode
from dyninformer.testing.cluster.resources import Resource, ResourceTable
from dyninformer.testing.messages import Headers, Request, Response
from dyninformer.testing.status import ApiError, page_not_found
from dyninformer.types import Object, Objects

_VERSION: Final = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3",
    "gitCommit": "dyninformer",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "python",
    "platform": "linux/amd64",
}
_HEALTH_CHECKS = ("ping", "log", "etcd", "informer-sync", "crd-informer-synced")
_PUBLIC: Headers = (("Cache-Control", "public"),)
_IMMUTABLE: Headers = (("Cache-Control", "public, immutable"),)
_READS = ("GET", "HEAD")


class Endpoints:
    """Answers requests whose path is not a resource's. Raises ApiErrors."""

    def __init__(
        self, discovery: DiscoveryDocuments, openapi: OpenApi, builtin_groups: frozenset[str]
    ):
        self._discovery = discovery
        self._openapi = openapi
        self._builtin_groups = builtin_groups
        self._fixed: dict[str, Callable[[Request], Response]] = {
            "/": self._root,
            "/api": self._api,
            "/apis": self._apis,
            "/version": _version,
            "/openapi/v2": self._swagger,
            "/openapi/v3": self._openapi_index,
        }

    def answer(self, request: Request) -> Response:
        """The answer, or the 404 of a path that nothing serves."""
        path = request.path
        fixed = self._fixed.get(path if path.startswith("/openapi") else path.rstrip("/") or "/")
        if fixed is not None:
            return fixed(request)
        parts = path.strip("/").split("/")
        if parts[0] in ("healthz", "livez", "readyz"):
            return _health(request, parts[0], path)
        if parts[0] == "openapi":
            return self._openapi_document(request)
        if parts[0] == "api" and len(parts) == 2:
            return self._resources(request, "", parts[1])
        if parts[0] == "apis" and len(parts) == 2:
            return self._group(request, parts[1])
        if parts[0] == "apis" and len(parts) == 3:
            return self._resources(request, parts[1], parts[2])
        raise page_not_found()

    def _root(self, request: Request) -> Response:
        _only_reads(request)
        paths = ["/api", "/api/v1", "/apis"]
        for group in self._discovery.groups():
            paths.append(f"/apis/{group}")
            paths += [f"/apis/{group}/{version}" for version in self._discovery.versions(group)]
        paths += ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return document_response({"paths": sorted(paths)}, Media(indented=True))

    def _api(self, request: Request) -> Response:
        _only_reads(request)
        media = negotiate(request, _is_aggregated)
        if media.conversion is not None:
            return self._aggregated(request, media, core=True)
        host = request.headers.get("host", "127.0.0.1")
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
        versions = {"kind": "APIVersions", "versions": ["v1"]}
        return document_response({**versions, "serverAddressByClientCIDRs": addresses}, media)

    def _apis(self, request: Request) -> Response:
        media = negotiate(request, _is_aggregated)
        if media.conversion is not None:
            return self._aggregated(request, media, core=False)
        return document_response(self._discovery.group_list(), media)

    def _aggregated(self, request: Request, media: Media, *, core: bool) -> Response:
        found = self._discovery.aggregated(core=core)
        headers = (("Etag", found.etag), ("Vary", "Accept"))
        if request.headers.get("if-none-match") == found.etag:
            return Response(304, (*_PUBLIC, *headers))
        kind = f"{media.content_type};g={_AGGREGATED_GROUP};v=v2;as={_AGGREGATED_KIND}"
        return document_response(
            found.document, media, headers=headers, cache=_PUBLIC, content_type=kind
        )

    def _group(self, request: Request, group: str) -> Response:
        found = self._discovery.group(group)
        if found is None:
            raise page_not_found()
        self._check_method(request, group)
        return document_response(found, negotiate(request))

    def _resources(self, request: Request, group: str, version: str) -> Response:
        found = self._discovery.resource_list(group, version)
        if found is None:
            raise nothing_there() if group in self._builtin_groups else page_not_found()
        self._check_method(request, group)
        return document_response(found, negotiate(request))

    def _check_method(self, request: Request, group: str) -> None:
        if group in self._builtin_groups:
            _only_reads(request)

    def _swagger(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        vary = (*PRIVATE, ("Vary", "Accept"))
        if not accept or "json" in accept or "*/*" in accept:
            headers = (*vary, ("Content-Type", "application/json"))
            return Response(200, headers, self._openapi.swagger())
        if "proto-openapi.spec.v2" in accept:
            headers = (*vary, ("Content-Type", _SWAGGER_PROTOBUF))
            return Response(200, headers, self._openapi.swagger_protobuf())
        return Response(406, vary)

    def _openapi_index(self, request: Request) -> Response:  # noqa: ARG002  one shape for all paths
        return text_response(self._openapi.index().decode(), headers=())

    def _openapi_document(self, request: Request) -> Response:
        found = self._openapi.document(request.path.removeprefix("/openapi/v3/"))
        if not request.path.startswith("/openapi/v3/"):
            raise page_not_found()
        if found is None:
            return Response(404, PRIVATE)
        document, digest = found
        etag = f'"{digest}"'
        cache = _IMMUTABLE if request.param("hash") == digest else PRIVATE
        head = (*cache, ("Etag", etag), ("Vary", "Accept"))
        if request.headers.get("if-none-match") == etag:
            return Response(304, head)
        return Response(200, (*head, ("Content-Type", "application/json")), document)


def _version(request: Request) -> Response:
    _only_reads(request)
    if negotiate(request).subtype != "json":
        message = "406: Not Acceptable\n\nAvailable representations: application/json"
        raise ApiError(406, "NotAcceptable", message, details={})
    return document_response(dict(_VERSION), Media(indented=True))


def _health(request: Request, kind: str, path: str) -> Response:
    rest = path.removeprefix(f"/{kind}")
    if rest:
        if rest[1:] in _HEALTH_CHECKS:
            return text_response("ok", headers=())
        raise page_not_found()
    if not any(name == "verbose" for name, _ in request.query):
        return text_response("ok")
    excluded = [value for name, value in request.query if name == "exclude"]
    lines = [f"[+]{name} {'excluded: ok' if name in excluded else 'ok'}" for name in _HEALTH_CHECKS]
    unknown = [f'"{name}"' for name in excluded if name not in _HEALTH_CHECKS]
    if unknown:
        names = ",".join(unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    return text_response("\n".join([*lines, f"{kind} check passed", ""]), headers=NOSNIFF)


def _only_reads(request: Request) -> None:
    if request.method not in _READS:
        raise method_not_allowed()


# -- discovery, old and aggregated: what clients ask for first --------------------------------

_AGGREGATED_GROUP = "apidiscovery.k8s.io"
_AGGREGATED_KIND = "APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = ["get", "patch", "update"]
_SCALE = ("autoscaling", "v1", "Scale")

_StorageVersion = Callable[[Resource], str]


def _is_aggregated(conversion: Conversion) -> bool:
    """The one other form of ``/api`` and ``/apis``; its v2beta1 is gone."""
    asked = (conversion.group, conversion.version, conversion.kind)
    return asked == (_AGGREGATED_GROUP, "v2", _AGGREGATED_KIND)


@dataclass(frozen=True, slots=True)
class _Aggregated:
    """An aggregated document and its Etag, quotes included."""

    document: Object
    etag: str


class DiscoveryDocuments:
    """Documents made from the table of what is served, and kept until that changes."""

    def __init__(self, table: ResourceTable, storage_version: _StorageVersion) -> None:
        self._table = table
        self._storage_version = storage_version
        self._aggregated: dict[bool, _Aggregated] = {}
        table.listen(self._aggregated.clear)

    def groups(self) -> list[str]:
        """Every group but the core one, in discovery's order."""
        served = [group for group in self._table.groups() if group]
        return list(dict.fromkeys([*served, *(review.group for review in REVIEWS)]))

    def versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first; empty if it is unknown."""
        reviews = (review.version for review in REVIEWS if review.group == group)
        return list(dict.fromkeys([*self._table.versions_of(group), *reviews]))

    def group_list(self) -> Object:
        """``/apis``."""
        groups = [self._group(group) for group in self.groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, group: str) -> Object | None:
        """``/apis/GROUP``, None if it is unknown."""
        if not group or not self.versions(group):
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}

    def resource_list(self, group: str, version: str) -> Object | None:
        """``/apis/GROUP/VERSION`` or ``/api/v1``, None if it is unknown."""
        if version not in self.versions(group):
            return None
        # The core group's list is the one document without an apiVersion.
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
        name = f"{group}/{version}" if group else version
        entries = [
            entry
            for each in self._table.all()
            if (each.group, each.version) == (group, version)
            for entry in self._entries(each)
        ]
        entries += [
            {
                "name": review.plural,
                "singularName": review.kind.lower(),
                "namespaced": review.namespaced,
                "kind": review.kind,
                "verbs": ["create"],
            }
            for review in REVIEWS
            if (review.group, review.version) == (group, version)
        ]
        return {**head, "groupVersion": name, "resources": entries}

    def aggregated(self, *, core: bool) -> _Aggregated:
        """``/api`` (``core``) or ``/apis`` in their aggregated form."""
        found = self._aggregated.get(core)
        if found is None:
            groups = [""] if core else self.groups()
            document = {
                "kind": _AGGREGATED_KIND,
                "apiVersion": f"{_AGGREGATED_GROUP}/v2",
                "metadata": {},
                "items": [self._aggregated_group(group) for group in groups],
            }
            digest = hashlib.sha512(encode(document, sort=False)).hexdigest().upper()
            found = self._aggregated[core] = _Aggregated(document, f'"{digest}"')
        return found

    def _group(self, group: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self.versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _entries(self, resource: Resource) -> Objects:
        key = f"{resource.group}/{self._storage_version(resource)}/{resource.kind}"
        digest = hashlib.sha256(key.encode()).digest()[:8]
        main: Object = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _verbs(resource),
            **_names(resource),
            "storageVersionHash": base64.b64encode(digest).decode(),
        }
        return [main, *(_subentry(resource, name) for name in _subresources(resource))]

    def _aggregated_group(self, group: str) -> Object:
        versions = [
            {
                "version": version,
                "resources": [
                    *(
                        _aggregated_resource(each)
                        for each in self._table.all()
                        if (each.group, each.version) == (group, version)
                    ),
                    *(
                        {
                            "resource": review.plural,
                            "responseKind": {"group": "", "version": "", "kind": review.kind},
                            "scope": "Namespaced" if review.namespaced else "Cluster",
                            "singularResource": review.kind.lower(),
                            "verbs": ["create"],
                        }
                        for review in REVIEWS
                        if (review.group, review.version) == (group, version)
                    ),
                ],
                "freshness": "Current",
            }
            for version in self.versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, ""),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(resource, name),
            "verbs": _subresource_verbs(name),
        }
        for name in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def _subentry(resource: Resource, name: str) -> Object:
    entry: Object = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if name == "scale":
        entry |= dict(zip(("group", "version", "kind"), _SCALE, strict=True))
    else:
        entry["kind"] = resource.kind
    entry["verbs"] = _subresource_verbs(name)
    return entry


def _response_kind(resource: Resource, subresource: str) -> Object:
    if subresource == "scale":
        group, version, kind = _SCALE
    elif resource.builtin:
        group, version, kind = "", "", resource.kind
    else:
        group, version, kind = resource.group, resource.version, resource.kind
    return {"group": group, "version": version, "kind": kind}


def _subresources(resource: Resource) -> list[str]:
    """Those of CRDs in the order status, scale; those of built-ins by name."""
    found = ["status"] * resource.status + ["scale"] * (resource.scale is not None)
    if resource.builtin and resource.collection == ("", "namespaces"):
        found.append("finalize")
    return sorted(found) if resource.builtin else found


def _subresource_verbs(name: str) -> list[str]:
    return ["update"] if name == "finalize" else list(_SUBRESOURCE_VERBS)


def _verbs(resource: Resource) -> list[str]:
    if resource.builtin:
        return sorted(resource.verbs)
    if not resource.creatable:
        return ["delete", "deletecollection", "get", "list", "watch"]
    return list(resource.verbs)


def _names(resource: Resource) -> Object:
    found: Object = {}
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    return found


# -- OpenAPI v3: as much of it as kubectl needs to validate, apply and explain -----------------
#
# Paths carry the operations, their group, version and kind, and the query parameters of
# writes; schemas are those of the CRDs, and open objects for built-ins. kubectl asks this
# before every create, apply and replace, to learn whether the server validates fields.

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_METHODS = {"list": "get", "create": "post", "update": "put", "deletecollection": "delete"}
_DESCRIPTIONS = {
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
    "metadata": "Standard object's metadata.",
}

_SWAGGER_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


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
        taken = dict.fromkeys(_PATCH_TYPES, patch)
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
_INT64: Object = {"type": "integer", "format": "int64"}
_OBJECTS: Object = {"type": "array", "items": {"type": "object"}}
_OBJECT_META: Object = {
    "description": "ObjectMeta is metadata that all persisted resources must have.",
    "type": "object",
    "properties": {
        "annotations": _STRINGS,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _INT64,
        "deletionTimestamp": _TIME,
        "finalizers": {"type": "array", "items": _STRING},
        "generateName": _STRING,
        "generation": _INT64,
        "labels": _STRINGS,
        "managedFields": _OBJECTS,
        "name": _STRING,
        "namespace": _STRING,
        "ownerReferences": _OBJECTS,
        "resourceVersion": _STRING,
        "selfLink": _STRING,
        "uid": _STRING,
    },
}
