"""From bytes to what they are made of: the lines of a watch, the items of a list.

Nothing here reads an object: its bytes are handed on as they came.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from dyninformer.watching.broken_frames import (
    LONGEST_OBJECT,
    BrokenFrameError,
    broken,
    check_value,
)
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

_LONGEST_LINE = LONGEST_OBJECT + 1024  # its type, and what is between
_LONGEST_TYPE = 1024
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
        # Not pieces: of two bytes each, they would take twenty times as much.
        self._held = bytearray()

    @property
    def rest(self) -> bytes:
        """What came after the last line: at the end of a stream, a line that was cut short."""
        return bytes(self._held)

    def feed(self, chunk: bytes) -> Lines:
        """The lines that are complete with this piece; blank ones are left out.

        Raises `BrokenFrameError` for a line that never seems to end.
        """
        find = chunk.find  # of a single byte: faster by far than to split
        end = find(b"\n")
        first = chunk if end < 0 else chunk[:end]
        held = self._held
        if held or end < 0:
            held += first
        if len(held) > self._longest:
            self._held = bytearray()
            complaint = f"it is longer than {self._longest:,} bytes"
            raise broken("a line", held, complaint, self._longest)
        if end < 0:
            return []
        lines = [bytes(held) if held else first]
        start = end + 1
        while (end := find(b"\n", start)) >= 0:
            lines.append(chunk[start:end])
            start = end + 1
        self._held = bytearray(chunk[start:])
        return [line for line in lines if line and not line.isspace()]


class _Event(msgspec.Struct):
    type: msgspec.Raw
    object: msgspec.Raw


_event = msgspec.json.Decoder(_Event)
_type = msgspec.json.Decoder(str)


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
        if len(found.type) > _LONGEST_TYPE:
            raise broken("a line", line, "its type is too long to be one")
        return _type.decode(found.type), bytes(found.object)
    except RecursionError:
        raise broken("a line", line, "it is nested too deep to be read") from None
    except UnicodeDecodeError:
        raise broken("a line", line, "its type is no UTF-8") from None
    except msgspec.DecodeError as refused:
        raise broken("a line", line, str(refused)) from None
