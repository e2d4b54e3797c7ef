"""Refusals read: Status objects and plain text, Retry-After, types that are no JSON."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

import msgspec

from dyninformer.watching.answers import Refused, StatusError

_TEXT = 300  # characters of a text that is no Status
_LARGEST = 1 << 20  # of a Status, which is a message


class _Details(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


def status_of(body: bytes) -> StatusError | None:
    """The Status that these bytes are, None if they are no JSON object, or one of odd fields."""
    if len(body) > _LARGEST:
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _decoder.decode(body)
        name = found.details.name if found.details is not None else ""
        return StatusError(found.code, found.reason, found.message, name)
    return None


def is_json(headers: Mapping[str, str]) -> bool:
    """The answer says that it is JSON, or nothing about it."""
    kind = headers.get("Content-Type") or ""
    return not kind or kind.partition(";")[0].strip().lower() == "application/json"


def refusal(code: int, headers: Mapping[str, str], body: bytes, now: float) -> Refused:
    """An answer that is not what was asked for. ``now`` is wall time, for a Retry-After date."""
    if code == 200:
        kind = headers.get("Content-Type")
        return Refused(StatusError(code, "", f"the answer is {kind}, not JSON"))
    found = status_of(body)
    if found is None or not (found.message or found.reason):
        message = body[:_TEXT].decode(errors="replace")
        found = StatusError(code, "", message or "no more is said")
    else:
        found = StatusError(code, found.reason, found.message, found.name)
    return Refused(found, retry_after(headers, now))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, whether the header says seconds or a date; None without a sane one.

    >>> retry_after({"Retry-After": "5"}, 0.0)
    5.0
    >>> retry_after({"Retry-After": "Thu, 01 Jan 1970 00:01:00 GMT"}, 20.0)
    40.0
    """
    said = (headers.get("Retry-After") or "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:10])
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    return None
