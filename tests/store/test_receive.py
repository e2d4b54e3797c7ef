"""What comes is filled in, cut, and refused where it cannot be kept (S31, S32)."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.jsonpath.json_bytes import MOST_VALUES
from dyninformer.store.receive import UnusableObjectError, excerpt
from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, add, held, widget


def test_s31_items_of_built_in_lists_get_what_the_watch_has_in_its_order() -> None:
    """The bytes are the watch's, so that a list after a watch finds them equal."""
    store = Store(WIDGETS)
    watched = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}'
    listed = b'{"metadata":{"name":"a"},"spec":{}}'
    assert store.receive(listed, "v1", "Pod").data == watched
    assert store.receive(watched, "v1", "Pod").data is watched


def test_s31_only_what_is_missing_is_filled_in() -> None:
    """What the object says itself stays; without anything to fill in it stays as it is."""
    store = Store(WIDGETS, indexers={"kind": ".kind"})
    half = b'{"apiVersion":"ex.io/v2","metadata":{"name":"a"}}'
    received = store.receive(half, "v1", "Pod")
    assert received.data == b'{"kind":"Pod",' + half[1:]
    assert received.row == [("Pod",)]
    assert store.receive(half).data is half


def test_an_entry_begins_with_its_brace_whatever_the_white_space() -> None:
    """A pretty-printed object is stored and read as any other."""
    store = Store(WIDGETS)
    add(store, b'\n {\n "metadata" : {"name": "a"}\n}')
    assert held(store, "a") == {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"[]", "no object with a name"),
        (b'"text"', "no object with a name"),
        (b"{}", "no object with a name"),
        (b'{"metadata":null}', "no object with a name"),
        (b'{"metadata":{"name":""}}', "no object with a name"),
        (b'{"metadata":{"name":7}}', "no object with a name"),
        (b'{"metadata":{"name":"a/b"}}', "no object with a name"),
        (b'{"metadata":{"name":"a","namespace":["n"]}}', "no object with a name"),
        (b'{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[]}', "no object with a name"),
        (b'{"metadata":{"name":"a"}', "malformed"),
        (b"", "malformed"),
    ],
)
def test_s32_an_object_without_a_usable_name_has_no_key(data: bytes, complaint: str) -> None:
    """The report has its length and the complaint."""
    with pytest.raises(UnusableObjectError, match=rf"{len(data)} bytes .*{complaint}") as caught:
        Store(WIDGETS).receive(data)
    assert caught.value.key is None


def test_s32_invalid_text_is_refused_when_it_comes_in_with_its_place_and_key() -> None:
    """Also in a part that nothing looks at."""
    data = widget("a", 3, text="TEXT").replace(b"TEXT", b"\xc3(")
    place = data.index(b"\xc3")
    with pytest.raises(UnusableObjectError, match=f"byte {place} is no UTF-8") as caught:
        Store(WIDGETS).receive(data)
    assert (caught.value.key, caught.value.version) == ("ns/a", "3")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_taken_in_can_be_read_however_deep_it_is(opening: bytes) -> None:
    """And what is too deep is refused, with its key."""
    closing = b"]" if opening == b"[" else b"}"
    store = Store(WIDGETS, indexers={"call": lambda obj: [obj["kind"]]})
    taken = 0
    for depth in range(880, 1000):
        deep = opening * depth + b"1" + closing * depth
        data = widget("a", depth)[:-1] + b',"deep":' + deep + b"}"
        try:
            add(store, data)
        except UnusableObjectError as error:
            assert error.key == "ns/a"  # noqa: PT017 - which depths are refused is Python's affair
        else:
            taken += 1
            assert held(store, "ns/a")["metadata"]["resourceVersion"] == str(depth)
    assert taken


def test_s32_an_excerpt_has_at_most_64_bytes_with_the_content_masked() -> None:
    """The structure around the place is left."""
    data = (
        b'{"kind":"Secret","data":{"password":"aHVudGVyMg==","n":[1,true,null]},"x":"' + b"z" * 99
    )
    shown = excerpt(data, 40)
    assert len(shown) == 64
    assert shown == ',"****":{"********":"************","*":[*,true,null]},"*":"*****'


@given(st.binary(max_size=200), st.integers(0, 220))
def test_s32_an_excerpt_shows_no_content_of_anything(data: bytes, offset: int) -> None:
    """Whatever the bytes are, and wherever the place."""
    shown = excerpt(data, offset)
    assert len(shown) <= 64
    for literal in ("true", "false", "null"):
        shown = shown.replace(literal, "")
    assert not set(shown) - set('*"{}[]:, \t\n\r\v\f')


