"""How values are written back: numbers, escapes, nulls, and what is left empty."""

from __future__ import annotations

import json

import pytest

from tests.conformance.cluster import Collection


def _kept(blobs: Collection, text: str) -> str:
    """What `value` has become after it was stored."""
    body = f'{{"apiVersion":"loose.io/v1","kind":"Blob","metadata":{{"name":"v"}},"value":{text}}}'
    answer = blobs.api.post(blobs.path, body.encode())
    assert answer.status == 201, answer.text
    assert blobs.api.get(blobs.at("v")).text == answer.text
    kept = answer.text.rstrip("\n").partition(',"value":')[2]
    assert kept.endswith("}")
    return kept[:-1]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1", "1"), ("1.0", "1"), ("1e3", "1000"), ("1e21", "1e+21"), ("-0.0", "0"),
        ("0.1", "0.1"), ("-5", "-5"), ("1.5e-7", "1.5e-7"), ("123456789.125", "123456789.125"),
        ("9007199254740993", "9007199254740993"), ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"), ("-9223372036854775808",
        "-9223372036854775808"), ("1e20", "100000000000000000000"), ("1e-6", "0.000001"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_go_writes_them(blobs: Collection, sent: str, kept: str) -> None:
    """int64 exactly, everything else as the shortest float."""
    assert _kept(blobs, sent) == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('"<a&b>"', '"\\u003ca\\u0026b\\u003e"'),
        ('"\u2028\u2029"', '"\\u2028\\u2029"'),
        ('"é日本😀"', '"é日本😀"'),
        ('"\\u00e9"', '"é"'),
        ('"\x7f"', '"\x7f"'),
        ('"\\t\\n\\r\\"\\\\"', '"\\t\\n\\r\\"\\\\"'),
        ('"\\u0001"', '"\\u0001"'),
        ('"\\b\\f"', '"\\b\\f"'),
        ('"a\\/b"', '"a/b"'),
    ],
)
def test_strings_are_escaped_as_go_escapes_them(blobs: Collection, sent: str, kept: str) -> None:
    """HTML characters and line separators are escaped, other text is UTF-8."""
    assert _kept(blobs, sent) == kept


@pytest.mark.parametrize("text", ["null", "{}", "[]", '""', "[null]", "false", '{"a":null}'])
def test_what_is_empty_is_kept(blobs: Collection, text: str) -> None:
    """Nulls and empty values survive where unknown fields do."""
    assert _kept(blobs, text) == text


def test_keys_are_sorted_at_every_level(blobs: Collection) -> None:
    """By bytes: upper case first, then lower case, then other alphabets."""
    sent = '{"b":{"z":1,"a":2},"B":1,"é":1,"a":[{"d":1,"c":2}]}'
    assert _kept(blobs, sent) == '{"B":1,"a":[{"c":2,"d":1}],"b":{"a":2,"z":1},"é":1}'


def test_deep_nesting_is_kept(blobs: Collection) -> None:
    """A hundred levels are nothing special."""
    text = "[" * 100 + "]" * 100
    assert _kept(blobs, text) == text


def test_unicode_in_labels_is_refused_and_in_annotations_kept(blobs: Collection) -> None:
    """Annotations hold any text; label values do not."""
    obj = {"apiVersion": "loose.io/v1", "kind": "Blob", "metadata": {"name": "u"}}
    annotated = {**obj, "metadata": {"name": "u", "annotations": {"x/y": "é <&>"}}}
    assert blobs.create(annotated)["metadata"]["annotations"] == {"x/y": "é <&>"}
    labelled = {**obj, "metadata": {"name": "l", "labels": {"x": "é"}}}
    answer = blobs.api.post(blobs.path, json.dumps(labelled).encode())
    assert answer.status == 422
    assert answer.json["details"]["causes"][0]["field"] == "metadata.labels"
