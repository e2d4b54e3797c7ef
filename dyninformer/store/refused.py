"""Why an object that came is not stored, in words that give nothing of it away."""

from __future__ import annotations

import re

from dyninformer.errors import DynInformerError

_BEFORE, _AFTER = 24, 40  # 64 bytes in all
_FOLLOWED = 1 << 16  # from the beginning: a place further on is looked at without what is before
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_PERHAPS_BEFORE = (b"", b'"', b'"\\')
_MASKED = re.compile(rb'"[^"]*"?|true|false|null|[^\s{}\[\]:,]')


class UnusableObjectError(DynInformerError, ValueError):
    """A well-formed frame whose object cannot be kept (S32).

    ``key`` is the object's key where it could be read, else None; ``version`` its
    resourceVersion, "" where that could not be read.
    """

    def __init__(self, message: str, *, key: str | None = None, version: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.version = version


def excerpt(data: bytes | bytearray, offset: int) -> str:
    """At most 64 bytes of JSON around a place, with only its structure to be seen.

    What is inside quotes, and whatever else is no bracket, comma, colon, ``true``, ``false`` or
    ``null``, is masked: malformed JSON may have its quotes the wrong way round.

    >>> excerpt(b'{"token": "s3cr3t", "n": 12, "ok": true}', 20)
    '{"*****": "******", "*": **, "**": true}'
    """
    start = max(0, offset - _BEFORE)
    end = offset + _AFTER
    if end <= _FOLLOWED:
        # Strings are found from the beginning, so that a window into one is known to be inside.
        return _masked(bytes(data[:end]))[start:].decode("ascii", "replace")
    # It may begin outside of a string, inside, or there behind a backslash. What is shown is no
    # content in any of these cases.
    window = bytes(data[start:end])
    cases = [_masked(before + window)[len(before) :] for before in _PERHAPS_BEFORE]
    return "".join(
        chr(each[0]) if len(set(each)) == 1 else "*" for each in zip(*cases, strict=True)
    )


def _masked(data: bytes) -> bytes:
    return _MASKED.sub(_mask_rest, _STRING.sub(_mask_string, data))


def _mask_string(found: re.Match[bytes]) -> bytes:
    text = found[0]
    closed = len(text) > 1 and text.endswith(b'"')
    return b'"' + b"*" * (len(text) - 1 - closed) + b'"' * closed


def _mask_rest(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text[:1] == b'"' or len(text) > 1 else b"*"
