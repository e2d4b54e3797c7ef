"""Chunked transfer coding: one frame per line of a watch, made once for all who watch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

_PIECE = 1 << 16


def chunk(data: bytes) -> bytes:
    """``data`` as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    """``data`` as chunks of ``size`` bytes, cut wherever that falls."""
    for start in range(0, len(data), size):
        yield chunk(data[start : start + size])


def gathered(pieces: Iterable[bytes], size: int = _PIECE) -> Iterator[bytes]:
    """The same bytes in pieces of at least ``size``, but for the last."""
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(held)
            held.clear()
            length = 0
    if length:
        yield b"".join(held)


class Frames:
    """The frames of the lines sent last.

    A line is known by identity: every watch of an event is given the same bytes object,
    so the first to send it frames it for all. An entry holds its line, so that an id is
    never met again while the entry lives. Owned by the loop's thread.
    """

    def __init__(self, limit: int = 4 << 20) -> None:
        self._limit = limit
        self._held = 0
        self._frames: dict[int, tuple[bytes, bytes]] = {}
        self._order: deque[int] = deque()

    def frame(self, line: bytes) -> bytes:
        """The line as one chunk."""
        known = self._frames.get(id(line))
        if known is not None:
            return known[1]
        framed = chunk(line)
        self._frames[id(line)] = (line, framed)
        self._order.append(id(line))
        self._held += len(framed)
        while self._held > self._limit and self._order:
            _, old = self._frames.pop(self._order.popleft())
            self._held -= len(old)
        return framed
