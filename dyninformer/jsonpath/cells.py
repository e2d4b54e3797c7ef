"""What the API server makes of the paths in a CRD, and kubectl of its custom columns.

Pure functions, for both sides of a table: the server that fills its cells, and the display
that has to show the same. A path that does not parse is JSONPathError from all of them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.compiling import Expression
from dyninformer.jsonpath.evaluate import GoInt
from dyninformer.jsonpath.extended import ExtendedExpression
from dyninformer.jsonpath.json_bytes import decoded
from dyninformer.jsonpath.kubectl import column, relaxed
from dyninformer.jsonpath.path import expressions
from dyninformer.jsonpath.printing import as_float, print_value, sprint

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_INT64 = 1 << 63
_LONGEST = _INT64 // 1_000_000_000
_NO_VALUE = "<no value>"


def check_column(path: str) -> None:
    """JSONPathError if the API server cannot use the path as a column or selectable field.

    >>> check_column(".spec.replicas")
    """
    _column(path)


def cell(path: str, type: str, obj: Any, *, now: datetime | None = None) -> Any:
    """The cell of a table for a printer column; None is an empty one.

    ``type`` is the column's: string, integer, number, boolean or date. A date is told as an
    age, counted to ``now``. A path that fails on the object, or finds what is nested too deep to be
    printed, gives an empty cell.

    >>> cell(".spec.replicas", "integer", {"spec": {"replicas": 3}})
    3
    >>> cell(".spec", "string", {"spec": {"replicas": 3}})
    '{"replicas":3}'
    """
    expression = _column(path)
    try:
        groups = expression.groups(decoded(obj))
        if not groups or not groups[0]:
            return None
        value = groups[0][0]
        if type == "string":
            return _NO_VALUE if value is None else print_value(value)
    except JSONPathError:
        return None
    return _typed(type, value, now)


def _typed(type: str, value: Any, now: datetime | None) -> Any:
    if type in {"integer", "number"}:
        if isinstance(value, bool | GoInt) or not isinstance(value, int | float):
            return None
        return _as_int64(value) if type == "integer" else as_float(value)
    if type == "boolean" and isinstance(value, bool):
        return value
    if type == "date" and isinstance(value, str):
        return _age_of(value, now)
    return None


def _as_int64(value: float) -> int:
    """A number cut to int64; one that does not fit becomes the lowest, as on amd64."""
    return int(value) if -_INT64 <= value < _INT64 else -_INT64


def _age_of(text: str, now: datetime | None) -> str:
    if text in {"", "null"}:
        return "<unknown>"
    moment = moment_of(text)
    if moment is None:
        return "<invalid>"
    if moment == datetime(1, 1, 1, tzinfo=UTC):
        return "<unknown>"
    return age((now or datetime.now(UTC)) - moment)


def moment_of(text: str) -> datetime | None:
    """The moment of an RFC 3339 timestamp, in UTC; None for any other text.

    >>> moment_of("2026-05-01T12:00:00+02:00").isoformat()
    '2026-05-01T10:00:00+00:00'
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    micro = int((match[7] or "0")[:6].ljust(6, "0"))
    east = int(match[9] or 0) * 60 + int(match[10] or 0)
    if int(match[9] or 0) > 24 or int(match[10] or 0) >= 60:
        return None
    offset = timedelta(minutes=-east if match[8] == "-" else east)
    try:
        return datetime(year, month, day, hour, minute, second, micro, UTC) - offset
    except (ValueError, OverflowError):
        return None


def age(duration: timedelta) -> str:
    """A duration as kubectl tells it: two or three figures, ``5d3h``, ``37s``.

    >>> age(timedelta(hours=49))
    '2d1h'
    """
    seconds = min(int(duration.total_seconds()), _LONGEST)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    days, years = hours // 24, hours // 24 // 365
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    return _two(years, "y", days % 365, "d") if hours < 24 * 365 * 8 else f"{years}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def custom_column(path: str, obj: Any) -> str:
    """The cell that ``kubectl get -o custom-columns`` shows for a path, in any spelling.

    A path that begins with ``$`` is jsonpath-ng's; kubectl finds nothing by such a path.

    >>> custom_column("metadata.labels", {"metadata": {"labels": {"a": "b"}}})
    'map[a:b]'
    """
    parse = ExtendedExpression if path.startswith("$") else relaxed
    groups = expressions.get(parse, path).groups(decoded(obj))
    shown = [_visible(sprint(value)) for group in groups for value in group]
    if not groups or not groups[0]:
        shown.insert(0, "<none>")
    return ",".join(shown)


def _visible(text: str) -> str:
    """A text with what would move a terminal's cursor or change its colours made visible."""
    return text.replace("\x1b", "^[").replace("\r", "\\r")


def _column(path: str) -> Expression:
    return expressions.get(column, path)
