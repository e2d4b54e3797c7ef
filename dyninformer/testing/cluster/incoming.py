"""A request's object before it is written: read, named, placed; or refused."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.bodies import UnreadableError, wrong_type
from dyninformer.testing.cluster.causes import shown
from dyninformer.testing.cluster.events import EVENT_VERSIONS, EVENTS
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import admit
from dyninformer.testing.cluster.strategies import strategy_of
from dyninformer.testing.cluster.typed import read_typed
from dyninformer.testing.cluster.write_options import WriteOptions
from dyninformer.testing.status import ApiError, bad_request, cause, conflict, invalid, warned
from dyninformer.types import Object

Warnings = tuple[str, ...]


def read_object(resource: Resource, body: Object, options: WriteOptions) -> tuple[Object, Warnings]:
    """The object of a body: typed, pruned, defaulted, with well-formed metadata."""
    try:
        if resource.builtin:
            _require_builtin_type(resource, body)
        else:
            _require_kind(resource, body, options)
        return _read(resource, body, options)
    except UnreadableError as error:
        kind, version = resource.kind, resource.version
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise bad_request(why) from None


def read_patched(
    resource: Resource, changed: Any, options: WriteOptions
) -> tuple[Object, Warnings]:
    """The object that a patch came to; what is wrong with it is wrong with the patch."""
    try:
        _require_named_type(changed)
        _require_same_type(resource, changed)
        return _read(resource, changed, options)
    except UnreadableError as error:
        text = f"Invalid value: {shown(shown(changed))}: {error}"
        raise ApiError(
            422, "Invalid", f' "" is invalid: patch: {text}',
            details={"causes": [cause("FieldValueInvalid", text, "patch")]},
        ) from None  # fmt: skip


def _read(resource: Resource, body: Object, options: WriteOptions) -> tuple[Object, Warnings]:
    obj, unknown = read_typed(resource, body)
    told = (*options.duplicates, *(f'unknown field "{path}"' for path in unknown))
    obj, warnings = admit(resource, obj, options.field_validation, told)
    return strategy_of(resource).defaults(obj), warnings


def placed(resource: Resource, obj: Object, namespace: str) -> Object:
    """The object in its namespace; ApiError 400 if it names another."""
    metadata: Object = obj["metadata"]
    if not resource.namespaced:
        if "namespace" not in metadata:
            return obj
        metadata = {name: value for name, value in metadata.items() if name != "namespace"}
        return {**obj, "metadata": metadata}
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def require_name(obj: Object, key: Key) -> None:
    """The object's name is that of the path; ApiError 400 otherwise."""
    name = obj["metadata"].get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({key.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != key.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({key.name})"
        )


def require_revision(obj: Object) -> int | None:
    """The resourceVersion an object carries, None if none; ApiError 500 if it is no number."""
    text = obj["metadata"].get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ApiError(500, None, f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) >= 2**64:
        raise ApiError(500, None, f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def require_size(size: int) -> None:
    """Etcd's limits on one object, by the size of the body it came in."""
    if size > 2_097_152:
        raise ApiError(
            500, None,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max "
            f"({size} vs. 2097152)",
        )  # fmt: skip
    if size > 1_572_864:
        raise ApiError(500, None, "etcdserver: request is too large")


def wrong_uid(resource: Resource, key: Key, uid: str, actual: str) -> ApiError:
    """The 409 of a write that is meant for another object of the same name."""
    path = "/".join(
        part for part in (resource.group, resource.plural, key.namespace, key.name) if part
    )
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {actual}"
    )
    return conflict(resource.group, resource.plural, key.name, why)


def _require_kind(resource: Resource, body: Object, options: WriteOptions) -> None:
    """A custom resource says itself what it is."""
    version = body.get("apiVersion") or ""
    if not body.get("kind"):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            "Object 'Kind' is missing"
        )
    if version != resource.api_version:
        with warned(_strange_fields(resource, body, options)):
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected "
                f"API version ({resource.api_version})"
            )
    _require_same_type(resource, body)


def _strange_fields(resource: Resource, body: Object, options: WriteOptions) -> Warnings:
    """The warnings about a body of a version that the CRD does not have: it has no fields."""
    version = str(body["apiVersion"]).rpartition("/")[2] if body.get("apiVersion") else ""
    if version in resource.siblings:
        return ()
    metadata, unknown = read_typed(resource, {"metadata": body.get("metadata")})
    unknown += sorted(name for name in body if name not in metadata)
    complaints = (*options.duplicates, *(f'unknown field "{path}"' for path in unknown))
    if complaints and options.strict:
        raise bad_request(
            f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(complaints)}"
        )
    return complaints if options.warns else ()


def _require_named_type(changed: Any) -> None:
    if not isinstance(changed, dict):
        raise UnreadableError(f"couldn't get version/kind; json parse error: {wrong_type(changed)}")
    if not changed.get("kind"):
        raise UnreadableError(f"Object 'Kind' is missing in '{shown(changed)}'")


def _require_same_type(resource: Resource, body: Object) -> None:
    metadata, kind = body.get("metadata"), str(body.get("kind") or resource.kind)
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    version = str(body.get("apiVersion") or "")
    wanted = {"kind": (kind, resource.kind), "apiVersion": (version, resource.api_version)}
    for field, (given, expected) in wanted.items():
        if given != expected:
            why = f'Invalid value: "{given}": must be {expected}'
            found = [cause("FieldValueInvalid", why, field)]
            raise invalid(resource.group, kind, str(name), found)


def _require_builtin_type(resource: Resource, body: Object) -> None:
    """A built-in's body may leave out what it is, and may not say that it is something else."""
    api_version = body.get("apiVersion") or resource.api_version
    kind = body.get("kind") or resource.kind
    version = str(api_version).rpartition("/")[2]
    prefix = f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
    if resource.collection == EVENTS and api_version in EVENT_VERSIONS - {resource.api_version}:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API "
            f"version ({resource.api_version})"
        )
    if api_version != resource.api_version:
        raise bad_request(
            f'{prefix}no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    if kind != resource.kind:
        raise bad_request(
            f"{prefix}converting ({version}.{kind}) to "
            f"({resource.group or 'core'}.{resource.kind}): unknown conversion"
        )
