"""``--where``: which objects are meant, by what paths find in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath import JSONPath, index_text
from dyninformer.jsonpath.comparisons import COMPARISONS, compared, divided
from dyninformer.types import Object

Filter: TypeAlias = Callable[[Object], bool]


def where_filter(conditions: Iterable[str] | None) -> Filter:
    """What ``--where`` asks for: whether an object meets all conditions.

    ``=`` holds if any value that the path finds is the given one, ``!=`` if none is, and ``<``,
    ``<=``, ``>``, ``>=`` if any compares so: numbers and quantities by what they are worth.

    >>> fits = where_filter([".spec.issuerRef.name=ca", ".spec.replicas>=3"])
    >>> fits({"spec": {"issuerRef": {"name": "ca"}, "replicas": 10}})
    True

    Raises:
        ValueError: A text is not a condition. The message says what one looks like.
    """
    each = [_condition(text) for text in conditions or ()]
    return lambda obj: all(met(obj) for met in each)


def _condition(text: str) -> Filter:
    path, operator, value = divided(text)
    path, value = path.strip(), value.removeprefix("=") if operator == "=" else value
    if not path or operator not in ("=", *COMPARISONS):
        raise ValueError(
            f"--where {text}: write PATH=VALUE or PATH!=VALUE, as in .spec.issuerRef.name=ca; "
            "or with <, <=, >, >="
        )
    parsed = JSONPath(path)

    def met(obj: Object) -> bool:
        try:
            texts = [index_text(each) for each in parsed.values(obj)]
        except JSONPathError:  # the path does not fit this object
            texts = []
        if operator in ("=", "!="):
            return (value in texts) == (operator == "=")
        wanted = value.strip()
        return any(text is not None and compared(text, operator, wanted) for text in texts)

    return met
