"""A request's object before it is written: read, named, placed; or refused."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.metadata import MetadataReader
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import admit
from dyninformer.testing.cluster.strategies import strategy_of
from dyninformer.testing.cluster.write_options import WriteOptions
from dyninformer.testing.status import ApiError, bad_request, cause, invalid

Object = dict[str, Any]
Warnings = tuple[str, ...]


def read_object(
    resource: Resource, body: Object, options: WriteOptions, *, patched: bool = False
) -> tuple[Object, Warnings]:
    """The object of a body: typed, pruned, defaulted, with well-formed metadata.

    ``patched`` says that it came out of a patch, which words some refusals otherwise.
    """
    _require_type(resource, body, patched=patched)
    metadata, unknown = MetadataReader(resource).read(body)
    told = (*options.duplicates, *(f'unknown field "{path}"' for path in unknown))
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **{k: v for k, v in body.items() if k not in {"apiVersion", "kind", "metadata"}},
    }
    if resource.builtin:
        obj = {"kind": resource.kind, **obj}
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


def _require_type(resource: Resource, body: Object, *, patched: bool) -> None:
    version, kind = body.get("apiVersion"), body.get("kind")
    if resource.builtin:
        _require_builtin_type(resource, version or resource.api_version, kind or resource.kind)
        return
    if patched and not kind:
        why = "Object 'Kind' is missing in the patched object"
        raise _unreadable(why)
    if not kind:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            "Object 'Kind' is missing"
        )
    name = body.get("metadata")
    name = name.get("name", "") if isinstance(name, dict) else ""
    if version != resource.api_version:
        if patched:
            why = f'Invalid value: "{version}": must be {resource.api_version}'
            raise invalid(
                resource.group,
                str(kind),
                str(name),
                [cause("FieldValueInvalid", why, "apiVersion")],
            )
        raise bad_request(
            f"the API version in the data ({version or ''}) does not match the expected "
            f"API version ({resource.api_version})"
        )
    if kind != resource.kind:
        why = f'Invalid value: "{kind}": must be {resource.kind}'
        found = [cause("FieldValueInvalid", why, "kind")]
        raise invalid(resource.group, str(kind), str(name), found)


def _require_builtin_type(resource: Resource, api_version: Any, kind: Any) -> None:
    version = str(api_version).rpartition("/")[2]
    if api_version != resource.api_version:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f'no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    if kind != resource.kind:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"converting ({version}.{kind}) to ({resource.group or 'core'}.{resource.kind}): "
            "unknown conversion"
        )


def _unreadable(why: str) -> ApiError:
    return ApiError(
        422, "Invalid", f' "" is invalid: patch: Invalid value: {why}',
        details={"causes": [cause("FieldValueInvalid", f"Invalid value: {why}", "patch")]},
    )  # fmt: skip
