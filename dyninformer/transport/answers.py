"""Bodies of answers: decompressed, and bounded while that happens."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from dyninformer.transport.messages import ProtocolError

_PIECE: Final = 131_072
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip's or zlib's header, whichever comes
_LONGEST_SHOWN: Final = 40
_PLAIN: Final = ("", "identity")
_ZLIB: Final = ("gzip", "x-gzip", "deflate")


class Inflater:
    """Decompresses a body in pieces of a bounded size, however small its compressed form is."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_ANY_HEADER)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes decompress to. Several gzip members count as one body."""
        self._begun = True
        while data:
            if self._zlib.eof:
                self._zlib = zlib.decompressobj(_ANY_HEADER)
            piece = self._decompress(data)
            data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            if piece:
                yield piece
        while not self._zlib.eof and (piece := self._decompress(b"")):
            yield piece  # it holds back more than one piece

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._zlib.decompress(data, _PIECE)
        except zlib.error:
            raise ProtocolError("the server marked a body as compressed that is not") from None

    def finish(self) -> None:
        """Raise `ProtocolError` if the body ends in the middle."""
        if self._begun and not self._zlib.eof:
            raise ProtocolError("the compressed body is cut short")


def inflater(encoding: str) -> Inflater | None:
    """Return what decompresses a body of this encoding; None for one that is not compressed.

    Raises `ProtocolError` for an encoding that was not asked for.
    """
    name = encoding.strip().lower()
    if name in _PLAIN:
        return None
    if name in _ZLIB:
        return Inflater()
    raise ProtocolError(
        f"the server answers in the encoding {name[:_LONGEST_SHOWN]!r}, which was not asked for. "
        "A proxy in between must leave answers as they are"
    )
