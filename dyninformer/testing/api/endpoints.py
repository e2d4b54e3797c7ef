"""Paths that are no resources: discovery, OpenAPI, version and health."""

from __future__ import annotations

from collections.abc import Callable

from dyninformer.testing.api.answers import (
    NOSNIFF,
    PRIVATE,
    document_response,
    method_not_allowed,
    nothing_there,
    text_response,
)
from dyninformer.testing.api.discovery import (
    AGGREGATED_GROUP,
    AGGREGATED_KIND,
    Discovery,
    aggregated_kind,
)
from dyninformer.testing.api.negotiation import Media, negotiate
from dyninformer.testing.api.openapi import SWAGGER_PROTOBUF, OpenApi
from dyninformer.testing.messages import Headers, Request, Response
from dyninformer.testing.status import ApiError, page_not_found

VERSION = {
    "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
    "minCompatibilityMajor": "1", "minCompatibilityMinor": "35", "gitVersion": "v1.36.3",
    "gitCommit": "dyninformer", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none", "compiler": "python", "platform": "linux/amd64",
}  # fmt: skip
HEALTH_CHECKS = ("ping", "log", "etcd", "informer-sync", "crd-informer-synced")
_PUBLIC: Headers = (("Cache-Control", "public"),)
_IMMUTABLE: Headers = (("Cache-Control", "public, immutable"),)
_READS = ("GET", "HEAD")


class Endpoints:
    """Answers requests whose path is no resource. Raises ApiErrors."""

    def __init__(self, discovery: Discovery, openapi: OpenApi, builtin_groups: frozenset[str]):
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
        media = negotiate(request, aggregated_kind)
        if media.conversion is not None:
            return self._aggregated(request, media, core=True)
        host = request.headers.get("host", "127.0.0.1")
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
        versions = {"kind": "APIVersions", "versions": ["v1"]}
        return document_response({**versions, "serverAddressByClientCIDRs": addresses}, media)

    def _apis(self, request: Request) -> Response:
        media = negotiate(request, aggregated_kind)
        if media.conversion is not None:
            return self._aggregated(request, media, core=False)
        return document_response(self._discovery.group_list(), media)

    def _aggregated(self, request: Request, media: Media, *, core: bool) -> Response:
        found = self._discovery.aggregated(core=core)
        headers = (("Etag", found.etag), ("Vary", "Accept"))
        if request.headers.get("if-none-match") == found.etag:
            return Response(304, (*_PUBLIC, *headers))
        kind = f"{media.content_type};g={AGGREGATED_GROUP};v=v2;as={AGGREGATED_KIND}"
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
            headers = (*vary, ("Content-Type", SWAGGER_PROTOBUF))
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
    return document_response(dict(VERSION), Media(indented=True))


def _health(request: Request, kind: str, path: str) -> Response:
    rest = path.removeprefix(f"/{kind}")
    if rest:
        if rest[1:] in HEALTH_CHECKS:
            return text_response("ok", headers=())
        raise page_not_found()
    if not any(name == "verbose" for name, _ in request.query):
        return text_response("ok")
    excluded = [value for name, value in request.query if name == "exclude"]
    lines = [f"[+]{name} {'excluded: ok' if name in excluded else 'ok'}" for name in HEALTH_CHECKS]
    unknown = [f'"{name}"' for name in excluded if name not in HEALTH_CHECKS]
    if unknown:
        names = ",".join(unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    return text_response("\n".join([*lines, f"{kind} check passed", ""]), headers=NOSNIFF)


def _only_reads(request: Request) -> None:
    if request.method not in _READS:
        raise method_not_allowed()
