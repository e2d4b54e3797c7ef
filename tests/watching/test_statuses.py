"""Refusals read (S28)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from dyninformer.watching.statuses import is_json, refusal, retry_after, status_of
from tests.mutated import mutated, mutated_text

BUSY = json.dumps(
    {
        "kind": "Status", "message": "busy", "reason": "TooManyRequests", "code": 429,
        "details": {"name": "x", "retryAfterSeconds": 1},
    }
).encode()  # fmt: skip


def test_a_status_is_read() -> None:
    """Code, reason, message, and what it is about."""
    found = refusal(429, {"Retry-After": "7"}, BUSY, 0.0)
    assert (found.status.code, found.status.reason) == (429, "TooManyRequests")
    assert (found.status.message, found.status.name) == ("busy", "x")
    assert found.retry_after == 7.0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"404 page not found\n", "404 page not found\n"),
        (b"", "no more is said"),
        (b"{}", "{}"),
        (b"\xff", "�"),
        (b"x" * 1000, "x" * 300),
        (b'{"message": 5}', '{"message": 5}'),
    ],
)
def test_what_is_no_status_is_text(body: bytes, said: str) -> None:
    """As proxies and overloaded servers write, and no more than the beginning."""
    found = refusal(503, {}, body, 0.0)
    assert (found.status.code, found.status.message) == (503, said)


def test_the_http_status_counts_not_the_bodys() -> None:
    """They may differ behind a proxy."""
    assert refusal(503, {}, BUSY, 0.0).status.code == 503


def test_an_answer_of_another_type_is_named() -> None:
    """A login page, say."""
    found = refusal(200, {"Content-Type": "text/html"}, b"<html>", 0.0)
    assert "text/html" in found.status.message


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("application/json", True),
        ("application/json;stream=watch", True),
        ("Application/JSON ; charset=utf-8", True),
        ("", True),
        ("application/vnd.kubernetes.protobuf", False),
        ("text/html", False),
        ("application/jsonlines", False),
    ],
)
def test_only_json_is_json(kind: str, expected: bool) -> None:
    """Nothing said is taken as JSON."""
    assert is_json({"Content-Type": kind} if kind else {}) is expected


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("9" * 400, 9999999999.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("١٢", None),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(said: str, seconds: float | None) -> None:
    """What is neither is as if it were not there (S28)."""
    assert retry_after({"Retry-After": said}, 100.0) == seconds


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b'{"code":"x"}', b"{" * 9999])
def test_what_cannot_be_read_is_no_status(body: bytes) -> None:
    """None is said, nothing is raised."""
    assert status_of(body) is None


@given(
    mutated([BUSY]),
    mutated_text(
        ["Thu, 01 Jan 1970 00:01:00 GMT", "5", "Thu, 01 Jan 99999 00:01:00 +9999"],
        [" ", ",", ":", "-", "9999999999", "+", "GMT", "\xff", "()", "\\", '"', "\0", "<", "@"],
    ),
)
def test_whatever_a_refusal_is_it_is_read(body: bytes, header: str) -> None:
    """With a wait that can be waited, if it has one."""
    found = refusal(429, {"Retry-After": header, "Content-Type": header}, body, 50.0)
    assert found.status.code == 429
    assert found.retry_after is None or 0 <= found.retry_after < float("inf")
    is_json({"Content-Type": header})
