"""What may stand at the paths of a scale subresource."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.cluster.scale import scale_spec_causes, scale_status_causes

_PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


@pytest.mark.parametrize(
    ("spec", "complaints"),
    [
        (None, []),
        ({"replicas": 3}, []),
        ({"replicas": -1}, ["Invalid value: -1: should be a non-negative integer"]),
        (
            {"replicas": 2**31},
            ["Invalid value: 2147483648: should be less than or equal to 2147483647"],
        ),
        (
            {"replicas": "x"},
            [
                (
                    "Invalid value: 0: .spec.replicas accessor error: "
                    "x is of the type string, expected int64"
                )
            ],
        ),
        (
            [1, {"b": None, "a": True}],
            [
                (
                    "Invalid value: 0: .spec.replicas accessor error: [1 map[a:true b:<nil>]] "
                    "is of the type []interface {}, expected map[string]interface{}"
                )
            ],
        ),
    ],
)
def test_replicas_are_a_number_that_can_be(spec: Any, complaints: list[str]) -> None:
    """A value that is no count of replicas is refused in the words of kube-apiserver 1.36."""
    found = list(scale_spec_causes(_PATHS, {"spec": spec}))
    assert [each["message"] for each in found] == complaints


def test_a_selector_is_text() -> None:
    """Status is looked at for its replicas and its selector."""
    found = list(scale_status_causes(_PATHS, {"status": {"replicas": -1, "selector": 5}}))
    assert [each["field"] for each in found] == [".status.replicas", ".status.selector"]
    assert found[1]["message"] == (
        'Invalid value: "": .status.selector accessor error: 5 is of the type int64, '
        "expected string"
    )
