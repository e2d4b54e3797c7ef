"""The beginning of an expression that can be answered from bytes, as a few kinds of steps.

Both dialects meet here: a step means the same in each wherever the types fit, and where they
do not fit the expression itself is asked, on the decoded object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Values: TypeAlias = list[Any]

MAX_STEPS = 32


@dataclass(frozen=True, slots=True)
class Key:
    """The value under a key of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class Each:
    """Every element of a list."""


@dataclass(frozen=True, slots=True)
class At:
    """One element of a list, counted from its end if negative."""

    index: int


@dataclass(frozen=True, slots=True)
class Where:
    """The elements of a list that hold a text under a key."""

    name: str
    text: str


Step: TypeAlias = Key | Each | At | Where
Shape: TypeAlias = tuple[Step, ...]


class Expression(Protocol):
    """A parsed expression of either dialect; immutable, for use from any thread."""

    @property
    def shape(self) -> Shape:
        """The steps that the expression begins with, one for each of its nodes.

        Empty if it has to see the whole object.
        """

    @property
    def rest(self) -> bool:
        """Whether nodes follow behind those of the shape."""

    def find(self, root: Any) -> Values:
        """Everything found in a decoded object; JSONPathError where it does not fit."""

    def follow(self, start: int, values: Values) -> Values:
        """What is found from values, by the nodes behind the first ``start``."""

    def missing_index(self, index: int, size: int) -> Values:
        """The answer to an index out of a list's range; JSONPathError where that is one."""


def compilable(steps: Sequence[Step | None]) -> Shape:
    """The steps up to the first that is none; empty unless they begin with a key.

    A key with a quote, a backslash or a control character is none: msgspec cannot match it.
    """
    shape: list[Step] = []
    for step in steps[:MAX_STEPS]:
        if step is None or (isinstance(step, Key | Where) and not _matchable(step.name)):
            break
        shape.append(step)
    return tuple(shape) if shape and isinstance(shape[0], Key) else ()


def _matchable(name: str) -> bool:
    return not any(char in '"\\' or char < " " or "\ud800" <= char < "\ue000" for char in name)
