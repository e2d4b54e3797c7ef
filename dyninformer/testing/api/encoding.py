"""JSON as Go writes it: escaping, number forms, key order."""

from __future__ import annotations

from typing import Any


def encode(value: Any, *, sort: bool = True) -> bytes:
    """Compact JSON; ``sort`` False keeps the order of the keys (a Status, a struct)."""
    raise NotImplementedError


def pretty(data: bytes) -> bytes:
    """The same JSON document indented by two spaces, keys in the order they have."""
    raise NotImplementedError