@given(st.text(min_size=1, max_size=7).filter(lambda text: not set(text) & set('"\\')))
def test_s32_an_excerpt_shows_none_of_a_text_even_if_it_looks_like_structure(secret: str) -> None:
    """A closed string is its two quotes and nothing else that is legible."""
    shown = excerpt(b'{"s":"' + secret.encode(errors="replace") + b'"}', 0)
    inside = shown.removeprefix('{"*":"').removesuffix('"}')
    assert set(inside) == {"*"}


def test_an_index_of_a_deep_object_is_that_of_any_other() -> None:
    """Updates read the held object's values again, from wherever they are made."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})

    def descend(levels: int, work: Any) -> None:
        if levels:
            descend(levels - 1, work)
        else:
            work()

    deep = b',"deep":' + b"[" * 700 + b"]" * 700 + b"}"
    add(store, widget("a", 1, n="one")[:-1] + deep)
    received = store.receive(widget("a", 2, n="two"))
    descend(500, lambda: store.apply([("MODIFIED", received)]))
    assert store.index_values("n") == ["two"]


@given(st.binary(max_size=100), st.text(alphabet='{}[],:tru"\\', max_size=60), st.integers(-60, 60))
def test_s32_an_excerpt_far_into_the_data_shows_nothing_of_a_text(
    before: bytes, secret: str, shift: int
) -> None:
    """What is before is not looked at, so that what may be in quotes is masked."""
    text = json.dumps(secret).encode()
    data = b'{"a":"' + b"x" * 70_000 + before.replace(b'"', b"").replace(b"\\", b"") + b'","b":'
    place = len(data) + 1
    data += text + b',"c":[true,{}]}'
    offset = max(0, place + shift)
    shown = excerpt(data, offset)
    assert len(shown) <= 64
    start = offset - 24
    inside = [
        shown[at - start] for at in range(place, place + len(text) - 2) if 0 <= at - start < 64
    ]
    assert not set(inside) - set('*"')
    assert not set(shown) - set('*"{}[]:,truefalsn \t\n\r\v\f')


def _peak(call: Callable[[], object]) -> int:
    """The most memory that the call takes at one time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_s32_an_excerpt_takes_no_more_memory_of_large_data() -> None:
    """Only what is around the place is looked at."""
    data = b'"' * (8 << 20)
    assert _peak(lambda: excerpt(data, len(data))) < 1 << 20


def test_s32_the_text_of_a_large_object_is_never_decoded_as_a_whole() -> None:
    """One wide character would make it four times as large."""
    data = widget("a", 3)[:-1] + b',"x":"' + "\U0001f600".encode() + b"y" * (8 << 20) + b'"}'
    assert _peak(lambda: Store(WIDGETS).receive(data)) < len(data)


def test_s32_an_object_of_too_many_values_is_refused_by_its_key() -> None:
    """Before any of them is made; its metadata is in its beginning."""
    many = widget("a", 4)[:-1] + b',"x":[' + b"{}," * MOST_VALUES + b"0]}"
    with pytest.raises(UnusableObjectError, match="more than 1,000,000 values") as caught:
        Store(WIDGETS).receive(many)
    assert (caught.value.key, caught.value.version) == ("ns/a", "4")


@pytest.mark.parametrize("wrong", [b"\xff", b"\xc3(", "\U0001f600".encode()[:3]])
@pytest.mark.parametrize("place", [65_534, 65_535, 65_536, 200_000])
def test_s32_invalid_text_in_a_large_object_is_found_at_its_place(wrong: bytes, place: int) -> None:
    """However it lies to the pieces in which the object is looked at."""
    head = widget("a", 3)[:-1] + b',"x":"' + "é".encode()
    data = head + b"x" * (place - len(head)) + wrong + b'x"}'
    with pytest.raises(UnusableObjectError, match=f"byte {place} is no UTF-8") as caught:
        Store(WIDGETS).receive(data)
    assert caught.value.key == "ns/a"


def test_s32_wide_characters_of_a_large_object_may_lie_anywhere() -> None:
    """A character of four bytes at every place of every piece."""
    for shift in range(4):
        data = (
            widget("a", 3)[:-1] + b',"x":"' + b"y" * shift + "\U0001f600".encode() * 50_000 + b'"}'
        )
        assert Store(WIDGETS).receive(data).key == "ns/a"


def test_s31_the_metadata_beside_half_a_character_is_kept() -> None:
    """Where only metadata is kept, what the rest holds is no obstacle."""
    store = Store(WIDGETS, metadata_only=True)
    add(store, widget("a", 3, text="TEXT").replace(b"TEXT", b"\\ud800"))
    found = held(store, "ns/a")
    assert (found["kind"], found["metadata"]["name"]) == ("PartialObjectMetadata", "a")
