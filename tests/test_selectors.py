"""Selectors answer as a kube-apiserver 1.36.3 answered: recorded in tests/data/selectors."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dyninformer.errors import DynInformerError
from dyninformer.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    escape_field_value,
)
from tests.mutated import mutated_text

RECORDED = json.loads((Path(__file__).parent / "data" / "selectors" / "recorded.json").read_text())
OBJECTS: dict[str, dict[str, str]] = RECORDED["objects"]


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "selector"}


@pytest.mark.parametrize("case", RECORDED["label"], ids=lambda case: repr(case["selector"][:30]))
def test_a_label_selector_selects_or_complains_as_the_server_does(case: dict[str, Any]) -> None:
    """Each recorded selector gives the same objects, or the same error text."""
    try:
        selector = LabelSelector.parse(case["selector"])
        found: dict[str, Any] = {
            "matches": sorted(name for name, labels in OBJECTS.items() if selector.matches(labels))
        }
    except SelectorError as error:
        found = {"error": str(error)}
    assert found == _outcome(case)


@pytest.mark.parametrize("case", RECORDED["field"], ids=lambda case: repr(case["selector"][:30]))
def test_a_field_selector_selects_or_complains_as_the_server_does(case: dict[str, Any]) -> None:
    """Each recorded selector gives the same objects, or the same error text."""
    try:
        selector = FieldSelector.parse(case["selector"])
        found: dict[str, Any] = {
            "matches": sorted(
                name
                for name in OBJECTS
                if selector.matches(
                    {"metadata.name": name, "metadata.namespace": "default"}.__getitem__
                )
            )
        }
    except SelectorError as error:
        found = {"error": str(error)}
    assert found == _outcome(case)


def test_an_empty_selector_is_falsy_and_matches_what_has_no_labels() -> None:
    """No condition selects everything, also an object whose labels are absent."""
    selector = LabelSelector.parse("")
    assert not selector
    assert selector.matches(None)
    assert not FieldSelector.parse("")


def test_selectors_with_the_same_conditions_are_equal() -> None:
    """Spacing and the spelling of equality do not tell two selectors apart."""
    assert LabelSelector.parse(" a = x ") == LabelSelector.parse("a==x")
    assert hash(FieldSelector.parse("b=1,a=2")) == hash(FieldSelector.parse("a==2,b=1"))


def test_a_selector_error_is_a_value_error_of_this_package() -> None:
    """It can be caught as either."""
    with pytest.raises(ValueError, match="found 'b'") as caught:
        LabelSelector.parse("a b")
    assert isinstance(caught.value, DynInformerError)


@pytest.mark.parametrize("value", ["plain", "a=b", "a,b", "back\\slash", ",=\\", ""])
def test_an_escaped_value_is_read_back_as_it_was(value: str) -> None:
    """escape_field_value undoes what parsing does."""
    selector = FieldSelector.parse(f"metadata.name={escape_field_value(value)}")
    assert selector.requirements[0].value == value


def test_a_field_that_must_have_one_value_is_known() -> None:
    """So a list that names its object need not look at the others."""
    selector = FieldSelector.parse("metadata.name=a,spec.x!=b")
    assert selector.exact("metadata.name") == "a"
    assert selector.exact("spec.x") is None
    assert selector.exact("spec.y") is None


LABEL_TOKENS = [
    "\ud800",
    "=",
    "!=",
    "!",
    "in",
    "notin",
    "(",
    ")",
    ",",
    ">",
    "<",
    "\\",
    "/",
    "9" * 5000,
]
MALFORMED_LABELS: list[Any] = [
    None,
    {},
    {"app": "web"},
    {"app": None, "n": 5, "x": []},
    {"n": "9" * 5000},
]


@given(
    mutated_text(
        ["app in (web, api),!canary,x=y,n>5,m<-3,a/b notin (c)", "metadata.name!=a\\,b,x==y"],
        LABEL_TOKENS,
    )
)
def test_whatever_a_selector_is_it_is_read_or_refused(text: str) -> None:
    """And once read, any labels match it or do not, those of a malformed object too."""
    with suppress(SelectorError):
        selector = LabelSelector.parse(text)
        for labels in MALFORMED_LABELS:
            assert selector.matches(labels) in (True, False)
    with suppress(SelectorError):
        assert FieldSelector.parse(text).matches(lambda _: "") in (True, False)


@pytest.mark.parametrize("text", ["a=\ud800", "\ud800", "a in (b,\udfff)", "x/\ud800"])
def test_half_a_surrogate_pair_is_no_selector(text: str) -> None:
    """It could not be sent to the server either."""
    for parse in (LabelSelector.parse, FieldSelector.parse):
        with pytest.raises(SelectorError, match="is no text"):
            parse(text)


def test_a_label_that_is_no_text_is_as_none() -> None:
    """A malformed object is not selected by it, and harms no other."""
    labels: Any = {"app": ["web"]}
    assert not LabelSelector.parse("app in (web)").matches(labels)
    assert LabelSelector.parse("!app").matches(labels)
