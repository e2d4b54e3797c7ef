"""The paths of a scale subresource: what stands there, and what may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dyninformer.testing.cluster.causes import invalid_value
from dyninformer.testing.cluster.paths import value_at
from dyninformer.types import Object

Paths = Mapping[str, Any]

_MOST: Final = 2**31 - 1
_GO_TYPES: Final = {
    str: "string", int: "int64", float: "float64", bool: "bool", list: "[]interface {}",
    dict: "map[string]interface {}", type(None): "<nil>",
}  # fmt: skip


def scale_spec_causes(paths: Paths, obj: Object) -> Iterator[Object]:
    """What is wrong with the replicas that are asked for."""
    return _replicas_causes(str(paths.get("specReplicasPath") or ""), obj)


def scale_status_causes(paths: Paths, obj: Object) -> Iterator[Object]:
    """What is wrong with the replicas and the selector that are told."""
    yield from _replicas_causes(str(paths.get("statusReplicasPath") or ""), obj)
    path = str(paths.get("labelSelectorPath") or "")
    yield from _type_causes(path, obj, str, "")


def _replicas_causes(path: str, obj: Object) -> Iterator[Object]:
    mistyped = list(_type_causes(path, obj, int, 0))
    yield from mistyped
    replicas = None if mistyped or not path else value_at(obj, path)
    if replicas is None:
        return
    if replicas < 0:
        yield invalid_value(path, replicas, "should be a non-negative integer")
    if replicas > _MOST:
        yield invalid_value(path, replicas, f"should be less than or equal to {_MOST}")


def _type_causes(path: str, obj: Object, wanted: type, empty: object) -> Iterator[Object]:
    """A complaint if something else than a ``wanted`` stands at a path, or in its way."""
    value: Any = obj
    walked = ""
    for step in path.strip(".").split(".") if path else ():
        walked += f".{step}"
        if value is None:
            return
        if not isinstance(value, dict):
            yield invalid_value(
                path, empty, _accessor_error(walked, value, "map[string]interface{}")
            )
            return
        if step not in value:
            return
        value = value[step]
    if path and type(value) is not wanted:
        yield invalid_value(path, empty, _accessor_error(walked, value, _GO_TYPES[wanted]))


def _accessor_error(path: str, value: Any, wanted: str) -> str:
    given = _GO_TYPES[type(value)]
    return f"{path} accessor error: {_go_text(value)} is of the type {given}, expected {wanted}"


def _go_text(value: Any) -> str:
    """A value as Go's ``%v`` writes it."""
    if isinstance(value, dict):
        inner = " ".join(f"{key}:{_go_text(below)}" for key, below in sorted(value.items()))
        return f"map[{inner}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
