"""Comparisons of what a path finds with a value."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.comparisons import Comparison, PathCondition


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("{.x}>=3", 3, True),
        ("{.x}>=3", 10, True),
        ("{.x}>3", 3, False),
        ("{.x} < 3", 2.5, True),
        ("{.x}<=3", "3", True),
        (".x>9", 10, True),
        ("{.x}!=3", 3.0, False),
        ("{.x}!='3'", 4, True),
        ("{.x}<1Gi", "900Mi", True),
        ("{.x}>1", "900m", False),
        ("{.x}>=1k", "1e3", True),
        ("{.x}!=12", "\uff11\uff12", True),  # digits of another script, which are no quantity
        ("{.x}>2026-01-01T00:00:00Z", "2026-11-18T00:00:00Z", True),
        ("{.x}!=Pending", "Running", True),
        ("{.x}!=true", True, False),
        ("{.x}!=3", "three", True),
        ("{.x}>3", "three", False),
        ("{.x}<three", 2, False),
        ("{.y}!=3", 3, False),
    ],
)
def test_numbers_quantities_and_texts_are_compared_as_what_they_are(
    text: str, value: Any, met: bool
) -> None:
    """What is not there meets nothing, and a number and a text are only unequal."""
    assert Comparison(text).met({"x": value}) is met


def test_operators_in_a_filter_belong_to_the_path() -> None:
    """Also such in quotes."""
    obj = {"items": [{"n": 1, "t": "a>b"}, {"n": 5, "t": "c"}]}
    assert Comparison("{.items[?(@.n>=3)].n}>4").met(obj)
    assert Comparison("{.items[?(@.t=='a>b')].n}<2").met(obj)


def test_a_path_that_begins_with_a_dollar_is_jsonpath_ngs() -> None:
    """It names an element by two keys, and an equals sign in its filter is part of the path."""
    obj = {"ports": [{"n": 1, "t": "a=b", "x": 5}, {"n": 1, "t": "c", "x": 7}]}
    path = '$.ports[?(@.n==1 && @.t=="a=b")].x'
    assert PathCondition(path).met(obj)
    assert PathCondition(f"{path}=5").met(obj)
    assert not PathCondition(f"{path}=7").met(obj)
    assert Comparison(f"{path}>4").met(obj)
    assert not Comparison(f"{path}>=7").met(obj)


@pytest.mark.parametrize("value", [{"a": 1}, [1]])
def test_an_object_or_a_list_cannot_be_compared(value: Any) -> None:
    """As kubectl has it for its equals sign."""
    with pytest.raises(JSONPathError, match="an object or a list"):
        Comparison("{.x}>1").met({"x": value})


@pytest.mark.parametrize("text", ["{.x}>", "{.x}", "{.x}=1", ">3", "{.x}!1", "{.x>3"])
def test_what_is_no_comparison_says_how_to_write_one(text: str) -> None:
    """Before anything is waited for."""
    with pytest.raises(JSONPathError, match=r">=3|did you mean|\}"):
        Comparison(text)
