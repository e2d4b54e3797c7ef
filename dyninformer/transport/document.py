"""A small JSON document, read whole from the chunks of an answer."""

from __future__ import annotations

from typing import Final

import msgspec

from dyninformer.jsonpath.json_bytes import decoded_size

LARGEST_DOCUMENT: Final = 64 << 20


class TooLargeError(ValueError):
    """Reading it would take too much memory. What had come of it is dropped."""

    def __init__(self) -> None:
        super().__init__(f"the answer would take more than {LARGEST_DOCUMENT:,} bytes of memory")


class DocumentBody:
    """What has come of it. Both methods raise `TooLargeError`."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take a piece in."""
        self._bytes += chunk
        self._check(len(self._bytes))

    def value(self) -> object:
        """What all of it says, None if it is no JSON."""
        self._check(decoded_size(self._bytes))
        try:
            return msgspec.json.decode(self._bytes)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _check(self, size: int) -> None:
        if size > LARGEST_DOCUMENT:
            self._bytes = bytearray()
            raise TooLargeError
