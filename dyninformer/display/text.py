"""Cluster data made safe to show: nothing in it can move a cursor, colour, or misalign."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

# C0 and C1 controls, and what reorders or hides text: bidirectional marks, zero width, tags.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_UNSAFE_IN_LINES: Final = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "^["}


class Line(NamedTuple):
    """Text that is safe to show, and the colour of a part of it on a terminal."""

    text: str
    colour: str = ""
    start: int = 0
    end: int | None = None


def visible(text: str) -> str:
    r"""The text on one line, with everything that a terminal would act on spelled out.

    >>> visible("red \x1b[31m alert\n")
    'red ^[[31m alert\\n'
    """
    if text.isascii() and text.isprintable():  # nearly all are, and this is quick
        return text
    return _UNSAFE.sub(_spelled, text)


def visible_lines(text: str) -> str:
    """The same, but line breaks and tabs stay: for texts of several lines."""
    if _UNSAFE_IN_LINES.search(text) is None:
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def width(text: str) -> int:
    """The columns that text takes in a terminal: wide characters two, combining ones none.

    >>> width("日本"), width("é"), width("a")
    (4, 1, 1)
    """
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def padded(text: str, columns: int) -> str:
    """The text with blanks up to a width."""
    return text + " " * (columns - width(text))


def _spelled(found: re.Match[str]) -> str:
    character = found[0]
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
