"""The chunks of an HTTP/1.1 body, as they come from the network.

API servers send large bodies in chunks of 2,048 bytes. Read one by one, as http.client and urllib3
do, each costs three calls. `Dechunker` takes chunks of one size that follow each other at once.
"""

from __future__ import annotations

from functools import lru_cache
from http.client import HTTPException
from struct import Struct
from typing import TypeAlias

Pieces: TypeAlias = list[bytes]

_LONGEST_SIZE_LINE = 65_536
_AT_ONCE = 8
_REMEMBERED = 32  # bytes of a size's line: longer ones have extensions, of any length


class BrokenChunksError(HTTPException):
    """What was read is not a chunked body."""


class Dechunker:
    """Takes what comes of a body as it is sent, gives what is in it. For one thread."""

    def __init__(self) -> None:
        # A chunk ends with CR LF, and then comes the size of the next. As if one had ended:
        self._held = b"\r\n"
        self._left = 0  # of the chunk that is being read
        self._in_trailer = False
        self.done = False
        """The body has ended."""
        self.beyond = b""
        """What came after its end."""

    def feed(self, data: bytes) -> bytes:
        """The content of these bytes; empty if there is none, or not yet."""
        if self._held:
            data, self._held = self._held + data, b""
        if self._in_trailer:
            self._end(data)
            return b""
        found: Pieces = []
        start, end, left = 0, len(data), self._left
        while True:
            stop = start + left
            if stop > end:
                found.append(data[start:])
                self._left = stop - end
                break
            if left:
                found.append(data[start:stop])
            # From here to the end of the line: CR LF, the next size, perhaps extensions.
            line_end = data.find(b"\r\n", stop + 2)
            if line_end < 0:
                self._hold(data[stop:])
                break
            line = data[stop : line_end + 2]
            left = _known_size(line) if len(line) <= _REMEMBERED else _size(line)
            start = line_end + 2
            if left and data.startswith(line, start + left):
                start = _take_alike(data, start, left, line, found)
            if left == 0:
                self._in_trailer = True
                self._end(data[start:])
                break
        return b"".join(found)

    def _hold(self, line: bytes) -> None:
        if len(line) > _LONGEST_SIZE_LINE:
            raise BrokenChunksError("a line that should be a chunk's size does not end")
        self._left = 0
        self._held = line

    def _end(self, data: bytes) -> None:
        """After the last chunk: trailers, which nobody needs, and an empty line."""
        if data.startswith(b"\r\n"):
            self.done, self.beyond = True, data[2:]
            return
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            self.done, self.beyond = True, data[end + 4 :]
        else:
            self._hold(data)


def _take_alike(data: bytes, start: int, size: int, line: bytes, found: Pieces) -> int:
    """Take chunks of one size as long as the same line follows each; where the next begins."""
    layout = _layout(size, len(line))
    while len(data) - start >= layout.size:
        parts = layout.unpack_from(data, start)
        alike = 0
        while alike < _AT_ONCE and parts[2 * alike + 1] == line:
            alike += 1
        found += parts[: 2 * alike : 2]
        start += alike * (size + len(line))
        if alike < _AT_ONCE:
            break
    return start


@lru_cache(maxsize=64)
def _layout(size: int, line: int) -> Struct:
    return Struct(f"{size}s{line}s" * _AT_ONCE)


def _size(line: bytes) -> int:
    before, size = line[:2], line[2:-2].partition(b";")[0].strip()
    # Others take a bare line feed, in an extension say, for the end of the line.
    if before != b"\r\n" or not size.isalnum() or b"\n" in line[2:-2]:
        raise BrokenChunksError("there is no size where a chunk's size should be")
    try:
        return int(size, 16)
    except ValueError:
        raise BrokenChunksError("a chunk's size is no number") from None


_known_size = lru_cache(maxsize=1024)(_size)  # a server sends few sizes, over and over
