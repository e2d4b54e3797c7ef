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
    moment = datetime.fromisoformat(f"{day}T{time}{'+00:00' if zone in 'Zz' else zone}")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
