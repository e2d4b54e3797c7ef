"""The patch formats that need no schema: JSON merge patch and JSON patch, bounded."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import jsonpatch
import jsonpointer

from dyninformer.testing.cluster.json_bodies import (
    MAX_DEPTH,
    BodyError,
    check_depth,
    decode_json,
    type_name,
)
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

MAX_OPERATIONS: Final = 10_000
MAX_COPIED: Final = 3 << 20
"""Bytes of JSON that the copies of one JSON patch may come to."""


def read_patch(body: bytes | object) -> tuple[Any, tuple[str, ...]]:
    """A JSON patch body of either kind, and its repeated fields; ApiError 400 if unreadable."""
    if not isinstance(body, bytes):
        return body, ()
    try:
        return decode_json(body)
    except BodyError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def merge_patch(target: Object, patch: Any) -> Object:
    """RFC 7396: ``target`` with ``patch`` merged in; shares what it does not change."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _not_an_object(patch)
    merged: Object = _checked(_merge(target, patch))
    return merged


def require_object(patch: Any) -> Object:
    """The patch, which must be an object; ApiError 400 if it is not."""
    if not isinstance(patch, dict):
        raise _not_an_object(patch)
    return patch


def json_patch(target: Object, operations: Any) -> Any:
    """RFC 6902, with the server's two liberties: see `_lenient`. ``target`` is not changed.

    The result may be anything: a patch can replace the root. Raises the 422 of an
    operation that fails, the 400 of what is no patch, the 413 of one that is too long.
    """
    if operations is None:
        return target
    if not isinstance(operations, list):
        into = "Go value of type []handlers.jsonPatchOp"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {type_name(operations)} into {into}"
        )
    if len(operations) > MAX_OPERATIONS:
        raise ApiError(
            413, "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )  # fmt: skip
    result: Any = deepcopy(target)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            into = "Go value of type handlers.jsonPatchOp"
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {type_name(operation)} into {into}"
            )
        try:
            if operation.get("op") == "copy":
                copied += _weight(result, operation)
            result = _step(result, operation)
        except _FAILURES:
            raise _failed() from None
        if copied > MAX_COPIED:
            raise _failed()
    return _checked(result)


_FAILURES = (
    jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, BodyError,
    TypeError, ValueError, LookupError, AttributeError, RecursionError,
)  # fmt: skip
"""jsonpatch raises the plain ones for operations on values of unfitting types."""


def _step(document: Any, operation: Object) -> Any:
    if _lenient(document, operation):
        operation = {**operation, "op": "add"}
        if operation.get("value") is None:
            return document
    if operation.get("op") == "remove" and operation.get("path") == "":
        raise ValueError("the root cannot be removed")
    return jsonpatch.JsonPatch([operation]).apply(document, in_place=True)


def _lenient(document: Any, operation: Object) -> bool:
    """Whether this replaces, or tests for null, a field that its object does not have.

    The server takes both: the first as an add, the second as true.
    """
    kind = operation.get("op")
    if kind != "replace" and not (kind == "test" and operation.get("value", 0) is None):
        return False
    pointer = jsonpointer.JsonPointer(operation["path"])
    if not pointer.parts:
        return False
    holder, last = pointer.to_last(document)
    return isinstance(holder, dict) and last not in holder


def _weight(document: Any, operation: Object) -> int:
    """The size of what an operation copies, after a look at how deep the result would nest."""
    source = jsonpointer.resolve_pointer(document, operation["from"])
    target = jsonpointer.JsonPointer(operation["path"])
    check_depth(source, MAX_DEPTH - len(target.parts))
    return len(json.dumps(source))


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    base = target if isinstance(target, dict) else {}
    result = dict(base)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(base.get(name), value)
    return result


def _checked(result: Any) -> Any:
    try:
        check_depth(result)
    except BodyError:
        raise _failed() from None
    return result


def _failed() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, details={})


def _not_an_object(patch: Any) -> ApiError:
    into = "Go value of type map[string]interface {}"
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {type_name(patch)} into {into}"
    )
