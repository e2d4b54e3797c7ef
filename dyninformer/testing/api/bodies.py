"""Request bodies: which formats are taken, and whether they hold what the path takes."""

from __future__ import annotations

from dyninformer.testing.api.protobuf import CONTENT_TYPE as PROTOBUF
from dyninformer.testing.api.protobuf import read_protobuf
from dyninformer.testing.cluster.bodies import (
    BodyError,
    decode_json,
    decode_object,
    decode_yaml,
    require_kind,
    type_name,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

BODY_LIMIT = 3 << 20
_JSON_TYPES = ("", "application/json")
_TAKEN = f"application/json, application/yaml, {PROTOBUF}"


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


def read_object(request: Request, resource: Resource) -> tuple[Object, tuple[str, ...]]:
    """The object of a create or update, and the complaints about fields given twice.

    A custom resource must say its kind; whether kind and apiVersion are those of
    ``resource`` is judged by the writer.
    """
    if resource.builtin and request.body.strip() == b"null" and media_type(request) in _JSON_TYPES:
        return {}, ()
    obj, duplicates = read_plain_object(request, resource.kind)
    if not resource.builtin:
        require_kind(obj, resource.kind, request.body)
    return obj, duplicates


def read_plain_object(request: Request, kind: str) -> tuple[Object, tuple[str, ...]]:
    """An object that may leave out what it is (a review, a Scale), and its repeated fields."""
    form = media_type(request)
    if form == PROTOBUF:
        found = read_protobuf(request.body)
        if found is None:
            raise unknown_format("application/json, application/yaml")
        return found, ()
    if form not in (*_JSON_TYPES, "application/yaml"):
        raise unknown_format()
    return decode_object(request.body, kind, yaml_body=form == "application/yaml")


def read_delete_options(request: Request) -> Object | None:
    """The DeleteOptions of a DELETE's body; None without a body."""
    if not request.body:
        return None
    form = media_type(request)
    if form == PROTOBUF:
        return read_protobuf(request.body)
    if form not in (*_JSON_TYPES, "application/yaml"):
        raise unknown_format()
    try:
        value, _ = (decode_yaml if form == "application/yaml" else decode_json)(request.body)
    except BodyError as error:
        raise bad_request(_unread(str(error))) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(_unread(f"json: cannot unmarshal {type_name(value)} into Go value"))
    kind, version = value.get("kind") or "", value.get("apiVersion") or ""
    if kind not in ("", "DeleteOptions"):
        raise bad_request(_not_registered(kind, version))
    grace = value.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request(
            f"json: cannot unmarshal {type_name(grace)} into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"
        )
    return value


def _not_registered(kind: object, version: object) -> str:
    return (
        f'no kind "{kind}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )


def _unread(why: str) -> str:
    return why if why.startswith("yaml:") else f"couldn't get version/kind; json parse error: {why}"
