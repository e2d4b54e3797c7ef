"""Request bodies: which formats are taken, how they are read, and what is said of bad ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dyninformer.testing.api.json_text import JsonTextError, go_type, read_json
from dyninformer.testing.api.protobuf import CONTENT_TYPE as PROTOBUF
from dyninformer.testing.api.protobuf import read_protobuf
from dyninformer.testing.api.yaml_text import read_yaml
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError, bad_request

Object = dict[str, Any]

BODY_LIMIT = 3 << 20
_TAKEN = f"application/json, application/yaml, {PROTOBUF}"
_SUMMARY = 30
_META_STRINGS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
_META_MAPS = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Body:
    """An object as the client wrote it; ``duplicates`` are the paths it gave twice."""

    object: Object
    duplicates: tuple[str, ...] = ()


def check_size(request: Request) -> None:
    """Refuse a body over 3 MiB, as every endpoint does."""
    if len(request.body) > BODY_LIMIT:
        raise too_large()


def too_large() -> ApiError:
    """The 413."""
    message = f"Request entity too large: limit is {BODY_LIMIT}"
    return ApiError(413, "RequestEntityTooLarge", message)


def media_type(request: Request) -> str:
    """The Content-Type without its parameters, lower case; "" if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unknown_format(taken: str = _TAKEN) -> ApiError:
    """The 415 that names what would be taken."""
    return ApiError(
        415, "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {taken}",
    )  # fmt: skip


def read_object(request: Request, resource: Resource) -> Body:
    """The object of a create or update, its kind and apiVersion those of ``resource``."""
    kind = resource.kind
    try:
        value, duplicates = _decode(request)
    except JsonTextError as error:
        raise _unrecognized(kind, _parse_error(str(error)), request.body) from error
    if value is None and resource.builtin:
        value = {}
    if not isinstance(value, dict | None):
        raise _unrecognized(kind, _parse_error(_no_type_meta(value)), request.body)
    obj = _typed(value or {}, resource, request.body)
    check_metadata(obj, resource)
    return Body(obj, duplicates)


def read_plain_object(request: Request, kind: str) -> Object:
    """The object of a virtual resource (a review, a Scale), whose kind is ``kind``."""
    try:
        value, _ = _decode(request)
    except JsonTextError as error:
        raise _unrecognized(kind, _parse_error(str(error)), request.body) from error
    if not isinstance(value, dict):
        raise _unrecognized(kind, _parse_error(_no_type_meta(value)), request.body)
    return value


def read_delete_options(request: Request) -> Object | None:
    """The DeleteOptions of a DELETE's body; None without a body."""
    if not request.body:
        return None
    try:
        value, _ = _decode(request)
    except JsonTextError as error:
        raise bad_request(_parse_error(str(error))) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(_parse_error(_no_type_meta(value)))
    kind, version = value.get("kind", ""), value.get("apiVersion", "")
    if kind not in ("", "DeleteOptions"):
        raise bad_request(_not_registered(kind, version))
    grace = value.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request(
            f"json: cannot unmarshal {go_type(grace)} into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"
        )
    return value


def check_metadata(obj: Object, resource: Resource) -> None:
    """Refuse metadata whose fields have other types than ObjectMeta's."""
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        field = f"struct field {resource.kind}.metadata" if resource.builtin else "value"
        raise _unhandled(
            obj, resource, f"{go_type(metadata)} into Go {field} of type v1.ObjectMeta"
        )
    start = "ObjectMeta.metadata." if resource.builtin else "ObjectMeta."
    for name in _META_STRINGS:
        value = metadata.get(name)
        if value is not None and not isinstance(value, str):
            raise _unhandled(obj, resource, _field(value, start + name, "string"))
    for name in _META_MAPS:
        found = metadata.get(name)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise _unhandled(obj, resource, _field(found, start + name, "map[string]string"))
        for value in found.values():
            if not isinstance(value, str):
                raise _unhandled(obj, resource, _field(value, start + name, "string"))
    _check_lists(obj, resource, metadata, start)


def _check_lists(obj: Object, resource: Resource, metadata: Object, start: str) -> None:
    for name, kind, go in (
        ("finalizers", str, "string"),
        ("ownerReferences", dict, "v1.OwnerReference"),
        ("managedFields", dict, "v1.ManagedFieldsEntry"),
    ):
        found = metadata.get(name)
        if found is None:
            continue
        if not isinstance(found, list):
            raise _unhandled(obj, resource, _field(found, start + name, f"[]{go}"))
        for value in found:
            if not isinstance(value, kind):
                raise _unhandled(obj, resource, _field(value, start + name, go))


def _decode(request: Request) -> tuple[Any, tuple[str, ...]]:
    form = media_type(request)
    if form in ("", "application/json"):
        return read_json(request.body)
    if form == "application/yaml":
        return read_yaml(request.body), ()
    if form == PROTOBUF:
        found = read_protobuf(request.body)
        if found is not None:
            return found, ()
        raise unknown_format("application/json, application/yaml")
    raise unknown_format()


def _typed(obj: Object, resource: Resource, body: bytes) -> Object:
    kind, version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if resource.builtin:
        typed = {
            **obj,
            "kind": kind or resource.kind,
            "apiVersion": version or resource.api_version,
        }
        if (typed["kind"], typed["apiVersion"]) == (resource.kind, resource.api_version):
            return typed
        what = f'{typed["kind"]} in version "{str(typed["apiVersion"]).rpartition("/")[2]}"'
        raise bad_request(
            f"{what} cannot be handled as a {resource.kind}: "
            + _not_registered(typed["kind"], typed["apiVersion"])
        )
    if not kind:
        missing = f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'"
        raise _unrecognized(resource.kind, missing, body)
    if version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    return obj


def _not_registered(kind: Any, version: Any) -> str:
    return (
        f'no kind "{kind}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )


def _unhandled(obj: Object, resource: Resource, what: str) -> ApiError:
    return bad_request(
        f'{obj["kind"]} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        f"json: cannot unmarshal {what}"
    )


def _field(value: object, field: str, go: str) -> str:
    return f"{go_type(value)} into Go struct field {field} of type {go}"


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})"
    )


def _parse_error(why: str) -> str:
    if why.startswith("yaml:"):
        return why
    return f"couldn't get version/kind; json parse error: {why}"


def _no_type_meta(value: object) -> str:
    return (
        f"json: cannot unmarshal {go_type(value)} into Go value of type struct "
        r'{ APIVersion string "json:\"apiVersion,omitempty\""; '
        r'Kind string "json:\"kind,omitempty\"" }'
    )


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    cut = body[:_SUMMARY]
    text = cut.decode("utf-8", "replace") if body.startswith(b"{") else cut.hex()
    return f"{text} ..." if len(body) > _SUMMARY else text
