"""What fuzzing starts from: well-formed inputs, what once broke a promise, and words to put in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutated import JSON_TOKENS
from tests.transport.servers import frame

CORPUS: Final = Path(__file__).parent / "corpus"
FOUND: Final = Path(__file__).parent / "found"
"""Where the inputs go that break a promise."""

_JSONPATH: Final = (
    rb"""{ } $ @ . .. [ ] * ?( ) ' " \ : -1 {range {end} == != =~ & `len` `parent` , |""".split()
)
_SELECTOR: Final = (b" in ", b" notin ", *rb"= == != ! , ( ) > < / \ \, -".split())
_YAML: Final = (
    *(b"- ", b": ", b"\t", b"\n  ", b"---\n", b"name: ", b"server: ", b"token: "),
    *b"{ } &a *a <<: !!python/object | ~".split(),
)
_CHUNKED: Final = (b"\r\n", b"0\r\n\r\n", b";", b"\r", b"\n", b"0x", b"+", b"_", b"ffffffff", b" ")
_HTTP1: Final = (
    *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.0 ", b"\r\n\r\n", b": "),
    *(b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
    *(b"0\r\n\r\n", b"5\r\nhello\r\n"),
)
_HTTP2: Final = (
    *(frame(kind, flags, 1, b"\x88") for kind in range(10) for flags in (0, 1, 4, 5, 8, 32)),
    *(frame(0, 0, 3, b"x"), frame(4, 0, 0), frame(6, 0, 0, b"12345678"), frame(7, 0, 0, bytes(8))),
    *(b"\0\0\1", b"\0\0\0\1", b"\0\0\0\3", b"\x88\x5c\x01\x35"),
)
_TOKENS: Final[dict[str, Sequence[bytes]]] = {
    "jsonpath": _JSONPATH,
    "selectors": _SELECTOR,
    "kubeconfig": _YAML,
    "chunked_body": _CHUNKED,
    "http1": _HTTP1,
    "http2": _HTTP2,
}


def seeds(target: str) -> list[bytes]:
    """The inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def tokens(target: str) -> Sequence[bytes]:
    """The words of its language."""
    return _TOKENS.get(target, JSON_TOKENS)
