"""Whole numbers past 64 bits, which Go holds as floats."""

from __future__ import annotations

from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.comparison import kind
from dyninformer.jsonpath.printing import as_float

Values: TypeAlias = list[Any]


def within_int64(values: Values) -> Values:
    """The values, with each whole number past 64 bits, at any depth, made a float."""
    if not _has_large(values):
        return values
    known: dict[int, Any] = {}
    try:
        return [_converted(value, known) for value in values]
    except RecursionError:
        raise JSONPathError("the value is nested too deep to be converted") from None


def _has_large(values: Values) -> bool:
    """Whether such a number is anywhere; a part that several values share is seen once."""
    seen: set[int] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and kind(value) == "float":
            return True
    return False


def _converted(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, int):
        return as_float(value) if kind(value) == "float" else value
    if not isinstance(value, dict | list):
        return value
    if id(value) not in known:
        known[id(value)] = (
            {key: _converted(each, known) for key, each in value.items()}
            if isinstance(value, dict)
            else [_converted(each, known) for each in value]
        )
    return known[id(value)]
