"""The escapes of a quoted text in kubectl's dialect, which are Go's."""

from __future__ import annotations

import re

_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def unquote(body: str, quote: str) -> str:
    """Go's escapes of a quoted string; ValueError for one that Go refuses."""
    out = bytearray()
    at = 0
    while at < len(body):
        char = body[at]
        if char == quote:
            raise ValueError(f"a {quote} of its own")
        if char != "\\":
            out += char.encode("utf-8", "replace")
            at += 1
            continue
        piece, at = _escape(body, at + 1, quote)
        out += piece
    return out.decode("utf-8", "replace")


def _escape(body: str, at: int, quote: str) -> tuple[bytes, int]:
    """The bytes of the escape whose letter stands at ``at``, and the place behind it."""
    char = body[at : at + 1]
    bad = ValueError(f"the escape '\\{char}' is unknown")
    if char in _ESCAPES and char:
        return _ESCAPES[char].encode(), at + 1
    if char in _HEX_DIGITS:
        digits = body[at + 1 : at + 1 + _HEX_DIGITS[char]]
        if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX_DIGITS[char]}}}", digits):
            raise bad
        code = int(digits, 16)
        if char == "x":
            return bytes([code]), at + 3
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise bad
        return chr(code).encode(), at + 1 + len(digits)
    if re.fullmatch("[0-7]{3}", octal := body[at : at + 3]) and int(octal, 8) <= 0xFF:
        return bytes([int(octal, 8)]), at + 3
    if char == quote:
        return quote.encode(), at + 1
    raise bad
