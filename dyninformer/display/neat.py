"""Objects as somebody would write them: without what the server adds, ready to be applied again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dyninformer.jsonpath.patterns import Patterns
from dyninformer.types import Object

Defaults = Patterns[Any]

_OF_SERVER: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_NOTES: Final = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Annotations of kubectl and of controllers, for themselves."""

_POD: Final = {
    ".dnsPolicy": "ClusterFirst",
    ".enableServiceLinks": True,
    ".restartPolicy": "Always",
    ".schedulerName": "default-scheduler",
    ".securityContext": {},
    ".terminationGracePeriodSeconds": 30,
    **{
        f".{containers}[*].{field}": value
        for containers in ("containers", "initContainers")
        for field, value in {
            "ports[*].protocol": "TCP",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }.items()
    },
}
_TEMPLATE: Final = {f".spec.template.spec{path}": value for path, value in _POD.items()}
_ROLLING: Final = {
    ".spec.strategy": {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    },
}
# What the API server fills in of built-in types that people write: no schema of theirs says it.
_BUILTIN: Final[Mapping[str, Mapping[str, Any]]] = {
    "Pod": {
        **{f".spec{path}": value for path, value in _POD.items()},
        ".spec.preemptionPolicy": "PreemptLowerPriority",
        ".spec.priority": 0,
    },
    "Deployment": {
        **_TEMPLATE,
        **_ROLLING,
        ".spec.progressDeadlineSeconds": 600,
        ".spec.revisionHistoryLimit": 10,
    },
    "StatefulSet": {
        **_TEMPLATE,
        ".spec.podManagementPolicy": "OrderedReady",
        ".spec.revisionHistoryLimit": 10,
        ".spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
    "DaemonSet": {
        **_TEMPLATE,
        ".spec.revisionHistoryLimit": 10,
        ".spec.updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
    },
    "ReplicaSet": _TEMPLATE,
    "Service": {
        ".spec.internalTrafficPolicy": "Cluster",
        ".spec.ports[*].protocol": "TCP",
        ".spec.sessionAffinity": "None",
        ".spec.type": "ClusterIP",
    },
}
_BUILTIN_VERSIONS: Final = frozenset({"v1", "apps/v1"})
_GIVEN_BY_SERVER: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
"""Of a Service: another cluster gives others, and would refuse these."""


def neat(obj: Object, defaults: Mapping[str, Any]) -> Object:
    """The object without status, bookkeeping and what the server would fill in again.

    ``defaults`` are those that a CRD declares, by path (`Discovery.defaults`).

    >>> neat({"kind": "A", "metadata": {"name": "a", "uid": "1"}, "spec": {"n": 1}, "status": {}},
    ...      {".spec.n": 1})
    {'kind': 'A', 'metadata': {'name': 'a'}, 'spec': {}}
    """
    kept = {name: value for name, value in obj.items() if name != "status"}
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = _neat_metadata(metadata)
    kind = obj.get("kind")
    builtin = obj.get("apiVersion") in _BUILTIN_VERSIONS and isinstance(kind, str)
    known = _BUILTIN.get(str(kind), {}) if builtin else defaults
    if builtin and kind == "Service":
        kept["spec"] = _neat_service(obj.get("spec"))
    return _without(kept, Patterns.of(known)) if known else kept


def _neat_metadata(metadata: Object) -> Object:
    kept = {name: value for name, value in metadata.items() if name not in _OF_SERVER}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        own = {name: value for name, value in annotations.items() if name not in _NOTES}
        if own:
            kept["annotations"] = own
        else:
            del kept["annotations"]
    return kept


def _neat_service(spec: Any) -> Any:
    if not isinstance(spec, dict) or spec.get("clusterIP") in ("None", ""):
        return spec  # a headless one is wanted so
    return {name: value for name, value in spec.items() if name not in _GIVEN_BY_SERVER}


def _without(value: Any, defaults: Defaults) -> Any:
    """The value without what is filled in below it. No deeper than the declared paths are.

    What is left empty stays: the server fills in only below what is there.
    """
    if isinstance(value, dict):
        kept = {}
        for name, each in value.items():
            below = defaults.field(name)
            left = _without(each, below) if below is not None else each
            if below is None or not _is_default(each, left, below.value):
                kept[name] = left
        return kept
    below = defaults.element()
    if isinstance(value, list) and below is not None:
        return [_without(each, below) for each in value]
    return value


def _is_default(value: Any, left: Any, default: Any) -> bool:
    """Left out it would come back: as it is, or after its own defaults were filled in."""
    return default is not None and (_same(value, default) or _same(left, default))


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: True is not 1."""
    return type(one) is type(other) and (
        msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    )
