"""Cutting: lines of a watch, items of a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyninformer.watching.cutting import (
    BrokenFrameError,
    ItemCutter,
    LineCutter,
    ListMeta,
    cut_event,
    proved_event,
)
from tests.mutated import mutated
from tests.watching.readings import line, obj

WORDS = ["items", "metadata", "kind", "a", '"', "\\", "},{", ']}"', ',{"metadata":{', "é\u2028", ""]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
CUSTOM = st.builds(
    lambda name, extra: (
        {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}} | extra
    ),
    TEXTS,
    st.dictionaries(TEXTS, VALUES, max_size=3),
)
BUILT_IN = st.builds(lambda name, spec: {"metadata": {"name": name}, "spec": spec}, TEXTS, VALUES)
NESTING = st.builds(
    lambda outer, inner: outer | {"spec": {"parts": inner}}, CUSTOM, st.lists(CUSTOM, max_size=4)
)
ITEMS = (
    st.lists(CUSTOM, max_size=30)
    | st.lists(BUILT_IN, max_size=30)
    | st.lists(VALUES, max_size=8)
    | st.lists(CUSTOM | NESTING, max_size=12)
)
DUMPS: list[dict[str, Any]] = [
    {"separators": (",", ":")},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"indent": 2},
    {"separators": (" , ", " :\t")},
]


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """The bytes, cut at these places and at every multiple of the last."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        yield data[start:end]


def is_json(item: bytes) -> bool:
    """One value, and nothing else."""
    try:
        json.loads(item)
    except ValueError:
        return False
    return True


def proved(cutter: ItemCutter, items: list[bytes]) -> list[bytes]:
    """What was cut on trust, and from where that was wrong, what is cut by a parser."""
    for at, item in enumerate(items):
        if cutter.trusted and not is_json(item):
            return items[:at] + cutter.again(items[at:])
    return items


def fed(cutter: ItemCutter, part: bytes) -> list[bytes]:
    """The items that are complete with a piece of a list."""
    items = proved(cutter, cutter.feed(part))
    while cutter.trusted:
        items += proved(cutter, cutter.more())
    return items


def cut_list(parts: Iterator[bytes], *, on_trust: bool) -> tuple[list[bytes], ListMeta]:
    """All items, and what the list says of itself."""
    cutter, items = ItemCutter(on_trust=on_trust), []
    for part in parts:
        items += fed(cutter, part)
    return items, cutter.finish()


either = pytest.mark.parametrize("on_trust", [False, True])


def steps(data: bytes, size: int) -> Iterator[bytes]:
    """The bytes in pieces of one size."""
    return (data[place : place + size] for place in range(0, len(data), size))


def widgets(count: int, size: int = 0) -> list[dict[str, Any]]:
    """Custom resources as an API server writes them."""
    return [
        {
            "apiVersion": "ex.io/v1",
            "kind": "Widget",
            "metadata": {"name": f"w{number}", "resourceVersion": str(number)},
            "spec": {"many": [{"a": 1}, {"b": 2}], "text": "x" * size},
        }
        for number in range(count)
    ]


# Lines.


@given(
    st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(0, 200), max_size=8),
    st.binary(max_size=5).map(lambda rest: rest.replace(b"\n", b"")),
)
def test_lines_come_out_whole_wherever_the_pieces_were_cut(
    lines: list[bytes], cuts: list[int], rest: bytes
) -> None:
    """Blank ones are left out, and what has no end yet stays."""
    cutter, found = LineCutter(), []
    for piece in pieces(b"".join(each + b"\n" for each in lines) + rest, cuts):
        found += cutter.feed(piece)
    assert found == [each for each in lines if each.strip()]
    assert cutter.rest == rest


def test_a_line_that_never_ends_is_refused() -> None:
    """In as many bytes as it may have, not when memory is full."""
    cutter = LineCutter(longest=100)
    cutter.feed(b"a" * 100)
    with pytest.raises(BrokenFrameError, match="longer than 100 bytes"):
        cutter.feed(b"a")


def test_a_long_line_may_come_in_many_pieces() -> None:
    """As an object of megabytes does, 2,048 bytes at a time."""
    line = b"x" * 3_000_000
    cutter, found = LineCutter(), []
    for piece in steps(line + b"\n", 2048):
        found += cutter.feed(piece)
    assert found == [line]


