"""How deep and how large JSON is, told from its bytes without reading what they say.

A few bytes can stand for many: ``{}`` is 3 bytes with its comma, and a dict of 64. So what may
come from anybody is measured here first, in time and memory that its length bounds.
"""

from __future__ import annotations

import re
import sys
from typing import Final

__all__ = [
    "DEEPEST",
    "MOST_VALUES",
    "Brackets",
    "decoded_size",
    "shallow",
    "too_deep",
    "too_many_values",
]

DEEPEST: Final = 1000
"""What is nested deeper than this is refused, whatever the interpreter could still read.

API servers refuse at 10,000. But what Python does with an object level by level, from
``copy.deepcopy`` to printing it, ends at its recursion limit, which is 1,000 unless changed.
"""

MOST_VALUES: Final = 1_000_000
"""An object of more is refused. They take 2 MB at least, and etcd takes 1.5 MB; to decode ten times
as many would take a gigabyte, and seconds in which no other thread runs."""

_LIST_BYTES, _OBJECT_BYTES = 2, 5  # ``[]`` and ``{"":}``: a level takes no less
_VALUE_BYTES = 64  # of memory, for each comma or bracket: more than nearly all of them cost
_FRAMES_LIMIT_DECODING = sys.version_info < (3, 12)
_TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])|([\]}])|(,)|(")', re.DOTALL
)  # a whole text, or one of: opening, closing, comma, a text that goes on
_OPENING, _CLOSING, _COMMA, _UNENDED = 1, 2, 3, 4
_REST_OF_TEXT: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class Brackets:
    """Follows the brackets of JSON that comes in pieces, cut anywhere. For one thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.in_text = False
        """What was followed so far ends inside of quotes."""
        self._escaped = False  # and there after a backslash

    def follow(self, piece: bytes, start: int = 0, stop: int = sys.maxsize) -> int:
        """Where the first comma is, or closing bracket, that no bracket is open around.

        From ``start`` to before ``stop``; -1 if there is none: what follows is the next piece.
        """
        stop = min(stop, len(piece))
        if self.in_text:
            start = self._leave_text(piece, start, stop)
        depth = self.depth
        for token in _TOKEN.finditer(piece, start, stop):
            kind = token.lastindex
            if kind is None:
                continue
            if kind == _OPENING:
                depth += 1
            elif kind == _CLOSING:
                if depth == 0:
                    self.depth = 0
                    return token.start()
                depth -= 1
            elif kind == _COMMA:
                if depth == 0:
                    self.depth = 0
                    return token.start()
            else:
                self.in_text = True
                self._escaped = _ends_escaped(piece, token.end(), stop)
                break
        self.depth = depth
        return -1

    def _leave_text(self, piece: bytes, start: int, stop: int) -> int:
        """Where the text ends that the last piece ended in; ``stop`` if it goes on."""
        if start >= stop:
            return stop
        if self._escaped:
            start += 1
            self._escaped = False
        found = _REST_OF_TEXT.match(piece, start, stop)
        if found is None:
            self._escaped = _ends_escaped(piece, start, stop)
            return stop
        self.in_text = False
        return found.end()


def _ends_escaped(piece: bytes, start: int, stop: int) -> bool:
    """The last of these bytes of a text is a backslash that makes the next one part of it."""
    return (stop - start - len(piece[start:stop].rstrip(b"\\"))) % 2 == 1


def shallow(data: bytes, deepest: int, longest: int) -> bytes:
    """An object's JSON, with null for whatever lies deeper than ``deepest``.

    Of one longer than ``longest``, no more than the members that end before that.
    """
    if len(data) > longest:
        data = _first_members(data, longest)
    parts: list[bytes] = []
    depth = copied = 0
    for token in _TOKEN.finditer(data):
        kind = token.lastindex
        if kind == _OPENING:
            depth += 1
            if depth == deepest + 1:
                parts += (data[copied : token.start()], b"null")
        elif kind == _CLOSING:
            depth -= 1
            if depth == deepest:
                copied = token.end()
    return b"".join((*parts, data[copied:])) if parts else data


def _first_members(data: bytes, longest: int) -> bytes:
    depth = end = 0
    for token in _TOKEN.finditer(data, 0, longest):
        kind = token.lastindex
        if kind == _OPENING:
            depth += 1
        elif kind == _CLOSING:
            depth -= 1
        elif kind == _COMMA and depth == 1:
            end = token.start()
        elif kind == _UNENDED:
            break
    return data[:end] + b"}" if end else b"{}"


def too_deep(data: bytes) -> bool:
    """It is nested deeper than `DEEPEST`.

    Python 3.11 counts the levels of a decode as calls, so that there, with its usual limit, the
    decoders refuse by themselves what this would: it says no then, and costs nothing.
    """
    length = len(data)
    if length < DEEPEST * _LIST_BYTES:
        return False
    if _FRAMES_LIMIT_DECODING and sys.getrecursionlimit() <= DEEPEST:
        return False
    # Of what opens, all but a thousand is closed after the deepest place.
    lists = data.count(b"[", 0, length - DEEPEST)
    objects = DEEPEST + 1 - lists
    if objects > 0:
        if length < lists * _LIST_BYTES + objects * _OBJECT_BYTES:
            return False
        if data.count(b"{", 0, length - DEEPEST) < objects:
            return False
    return _is_deep(data)  # some of them may be in texts


def _is_deep(data: bytes) -> bool:
    depth = 0
    for token in _TOKEN.finditer(data):
        if token.lastindex == _OPENING:
            depth += 1
            if depth > DEEPEST:
                return True
        elif token.lastindex == _CLOSING:
            depth -= 1
    return False


def too_many_values(data: bytes) -> bool:
    """It holds more than `MOST_VALUES`, those that its texts look like included."""
    return len(data) > MOST_VALUES and _values(data) > MOST_VALUES


def decoded_size(data: bytes | bytearray) -> int:
    """About as many bytes as it takes when decoded; meanwhile it takes less than twice that."""
    # One wide character makes all of a text four times as large.
    return len(data) * (1 if data.isascii() else 4) + _values(data) * _VALUE_BYTES


def _values(data: bytes | bytearray) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
