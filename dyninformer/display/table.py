"""Tables as kubectl prints them, tables as CSV, and the order of their rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from dyninformer import jsonpath
from dyninformer.display.text import padded, visible, width
from dyninformer.types import Object

Cells: TypeAlias = Sequence[str]
Rank: TypeAlias = tuple[int, float, str]

_GAP: Final = "   "
_DIGITS: Final = re.compile(r"\d+")
# The wide forms begin a formula where a spreadsheet speaks Chinese or Japanese.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SEPARATORS: Final = frozenset(',;"')  # a semicolon is one in half of Europe


class Table:
    r"""Rows that line up. More rows may follow later; columns then only grow.

    They grow by ``step`` and more at a time, so that a table that is printed row by row stays
    in line for long. A cell without a value stays blank, as in kubectl.

    >>> table = Table(["name", "age"])
    >>> print(*table.lines([["shop", "5m"], ["long-name", "2d"]]), sep="\n")
    NAME        AGE
    shop        5m
    long-name   2d
    """

    def __init__(self, headings: Cells, *, show_headings: bool = True, step: int = 1) -> None:
        self._headings = [visible(heading).upper() for heading in headings]
        self._widths = [width(heading) if show_headings else 0 for heading in self._headings]
        self._pending = show_headings
        self._step = step

    def lines(self, rows: Iterable[Cells]) -> list[str]:
        """The rows as lines, the headings first if these are the first rows."""
        shown = [[visible(cell) for cell in row] for row in rows]
        if self._pending:
            self._pending = False
            shown.insert(0, self._headings)
        self._widen(shown, self._step)
        return [self._line(row) for row in shown]

    def make_room(self, rows: Iterable[Cells]) -> None:
        """Make the columns wide enough for rows that will follow one by one."""
        self._widen(([visible(cell) for cell in row] for row in rows), 1)

    def _widen(self, shown: Iterable[Cells], step: int) -> None:
        widths = self._widths
        for row in shown:
            for at, cell in enumerate(row[:-1]):  # nothing follows the last
                needed = len(cell) if cell.isascii() else width(cell)
                if needed > widths[at]:
                    widths[at] = -(-needed // step) * step

    def _line(self, row: Cells) -> str:
        *cells, last = row
        shown = [
            cell.ljust(most) if cell.isascii() else padded(cell, most)
            for cell, most in zip(cells, self._widths, strict=False)
        ]
        return _GAP.join([*shown, last]).rstrip()


def csv_cell(text: str) -> str:
    r"""A cell as RFC 4180 has it: never a formula, and all on one line.

    Python's csv module quotes neither leading blanks nor what only some spreadsheets take for a
    separator, and it knows nothing of formulas and control characters.

    >>> print(csv_cell("a,b"), csv_cell("=1+1"), csv_cell("a\nb"), sep="  ")
    "a,b"  '=1+1  a\nb
    """
    shown = visible(text)
    if text.lstrip(" ").startswith(_FORMULA):
        shown = f"'{shown}"
    if _SEPARATORS.isdisjoint(shown) and shown == shown.strip():
        return shown
    return '"{}"'.format(shown.replace('"', '""'))


class CsvTable:
    r"""The same rows as comma-separated values, which a spreadsheet shows and never runs.

    A line ends as RFC 4180 wants it, except that its line feed comes from the caller's print.

    >>> CsvTable(["name", "hosts"]).lines([["shop", "a,b"]])
    ['NAME,HOSTS\r', 'shop,"a,b"\r']
    """

    def __init__(self, headings: Cells, *, show_headings: bool = True) -> None:
        self._headings = [heading.upper() for heading in headings]
        self._pending = show_headings

    def lines(self, rows: Iterable[Cells]) -> list[str]:
        """The rows as lines, the headings first if these are the first rows."""
        found = [_line(row) for row in rows]
        if self._pending:
            self._pending = False
            found.insert(0, _line(self._headings))
        return found

    def make_room(self, rows: Iterable[Cells]) -> None:
        """Do nothing: cells do not line up here."""


def _line(cells: Cells) -> str:
    return f"{','.join(map(csv_cell, cells))}\r"


def path_rank(path: str) -> Callable[[Object], Rank]:
    """A key to sort objects by the first value of a path: nothing first, then numbers, then text.

    >>> blocks = [{"spec": {"n": 10}}, {"spec": {"n": 9}}, {"spec": {}}]
    >>> [obj["spec"] for obj in sorted(blocks, key=path_rank(".spec.n"))]
    [{}, {'n': 9}, {'n': 10}]
    """
    parsed = jsonpath.JSONPath(path)
    return lambda obj: rank(parsed.first(obj))


def rank(value: Any) -> Rank:
    """What a value is sorted by: nothing comes first, then numbers, then text."""
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool | int | float):
        return (1, value, "")  # a whole number as it is: a float is exact up to 2**53
    return (2, 0.0, _natural(str(value)))


def _natural(text: str) -> str:
    """Text that orders ``node-2`` before ``node-10``."""
    return _DIGITS.sub(lambda found: f"{len(found[0]):04d}{found[0]}", text)
