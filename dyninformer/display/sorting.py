"""The order of rows: by what a path finds, numbers as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from dyninformer.store.jsonpath import JSONPath

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[Object]
_Rank: TypeAlias = tuple[int, float, str]

_DIGITS = re.compile(r"\d+")


def by_name(objects: Iterable[Object]) -> Objects:
    """By namespace and name, as the API server lists them."""
    return sorted(
        objects, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
    )


def by_path(objects: Iterable[Object], path: str) -> Objects:
    """By the first value that a path finds: nothing first, then numbers, then text.

    >>> blocks = [{"spec": {"n": 10}}, {"spec": {"n": 9}}, {"spec": {}}]
    >>> [obj["spec"] for obj in by_path(blocks, ".spec.n")]
    [{}, {'n': 9}, {'n': 10}]
    """
    parsed = JSONPath(path)
    return sorted(objects, key=lambda obj: _rank(parsed.first(obj)))


def _rank(value: Any) -> _Rank:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool | int | float):
        return (1, float(value), "")
    return (2, 0.0, _natural(str(value)))


def _natural(text: str) -> str:
    """Text that orders ``node-2`` before ``node-10``."""
    return _DIGITS.sub(lambda found: f"{len(found[0]):04d}{found[0]}", text)
