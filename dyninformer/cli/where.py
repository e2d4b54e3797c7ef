"""``--where``: which objects are meant, by what paths find in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from dyninformer.discovery.known import Known
from dyninformer.discovery.unknown_paths import Paths
from dyninformer.errors import JSONPathError
from dyninformer.jsonpath import JSONPath, index_text
from dyninformer.jsonpath.comparisons import COMPARISONS, compared, divided
from dyninformer.types import Object

Filter: TypeAlias = Callable[[Object], bool]
Sources: TypeAlias = "Sequence[tuple[Known, Iterable[Any]]]"

_SECONDS: Final = 3.0  # that a command waits for a CRD, to say what is wrong with a path
_BEFORE: Final = frozenset("~:+^%|&?!")
_BEHIND: Final = frozenset("=~<>!")
"""Signs that make another operator of one, as in ``~=``, ``:=``, ``=~``, ``=>`` and ``<>``."""


class Where:
    """What ``--where`` asks for: whether an object meets all conditions.

    ``=`` holds if any value that the path finds is the given one, ``!=`` if none is, and ``<``,
    ``<=``, ``>``, ``>=`` if any compares so: numbers and quantities by what they are worth.
    Blanks around the operator, and quotes around the value, are not part of them.

    >>> fits = Where([".spec.issuerRef.name = ca", ".spec.replicas>=3"])
    >>> fits({"spec": {"issuerRef": {"name": "ca"}, "replicas": 10}})
    True

    Raises:
        ValueError: A text is not a condition. The message says what one looks like.
    """

    def __init__(self, conditions: Iterable[str] | None) -> None:
        parsed = [_condition(text) for text in conditions or ()]
        self._each = [met for _, met in parsed]
        self.paths = [path.expression for path, _ in parsed]
        """The path of each condition."""

    def __bool__(self) -> bool:
        return bool(self._each)

    def __call__(self, obj: Object) -> bool:
        """Whether the object meets all conditions."""
        return all(met(obj) for met in self._each)


def _condition(text: str) -> tuple[JSONPath, Filter]:
    path, operator, value = divided(text)
    path, value = path.strip(), value.removeprefix("=") if operator == "=" else value
    value = value.strip()
    if (
        not path
        or operator not in ("=", *COMPARISONS)
        or path[-1] in _BEFORE
        or value[:1] in _BEHIND
    ):
        raise ValueError(
            f"--where {text}: write PATH=VALUE or PATH!=VALUE, as in .spec.issuerRef.name=ca; "
            "or with <, <=, >, >=. A value that begins with another sign stands in quotes"
        )
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    parsed = JSONPath(path)

    def met(obj: Object) -> bool:
        try:
            texts = [index_text(each) for each in parsed.values(obj)]
        except JSONPathError:  # the path does not fit this object
            texts = []
        if operator in ("=", "!="):
            return (value in texts) == (operator == "=")
        return any(text is not None and compared(text, operator, value) for text in texts)

    return parsed, met


def unknown_paths(sources: Sources, paths: Paths) -> list[str]:
    """Return a warning for each path that no object of any of the resources can have.

    ``sources`` are what is known of each resource, and some of its objects.
    """
    found: list[str] = []
    for path in paths:
        problems = [
            known.paths.problems([path], objects, seconds=_SECONDS) for known, objects in sources
        ]
        if all(problems):
            found += chain.from_iterable(problems)
    return [f"warning: {problem}" for problem in dict.fromkeys(found)]


def none_match(total: int) -> str:
    """Return what to say where there are objects, and none meets ``--where``."""
    return f"0 of {total} match --where"
