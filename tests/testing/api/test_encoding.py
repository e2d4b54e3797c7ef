"""JSON is written as Go writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.testing.api.encoding import encode, pretty, write_yaml
from tests.testing.cluster.recordings import recorded


@pytest.mark.parametrize("name", ["create", "get (bytes in bodyText)"])
def test_the_recorded_values_are_written_byte_for_byte(name: str) -> None:
    """Escapes, key order, integers of 64 bits, floats with and without exponent."""
    raw: str = recorded("json-values", name)["response"]["raw"]
    assert encode(json.loads(raw)) + b"\n" == raw.encode()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1.0", "1"), ("-0.0", "0"), ("1e3", "1000"), ("1.5", "1.5"), ("0.1", "0.1"),
        ("1e-6", "0.000001"), ("1e-7", "1e-7"), ("-1.5e-10", "-1.5e-10"),
        ("1e20", "100000000000000000000"), ("1e21", "1e+21"), ("1e16", "10000000000000000"),
        ("5e-324", "5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("100000.5", "100000.5"), ("12345678.9", "12345678.9"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"), ("true", "true"), ("null", "null"),
    ],
)  # fmt: skip
def test_a_number_has_the_recorded_form_wherever_it_stands(text: str, written: str) -> None:
    """Alone, in a list, in a map, and deep inside."""
    value = json.loads(text)
    assert encode(value).decode() == written
    assert encode([value, value]).decode() == f"[{written},{written}]"
    assert encode({"a": value}).decode() == f'{{"a":{written}}}'
    assert encode([{"a": [0, [value]]}]).decode() == f'[{{"a":[0,[{written}]]}}]'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("<&>", '"\\u003c\\u0026\\u003e"'),
        ("\u2028\u2029", '"\\u2028\\u2029"'),
        ("\b\f\n\r\t\x0b\x1f\x7f/", '"\\b\\f\\n\\r\\t\\u000b\\u001f\x7f/"'),
        ("é😀", '"é😀"'),
        ("\ud800x", '"\ufffdx"'),
        ({"<": "x:1.5", "image": "[1.5,2.5]"}, '{"\\u003c":"x:1.5","image":"[1.5,2.5]"}'),
    ],
)
def test_text_is_escaped_as_go_escapes_it(value: Any, written: str) -> None:
    """Also keys, and text that looks like numbers."""
    assert encode(value).decode() == written


def test_keys_are_sorted_or_left_as_they_are() -> None:
    """By bytes, at every level."""
    value = {"b": 1, "B": {"z": 1.5, "a": 2}}
    assert encode(value) == b'{"B":{"a":2,"z":1.5},"b":1}'
    assert encode(value, sort=False) == b'{"b":1,"B":{"z":1.5,"a":2}}'


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=12,
)


@given(_json)
def test_what_is_written_means_what_it_meant(value: Any) -> None:
    """Reading it back gives equal values, integers past 64 bits as the nearest float."""
    assert _same(json.loads(encode(value)), value)


@given(_json)
def test_pretty_is_what_python_indents(value: Any) -> None:
    """Two spaces a level, empty objects and lists on one line, a newline at the end."""
    plain = encode(value, sort=False)
    shown = pretty(plain).decode()
    assert shown.endswith("\n")
    assert "".join(_tokens(shown)) == "".join(_tokens(plain.decode()))
    assert json.dumps(json.loads(plain), indent=2).count("\n") == shown.count("\n") - 1


def _same(read: Any, written: Any) -> bool:
    if isinstance(written, dict):
        return list(read) == sorted(written) and all(_same(read[k], written[k]) for k in written)
    if isinstance(written, list):
        return len(read) == len(written) and all(map(_same, read, written))
    if isinstance(written, float) or (isinstance(written, int) and abs(written) > 1 << 63):
        return float(read) == float(written)
    return bool(read == written)


def _tokens(text: str) -> list[str]:
    """The text without the white space between tokens."""
    inside, out, escaped = False, [], False
    for letter in text:
        if inside or not letter.isspace():
            out.append(letter)
        if letter == '"' and not escaped:
            inside = not inside
        escaped = letter == "\\" and not escaped
    return out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [{"x": "y z"}]}, "a:\n- x: y z\nb: 1\n"),
        ({"t": "2026-01-01T00:00:00Z"}, 't: "2026-01-01T00:00:00Z"\n'),
        ({"t": "true", "u": "1", "v": "", "w": "null"}, 't: "true"\nu: "1"\nv: ""\nw: "null"\n'),
        ({"y": "n"}, '"y": "n"\n'),
        ({"q": "a: b"}, "q: 'a: b'\n"),
        ({"m": "a\nb"}, "m: |-\n  a\n  b\n"),
        ({"e": {}, "l": []}, "e: {}\nl: []\n"),
        ({"u": "é"}, "u: é\n"),
    ],
)
def test_text_is_quoted_as_go_quotes_it(value: Any, text: str) -> None:
    """What would be read as another type is in double quotes, what must be in single ones."""
    assert write_yaml(value).decode() == text


@pytest.mark.parametrize(
    "text", ["", "~", "0x1f", "1e3", ".inf", "=", "on", "- a", "#", "a\n\n", "\t"]
)
def test_what_is_written_reads_back(text: str) -> None:
    """Any string comes back as that string."""
    assert yaml.safe_load(write_yaml({"k": text})) == {"k": text}


def test_other_readers_of_yaml_are_left_as_they_are() -> None:
    """The dialect is this server's own: PyYAML reads for everybody else as ever."""
    assert yaml.safe_load("n") == "n"
