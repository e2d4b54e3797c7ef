"""What fuzzing starts from: well-formed inputs, what once broke a promise, and words to put in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutated import JSON_TOKENS

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
_TOKENS: Final[dict[str, Sequence[bytes]]] = {
    "jsonpath": _JSONPATH,
    "selectors": _SELECTOR,
    "kubeconfig": _YAML,
    "chunked_body": _CHUNKED,
}


def seeds(target: str) -> list[bytes]:
    """The inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def tokens(target: str) -> Sequence[bytes]:
    """The words of its language."""
    return _TOKENS.get(target, JSON_TOKENS)
