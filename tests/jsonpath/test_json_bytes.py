"""How deep and how large JSON is can be told without reading it."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.jsonpath.json_bytes import (
    DEEPEST,
    MOST_VALUES,
    Brackets,
    decoded_size,
    shallow,
    too_deep,
    too_many_values,
)

TEXTS = st.text(alphabet='ab"\\[]{},é', max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def _deep_decodes() -> Iterator[None]:
    """Let Python 3.11 decode what is deep, as its successors do."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEPEST + 1000)
    yield
    sys.setrecursionlimit(before)


@given(st.lists(VALUES, max_size=6), st.integers(1, 9), st.booleans())
def test_brackets_are_followed_through_pieces_cut_anywhere(
    values: list[object], size: int, ascii_only: bool
) -> None:
    """The commas and the bracket at the end are those that stand between whole values."""
    texts = [json.dumps(value, ensure_ascii=ascii_only).encode() for value in values]
    data = b",".join(texts) + b"]"
    brackets, ends = Brackets(), []
    for start in range(0, len(data), size):
        piece, position = data[start : start + size], 0
        while (end := brackets.follow(piece, position)) >= 0:
            ends.append(start + end)
            position = end + 1
    expected, place = [], -1
    for text in texts or [b""]:
        place += 1 + len(text)
        expected.append(place)
    assert ends == expected


@pytest.mark.usefixtures("_deep_decodes")
@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"":', b"}"), (b'[ "[[{{\\"" , ', b" ]")]
)
@pytest.mark.parametrize("before", [b"", b'"metadata":[{}],', b'"text":"' + b"[{" * 3000 + b'",'])
def test_what_is_deeper_than_the_limit_is_told_apart_at_the_very_level(
    opening: bytes, closing: bytes, before: bytes
) -> None:
    """Whatever the levels are made of, and whatever is in texts."""
    for levels in (DEEPEST - 1, DEEPEST, DEEPEST + 1, DEEPEST + 2):
        inner = levels - 1
        data = b"{" + before + b'"x":' + opening * inner + b"1" + closing * inner + b"}"
        assert too_deep(data) is (levels > DEEPEST)


def test_what_is_too_deep_becomes_null_and_the_rest_stays() -> None:
    """At the level that is asked for, with what follows it."""
    data = b'{"a":[[[1,"]"]],2],"b":"[[[","c":{"d":{}}}'
    assert shallow(data, 2, 1000) == b'{"a":[null,2],"b":"[[[","c":{"d":null}}'
    assert shallow(data, 4, 1000) is data


@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.integers(1, 200))
def test_of_a_long_object_the_members_that_end_before_a_place_are_left(
    content: dict[str, object], longest: int
) -> None:
    """It is an object, and they are the first ones."""
    data = json.dumps(content).encode()
    left = json.loads(shallow(data, 100, longest))
    assert list(left.items()) == list(content.items())[: len(left)]
    assert len(json.dumps(left)) <= max(longest, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b"{}," * 100_000 + b"0]",
        b"[" + b"[]," * 100_000 + b"0]",
        b"[" + b'{"a":1},' * 100_000 + b"0]",
        b"[" + b'{"a":{}},' * 100_000 + b"0]",
        b"[" + b"1.5," * 100_000 + b"0]",
        b"[" + b'"aa",' * 100_000 + b"0]",
        b"{" + b",".join(b'"key-%d":%d' % (n, n) for n in range(100_000)) + b"}",
        b'"' + b"a" * 1_000_000 + b'"',
        '"\U0001f600'.encode() + b"a" * 1_000_000 + b'"',
    ],
    ids=lambda data: data[:16].decode(errors="replace"),
)
def test_the_memory_that_a_decode_takes_is_foreseen(data: bytes) -> None:
    """Whatever a few bytes make much of, it takes less than twice that at the worst moment."""
    tracemalloc.start()
    try:
        msgspec.json.decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * decoded_size(data)


def test_an_object_may_have_a_million_values() -> None:
    """More are too many, whatever is between them."""
    assert not too_many_values(b"[" + b"1," * (MOST_VALUES - 2) + b"1]")
    assert too_many_values(b"[" + b"1," * MOST_VALUES + b"1]")
    assert too_many_values(b"[" + b"{}," * (MOST_VALUES // 2) + b"1]")
    assert not too_many_values(b'"' + b"a" * 10 * MOST_VALUES + b'"')
