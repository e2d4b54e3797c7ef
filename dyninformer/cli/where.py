"""``--where PATH=VALUE``: objects selected by any field, on this side of the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.store.jsonpath import JSONPath, index_text
from dyninformer.store.jsonpath.brackets import outside_brackets

Object: TypeAlias = dict[str, Any]
Wanted: TypeAlias = Callable[[Object], bool]


def wanted(conditions: Iterable[str] | None) -> Wanted:
    """Whether an object meets all conditions; ValueError says what one should look like.

    ``=`` holds if any value that the path finds is the given one, ``!=`` if none is.

    >>> fits = wanted([".spec.issuerRef.name=ca", ".metadata.name!=mail"])
    >>> fits({"metadata": {"name": "shop"}, "spec": {"issuerRef": {"name": "ca"}}})
    True
    """
    each = [_condition(text) for text in conditions or ()]
    return lambda obj: all(met(obj) for met in each)


def _condition(text: str) -> Wanted:
    path, operator, value = _split(text)
    if not path or not operator:
        raise ValueError(
            f"--where {text}: write PATH=VALUE or PATH!=VALUE, as in .spec.issuerRef.name=ca"
        )
    parsed, equal = JSONPath(path), operator == "="

    def met(obj: Object) -> bool:
        try:
            found = parsed.values(obj)
        except JSONPathError:  # the path does not fit this object
            found = []
        return any(index_text(each) == value for each in found) == equal

    return met


def _split(text: str) -> tuple[str, str, str]:
    """The path, the operator and the value: the operator is the first outside of brackets."""
    for at, character in outside_brackets(text):
        if character == "=":
            value = text[at + 1 :].removeprefix("=")
            negated = text[:at].endswith("!")
            return text[:at].removesuffix("!").strip(), "!=" if negated else "=", value
    return "", "", ""
