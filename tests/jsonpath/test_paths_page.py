"""The tables of docs/paths.md say what is true."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from dyninformer.jsonpath import (
    JSONPath,
    JSONPathError,
    JSONPathWarning,
    evaluate,
    extended,
    kubectl,
    parser,
)

PAGE = (Path(__file__).parents[2] / "docs" / "paths.md").read_text("utf-8")
FENCE = re.search(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
OBJECT: Any = json.loads(FENCE[1]) if FENCE else None


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without the code marks around them."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [
        [cell.strip().strip("`").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    ]


SIDE_BY_SIDE = [
    pytest.param(expression, found, id=f"{row[0]}, {dialect}")
    for row in rows("Side by side")
    for dialect, expression, found in (("kubectl", *row[1:3]), ("jsonpath-ng", *row[3:5]))
    if expression
]


@pytest.mark.parametrize(("expression", "found"), SIDE_BY_SIDE)
def test_each_expression_finds_what_the_page_says(expression: str, found: str) -> None:
    """Every expression of the side by side table gives the values beside it."""
    raw = json.dumps(OBJECT).encode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JSONPathWarning)
        if found == "error":
            with pytest.raises(JSONPathError):
                JSONPath(expression).values(OBJECT)
        else:
            assert JSONPath(expression).values(OBJECT) == json.loads(found)
            assert JSONPath(expression).values(raw) == json.loads(found)


def test_an_empty_list_ends_nothing() -> None:
    """The page's first departure from client-go, and its second."""
    assert JSONPath("{.spec.groups[*].rules[*]}").text(OBJECT) == "1 2 3"
    assert JSONPath("{.spec.groups[*].rules[1:1]}{.kind}").text(OBJECT) == ""


NULLS = re.findall(r"inside a range: `(.*?)`|range is empty: `(.*?)`", PAGE)


@pytest.mark.parametrize("expression", [inside or empty for inside, empty in NULLS])
def test_a_null_in_a_range_finds_nothing(expression: str) -> None:
    """Where client-go panics on a null, nothing is found."""
    assert JSONPath(expression).values(OBJECT) == []


def test_json_of_a_null_in_a_range_is_a_null() -> None:
    """The JSON output that makes client-go panic is printed."""
    path = JSONPath("{range .spec['none','big']}{@}{end}")
    assert path.json_text(OBJECT) == "[\n    null\n]\n[\n    98765432109876540000\n]\n"


def test_maps_are_walked_in_their_order() -> None:
    """Keys come in the order of the object, not in a random or a sorted one."""
    assert JSONPath("{.*}").values({"b": 1, "a": 2}) == [1, 2]
    assert JSONPath("{..x}").values({"b": {"x": 1}, "a": {"x": 2}}) == [1, 2]


def test_the_limits_are_those_of_the_page() -> None:
    """The numbers that the page names are the ones that hold."""
    assert f"more than {parser.MAX_LENGTH:,} characters, or {kubectl.MAX_RANGES} ranges" in PAGE
    assert f"an evaluation that goes through more than {evaluate.MAX_WORK:,} values" in PAGE
    assert f"make it go through more than {extended.MAX_WORK:,} values" in PAGE
    assert f"more than {extended.MAX_LENGTH:,} characters, or {extended.MAX_DEPTH} steps" in PAGE
