"""What is shown of one thing, whatever it is shown on: a title, how it stands, tables, objects.

A page is made once, of text that is safe to show, and written as HTML (`html`), as text, or for
rich (`terminal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dyninformer.display.diff import DiffLine
from dyninformer.display.text import visible
from dyninformer.printable import counted
from dyninformer.shown import Shown
from dyninformer.types import Object

Cells: TypeAlias = Sequence[str]
Mood: TypeAlias = Literal["good", "bad", "over", "plain"]

FIRST_ROWS: Final = 20
"""So many are shown of a table that has more."""
TOO_DEEP: Final = "(nested too deep to be shown)"
"""In the place of an object that has more levels than can be written down."""
_LONGEST_CELL: Final = 500


@dataclass(frozen=True, slots=True)
class Standing:
    """How something stands, in a word, and what else there is to say in one line."""

    word: str
    """``live``, ``cut off``, ``closed``, ..."""
    details: tuple[str, ...] = ()
    why: str = ""
    """Why it stands so, as a sentence."""
    span: str = ""
    """For how long, as in ``4m``."""

    @property
    def mood(self) -> Mood:
        """Whether all is as it should be, or somebody should look."""
        return _MOODS.get(self.word, "plain")

    def __str__(self) -> str:
        """Without the reason."""
        return " · ".join((f"{self.word}{self.time}", *self.details))

    @property
    def time(self) -> str:
        """What stands behind the word."""
        return f" for {self.span}" if self.span else ""


_MOODS: Final[dict[str, Mood]] = {
    **dict.fromkeys(("live", "synced", "open"), "good"),
    **dict.fromkeys(("cut off", "not synced", "absent"), "bad"),
    **dict.fromkeys(("closed", "removed"), "over"),
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, the first rows, and of how many these are."""

    headings: Cells
    rows: Sequence[Cells]
    total: int
    noun: str = "object"
    caption: str = ""

    @property
    def count(self) -> str:
        """How many there are, and how many of them are shown.

        >>> Grid(["name"], [["a"], ["b"]], 2000).count
        '2 of 2,000 objects'
        """
        if len(self.rows) < self.total:
            return f"{len(self.rows):,} of {counted(self.total, self.noun)}"
        return counted(self.total, self.noun)


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, and what there is to say of each."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Yaml:
    """One object."""

    object: Object
    secret: bool = False
    """It is a Secret, whatever of it says so: its values are not shown."""


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed, line by line."""

    lines: Sequence[DiffLine]


Part: TypeAlias = Grid | Facts | Yaml | Diff


@dataclass(frozen=True, slots=True, repr=False)
class Page(Shown):
    """What is shown of one thing. It shows itself in a notebook, by rich, and as text.

    Not for import: `dyninformer.show` makes it.
    """

    title: str = ""
    standing: Standing | None = None
    parts: Sequence[Part] = ()

    def __str__(self) -> str:
        """The page as text, without colours."""
        from dyninformer.display import terminal  # noqa: PLC0415 - a page of HTML needs no text

        return terminal.text(self)

    def __repr__(self) -> str:
        return str(self)


def grid(
    headings: Cells,
    rows: Iterable[Sequence[object]],
    total: int | None = None,
    *,
    noun: str = "row",
    caption: str = "",
) -> Grid:
    """A table of anything that has a text; None is an empty cell.

    >>> grid(["key", "versions"], [["prod/shop", 3]]).rows
    [['prod/shop', '3']]
    """
    shown = [["" if cell is None else _short(str(cell)) for cell in row] for row in rows]
    known = len(shown) if total is None else total
    return Grid([visible(each) for each in headings], shown, known, noun, visible(caption))


def _short(text: str) -> str:
    """A cell's text, on one line: of a long one the beginning."""
    return visible(text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}...")


def without_blank(whole: Grid, heading: str) -> Grid:
    """The table without a column that says nothing of any row."""
    at = list(whole.headings).index(heading)
    if any(row[at] for row in whole.rows):
        return whole
    rows = [[*row[:at], *row[at + 1 :]] for row in whole.rows]
    headings = [*whole.headings[:at], *whole.headings[at + 1 :]]
    return replace(whole, headings=headings, rows=rows)
