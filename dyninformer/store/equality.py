"""Whether two states of an object are the same (S12)."""

from __future__ import annotations

from typing import Any

from dyninformer.store.codec import read


def same_content(held: bytes, came: bytes) -> bool:
    """Whether two objects' plain JSON says the same, in whatever order of keys.

    Values of different JSON types differ, ``true`` from ``1`` too. Whole and fractional numbers
    are compared by value.

    >>> same_content(b'{"a": 1, "b": 2}', b'{"b":2,"a":1.0}')
    True
    >>> same_content(b'{"a": 1}', b'{"a": true}')
    False
    """
    if held == came:
        return True
    try:
        left, right = read(held), read(came)
        # The comparison of dicts is fast and mostly says no; where it says yes it may have
        # taken a boolean for a number.
        return left == right and _same_types(left, right)
    except RecursionError:
        return False  # an update too many harms nobody


def _same_types(left: Any, right: Any) -> bool:
    """For two values that are equal: no boolean stands for a number."""
    if isinstance(left, dict):
        return all(_same_types(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)
