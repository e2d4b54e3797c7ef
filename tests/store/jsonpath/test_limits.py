"""Hostile expressions and objects end in an error, and soon."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.store.jsonpath import JSONPath, JSONPathError, Projection, compound


def nested(depth: int) -> dict[str, Any]:
    """An object in an object, so many times."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def nested_lists(depth: int) -> dict[str, Any]:
    """A list in a list, so many times."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return {"a": value}


@pytest.mark.parametrize(
    "expression",
    [
        ".a" * 5000,
        "$" + ".a" * 1500,
        "$" + ".a" * 200,
        "$" + "['a','a']" * 50,
        "$" + "..a" * 20,
        "$.a" + "[?(@.a" * 60 + ")]" * 60,
        "{range .a}" * 65,
        "{" + "9" * 5000 + "}",
        "{.a[" + "9" * 5000 + "]}",
        "{.a[?(@.b==" + "9" * 400 + ".5)]}",
        "$.a[?(@.b=~'(a+)+$')]",
        "$.a[?(@.b=~'(a|aa)*$')]",
        "$.a[?(@.b=~'(a?){9}')]",
        "$.a[?(@.b=~'" + "a?" * 30 + "a" * 30 + "')]",
        "$.a[?(@.b=~'.*.*.*.*x')]",
        "$.a[?(@.b=~'(?=a)b')]",
        "$.a[?(@.b=~'(a)\\\\1')]",
        "$.a[?(@.b=~'[')]",
        "$.a.`sub(/(a+)+$/, x)`",
    ],
)
def test_an_expression_past_the_limits_is_refused(expression: str) -> None:
    """Length, nesting, repetition and patterns that could run for ever are errors at once."""
    with pytest.raises(JSONPathError):
        JSONPath(expression)


@pytest.mark.parametrize(
    ("expression", "obj"),
    [
        ("{..x..x..x..x}", nested(150)),
        ("{.a" + "[0,0]" * 40 + "}", nested_lists(60)),
        ("{range ..}" * 8, nested(30)),
        ("{.x}{.x}", nested(100_000)),
        ("$..x..x..x", nested(300)),
        ("$.a * 99999999999", {"a": "x"}),
        ("$.a[?(@.b=~'a.*b.*x')]", {"a": [{"b": "ab" * 2000}]}),
    ],
)
def test_an_evaluation_past_the_limits_gives_up(expression: str, obj: Any) -> None:
    """An evaluation that multiplies, or meets what is too deep, ends in an error."""
    with pytest.raises(JSONPathError):
        JSONPath(expression).text(obj)


def test_a_descent_into_a_deep_object_finds_all_of_it() -> None:
    """Depth alone is no obstacle to ``..``, in either dialect."""
    deep = nested(20_000)
    assert len(JSONPath("{..x}").values(deep)) == 20_000
    assert len(JSONPath("$..x").values(deep)) == 20_000


def test_bytes_nested_too_deep_are_refused() -> None:
    """The decoder's limit is an error of the path, wherever in the object the nesting is."""
    raw = b'{"y":1,"x":' + b'{"x":' * 5000 + b"1" + b"}" * 5001
    with pytest.raises(JSONPathError, match="too deep"):
        JSONPath(".y").values(raw)
    with pytest.raises(JSONPathError, match="too deep"):
        Projection([".y", ".x.x"]).rows(raw)


@pytest.mark.parametrize("pattern", ["^web-[0-9]+$", "(web|db)", "w.*b-.*", "[^a]{2,4}", "a|b|1"])
def test_ordinary_patterns_are_allowed(pattern: str) -> None:
    """What people write in filters matches as it always did."""
    path = JSONPath(f"$.a[?(@.b=~'{pattern}')].b")
    assert path.values({"a": [{"b": "web-1"}, {"b": 5}, {"b": "aa"}]})[0] == "web-1"


def test_a_compound_index_of_too_many_combinations_gives_none() -> None:
    """A million combinations of one object's values are no index values."""
    obj = {"a": [str(number) for number in range(1000)]}
    assert compound(".a[*]", ".a[*]")(obj) == []
