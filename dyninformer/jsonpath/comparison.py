"""What client-go's filters make of two values: types first, and only then the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_INT64: Final = 1 << 63


def kind(value: Any) -> str:
    """The group of types a value is compared in; "" for what cannot be compared."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_INT64 <= value < _INT64 else "float"
    if isinstance(value, float):
        return "float"
    return "string" if isinstance(value, str) else ""


def _compared(left: Any, right: Any) -> str:
    """The kind that both share; TypeError if they share none."""
    kinds = kind(left), kind(right)
    if not all(kinds):
        raise TypeError(f"{named(left if not kinds[0] else right)} cannot be compared")
    if kinds[0] != kinds[1]:
        raise TypeError(f"{named(left)} cannot be compared with {named(right)}")
    return kinds[0]


def _equal(left: Any, right: Any) -> bool:
    if _compared(left, right) == "float":
        return float(left) == float(right)
    return bool(left == right)


def _less(left: Any, right: Any) -> bool:
    shared = _compared(left, right)
    if shared == "boolean":
        raise TypeError("booleans have no order")
    if shared == "float":
        return float(left) < float(right)
    return bool(left < right)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _less,
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">": lambda left, right: not (_less(left, right) or _equal(left, right)),
    ">=": lambda left, right: not _less(left, right),
}


def named(value: Any) -> str:
    """The type of a value for a message; never the value, which may be a secret."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    group = kind(value)
    return f"{'an' if group == 'integer' else 'a'} {group}" if group else "a null"
