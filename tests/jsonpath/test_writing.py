"""Paths written from steps are read as those steps."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.writing import Way, can_be_compared

ODD = " .\\\"'[]{}()=<>!&|$@*,?a1\n\t_-/ü😀"
texts = st.text(max_size=5) | st.text(ODD, max_size=6) | st.sampled_from(["where", "wherenot"])
numbers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(texts, min_size=1, max_size=3))
def test_any_key_can_be_written(keys: list[str]) -> None:
    """With dots, quotes, backslashes, whatever; in kubectl's dialect with braces and without."""
    obj: Any = 7
    for key in reversed(keys):
        obj = {key: obj}
    path = str(reduce(Way.to, keys, Way()))
    assert JSONPath(path).values(obj) == [7]
    if not path.startswith("$"):
        assert JSONPath(f"{{{path}}}").values(obj) == [7]


@given(texts, st.lists(texts, min_size=1, max_size=2, unique=True), st.data())
def test_any_element_can_be_written(key: str, names: list[str], data: st.DataObject) -> None:
    """By one field or several, texts or numbers."""
    of_one_kind = data.draw(st.sampled_from([texts, numbers]))
    each = st.tuples(*[of_one_kind] * len(names))
    found = data.draw(st.lists(each, min_size=1, max_size=4, unique=True))
    obj = {key: [dict(zip(names, values, strict=True)) for values in found]}
    for at, values in enumerate(found):
        way = Way().to(key).to(tuple(zip(names, values, strict=True)))
        assert JSONPath(str(way)).values(obj) == [obj[key][at]]


def test_kubectls_dialect_is_written_where_it_can_say_it() -> None:
    """It is the one that people have seen; jsonpath-ng's begins with a dollar."""
    assert str(Way().to("a").to(None).to("b").to(0)) == ".a[*].b[0]"
    assert str(Way().to("a.b").to((("name", 'x"]'),))) == r'.a\.b[?(@.name=="x\u0022\u005d")]'
    assert str(Way().to("").to((("a b", 1),))) == '$[""][?(@["a b"]==1)]'


@pytest.mark.parametrize(
    ("value", "comparable"),
    [
        ("a", True),
        ("", True),
        (1, True),
        (2**63, False),
        (1.5, False),
        (True, False),
        (None, False),
    ],
)
def test_what_a_filter_can_find(value: object, comparable: bool) -> None:
    """Texts, and whole numbers as Go has them."""
    assert can_be_compared(value) is comparable