# Events.


@given(
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER", 'A"B']),
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.sampled_from(DUMPS),
)
def test_an_event_is_its_type_and_the_bytes_of_its_object(
    kind: str, thing: dict[str, Any], options: dict[str, Any]
) -> None:
    """Whatever the spelling, by both ways."""
    line = json.dumps({"type": kind, "object": thing}, **options).encode("utf-8", "replace")
    assert proved_event(line)[0] == kind
    for found, data in (cut_event(line), proved_event(line)):
        assert found == kind
        assert json.loads(data) == json.loads(json.dumps(thing))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"a":1},"more":{"b":2}}',
        b'{"type":"ADDED","object":{"a":2},"object":{"a":1}}',
        b'{"object":{"a":1},"type":"ADDED"}',
        b'{"type":"ADDED","object":{"a":1}}\r',
        b' {"type" : "ADDED" , "object":{"a":1}}',
        b'{"type":"\\u0041DDED","object":{"a":1}}',
    ],
)
def test_a_cut_that_is_no_json_is_mended_by_the_parser(line: bytes) -> None:
    """Odd spellings: what was cut out is the object, or cannot be read as one value."""
    kind, data = cut_event(line)
    try:
        json.loads(data)
    except ValueError:
        kind, data = proved_event(line)
    assert (kind, json.loads(data)) == ("ADDED", {"a": 1})


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"{}",
        b"[]",
        b"null",
        b'"text"',
        b'{"type":"ADDED"}',
        b'{"object":{}}',
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED","object":{"a":}}',
        b'{"type":"ADDED","object":{}',
        b'{"type":"ADDED","object":{}}}',
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_what_is_no_event_is_refused(line: bytes) -> None:
    """With the parser's complaint."""
    with pytest.raises(BrokenFrameError, match="a line of"):
        proved_event(line)


def test_a_complaint_keeps_what_it_complains_about_to_itself() -> None:
    """A Secret may be in the line; brackets and length are all that is told."""
    line = b'{"type":"ADDED","object":{"data":{"password":"hunter2"} oops}}'
    with pytest.raises(BrokenFrameError) as caught:
        proved_event(line)
    message = str(caught.value)
    assert f"a line of {len(line)} bytes" in message
    assert "hunter2" not in message
    assert "password" not in message
    assert "oops" not in message


# Lists.


@settings(max_examples=300, deadline=None)
@given(
    ITEMS,
    st.sampled_from(DUMPS),
    st.permutations(["apiVersion", "items", "kind", "metadata", "odd"]),
    st.lists(st.integers(0, 1_000_000), max_size=12),
    VALUES,
)
@either
def test_every_list_is_cut_into_its_items(
    on_trust: bool,
    things: list[Any],
    options: dict[str, Any],
    order: list[str],
    cuts: list[int],
    odd: Any,
) -> None:
    """In any order of keys and any layout, cut anywhere, with what looks like items inside."""
    content = {
        "apiVersion": "ex.io/v1",
        "items": things,
        "kind": "WidgetList",
        "metadata": {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3},
        "odd": [odd, {"items": [odd]}],
    }
    body = json.dumps({key: content[key] for key in order}, **options).encode("utf-8", "replace")
    items, meta = cut_list(pieces(body, cuts), on_trust=on_trust)
    assert [json.loads(item) for item in items] == json.loads(body)["items"]
    assert meta == ListMeta("7", "more", 3, "ex.io/v1", "WidgetList")


@settings(max_examples=150, deadline=None)
@given(ITEMS, st.sampled_from(DUMPS), st.integers(0, 1_000_000), st.integers(1, 300))
@either
def test_a_body_cut_short_is_noticed(
    on_trust: bool, things: list[Any], options: dict[str, Any], cut: int, size: int
) -> None:
    """At whatever byte; what came before is handed out as it is."""
    content = {"kind": "WidgetList", "items": things, "metadata": {"resourceVersion": "7"}}
    body = json.dumps(content, **options).encode("utf-8", "replace")
    short = body[: cut % len(body)]
    cutter, items = ItemCutter(on_trust=on_trust), []
    with pytest.raises(BrokenFrameError):  # noqa: PT012 - either may be the one that notices
        for piece in steps(short, size):
            items += fed(cutter, piece)
        cutter.finish()
    assert [json.loads(item) for item in items] == json.loads(body)["items"][: len(items)]


