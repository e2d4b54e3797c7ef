"""Objects without what the server adds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.display.neat import neat


def test_bookkeeping_and_status_go() -> None:
    """So do kubectl's notes, and annotations of which nothing is left."""
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    metadata = {
        "name": "a",
        "namespace": "n",
        "labels": {"x": "y"},
        "annotations": {applied: "{}"},
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "creationTimestamp": "now",
        "managedFields": [],
    }
    obj = {"apiVersion": "e/v1", "kind": "A", "metadata": metadata, "spec": {}, "status": {"x": 1}}
    assert neat(obj, {}) == {
        "apiVersion": "e/v1",
        "kind": "A",
        "metadata": {"name": "a", "namespace": "n", "labels": {"x": "y"}},
        "spec": {},
    }
    metadata["annotations"] = {applied: "{}", "own": "1"}
    assert neat(obj, {})["metadata"]["annotations"] == {"own": "1"}


DEFAULTS = {
    ".spec.n": 1,
    ".spec.flag": True,
    ".spec.keys": {"size": 256},
    ".spec.keys.size": 256,
    ".spec.rules[*].protocol": "TCP",
    ".spec.by.*.weight": 1,
}


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"n": 1, "flag": True, "other": 1}, {"other": 1}),
        ({"n": True, "flag": 1}, {"n": True, "flag": 1}),
        ({"n": 2, "keys": {"size": 256}}, {"n": 2}),
        ({"keys": {"size": 512}}, {"keys": {"size": 512}}),
        ({"keys": {"size": 256, "x": 1}}, {"keys": {"x": 1}}),
        ({"rules": [{"port": 1, "protocol": "TCP"}, 7]}, {"rules": [{"port": 1}, 7]}),
        ({"by": {"a": {"weight": 1}, "b": {"weight": 2}}}, {"by": {"a": {}, "b": {"weight": 2}}}),
    ],
)
def test_what_the_server_fills_in_goes(spec: dict[str, Any], left: dict[str, Any]) -> None:
    """What is left empty stays, as the server fills in only below what is there."""
    obj = {"apiVersion": "e/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec}
    assert neat(obj, DEFAULTS)["spec"] == left


def test_built_in_types_have_defaults_too() -> None:
    """Those of pods, of what makes pods, and of services."""
    container = {
        "name": "c",
        "image": "i",
        "resources": {},
        "terminationMessagePolicy": "File",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Always"}}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    spec = neat({**made, "spec": {"revisionHistoryLimit": 10, "template": template}}, {})["spec"]
    ports = [{"containerPort": 80}]
    assert spec == {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "ports": ports}
    ]}}}  # fmt: skip
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    given_ip = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"}
    assert neat({**service, "spec": {**given_ip, "selector": {}}}, {})["spec"] == {"selector": {}}
    assert neat({**service, "spec": {"clusterIP": "None"}}, {})["spec"] == {"clusterIP": "None"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "keys", "size", "annotations", "rules"]), inner)
    ),
    max_leaves=10,
)


@given(JSON, JSON, st.sampled_from(["Pod", "Service", "A"]))
def test_whatever_an_object_says_is_no_error(metadata: Any, spec: Any, kind: str) -> None:
    """Objects come as they are, and are not changed."""
    obj = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    neat(obj, DEFAULTS)
    assert obj == {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
