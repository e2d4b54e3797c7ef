"""Kubernetes' times: RFC 3339 in UTC, to the second."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def timestamp(seconds: float) -> str:
    """The text of a moment given in seconds since 1970.

    >>> timestamp(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_the_microsecond(text: str) -> str:
    """The same moment in UTC, with six digits of a second; ValueError if ``text`` is no such time.

    >>> to_the_microsecond("2026-01-01T01:00:00.123456+01:00")
    '2026-01-01T00:00:00.123456Z'
    """
    rest = text
    for part, layout in _MICRO:
        match = part.match(rest)
        if match is None:
            raise ValueError(f'cannot parse "{rest}" as "{layout}"')
        rest = rest[match.end() :]
    if rest:
        raise ValueError(f'extra text: "{rest}"')
    return _in_utc(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_MICRO = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII), "2006"),
    (re.compile(r"\.\d{6}", re.ASCII), ".000000"),
    (re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII), "Z07:00"),
)


def is_date_time(text: str) -> bool:
    """Whether ``text`` is a date-time as schemas mean it."""
    try:
        normalized(text)
    except ValueError:
        return False
    return True


def normalized(text: str) -> str:
    """The same moment in UTC, to the second; ValueError if ``text`` is no RFC 3339 time.

    >>> normalized("2026-01-01T01:00:00.5+01:00")
    '2026-01-01T00:00:00Z'
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day, time, _, zone = match.groups()
    return _in_utc(f"{day}T{time}{zone.upper()}").strftime("%Y-%m-%dT%H:%M:%SZ")


def _in_utc(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text} is in no year from 1 to 9999, in UTC") from None
