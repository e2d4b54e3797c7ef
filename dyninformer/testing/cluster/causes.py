"""The causes of a 422, and how the server quotes values in them."""

from __future__ import annotations

import json
from typing import Any

from dyninformer.testing.status import cause
from dyninformer.types import Object


def shown(value: Any, *, sort: bool = True) -> str:
    """A value as messages quote it; without ``sort`` in its own order, as a struct has it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)


def go_text(value: Any) -> str:
    """A value as Go's default format prints it.

    >>> go_text({"b": [1, "x"], "a": None})
    'map[a:<nil> b:[1 x]]'
    """
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def invalid_value(where: str, value: Any, why: str) -> Object:
    """The most common cause."""
    return cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", where)


def required(where: str, why: str = "") -> Object:
    """A field that must be there."""
    text = f"Required value: {why}" if why else "Required value"
    return cause("FieldValueRequired", text, where)


def duplicate(where: str, value: Any) -> Object:
    """An entry that occurs twice."""
    return cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", where)


def unsupported(where: str, value: Any, supported: tuple[str, ...]) -> Object:
    """A value that is not among the supported ones."""
    listed = ", ".join(f'"{each}"' for each in supported)
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return cause("FieldValueNotSupported", text, where)
