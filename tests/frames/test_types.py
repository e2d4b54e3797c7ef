"""The type of a column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.discovery.unknown_paths import whole_schema
from dyninformer.frames import types
from dyninformer.frames.types import Kind, Type, fitted, of_path, of_schema, of_values
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.cells import cell
from tests.frames.objects import CRD

SCHEMA = whole_schema(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".spec.replicas", Kind.INTEGER),
        (".spec.weight", Kind.NUMBER),
        (".spec.cpu", Kind.TEXT),
        (".spec.dnsNames", Kind.LIST),
        (".spec.dnsNames[0]", Kind.TEXT),
        (".spec.dnsNames[*]", Kind.LIST),
        (".spec.issuerRef", Kind.STRUCT),
        (".spec.config", Kind.JSON),
        (".spec.usages", Kind.MAP),
        (".spec.usages.signing", Kind.BOOLEAN),
        (".status.notAfter", Kind.TIME),
        (".status.conditions[?(@.type=='Ready')].lastTransitionTime", Kind.TIME),
        ("$.status.conditions[*].lastTransitionTime", Kind.LIST),
        (".metadata.creationTimestamp", Kind.TIME),
        (".metadata.labels", Kind.MAP),
        (".metadata.labels.app", Kind.TEXT),
        (".metadata.generation", Kind.INTEGER),
        (".metadata.managedFields", None),
        (".spec.nope", None),
        (".spec.replicas.deeper", None),
        (".spec.replicas[*]", None),
        ("..name", None),
    ],
)
def test_a_path_has_the_type_that_the_schema_declares(path: str, kind: Kind | None) -> None:
    """None where it declares none."""
    found = of_path(JSONPath(path), SCHEMA)
    assert (found and found.kind) == kind


def test_nothing_is_known_without_a_schema_but_metadata() -> None:
    """Whatever stands in the place of one."""
    for declared in (None, 5, {"properties": 5}):
        assert of_path(JSONPath(".spec.x"), whole_schema(declared)) is None
        assert of_path(JSONPath(".metadata.uid"), whole_schema(declared)) == types.TEXT


def test_what_a_struct_would_lose_is_json() -> None:
    """Fields beside the declared ones; too many; too deep; of one name in SQL; no schema at all."""
    some: dict[str, Any] = {"a": {"type": "string"}}
    many = {f"f{n}": {"type": "string"} for n in range(600)}
    deep: Any = {"type": "string"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    for schema in (
        {"type": "object", "properties": some, "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "properties": some, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": many},
        {"type": "object", "properties": {"ca": {"type": "string"}, "CA": {"type": "string"}}},
        {"type": "object"},
        {"type": "mystery"},
        "no schema",
    ):
        assert of_schema(schema) == types.JSON
    assert of_schema(deep).size < 100


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], Kind.TEXT),
        ([None], Kind.TEXT),
        (["a", None], Kind.TEXT),
        ([1, None, 2], Kind.INTEGER),
        ([1, 2.5], Kind.NUMBER),
        ([1 << 70], Kind.NUMBER),
        ([True, None], Kind.BOOLEAN),
        ([True, 1], Kind.TEXT),
        ([1, "a"], Kind.TEXT),
        ([{"a": 1}, None], Kind.JSON),
        ([[1], "a"], Kind.JSON),
    ],
)
def test_values_of_which_nothing_is_declared_decide_together(values: Any, kind: Kind) -> None:
    """Several types are text."""
    assert of_values(values).kind is kind


def test_lists_of_several_decide_by_their_elements() -> None:
    """All of them together."""
    assert of_values([[1], [], [2, 3]], several=True) == Type(Kind.LIST, types.INTEGER)


def test_what_does_not_fit_is_null() -> None:
    """Each type takes what is of it, and no more."""
    odd = [None, "a", 5, 5.0, 2.5, True, {"a": 1}, [1], 1 << 70]
    assert fitted(types.INTEGER, odd) == [None, None, 5, 5, None, None, None, None, None]
    assert fitted(types.NUMBER, odd)[2:5] == [5.0, 5.0, 2.5]
    assert fitted(types.BOOLEAN, odd) == [None] * 5 + [True] + [None] * 3
    assert fitted(types.TEXT, odd) == [
        None, "a", "5", "5", "2.5", "true", '{"a":1}', "[1]", str(1 << 70),
    ]  # fmt: skip
    assert fitted(types.JSON, odd)[1:3] == ['"a"', "5"]
    assert fitted(types.JSON, [[1 << 70]]) == [f"[{1 << 70}]"]
    assert fitted(types.NUMBER, [10**400]) == [None]


def test_times_are_read_as_the_server_reads_them() -> None:
    """What is none is null, however like one it looks."""
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert fitted(
        types.TIME,
        ["2026-05-01T12:00:00Z", "2026-05-01T14:00:00.0+02:00", "2026-13-01T12:00:00Z", "now", 5],
    ) == [moment, moment, None, None, None]
    assert types.microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, UTC)) == 1_000_005
    assert types.microseconds(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)) == -1_000_000


@pytest.mark.parametrize(
    "text", ["2026-W18-5T12:00:00Z", "2026-05-01T120000.5Z", "2026-05-01T24:00:00Z"]
)
def test_a_time_that_a_table_calls_invalid_is_none(text: str) -> None:
    """Python reads more than RFC 3339 has, and some of it is as long as a time is."""
    assert cell(".t", "date", {"t": text}) == "<invalid>"
    assert fitted(types.TIME, [text]) == [None]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    max_leaves=8,
)


@given(st.lists(json_values))
def test_values_fit_the_type_that_they_decide_themselves(values: list[Any]) -> None:
    """None is lost: there is a null only where one was."""
    found = of_values(values)
    assert [each is None for each in fitted(found, values)] == [each is None for each in values]
