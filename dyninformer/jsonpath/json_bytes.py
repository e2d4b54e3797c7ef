"""JSON bytes: how deep and how large they are, and the plain values they stand for.

A few bytes can stand for many: ``{}`` is 3 bytes with its comma, and a dict of 64. So what may
come from anybody is measured before it is decoded, in time and memory that its length bounds.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

import msgspec

from dyninformer.errors import JSONPathError

DEEPEST: Final = 1000
"""What is nested deeper than this is refused, whatever the interpreter could still read.

API servers refuse at 10,000. But whatever Python does with an object level by level, from
``copy.deepcopy`` to printing it, ends at its recursion limit, which is 1,000 unless changed.
"""

MOST_VALUES: Final = 1_000_000
"""An object of more values is refused. So many take 2 MB of JSON at least, and etcd takes no more
than 1.5 MB; to decode ten times as many would take a gigabyte, and seconds in which no other
thread runs."""

_LIST_BYTES, _OBJECT_BYTES = 2, 5  # ``[]`` and ``{"":}``: a level takes no less
_VALUE_BYTES = 64  # of memory, for each comma or bracket: more than nearly all of them cost
_FRAMES_LIMIT_DECODING = sys.version_info < (3, 12)
_TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])|([\]}])|(,)|(")', re.DOTALL
)  # a whole text, or one of: opening, closing, comma, a text that goes on
_OPENING, _CLOSING, _COMMA, _UNENDED = 1, 2, 3, 4
_REST_OF_TEXT: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

_BYTES = (bytes, bytearray, memoryview)
_TOO_DEEP = "the object is nested too deep to be read"
_decode = msgspec.json.Decoder().decode


def decoded(obj: Any) -> Any:
    """The object: decoded if it came as JSON bytes, else as it is.

    A number that msgspec refuses (``1e999``, past 64 bits) is read by the standard library,
    and half of a surrogate pair becomes U+FFFD, as in Go.

    >>> decoded(b'{"a": 98765432109876543210}')
    {'a': 98765432109876543210}
    """
    if not isinstance(obj, _BYTES):
        return obj
    check_depth(bytes(obj))
    try:
        return _decode(obj)
    except RecursionError:
        raise JSONPathError(_TOO_DEEP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _lenient(obj)


def check_depth(data: bytes) -> None:
    """Raise JSONPathError for what is nested deeper than `DEEPEST`."""
    if too_deep(data):
        raise JSONPathError(_TOO_DEEP)


def _lenient(obj: bytes | bytearray | memoryview) -> Any:
    try:
        return _whole_characters(json.loads(bytes(obj).decode(), parse_int=_whole_number))
    except RecursionError:
        raise JSONPathError(_TOO_DEEP) from None
    except ValueError as bad:
        # The complaint names a place, and nothing of the content, which may be a secret.
        place = f" at byte {bad.start}" if isinstance(bad, UnicodeDecodeError) else ""
        if isinstance(bad, json.JSONDecodeError):
            place = f" at character {bad.pos}"
        raise JSONPathError(f"the object is not JSON: malformed{place}") from None


def _whole_number(digits: str) -> int | float:
    """The number; one of thousands of digits, which ``int`` refuses, as Go's float: infinite."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _whole_characters(value: Any) -> Any:
    """The value with each lone surrogate replaced."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    return value


class Brackets:
    """Follows the brackets of JSON that comes in pieces, cut anywhere. For one thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.in_text = False
        """Whether what was followed so far ends inside of quotes."""
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
    """Whether the last of these bytes of a text is a backslash that escapes what comes next."""
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
    """Whether it is nested deeper than `DEEPEST`.

    Python 3.11 counts the levels of a decode as calls, so that there, with its usual limit, the
    decoders refuse by themselves what this would: the answer is no then, and costs nothing.
    """
    length = len(data)
    if length < DEEPEST * _LIST_BYTES:
        return False
    if _FRAMES_LIMIT_DECODING and sys.getrecursionlimit() <= DEEPEST:
        return False
    # In what is too deep, a thousand brackets are closed behind the deepest place: those that
    # open stand before the last thousand bytes.
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
    """Whether it holds more than `MOST_VALUES`; what looks like one in a text counts, too."""
    return len(data) > MOST_VALUES and _values(data) > MOST_VALUES


def decoded_size(data: bytes | bytearray) -> int:
    """About how many bytes it takes when decoded; while it is decoded, less than twice that."""
    # One wide character makes all of a text four times as large.
    return len(data) * (1 if data.isascii() else 4) + _values(data) * _VALUE_BYTES


def _values(data: bytes | bytearray) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
