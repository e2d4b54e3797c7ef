"""Tables as kubectl prints them: columns three blanks apart, headings in capitals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dyninformer.display.text import padded, visible, width

Cells: TypeAlias = Sequence[str]
Lines: TypeAlias = list[str]

_GAP = "   "


class Table:
    r"""Rows that line up. More rows may follow later; columns then only grow.

    A cell without a value stays blank, as in kubectl.

    >>> table = Table(["name", "age"])
    >>> print(*table.lines([["shop", "5m"], ["long-name", "2d"]]), sep="\n")
    NAME        AGE
    shop        5m
    long-name   2d
    """

    def __init__(self, headings: Cells, *, show_headings: bool = True) -> None:
        self._headings = [visible(heading).upper() for heading in headings]
        self._widths = [width(heading) if show_headings else 0 for heading in self._headings]
        self._pending = show_headings

    def lines(self, rows: Iterable[Cells]) -> Lines:
        """The rows as lines, the headings first if these are the first rows."""
        shown = [[visible(cell) for cell in row] for row in rows]
        if self._pending:
            self._pending = False
            shown.insert(0, self._headings)
        self._widen(shown)
        return [self._line(row) for row in shown]

    def make_room(self, rows: Iterable[Cells]) -> None:
        """Have columns be wide enough for rows that will follow one by one."""
        self._widen([visible(cell) for cell in row] for row in rows)

    def _widen(self, shown: Iterable[Cells]) -> None:
        for row in shown:
            for at, cell in enumerate(row[:-1]):  # nothing follows the last
                self._widths[at] = max(self._widths[at], width(cell))

    def _line(self, row: Cells) -> str:
        *cells, last = row
        shown = [padded(cell, most) for cell, most in zip(cells, self._widths, strict=False)]
        return _GAP.join([*shown, last]).rstrip()
