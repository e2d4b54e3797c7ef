"""JSON bytes to plain values, when a path has to see the object itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.extent import too_deep

_BYTES = (bytes, bytearray, memoryview)
_TOO_DEEP = "the object is nested too deep to be read"
_decode = msgspec.json.Decoder().decode


def decoded(obj: Any) -> Any:
    """The object: read if it came as JSON bytes, as it is otherwise.

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
