"""The words of kubectl's --for, as tests of an object."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.conditions import met_when
from dyninformer.types import Object


def conditioned(status: str, *, observed: int | None = None, generation: int = 1) -> Object:
    """An object with a condition Ready."""
    condition: Object = {"type": "Ready", "status": status, "reason": "Because", "message": "so"}
    if observed is not None:
        condition["observedGeneration"] = observed
    return {"metadata": {"generation": generation}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("condition", "obj", "met"),
    [
        ("create", {}, True),
        ("create", None, False),
        ("delete", None, True),
        ("delete", {}, False),
        ("condition=Ready", conditioned("True"), True),
        ("condition=ready", conditioned("TRUE"), True),
        ("condition=Ready", conditioned("False"), False),
        ("condition=Ready=False", conditioned("False"), True),
        ("condition=Ready=unknown", conditioned("Unknown"), True),
        ("condition=Other", conditioned("True"), False),
        ("condition=Ready", None, False),
        ("condition=Ready", {"status": {}}, False),
        ("condition=Ready", {"status": "odd"}, False),
        ("condition=Ready", {"status": {"conditions": ["odd"]}}, False),
        ("jsonpath={.status.phase}", {"status": {"phase": ""}}, True),
        ("jsonpath={.status.phase}", {"status": {}}, False),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Running"}}, True),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Pending"}}, False),
        ("jsonpath={.status.phase}=Running", None, False),
        ("jsonpath={.spec.replicas}=3", {"spec": {"replicas": 3}}, True),
        ("jsonpath={.items[5].x}=3", {"items": []}, False),
        (lambda obj: obj["spec"] == 1, {"spec": 1}, True),
        (lambda obj: obj["spec"] == 1, {"spec": 2}, False),
        (lambda obj: True, None, False),
    ],
)
def test_a_condition_is_met_or_not(condition: Any, obj: Object | None, met: bool) -> None:
    """By an object as it is, or by there being none."""
    assert met_when(condition)(obj) is met


def test_a_condition_of_an_older_generation_is_not_met() -> None:
    """The controller has not seen what was asked for last; the object's own mark counts too."""
    ready = met_when("condition=Ready")
    assert not ready(conditioned("True", observed=1, generation=2))
    assert ready(conditioned("True", observed=2, generation=2))
    whole = conditioned("True", generation=2)
    whole["status"]["observedGeneration"] = 1
    assert not ready(whole)


@pytest.mark.parametrize(
    "condition", ["", "ready", "delete=x", "create=", "condition=", "jsonpath=", "Ready=True"]
)
def test_words_that_mean_nothing_are_refused_with_those_that_do(condition: str) -> None:
    """The error lists the forms."""
    with pytest.raises(ValueError, match="condition=Ready"):
        met_when(condition)


def test_a_path_that_cannot_be_parsed_is_refused_at_once() -> None:
    """Not only when the first object comes."""
    with pytest.raises(ValueError, match="status"):
        met_when("jsonpath={.status[}=x")


def test_what_there_is_instead_is_said() -> None:
    """The reason and message of a condition, the value of a path, or that there is no object."""
    ready, phase = met_when("condition=Ready"), met_when("jsonpath={.status.phase}=Running")
    assert ready.found(conditioned("False")) == "condition Ready is False: Because: so"
    assert "older generation" in ready.found(conditioned("True", observed=1, generation=2))
    assert phase.found({"status": {"phase": "Pending"}}) == '{.status.phase} is "Pending"'
    for each in (ready, phase, met_when("create"), met_when(bool)):
        assert each.found(None) == "there is no such object"
