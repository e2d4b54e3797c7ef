"""Strategic merge patch, which built-in resources take: lists merge by key, $patch directs."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.field_sets import item_element
from dyninformer.testing.cluster.shapes import UNKNOWN, Shape
from dyninformer.testing.status import ApiError, bad_request

Object = dict[str, Any]
Items = list[Any]

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
    if directive not in {None, "merge"}:
        raise _bad_directive(directive)
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
        merged = None if value is None else _merge(result.get(name), value, shape.field(name))
        if merged is None:
            result.pop(name, None)
        else:
            result[name] = merged
    _order_lists(result, patch, shape)
    return result


def _order_lists(result: Object, patch: Object, shape: Shape) -> None:
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if field != name and isinstance(result.get(field), list):
            wanted = _list_of(order, name)
            result[field] = _ordered(result[field], wanted, shape.field(field))


def _merge(old: Any, new: Any, shape: Shape) -> Any:
    if isinstance(new, dict):
        return _merge_map(old if isinstance(old, dict) else {}, new, shape)
    if isinstance(new, list):
        return _merge_list(old if isinstance(old, list) else [], new, shape)
    return new


def _merge_list(old: Items, new: Items, shape: Shape) -> Items:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in new):
        return [item for item in new if not (isinstance(item, dict) and "$patch" in item)]
    if shape.is_set:
        return [*old, *(item for item in new if item not in old)]
    if not shape.keys:
        return [_plain(item) for item in new]
    by_key = _merge_key(shape)
    result = list(old)
    for item in new:
        if not isinstance(item, dict) or by_key.keys[0] not in item:
            raise ApiError(
                500, None, f"map: {item} does not contain declared merge key: {by_key.keys[0]}"
            )
        wanted = item_element(item, by_key)
        place = next(
            (at for at, each in enumerate(result) if item_element(each, by_key) == wanted), None
        )
        merged = _merge_map(result[place] if place is not None else {}, item, shape.item)
        if place is None:
            result += [merged] if merged is not None else []
        elif merged is None:
            del result[place]
        else:
            result[place] = merged
    return result


def _merge_key(shape: Shape) -> Shape:
    """Strategic merge goes by the first key alone (a port's number, not its protocol)."""
    return Shape(keys=shape.keys[:1])


def _ordered(items: Items, order: Items, shape: Shape) -> Items:
    """The items in the patch's order; those it does not name stay behind the ones before them."""
    key = _merge_key(shape) if shape.keys else UNKNOWN
    ranks = {item_element(each, key): rank for rank, each in enumerate(order)}
    placed: list[tuple[int, Any]] = []
    last = -1
    for item in items:
        rank = ranks.get(item_element(item, key))
        last = last if rank is None else rank
        placed.append((last, item))
    return [item for _, item in sorted(placed, key=lambda each: each[0])]


def _retain_keys(result: Object, patch: Object) -> None:
    if _RETAIN in patch:
        kept = _list_of(patch[_RETAIN], _RETAIN)
        for name in [each for each in result if each not in kept]:
            del result[name]


def _plain(item: Any) -> Any:
    """An item of a list that is replaced: directives in it have nothing to direct."""
    if not isinstance(item, dict) or "$patch" not in item:
        return item
    return {name: value for name, value in item.items() if name != "$patch"}


def _list_of(value: Any, name: str) -> Items:
    if not isinstance(value, list):
        raise bad_request(f"invalid patch: {name} must be a list")
    return value


def _bad_directive(directive: Any) -> ApiError:
    return bad_request(f"Unknown patch type: {directive}: use replace, delete or merge")
