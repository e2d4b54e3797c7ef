"""The scale subresource: an object's replicas, as autoscaling/v1 shows them."""

from __future__ import annotations

from typing import Any, Final

from dyninformer.testing.cluster.causes import invalid_value
from dyninformer.testing.cluster.paths import value_at, with_value_at
from dyninformer.testing.cluster.resources import Resource
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
    if replicas < 0 and resource.builtin:  # of others the CRD's own checks say so
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
