"""Paths compared with a value by other operators than kubectl's ``=``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.brackets import outside_brackets
from dyninformer.jsonpath.path import JSONPath
from dyninformer.jsonpath.printing import sprint

Compare: TypeAlias = Callable[[Any, Any], bool]

_OPERATORS: Final[Mapping[str, Compare]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(?P<unit>[numkMGTPE]|[KMGTPE]i)?\Z"
)
_UNITS: Final = {
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("num", start=-3)},
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


class Comparison:
    """A path, one of ``!=``, ``<``, ``<=``, ``>``, ``>=``, and a value.

    Numbers and Kubernetes quantities are compared by what they are worth, everything else as
    text, which suits times. A path that finds nothing meets no comparison, and a number and a
    text are only unequal. Immutable, for use from any thread.

    >>> Comparison("{.status.replicas}>=3").met({"status": {"replicas": 10}})
    True
    >>> Comparison("{.spec.memory} < 1Gi").met({"spec": {"memory": "900Mi"}})
    True
    >>> Comparison("{.status.phase}!=Pending").met({"status": {}})
    False
    """

    __slots__ = ("_compare", "_wanted", "operator", "path", "text")

    def __init__(self, text: str) -> None:
        path, self.operator, value = divided(text)
        wanted = value.strip().strip("'\"")
        if self.operator not in _OPERATORS or not path.strip() or not wanted:
            raise JSONPathError(
                f"{text}: write a comparison as {{.status.replicas}}>=3, "
                f"with one of {', '.join(_OPERATORS)}"
            )
        self.text = text
        self.path = JSONPath.relaxed(path.strip())
        self._wanted = wanted
        self._compare = _OPERATORS[self.operator]

    def met(self, obj: Any) -> bool:
        """Whether an object, a dict or JSON bytes, meets the condition.

        JSONPathError if the path fails, or finds several values, an object or a list.
        """
        groups = self.path.groups(obj)
        if not groups or not groups[0]:
            return False
        if len(groups) > 1 or len(groups[0]) > 1:
            raise JSONPathError(f"{self.text}: the path finds more than one value")
        value = groups[0][0]
        if isinstance(value, dict | list):
            raise JSONPathError(f"{self.text}: the path finds an object or a list, not a value")
        found = sprint(value).strip()
        left, right = _worth(found), _worth(self._wanted)
        if left is not None and right is not None:
            return self._compare(left, right)
        if (left is None) != (right is None):
            return self.operator == "!="
        return self._compare(found, self._wanted)

    def __repr__(self) -> str:
        return f"Comparison({self.text!r})"


def divided(text: str) -> tuple[str, str, str]:
    """A path, the first operator outside of its brackets, and the rest; blank where none is.

    >>> divided("{.items[?(@.n>1)].n}>=3")
    ('{.items[?(@.n>1)].n}', '>=', '3')
    """
    for at, character in outside_brackets(text):
        if character in "=!<>":
            two = text[at : at + 2]
            sign = two if two in _OPERATORS else character
            return text[:at], sign, text[at + len(sign) :]
    return text, "", ""


def _worth(text: str) -> Decimal | None:
    """What a number or a quantity is worth; None for any other text."""
    found = _QUANTITY.match(text)
    if found is None:
        return None
    return Decimal(found["number"]) * _UNITS.get(found["unit"], Decimal(1))
