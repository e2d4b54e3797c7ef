"""The parts of an expression in kubectl's dialect, as the parser leaves them.

An expression is a tuple of top-level nodes: text that stands for itself, and one ``Path`` for
each ``{...}``. Every node is immutable, so that one parsed expression serves all threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Text between the braces' outsides, or a quoted string inside them: printed as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """``.name``: the value under a key."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: ``range`` or ``end``; any other is an error when it is evaluated."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or a boolean, given once for each input."""

    value: bool | int | float


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``.*``: the values of a map or a list, the bytes of a string."""


@dataclass(frozen=True, slots=True)
class Descent:
    """``..``: the value and everything below it that has something below it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """``[start:stop:step]``; ``[n]`` is the slice from n to n+1, and then ``single`` is true."""

    start: int | None
    stop: int | None
    step: int | None
    single: bool


@dataclass(frozen=True, slots=True)
class Union:
    """``[a,b]``: what each part finds, one part after the other."""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """``[?(left operator right)]``; the operator ``exists`` has no right side."""

    left: Path
    operator: str
    right: Path
    column: int


@dataclass(frozen=True, slots=True)
class Path:
    """The nodes of one ``{...}``, each applied to what the one before it found."""

    nodes: tuple[Node, ...]


Node: TypeAlias = Text | Field | Word | Literal | Wildcard | Descent | Slice | Union | Filter | Path
Template: TypeAlias = tuple[Text | Path, ...]
