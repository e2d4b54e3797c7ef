"""The patch formats: JSON merge patch and JSON patch, bounded, and strategic merge patch.

Strategic merge patch is what built-in resources take: lists merge by key, $patch directs.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import jsonpatch
import jsonpointer

from dyninformer.testing.cluster.bodies import (
    MAX_DEPTH,
    BodyError,
    check_depth,
    decode_json,
    type_name,
)
from dyninformer.testing.cluster.causes import go_text
from dyninformer.testing.cluster.shapes import Shape, item_element
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

_MAX_OPERATIONS: Final = 10_000
_MAX_COPIED: Final = 3 << 20
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
    merged: Object = _checked(_merge_json(target, patch))
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
    if len(operations) > _MAX_OPERATIONS:
        allowed = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}"
        message = f"Request entity too large: {allowed}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)
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
        if copied > _MAX_COPIED:
            raise _failed()
    return _checked(result)


_FAILURES = (
    jsonpatch.JsonPatchException,
    jsonpointer.JsonPointerException,
    BodyError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    RecursionError,
)
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


def _merge_json(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    base = target if isinstance(target, dict) else {}
    result = dict(base)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_json(base.get(name), value)
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


_Items = list[Any]

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_merge(target: Object, patch: Object, shape: Shape) -> Object:
    """``target`` with ``patch`` merged in; neither is changed. ApiErrors for bad directives.

    Maps merge whatever their shape: only server-side apply takes some of them as a whole.
    """
    merged = _merge_map(target, patch, shape)
    if merged is None:
        raise bad_request("a $patch: delete of the whole object is not possible: use DELETE")
    return merged


def _merge_map(target: Object, patch: Object, shape: Shape) -> Object | None:
    """The merged map, None if the patch deletes it."""
    directive = patch.get("$patch")
    if directive == "delete":
        return None
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive is not None and directive != "merge":
        why = f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}"
        raise ApiError(500, None, why)
    result = dict(target)
    _retain_keys(result, patch)
    for name, value in patch.items():
        if name in {"$patch", _RETAIN} or name.startswith(_ORDER):
            continue
        if name.startswith(_DELETE_FROM):
            field = name.removeprefix(_DELETE_FROM)
            gone = _list_of(value, name)
            result[field] = [each for each in result.get(field) or () if each not in gone]
            continue
        merged = None if value is None else _merge_value(result.get(name), value, shape.field(name))
        if merged is None or (merged == [] and result.get(name)):
            result.pop(name, None)
        else:
            result[name] = merged
    _order_lists(result, target, patch, shape)
    return result


def _order_lists(result: Object, target: Object, patch: Object, shape: Shape) -> None:
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if field != name and isinstance(result.get(field), list):
            wanted = _list_of(order, name)
            before = target.get(field)
            server = before if isinstance(before, list) else []
            result[field] = _ordered(result[field], wanted, server, shape.field(field))


def _merge_value(old: Any, new: Any, shape: Shape) -> Any:
    if isinstance(new, dict):
        return _merge_map(old if isinstance(old, dict) else {}, new, shape)
    if isinstance(new, list):
        return _merge_list(old if isinstance(old, list) else [], new, shape)
    return new


def _merge_list(old: _Items, new: _Items, shape: Shape) -> _Items:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in new):
        return [item for item in new if not (isinstance(item, dict) and "$patch" in item)]
    if not shape.is_set and not shape.keys:
        return [_plain(item) for item in new]
    key = _merge_key(shape)
    result = {item_element(each, key): each for each in old}
    for item in new:
        if key.keys and (not isinstance(item, dict) or key.keys[0] not in item):
            raise ApiError(
                500,
                None,
                f"map: {go_text(item)} does not contain declared merge key: {key.keys[0]}",
            )
        element = item_element(item, key)
        merged = _merge_map(result.get(element) or {}, item, shape.item) if key.keys else item
        if merged is None:
            result.pop(element, None)
        else:
            result[element] = merged
    return _ordered(list(result.values()), new, old, shape)


def _merge_key(shape: Shape) -> Shape:
    """Strategic merge goes by the first key alone (a port's number, not its protocol)."""
    return Shape(keys=shape.keys[:1])


def _ordered(items: _Items, first: _Items, server: _Items, shape: Shape) -> _Items:
    """The items named in ``first`` in that order, the others in theirs, merged as they stood.

    An item that the server did not have comes as early as its order allows.
    """
    key = _merge_key(shape)
    stood = {item_element(each, key): at for at, each in enumerate(server)}
    rank = {item_element(each, key): at for at, each in enumerate(first)}
    named = sorted(
        (each for each in items if item_element(each, key) in rank),
        key=lambda each: rank[item_element(each, key)],
    )
    others = [each for each in items if item_element(each, key) not in rank]
    result: _Items = []
    while named and others:
        place = stood.get(item_element(named[0], key), -1)
        earlier = place < stood.get(item_element(others[0], key), -1) or place < 0
        result.append((named if earlier else others).pop(0))
    return result + named + others


def _retain_keys(result: Object, patch: Object) -> None:
    if _RETAIN in patch:
        kept = _list_of(patch[_RETAIN], _RETAIN)
        for name in [each for each in result if each not in kept]:
            del result[name]


def _plain(item: Any) -> Any:
    """An item of a list that is replaced as a whole, without its $patch directive."""
    if not isinstance(item, dict) or "$patch" not in item:
        return item
    return {name: value for name, value in item.items() if name != "$patch"}


def _list_of(value: Any, name: str) -> _Items:
    if not isinstance(value, list):
        raise bad_request(f"invalid patch: {name} must be a list")
    return value
