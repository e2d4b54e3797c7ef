"""Comma-separated values that a spreadsheet shows, and never runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from dyninformer.display.text import visible

Cells: TypeAlias = Sequence[str]
Lines: TypeAlias = list[str]

# The wide forms begin a formula where a spreadsheet speaks Chinese or Japanese.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SEPARATORS: Final = frozenset(',;"')  # a semicolon is one in half of Europe


def csv_cell(text: str) -> str:
    r"""A cell as RFC 4180 has it: one that is no formula, and stays on its line.

    Python's csv module quotes neither what only some spreadsheets take for a separator, nor
    leading blanks; and of formulas and control characters it knows nothing.

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
    r"""Rows as `Table` makes them, for spreadsheets and programs.

    A line ends as RFC 4180 wants it; the last line feed is who prints them to add.

    >>> CsvTable(["name", "hosts"]).lines([["shop", "a,b"]])
    ['NAME,HOSTS\r', 'shop,"a,b"\r']
    """

    def __init__(self, headings: Cells, *, show_headings: bool = True) -> None:
        self._headings = [heading.upper() for heading in headings]
        self._pending = show_headings

    def lines(self, rows: Iterable[Cells]) -> Lines:
        """The rows as lines, the headings first if these are the first rows."""
        found = [_line(row) for row in rows]
        if self._pending:
            self._pending = False
            found.insert(0, _line(self._headings))
        return found

    def make_room(self, rows: Iterable[Cells]) -> None:
        """Nothing: cells do not line up here."""


def _line(cells: Cells) -> str:
    return f"{','.join(map(csv_cell, cells))}\r"
