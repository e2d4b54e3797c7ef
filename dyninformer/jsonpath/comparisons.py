"""Paths compared with a value: with ``=`` as kubectl waits, and with the other operators."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dyninformer.checked import checked_text
from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.path import JSONPath
from dyninformer.jsonpath.printing import sprint
from dyninformer.jsonpath.text import outside_brackets
from dyninformer.types import Values

Compare: TypeAlias = Callable[[Any, Any], bool]

_OPERATORS: Final[Mapping[str, Compare]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(?P<unit>[numkMGTPE]|[KMGTPE]i)?\Z",
    re.ASCII,
)
_UNITS: Final = {
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("num", start=-3)},
    **{unit: Decimal(10) ** (3 * power) for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


class PathCondition:
    """A condition in kubectl's words: a path, and behind ``=`` the value it must have.

    Without a value, finding anything is enough. Immutable, for use from any thread.

    >>> running = PathCondition("{.status.phase}=Running")
    >>> running.met({"status": {"phase": "Running"}}), running.met({"status": {}})
    (True, False)
    """

    __slots__ = ("path", "text", "wanted")

    def __init__(self, text: str) -> None:
        self.text = checked_text("a condition", text, "text such as '{.status.phase}=Running'")
        expression, *values = _split(text)
        if text.startswith("$"):  # not kubectl's: "=" may stand in a filter of jsonpath-ng's
            expression, operator, value = divided(text)
            values = [value] if operator else []
        if not expression:
            raise JSONPathError("the condition is empty; write one as {.status.phase}=Running")
        if len(values) > 1:
            raise JSONPathError(
                f"{text}: more than one value; write a condition as {{.status.phase}}=Running"
            )
        self.path = _path(expression)
        self.wanted = values[0].strip("'\"") if values else None
        if self.wanted == "":
            raise JSONPathError(f"{text}: no value behind '='; leave it out to wait for any")

    def met(self, obj: Any) -> bool:
        """Whether an object, a dict or JSON bytes, meets the condition.

        JSONPathError where kubectl gives up: the path fails or finds several values, or an
        object or a list is to equal a value.
        """
        found = _only_value(self.path, obj, self.text)
        if self.wanted is None or not found:
            return bool(found)
        return _printed(found[0], self.text) == self.wanted.strip()

    def __repr__(self) -> str:
        return f"PathCondition({self.text!r})"


def _path(expression: str) -> JSONPath:
    """Return kubectl's path in any spelling, or jsonpath-ng's, which begins with ``$``."""
    extended = expression.startswith("$")
    return JSONPath(expression) if extended else JSONPath.relaxed(expression)


def _split(text: str) -> list[str]:
    """The text cut at each ``=`` that is not one of two."""
    parts = [""]
    for piece in re.findall("==|=|[^=]+", text):
        if piece == "=":
            parts.append("")
        else:
            parts[-1] += piece
    return parts


COMPARISONS: Final = tuple(_OPERATORS)
"""What two texts can be compared by, see `compared`."""


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

    __slots__ = ("_wanted", "operator", "path", "text")

    def __init__(self, text: str) -> None:
        path, self.operator, value = divided(text)
        wanted = value.strip().strip("'\"")
        if self.operator not in _OPERATORS or not path.strip() or not wanted:
            raise JSONPathError(
                f"{text}: write a comparison as {{.status.replicas}}>=3, "
                f"with one of {', '.join(_OPERATORS)}"
            )
        self.text = text
        self.path = _path(path.strip())
        self._wanted = wanted

    def met(self, obj: Any) -> bool:
        """Whether an object, a dict or JSON bytes, meets the condition.

        JSONPathError if the path fails, or finds several values, an object or a list.
        """
        found = _only_value(self.path, obj, self.text)
        if not found:
            return False
        return compared(_printed(found[0], self.text), self.operator, self._wanted)

    def __repr__(self) -> str:
        return f"Comparison({self.text!r})"


def compared(found: str, operator: str, wanted: str) -> bool:
    """Whether two texts compare so: by what they are worth if both are numbers or quantities.

    >>> compared("10", ">", "9"), compared("900Mi", "<", "1Gi"), compared("b", ">", "a")
    (True, True, True)
    """
    left, right = worth(found), worth(wanted)
    if left is not None and right is not None:
        return _OPERATORS[operator](left, right)
    if (left is None) != (right is None):
        return operator == "!="
    return _OPERATORS[operator](found, wanted)


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


def worth(text: str) -> Decimal | None:
    """What a number or a quantity is worth; None for any other text.

    >>> [str(worth(text)) for text in ("500m", "1Ki", "2e3", "much")]
    ['0.500', '1024', '2E+3', 'None']
    """
    found = _QUANTITY.match(text)
    if found is None:
        return None
    return Decimal(found["number"]) * _UNITS.get(found["unit"], Decimal(1))


def _only_value(path: JSONPath, obj: Any, condition: str) -> Values:
    """What the path finds: one value, or none; JSONPathError where it is more."""
    groups = path.groups(obj)
    if not groups or not groups[0]:
        return []
    if len(groups) > 1 or len(groups[0]) > 1:
        raise JSONPathError(f"{condition}: the path finds more than one value")
    return groups[0]


def _printed(value: Any, condition: str) -> str:
    if isinstance(value, dict | list):
        raise JSONPathError(f"{condition}: the path finds an object or a list, not a value")
    return sprint(value).strip()
