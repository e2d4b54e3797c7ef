"""The scale subresource: replicas as autoscaling/v1 shows them, and what may stand at its paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dyninformer.testing.cluster.causes import go_text, invalid_value
from dyninformer.testing.cluster.resources import Resource, value_at, with_value_at
from dyninformer.testing.status import ApiError, bad_request, invalid
from dyninformer.types import Object

_SHOWN: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of an object, keys in the server's order."""
    paths = resource.scale or {}
    metadata = {name: obj["metadata"][name] for name in _SHOWN if name in obj["metadata"]}
    replicas = _count(value_at(obj, str(paths.get("specReplicasPath", ""))))
    status: Object = {"replicas": _count(value_at(obj, str(paths.get("statusReplicasPath", ""))))}
    selector = _selector(obj, paths)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def require_replicas(resource: Resource, obj: Object) -> None:
    """A custom resource without replicas cannot be read as a Scale: ApiError 500."""
    path = str((resource.scale or {}).get("specReplicasPath", ""))
    if resource.builtin or value_at(obj, path) is not None:
        return
    why = f'the spec replicas field "{path}" does not exist'
    message = f"Internal error occurred: {why}"
    raise ApiError(500, "InternalError", message, details={"causes": [{"message": why}]})


def scaled(resource: Resource, obj: Object, scale: Object) -> Object:
    """``obj`` with the replicas that a written Scale asks for."""
    if (scale.get("kind") or "Scale") != "Scale":
        raise bad_request(f"the object is a {scale.get('kind')}, not a Scale")
    given = scale.get("metadata")
    given = given if isinstance(given, dict) else {}
    name = obj["metadata"]["name"]
    if given.get("name", name) != name:
        raise bad_request(
            f"the name of the object ({given['name']}) does not match the name on the URL ({name})"
        )
    spec = scale.get("spec")
    replicas = (spec.get("replicas") if isinstance(spec, dict) else None) or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas")
    if replicas < 0 and resource.builtin:  # a CRD's own checks refuse it for others
        why = "must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [invalid_value("spec.replicas", replicas, why)])
    result = with_value_at(obj, str((resource.scale or {}).get("specReplicasPath", "")), replicas)
    version = given.get("resourceVersion")
    if version:
        metadata = {**result["metadata"], "resourceVersion": str(version)}
        result = {**result, "metadata": metadata}
    return result


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _selector(obj: Object, paths: Object) -> str:
    """The label selector as text; built-in kinds keep theirs as an object."""
    value = value_at(obj, str(paths.get("labelSelectorPath") or ".spec.selector.matchLabels"))
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in sorted(value.items()))
    return ""


_Paths = Mapping[str, Any]

_MOST: Final = 2**31 - 1
_GO_TYPES: Final = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


def scale_spec_causes(paths: _Paths, obj: Object) -> Iterator[Object]:
    """What is wrong with the replicas in the spec."""
    return _replicas_causes(str(paths.get("specReplicasPath") or ""), obj)


def scale_status_causes(paths: _Paths, obj: Object) -> Iterator[Object]:
    """What is wrong with the replicas and the selector in the status."""
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
    """A complaint if the value at a path, or on the way there, has the wrong type."""
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
    return f"{path} accessor error: {go_text(value)} is of the type {given}, expected {wanted}"
