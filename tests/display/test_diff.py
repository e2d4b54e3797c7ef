"""Updates as lines of a diff."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.delivery.changes import Change, differences
from dyninformer.display.diff import diff_lines
from dyninformer.jsonpath import JSONPath

keys = st.text(" .\\\"'[]{}()=<>!&|$@*,?a1_-/\u00fc", max_size=3) | st.sampled_from(
    ["name", "where"]
)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | keys
elements = st.fixed_dictionaries(
    {"x": scalars},
    optional={"name": keys, "port": st.integers(0, 1), "protocol": st.sampled_from(["TCP", "UDP"])},
)
values = st.recursive(
    scalars | st.lists(elements, max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=3)


def shown(*changes: Change) -> list[str]:
    """The lines as text."""
    return [str(line) for line in diff_lines(changes)]


def test_a_changed_value_is_two_lines_old_above_new() -> None:
    """As JSON, so that a text and a number are told apart."""
    assert shown(Change(".spec.n", 1, "1")) == ["- .spec.n: 1", '+ .spec.n: "1"']


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"a": {"b": [1, {"c": None}]}}, ["+ .x.a.b[0]: 1", "+ .x.a.b[1].c: null"]),
        ({}, ["+ .x: {}"]),
        ([[]], ["+ .x[0]: []"]),
    ],
)
def test_what_comes_whole_is_shown_value_by_value(value: Any, lines: list[str]) -> None:
    """An empty object or list is a value."""
    assert shown(Change(".x", None, value)) == lines


def test_texts_of_several_lines_are_compared_line_by_line() -> None:
    """With a line of context, and lines that look like headings of a diff."""
    old, new = "a\nb\n-- c\nd\ne", "a\nb\n++ c\nd\ne"
    assert shown(Change(".data.x", old, new)) == [
        "  .data.x:",
        "      b",
        "-     -- c",
        "+     ++ c",
        "      d",
    ]


def test_nothing_in_it_can_act_on_a_terminal() -> None:
    """Neither a path, nor a value, nor a line of a text."""
    bad = "\x1b[2J\u202e\x9b"
    lines = shown(Change(f".{bad}", {bad: bad}, None), Change(".t", "a\n", f"a\n{bad}"))
    assert not set(bad) - {"[", "2", "J"} & set("".join(lines))


@given(objects, objects)
def test_every_path_finds_the_value_that_is_printed_behind_it(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """What is printed can be given to everything that takes a path."""
    for line in diff_lines(differences(old, new)):
        if line.sign != " " and not line.text.startswith("    "):  # of texts that have lines
            states = [old, new] if line.text.endswith(": null") else [(old, new)[line.sign == "+"]]
            assert any(finds_its_value(line.text, state) for state in states)


def finds_its_value(text: str, obj: dict[str, Any]) -> bool:
    """Tell whether the text is a path, a colon, and what the path finds: ": " is in either."""
    for colon in re.finditer(": ", text):
        try:
            value = json.loads(text[colon.end() :])
            found = JSONPath(text[: colon.start()]).values(obj)
        except ValueError:
            continue
        if found in ([value], value):  # the order of a list's elements is several values
            return True
    return False


def test_a_key_that_acts_on_a_terminal_is_spelled_out() -> None:
    """Such a path cannot be used again; it is safe to show."""
    assert shown(Change(".x", None, {"\x1b": 1})) == [r"+ .x.\^[: 1"]


def test_another_order_is_shown_as_a_whole() -> None:
    """One line for each state."""
    lines = ['- .c[*].name: ["a", "b"]', '+ .c[*].name: ["b", "a"]']
    assert shown(Change(".c[*].name", ["a", "b"], ["b", "a"])) == lines


def test_long_values_are_cut_and_say_so() -> None:
    """A megabyte is no line."""
    (line,) = shown(Change(".x", None, "a" * 10_000))
    assert len(line) < 600
    assert line.endswith("... (10002 characters)")


def test_deep_objects_are_no_trouble() -> None:
    """However deep they are nested."""
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    assert shown(Change("", None, deep)) == [f"+ {'.a' * 5_000}: 1"]
