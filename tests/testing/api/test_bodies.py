"""The protobuf bodies that kubectl 1.36 sends, as recorded from it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dyninformer.testing.api.bodies import read_protobuf
from dyninformer.testing.status import ApiError

_RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "kubectl-protobuf.json").read_text(encoding="utf-8")
)
_RBAC = "rbac.authorization.k8s.io"
_EXPECTED: dict[str, dict[str, Any]] = {
    "create ns foo": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}},
    "create configmap zz": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zz"}, "data": {"a": "b"},
    },
    "create configmap bin": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bin"},
        "binaryData": {"x": "AP/+"},
    },
    "create secret generic": {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}, "data": {"a": "Yg=="},
    },
    "create serviceaccount sa1": {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa1"},
    },
    "create clusterrole cr": {
        "apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "cr"},
        "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
    },
    "create rolebinding rb": {
        "apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": "rb"},
        "subjects": [
            {"kind": "User", "apiGroup": _RBAC, "name": "alice"},
            {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
        ],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "r"},
    },
    "create deployment d": {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"app": "d"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "x", "image": "x"}]},
            },
        },
    },
    "auth can-i get": {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}},
        "status": {"allowed": False},
    },
}  # fmt: skip


@pytest.mark.parametrize("command", _EXPECTED)
def test_what_kubectl_sends_is_read_as_the_json_it_stands_for(command: str) -> None:
    """What kubectl sends is read as the JSON it stands for."""
    body = base64.b64decode(_RECORDED[command]["body"])

    assert read_protobuf(body) == _EXPECTED[command]


def test_an_unknown_kind_is_nothing() -> None:
    """A kind whose message is not known is not half read: there is no object."""
    body = base64.b64decode(_RECORDED["create ns foo"]["body"])

    assert read_protobuf(body.replace(b"Namespace", b"Mamespace")) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="no magic"),
        pytest.param(b"k8s\x00\x0a\xff", id="cut in a length"),
        pytest.param(b"k8s\x00\x0a\x40a", id="cut in a field"),
        pytest.param(b"k8s\x00\x0b", id="a group"),
        pytest.param(b"k8s\x00\x0a" + b"\xff" * 11, id="an endless number"),
        pytest.param(b"k8s\x00\x08\x01", id="a number for a message"),
    ],
)
def test_broken_bytes_are_a_400(body: bytes) -> None:
    """Broken protobuf is a 400, never another exception."""
    with pytest.raises(ApiError) as refused:
        read_protobuf(body)

    assert refused.value.code == 400