@pytest.mark.parametrize("size", [1, 7, 2048, 65_536, 10_000_000])
@either
def test_items_are_the_very_bytes_of_the_body(on_trust: bool, size: int) -> None:
    """Nothing is parsed and written again."""
    texts = [json.dumps(each, separators=(",", ":")).encode() for each in widgets(300, 500)]
    body = (
        b'{"apiVersion":"ex.io/v1","items":[' + b",".join(texts) + b'],"kind":"WidgetList",'
        b'"metadata":{"continue":"","resourceVersion":"9"}}\n'
    )
    items, meta = cut_list(steps(body, size), on_trust=on_trust)
    assert items == texts
    assert meta == ListMeta("9", "", None, "ex.io/v1", "WidgetList")


@either
def test_items_are_handed_out_before_the_body_ends(on_trust: bool) -> None:
    """Of 100 items in pieces of 2,048 bytes, all but the last few are out before the end."""
    body = json.dumps({"kind": "WidgetList", "items": widgets(400, 900)}).encode()
    cutter, held = ItemCutter(on_trust=on_trust), 0
    came = out = 0
    for piece in steps(body[:-200], 2048):
        came += len(piece)
        out += sum(map(len, fed(cutter, piece)))
        held = max(held, came - out)
    assert out > 300_000
    assert held < 150_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"WidgetList","items":null,"metadata":{"resourceVersion":"7"}}',
        b'{"items":[],"kind":"WidgetList","metadata":{"resourceVersion":"7"}}',
        b'{"kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":[ \n ]}\n',
        b'{"kind":"WidgetList","metadata":{"resourceVersion":"7"}}',
    ],
)
@either
def test_a_list_may_have_no_items(on_trust: bool, body: bytes) -> None:
    """Empty, null or left out."""
    for size in (1, len(body)):
        items, meta = cut_list(steps(body, size), on_trust=on_trust)
        assert items == []
        assert meta.version == "7"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no</html>",
        b"[]",
        b"{}",
        b"null",
        b'{"kind":"Status","code":1}',
        b'{"kind":"WidgetList","items":[{"a":1},]}',
        b'{"kind":"WidgetList","items":[,{"a":1}]}',
        b'{"kind":"WidgetList","items":[{"a":1}{"b":1}]}',
        b'{"kind":"WidgetList","items":[}]}',
        b'{"kind":"WidgetList","items":[{"a":1}]}}',
        b'{"kind":"WidgetList","items":[{"a":]}',
        b'{"kind":"WidgetList","items":{"a":1}}',
        b'{"kind":"WidgetList","items":[{"a":1}],}',
        b'{"kind":"WidgetList","items":[[}]]}',
        b'{"kind":5,"items":[]}',
        b'{"kind":"WidgetList","items":[{"a":1}],"odd":' + b"[" * 3000 + b"]" * 3000 + b"}",
    ],
)
@either
def test_a_body_that_is_no_list_is_refused(on_trust: bool, body: bytes) -> None:
    """Whole or byte by byte."""
    for size in (1, 1000):
        with pytest.raises(BrokenFrameError):
            cut_list(steps(body, size), on_trust=on_trust)


@either
def test_items_of_several_shapes_are_told_apart(on_trust: bool) -> None:
    """What one item looks like is no rule for the next: it only saves time."""
    things = [each if number % 3 else {"odd": [number]} for number, each in enumerate(widgets(600))]
    body = json.dumps({"kind": "List", "items": [None, *things, 5]}).encode()
    for size in (700, 100_000):
        items, _ = cut_list(steps(body, size), on_trust=on_trust)
        assert [json.loads(item) for item in items] == [None, *things, 5]


@either
def test_lists_inside_an_item_are_no_items(on_trust: bool) -> None:
    """An item that holds objects just like itself."""
    inner = widgets(50, 2000)
    things = [each | {"spec": {"copies": inner}} for each in widgets(6)]
    body = json.dumps({"items": things, "kind": "WidgetList"}, separators=(",", ":")).encode()
    for size in (2048, 65_536):
        items, _ = cut_list(steps(body, size), on_trust=on_trust)
        assert [json.loads(item) for item in items] == things


