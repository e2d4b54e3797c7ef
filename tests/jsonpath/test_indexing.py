"""Index functions made of paths, and the text of their values."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer import compound, jsonpath_index
from dyninformer.jsonpath import Projection, index_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (98765432109876543210, "98765432109876543210"),
        (4.0, "4"),
        (1e21, "1000000000000000000000"),
        (0.25, "0.25"),
        (None, None),
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        (["größe"], '["größe"]'),
        ([10**30], "[1000000000000000000000000000000]"),
    ],
)
def test_an_index_value_is_text(value: Any, text: str | None) -> None:
    """Each type has one text, whole numbers without an exponent; a null has none."""
    assert index_text(value) == text


@pytest.mark.parametrize("expression", ["{.a[*].b}", "$.a[*].b"])
def test_an_index_gives_each_value_once(expression: str) -> None:
    """An object is found once under each of its values, and never under a null."""
    obj = {"a": [{"b": "x"}, {"b": 1}, {"b": None}, {"b": "x"}, {}]}
    assert jsonpath_index(expression)(obj) == ["x", "1"]


@pytest.mark.parametrize("obj", [{}, {"a": 5}, {"a": []}, {"a": None}, b'{"a": {}}'])
def test_an_object_that_does_not_fit_has_no_index_value(obj: Any) -> None:
    """What finds nothing and what fails are alike to an index."""
    assert jsonpath_index(".a[0].b")(obj) == []


def test_a_compound_index_gives_every_combination() -> None:
    """Each value of one path is combined with each of the other; a missing one gives none."""
    index = compound(".a[*]", "$.b")
    assert index({"a": ["x", "y"], "b": 1}) == ["x/1", "y/1"]
    assert index({"a": ["x", "y"]}) == []


def test_different_parts_never_give_the_same_compound_value() -> None:
    """A separator inside a part is told from one between parts."""
    index = compound(".a", ".b")
    assert index({"a": "x/y", "b": "z"}) == [index.key("x/y", "z")] != [index.key("x", "y/z")]
    assert index.key("x/y", "z") != index.key("x~1y", "z")
    with pytest.raises(TypeError, match="2 parts"):
        index.key("x")


def test_index_functions_compare_by_their_paths() -> None:
    """The same paths make the same index, so that asking twice is no conflict."""
    assert jsonpath_index(".a") == jsonpath_index(".a")
    assert jsonpath_index(".a") != jsonpath_index("$.a")
    assert len({compound(".a", ".b"), compound(".a", ".b")}) == 1


def test_rows_keep_whole_numbers_and_leave_out_what_does_not_fit() -> None:
    """A projection gives Python's values, and an empty row for a path that fails."""
    raw = b'{"a": 98765432109876543210, "b": {"c": null}}'
    projection = Projection([".a", ".a[0]", ".b.c", ".b.c.d", ".nope", "$.b"])
    assert projection.rows(raw) == [
        [98765432109876543210],
        [],
        [None],
        [],
        [],
        [{"c": None}],
    ]
