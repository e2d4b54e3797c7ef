"""From bytes to what they are made of: the lines of a watch, the items of a list.

Nothing here reads an object: its bytes are handed on as they came.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from dyninformer.watching.broken_frames import BrokenFrameError, broken, check_value
from dyninformer.watching.list_items import ItemCutter, ListMeta

__all__ = [
    "BrokenFrameError",
    "ItemCutter",
    "LineCutter",
    "ListMeta",
    "cut_event",
    "proved_event",
]

EventBytes: TypeAlias = tuple[str, bytes]
Lines = list[bytes]

_LONGEST_LINE = 64 << 20
_MIDDLE = b'","object":'
_MIDDLE_SIZE = len(_MIDDLE)
_STARTS = {
    b'{"type":"' + name.encode(): name
    for name in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}
_LONGEST_START = max(map(len, _STARTS)) + _MIDDLE_SIZE
_BRACE = 0x7D


class LineCutter:
    """Takes a stream in pieces that are cut anywhere, and gives its lines. For one thread."""

    def __init__(self, longest: int = _LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: Lines = []
        self._size = 0

    @property
    def rest(self) -> bytes:
        """What came after the last line: at the end of a stream, a line that was cut short."""
        return b"".join(self._pieces)

    def feed(self, chunk: bytes) -> Lines:
        """The lines that are complete with this piece; blank ones are left out.

        Raises `BrokenFrameError` for a line that never seems to end.
        """
        find = chunk.find  # of a single byte: faster by far than to split
        end = find(b"\n")
        self._pieces.append(chunk if end < 0 else chunk[:end])
        self._size += len(self._pieces[-1])
        if self._size > self._longest:
            raise broken(
                "a line", self.rest, f"it is longer than {self._longest:,} bytes", self._longest
            )
        if end < 0:
            return []
        lines = [b"".join(self._pieces)]
        start = end + 1
        while (end := find(b"\n", start)) >= 0:
            lines.append(chunk[start:end])
            start = end + 1
        last = chunk[start:]
        self._pieces = [last] if last else []
        self._size = len(last)
        return [line for line in lines if line and not line.isspace()]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event = msgspec.json.Decoder(_Event)


def cut_event(line: bytes) -> EventBytes:
    """The type of a watch's line, and the bytes that should be its object.

    They are cut out, not read, where the line looks as API servers write it. If they turn
    out to be one JSON value, they are the object; if not, ask `proved_event`.

    >>> cut_event(b'{"type":"ADDED","object":{"kind":"Pod"}}')
    ('ADDED', b'{"kind":"Pod"}')
    """
    end = line.find(_MIDDLE, 0, _LONGEST_START)
    kind = _STARTS.get(line[:end])
    if kind is not None and line[-1] == _BRACE:
        return kind, line[end + _MIDDLE_SIZE : -1]
    return proved_event(line)


def proved_event(line: bytes) -> EventBytes:
    """The same by a parser, for any spelling. Raises `BrokenFrameError` if it is no event.

    >>> proved_event(b'{ "object": {"kind": "Pod"}, "type": "ADDED" }')
    ('ADDED', b'{"kind": "Pod"}')
    """
    check_value(line, "a line")
    try:
        found = _event.decode(line)
    except RecursionError:
        raise broken("a line", line, "it is nested too deep to be read") from None
    except msgspec.DecodeError as refused:
        raise broken("a line", line, str(refused)) from None
    return found.type, bytes(found.object)
