"""Fields of objects as the text that field selectors compare."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.cluster.log import GroupResource, Key, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import field_text

_PODS = Resource("", "v1", "pods", "Pod", True, builtin=True)
_NODES = Resource("", "v1", "nodes", "Node", False, builtin=True)
_EVENTS = Resource("", "v1", "events", "Event", True, builtin=True)
_JOBS = Resource("batch", "v1", "jobs", "Job", True, builtin=True)


@pytest.mark.parametrize(
    ("resource", "obj", "field", "text"),
    [
        (_PODS, {}, "metadata.name", "a"),
        (_PODS, {}, "metadata.namespace", "ns"),
        (_PODS, {"spec": {"nodeName": "n1"}}, "spec.nodeName", "n1"),
        (_PODS, {"spec": {}}, "spec.nodeName", ""),
        (_PODS, {}, "spec.hostNetwork", "false"),
        (_PODS, {"spec": {"hostNetwork": True}}, "spec.hostNetwork", "true"),
        (_PODS, {"status": "odd"}, "status.phase", ""),
        (_NODES, {"spec": {}}, "spec.unschedulable", "false"),
        (_EVENTS, {"source": {"component": "kubelet"}}, "source", "kubelet"),
        (_EVENTS, {"reportingComponent": "x"}, "source", "x"),
        (_EVENTS, {"involvedObject": {"kind": "Pod"}}, "involvedObject.kind", "Pod"),
        (_JOBS, {"status": {"succeeded": 2}}, "status.successful", "2"),
        (_JOBS, {}, "status.successful", "0"),
        (_JOBS, {"status": {"list": [1]}}, "status.list", ""),
    ],
)
def test_a_field_is_text(resource: Resource, obj: dict[str, Any], field: str, text: str) -> None:
    """Booleans and numbers as they are written, what is absent or no scalar as nothing."""
    version = Version(GroupResource("", "x"), Key("ns", "a"), 2, {"metadata": {}, **obj})
    assert field_text(version, resource, field) == text
