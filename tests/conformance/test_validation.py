"""Schema validation of custom resources: which field is wrong, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget


@pytest.mark.parametrize(
    ("spec", "field", "reason", "message"),
    [
        (
            {"color": "pink"}, "spec.color", "FieldValueNotSupported",
            'Unsupported value: "pink": supported values: "red", "green", "blue"',
        ),
        (
            {"parts": [{"value": 1}]}, "spec.parts[0].name", "FieldValueRequired",
            "Required value",
        ),
        (
            {"size": "big"}, "spec.size", "FieldValueTypeInvalid",
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        (
            {"size": 1.5}, "spec.size", "FieldValueTypeInvalid",
            'Invalid value: "float64": spec.size in body must be of type int64: "float64"',
        ),
        (
            {"on": "yes"}, "spec.on", "FieldValueTypeInvalid",
            'Invalid value: "string": spec.on in body must be of type boolean: "string"',
        ),
        (
            {"parts": {}}, "spec.parts", "FieldValueTypeInvalid",
            'Invalid value: "object": spec.parts in body must be of type array: "object"',
        ),
        (
            {"size": 101}, "spec.size", "FieldValueInvalid",
            "Invalid value: 101: spec.size in body should be less than or equal to 100",
        ),
        (
            {"size": -1}, "spec.size", "FieldValueInvalid",
            "Invalid value: -1: spec.size in body should be greater than or equal to 0",
        ),
        (
            {"code": "A1"}, "spec.code", "FieldValueInvalid",
            "Invalid value: \"A1\": spec.code in body should match '^[a-z]+$'",
        ),
        (
            {"code": "abcdefghij"}, "spec.code", "FieldValueTooLong",
            "Too long: may not be more than 8 bytes",
        ),
        (
            {"parts": [{"name": "x"}] * 6}, "spec.parts", "FieldValueTooMany",
            "Too many: 6: must have at most 5 items",
        ),
    ],
    ids=[
        "enum", "required", "integer", "whole number", "boolean", "array", "maximum", "minimum",
        "pattern", "length", "items",
    ],
)  # fmt: skip
def test_a_value_that_breaks_the_schema_is_invalid(
    widgets: Collection, spec: dict[str, Any], field: str, reason: str, message: str
) -> None:
    """The 422 names the field, the reason, and what would be right."""
    answer = widgets.api.post(widgets.path, widget("a", **spec))
    body = answer.json
    assert (answer.status, body["reason"]) == (422, "Invalid")
    causes = body["details"]["causes"]
    assert causes[0] == {"reason": reason, "message": message, "field": field}
    assert [cause["field"] for cause in causes[1:]] == (["<nil>"] if spec == {"size": 1.5} else [])
    assert body["details"] == {
        "name": "a",
        "group": "ex.io",
        "kind": "Widget",
        "causes": causes,
    }
    told = [f"{c['field']}: {c['message']}" for c in causes]
    what = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    assert body["message"] == f'Widget.ex.io "a" is invalid: {what}'


def test_every_error_is_told(widgets: Collection) -> None:
    """Two wrong fields are two causes."""
    answer = widgets.api.post(widgets.path, widget("a", color="pink", parts=[{}]))
    fields = {cause["field"] for cause in answer.json["details"]["causes"]}
    assert {"spec.color", "spec.parts[0].name"} <= fields


def test_an_update_is_validated_too(widgets: Collection) -> None:
    """A patch that breaks the schema is a 422, and changes nothing."""
    widgets.fill("a", size=1)
    answer = widgets.api.patch(widgets.at("a"), {"spec": {"color": "pink"}})
    assert answer.status == 422
    assert widgets.api.get(widgets.at("a")).json["spec"] == {"replicas": 1, "size": 1}


def test_null_of_a_field_that_has_a_default_becomes_the_default(widgets: Collection) -> None:
    """A null that may not be null is dropped, and defaulted."""
    assert widgets.create(widget("a", replicas=None))["spec"] == {"replicas": 1}


@pytest.mark.parametrize(
    ("field", "warned"),
    [("é", 'unknown field \\"spec.é\\"'), ("日本", 'unknown field \\"spec.日本\\"'), ("a\nb", "")],
)
def test_an_unknown_field_may_have_any_name(widgets: Collection, field: str, warned: str) -> None:
    """The warning is UTF-8; of a name that no header can hold there is none."""
    answer = widgets.api.post(widgets.path, {**widget("a"), "spec": {field: 1}})
    assert (answer.status, field in answer.json["spec"]) == (201, False)
    told = answer.headers.get("Warning", "").encode("latin-1").decode()
    assert told == (f'299 - "{warned}"' if warned else "")
