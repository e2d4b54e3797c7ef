"""Values at simple paths such as ``.spec.replicas``."""

from __future__ import annotations

from typing import Any

from dyninformer.types import Object


def value_at(obj: Object, path: str) -> Any:
    """The value at a simple path such as ``.spec.replicas``; None if there is none."""
    value: Any = obj
    for step in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def with_value_at(obj: Object, path: str, value: Any) -> Object:
    """``obj`` with another value at a simple path, everything else shared."""
    step, _, rest = path.strip(".").partition(".")
    if not rest:
        return {**obj, step: value}
    below = obj.get(step)
    return {**obj, step: with_value_at(below if isinstance(below, dict) else {}, rest, value)}