@either
def test_an_item_that_only_some_parsers_read_is_left_to_its_reader(on_trust: bool) -> None:
    """Numbers out of range, half a surrogate pair, nesting without end: none ends the list."""
    odd = [b'{"a":1e999}', b'{"a":"\\ud800"}', b"[" * 3000 + b"]" * 3000, b'{"a":"\xff"}']
    body = b'{"kind":"List","items":[' + b",".join(odd) + b"]}"
    items, _ = cut_list(steps(body, 1000), on_trust=on_trust)
    assert items == odd


@either
def test_what_never_becomes_a_list_is_not_collected_for_ever(on_trust: bool) -> None:
    """A megabyte without items is enough."""
    with pytest.raises(BrokenFrameError, match="longer than"):
        cut_list((b'{"a":1,' * 200 for _ in range(3000)), on_trust=on_trust)


@either
def test_recorded_lists_are_cut_as_they_were_written(on_trust: bool) -> None:
    """Bodies of a real API server, built-ins and custom resources, pages and pretty ones."""
    recorded = json.loads((Path(__file__).parent / "data" / "lists.json").read_text())
    assert recorded
    for name, text in recorded.items():
        body = text.encode()
        whole = json.loads(body)
        for size in (1, 100, len(body)):
            items, meta = cut_list(steps(body, size), on_trust=on_trust)
            assert [json.loads(item) for item in items] == (whole["items"] or []), name
            assert meta.version == whole["metadata"]["resourceVersion"], name
            assert meta.continue_ == whole["metadata"].get("continue", ""), name
            assert meta.remaining == whole["metadata"].get("remainingItemCount"), name
            assert (meta.api_version, meta.kind) == (whole["apiVersion"], whole["kind"]), name


@pytest.mark.parametrize("kind", [b"\xff", b"A\xc3(", b"\\ud800"])
def test_a_type_that_is_no_text_is_no_event(kind: bytes) -> None:
    """It is a broken frame, as any other line that makes no sense."""
    line = b'{"type":"%b","object":{}}' % kind
    with pytest.raises(BrokenFrameError, match="a line of"):
        cut_event(line)


def test_a_type_of_megabytes_is_no_event() -> None:
    """Nothing is made of it but a complaint."""
    with pytest.raises(BrokenFrameError, match="too long"):
        cut_event(b'{"type":"' + b"a" * 5_000_000 + b'","object":{}}')


@given(mutated([line("ADDED", obj("a", "5", spec=["é", 1.5, {"y": "\U0001f600"}])).rstrip(b"\n")]))
def test_whatever_a_line_is_it_is_an_event_or_a_broken_frame(data: bytes) -> None:
    """Of a type that is text."""
    with suppress(BrokenFrameError):
        kind, _ = cut_event(data)
        assert kind.encode().decode() == kind


@pytest.mark.parametrize("size", [999, 4096, 131_072])
@either
def test_items_of_any_size_are_cut_alike(on_trust: bool, size: int) -> None:
    """Long ones are followed from piece to piece, through texts that are cut anywhere."""
    texts = ["]}\\", '"},{"', '\\\\"', "\\" * 70_001, "é" * 40_000, '"' * 70_000, "[{,"]
    things = [
        each | {"spec": {"more": [texts[number % 7]] * (number % 3)}}
        for number, each in enumerate(widgets(30))
    ]
    body = json.dumps({"kind": "WidgetList", "items": things}, separators=(",", ":")).encode()
    items, meta = cut_list(steps(body, size), on_trust=on_trust)
    assert [json.loads(item) for item in items] == things
    assert meta.kind == "WidgetList"


@pytest.mark.parametrize("unit", [b'""', b"a", b"\\", b'"[{},'])
@either
def test_an_item_that_never_ends_is_refused(on_trust: bool, unit: bytes) -> None:
    """Once it is longer than any object can be, though no bracket closes and no text ends."""
    piece = unit * (131_072 // len(unit))
    with pytest.raises(BrokenFrameError, match=r"an item of .* longer than 16,777,216 bytes"):
        cut_list(chain([b'{"kind":"List","items":[[0,'], repeat(piece, 200)), on_trust=on_trust)
