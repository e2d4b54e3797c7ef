"""Continue tokens are written as the real server writes them, and refused in its words."""

from __future__ import annotations

import base64

import pytest

from dyninformer.testing.cluster.lists import ContinueToken, parse_continue
from dyninformer.testing.status import ApiError


def _token(content: str) -> str:
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def test_a_token_is_the_recorded_text() -> None:
    """base64url without padding, a slash before the start if it comes from the cache."""
    token = ContinueToken(469, "ns2/p0\0")
    assert token.encode(from_cache=True) == (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDY5LCJzdGFydCI6Ii9uczIvcDBcdTAwMDAifQ"
    )
    assert ContinueToken(-1, "ns2/p0\0").encode(from_cache=False) == (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoibnMyL3AwXHUwMDAwIn0"
    )


@pytest.mark.parametrize("from_cache", [True, False])
def test_a_token_is_read_back_as_it_was_written(from_cache: bool) -> None:
    """With the slash or without."""
    token = ContinueToken(469, "ns2/p0\0")
    assert parse_continue(token.encode(from_cache=from_cache)) == token


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("a", "illegal base64 data at input byte 0"),
        (_token("hello world!") + "=", "illegal base64 data at input byte 16"),
        ("garbage", r"invalid character '\u0081' looking for beginning of value"),
        (_token("é"), "invalid character 'Ã' looking for beginning of value"),
        (_token("hello"), "invalid character 'h' looking for beginning of value"),
        (_token("{"), "unexpected end of JSON input"),
        (_token("{} x"), "invalid character 'x' after top-level value"),
        (_token('{"a"}'), "invalid character '}' after object key"),
        (
            _token("[]"),
            "json: cannot unmarshal array into Go value of type storage.continueToken",
        ),
        (
            _token('"x"'),
            "json: cannot unmarshal string into Go value of type storage.continueToken",
        ),
        (
            _token("1"),
            "json: cannot unmarshal number into Go value of type storage.continueToken",
        ),
        (_token("null"), "server does not recognize this encoded version "),
        (_token("{}"), "server does not recognize this encoded version "),
        (_token('{"v":"v2"}'), "server does not recognize this encoded version v2"),
        (
            _token('{"v":1}'),
            "json: cannot unmarshal number into Go struct field continueToken.v of type string",
        ),
        (
            _token('{"v":"meta.k8s.io/v1"}'),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            _token('{"v":"meta.k8s.io/v1","rv":5}'),
            "encoded start key empty (version meta.k8s.io/v1)",
        ),
        (
            _token('{"v":"meta.k8s.io/v1","rv":"5"}'),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (_token('{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}'), "../x"),
    ],
)
def test_a_bad_token_is_refused_in_the_recorded_words(text: str, why: str) -> None:
    """Each complaint was recorded of a kube-apiserver 1.36.3."""
    with pytest.raises(ApiError) as caught:
        parse_continue(text)
    assert caught.value.code == 400
    assert caught.value.message == f"invalid continue token: continue key is not valid: {why}"
