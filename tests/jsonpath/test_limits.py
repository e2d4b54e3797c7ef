"""Hostile expressions and objects end in an error, and soon."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.jsonpath import JSONPath, JSONPathError, Projection, compound
from tests.mutated import mutated_text


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
        ("$" + "..$" * 5, nested(30)),
        ("$.a" + "[*].$.a" * 5 + "[*]", {"a": list(range(20))}),
        ("$.a" + "[*].`parent`" * 6, {"a": list(range(20))}),
        ("$.a * 99999999999", {"a": "x"}),
        ("$.a[?(@.b=~'a.*b.*x')]", {"a": [{"b": "ab" * 2000}]}),
    ],
)
def test_an_evaluation_past_the_limits_gives_up(expression: str, obj: Any) -> None:
    """An evaluation that multiplies, or meets what is too deep, ends in an error."""
    with pytest.raises(JSONPathError):
        JSONPath(expression).text(obj)


def test_two_descents_into_a_large_object_find_all_of_it() -> None:
    """What is given up is told by what an expression goes through, not by how it looks."""
    containers = [{"name": "x", "ports": [{"name": "y"}] * 10} for _ in range(2_000)]
    assert len(JSONPath("$..ports..name").values({"spec": {"a": containers}})) == 20_000


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


PATHS = [
    ".spec.x[*].y",
    "{range .items[*]}{.metadata.name}{'\\n'}{end}",
    '{.a[?(@.b=="c")].d}',
    "$.a..b[?(@.x>1)]",
    "{.a[0:5:2]}",
    "$.a[0:3].`sub(/a/,b)`",
    "a\\.b",
    "{.a['b','c']}",
    "$..x[?(@.a=~'b.*')]",
    "{..}",
    "$.`parent`",
    "$.a.`len`",
    "$.a + 1",
    "$.a.`split(,,0,-1)`",
]
PATH_TOKENS = [
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "?",
    "@",
    "*",
    "..",
    "'",
    '"',
    "\\",
    "=~",
    "==",
    "<",
    "[*]",
    "range",
    "end",
    "$",
    "`",
    "\ud800",
    "\0",
    "9" * 30,
    "-1",
    ":",
    "|",
    "&",
    "!",
    "/",
    "`len`",
    "\n",
    "~",
    "((",
    "a*a*a*",
]
OBJECTS: list[Any] = [
    {"a": [{"b": "c", "d": 1}, 5, None, "x"], "spec": {"x": [{"y": "z"}]}},
    {"spec": None},
    [],
    None,
    b'{"a":[{"b":"c","d":1},5,null],"spec":{"x":[{"y":"z"}]}}',
    b'{"a":1e999}',
    b'{"a":"\\ud800"}',
    b"{",
    b"",
    b'{"a":"\xff"}',
]


@pytest.mark.filterwarnings("ignore::dyninformer.JSONPathWarning")
@given(
    mutated_text(PATHS, PATH_TOKENS),
    st.sampled_from(
        [JSONPath, JSONPath.template, JSONPath.relaxed, JSONPath.column, JSONPath.extended]
    ),
)
def test_whatever_an_expression_is_it_gives_values_or_an_error_of_paths(
    expression: str, read: Callable[[str], JSONPath]
) -> None:
    """From any object, and from what is none."""
    with suppress(JSONPathError):
        path = read(expression)
        for obj in OBJECTS:
            for ask in (path.values, path.text, path.json_text):
                with suppress(JSONPathError):
                    ask(obj)


@pytest.mark.parametrize("pattern", ["5", "1.5", "true"])
def test_a_pattern_that_is_no_text_is_refused(pattern: str) -> None:
    """In words."""
    with pytest.raises(JSONPathError, match="a pattern is a text"):
        JSONPath(f"$.a[?(@.b =~ {pattern})]")
