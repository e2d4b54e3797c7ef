"""Bodies: what is read from them, and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.cluster.bodies import BodyError, decode_json, decode_object, decode_yaml
from dyninformer.testing.status import ApiError

AT_VALUE = "looking for beginning of value"
AT_KEY = "looking for beginning of object key string"
OF_STRING = "into Go struct field .apiVersion of type string"
UNRECOGNIZED = "the object provided is unrecognized (must be of type Val): "
HANDLED = 'Val in version "v1" cannot be handled as a Val: '
PARSE = f"{UNRECOGNIZED}couldn't get version/kind; json parse error: "


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", f"{PARSE}unexpected end of JSON input (<empty>)"),
        (b"{", f"{PARSE}unexpected end of JSON input ({{)"),
        (b'{"a":NaN}', f"{PARSE}invalid character 'N' {AT_VALUE} ({{\"a\":NaN}})"),
        (b'{"a":1} x', f"{PARSE}invalid character 'x' after top-level value ({{\"a\":1}} x)"),
        (b"{'a':1}", f"{PARSE}invalid character '\\'' {AT_KEY} ({{'a':1}})"),
        (b"\xef\xbb\xbf{}", f"{PARSE}invalid character 'ï' {AT_VALUE} (efbbbf7b7d)"),
        (b"null", f"{UNRECOGNIZED}Object 'Kind' is missing in 'null' (6e756c6c)"),
        (
            b'{"apiVersion":1}',
            f'{PARSE}json: cannot unmarshal number {OF_STRING} ({{"apiVersion":1}})',
        ),
        (
            b'{"a":1e999}',
            f"{HANDLED}json: cannot unmarshal number 1e999 into Go value of type float64",
        ),
    ],
)
def test_a_body_that_is_no_object_is_told_of_in_gos_words(raw: bytes, message: str) -> None:
    """The texts are those of kube-apiserver 1.36."""
    with pytest.raises(ApiError) as caught:
        decode_object(raw, "Val")
    assert (caught.value.code, caught.value.message) == (400, message)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"[1.0, 1e3, -0.0, 1e21]", [1, 1000, 0, 1e21]),
        (b"[9007199254740993, 9223372036854775807]", [9007199254740993, 9223372036854775807]),
        (b"[9223372036854775808]", [9.223372036854775808e18]),
        (b'["\\ud800", "\xff", "\\ud83d\\ude00"]', ["\ufffd", "\ufffd", "\U0001f600"]),
    ],
)
def test_numbers_and_text_are_kept_as_the_server_keeps_them(raw: bytes, value: Any) -> None:
    """Whole floats are integers, what passes 64 bits is a float, broken text is U+FFFD."""
    found, _ = decode_json(raw)
    assert found == value
    assert [type(each) for each in found] == [type(each) for each in value]


def test_repeated_fields_are_named_by_their_path() -> None:
    """Each repetition is one complaint; the last value counts."""
    value, complaints = decode_json(b'{"m":{"a":1,"a":2},"l":[{"b":1,"b":2,"b":3}]}')
    assert value == {"m": {"a": 2}, "l": [{"b": 3}]}
    named = ("m.a", "l[0].b", "l[0].b")
    assert complaints == tuple(f'duplicate field "{path}"' for path in named)


def test_yaml_becomes_what_json_can_hold() -> None:
    """Dates stay text, keys become text, yes and no are booleans, repeated keys are reported."""
    value, complaints = decode_yaml(b"a: 1\nb: 2020-01-01\nc: yes\nd: {1: 2, no: x}\na: 3\n")
    assert value == {"a": 3, "b": "2020-01-01", "c": True, "d": {"1": 2, "false": "x"}}
    assert complaints == ('line 5: key "a" already set in map',)


def test_of_several_documents_the_first_counts() -> None:
    """What follows the first document is not looked at."""
    assert decode_yaml(b"a: 1\n---\nb: [\n") == ({"a": 1}, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", False),
        ("Y", True),
        ("on", True),
        ("~", None),
        ("", None),
        ("0x10", 16),
        ("017", 15),
        ("0o17", 15),
        ("08", 8),
        ("1_000", 1000),
        ("1e3", 1000),
        ("+.5", 0.5),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("1e400", "1e400"),
        ("!!str 5", "5"),
        ("!!float 5", 5),
        ("!foo 5", "5"),
        ("!!python/object:os.system x", "x"),
        ("!!set {b}", {"b": None}),
        ("18446744073709551616", 18446744073709551616.0),
        (
            "[&x {c: 1}, {<<: *x, d: 2}, {<<: [*x, {e: 1}], c: 3}]",
            [{"c": 1}, {"c": 1, "d": 2}, {"c": 3, "e": 1}],
        ),
    ],
)
def test_yaml_is_read_by_the_rules_of_the_server(text: str, value: object) -> None:
    """Scalars and merges mean what they mean to kube-apiserver, not what PyYAML makes of them."""
    assert decode_yaml(f"a: {text}\n".encode()) == ({"a": value}, ())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", "yaml: line 1: did not find expected node content"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a:\n  - b\n c: d", "yaml: line 2: did not find expected key"),
        ("a: 1\nb: @", "yaml: line 2: found character that cannot start any token"),
        ("a: *y", "yaml: unknown anchor 'y' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: !!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"),
        ("a: !!binary x", "yaml: !!binary value contains invalid base64 data"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: \0", "yaml: control characters are not allowed"),
    ],
)
def test_a_mistake_in_yaml_is_told_in_the_words_of_the_server(text: str, complaint: str) -> None:
    """The words, and the line as the server counts it, are those of kube-apiserver 1.36."""
    with pytest.raises(BodyError) as refused:
        decode_yaml(text.encode())
    assert str(refused.value) == complaint


@pytest.mark.parametrize(
    "raw",
    [
        b"a: [b\n",
        b"a: &a [*a]\n",
        b"- " * 100_000,
        b"? [a]\n: 1\n",
        b"a: .inf",
        b"a: !!int x",
        b"a: !!timestamp 2020-99-99",
        b"{" * 100_000,
        b"a: &a [x,x,x,x,x,x,x,x]\n"
        + b"".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 8)}]\n".encode()
            for n in range(12)
        ),
    ],
)
def test_yaml_that_means_harm_is_refused(raw: bytes) -> None:
    """Depth, aliases, tags and values beyond JSON end in one kind of error."""
    with pytest.raises(BodyError):
        decode_yaml(raw)


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000])
def test_json_that_nests_too_deeply_is_refused(raw: bytes) -> None:
    """The complaint is the real server's, whose limit is higher."""
    with pytest.raises(BodyError, match="exceeded max depth"):
        decode_json(raw)
