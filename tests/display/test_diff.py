"""Updates as lines of a diff."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.delivery.changes import Change
from dyninformer.display.diff import diff_lines


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


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ('.c[?(@.type=="Ready")].status', ".c[type=Ready].status"),
        ('$.p[?(@.port==53 && @.protocol=="UDP")]', ".p[port=53,protocol=UDP]"),
        ('.c[?(@.name=="a b\\u005d")].x', '.c[name="a b]"].x'),
        ('.c[?(@.name=="\\u00fc")].x', ".c[name=\u00fc].x"),
        ('.c[?(@.name=="\\u001b")].x', r'.c[name="\u001b"].x'),
        ('.c[?(@.name=="")].x', '.c[name=""].x'),
        (".c[0].x", ".c[0].x"),
        ('$.c["a\'b"]', '.c["a\'b"]'),
        ('$[""]', '$[""]'),
    ],
)
def test_elements_are_named_as_people_read_them(path: str, short: str) -> None:
    """By their keys, in quotes only where they are no names."""
    assert shown(Change(path, 1, None)) == [f"- {short}: 1"]


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
