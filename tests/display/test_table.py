"""Tables as kubectl prints them, tables as CSV, and the order of their rows."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.display.table import CsvTable, Table, csv_cell, path_rank
from dyninformer.display.text import visible


def test_columns_stand_three_blanks_apart_and_nothing_trails() -> None:
    """A cell without a value is blank."""
    lines = Table(["name", "ready", "age"]).lines([["a", "", "1s"], ["long", "True", ""]])
    assert lines == ["NAME   READY   AGE", "a              1s", "long   True"]


def test_rows_that_follow_keep_the_widths() -> None:
    """Headings come once; a wider cell widens its column from then on."""
    table = Table(["name", "age"])
    table.lines([["a", "1s"]])
    assert table.lines([["much-longer", "1s"]]) == ["much-longer   1s"]
    assert table.lines([["a", "2s"]]) == ["a             2s"]


def test_without_headings_columns_are_as_wide_as_their_cells() -> None:
    """A heading that is not shown takes no place."""
    assert Table(["name", "age"], show_headings=False).lines([["a", "1s"]]) == ["a   1s"]


def test_a_cell_stays_on_its_line() -> None:
    """Whatever the cluster has in it."""
    assert Table(["a", "b"], show_headings=False).lines([["x\ny", "z"]]) == ["x\\ny   z"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "\uff1d"])
def test_what_begins_like_a_formula_is_text(start: str) -> None:
    """With an apostrophe, as a spreadsheet marks text itself."""
    assert csv_cell(f"{start}cmd|' /C calc'!A1").lstrip('"').startswith("'")


@pytest.mark.parametrize("text", ["a,b", "a;=1+1", 'say "hi"', " a", "a "])
def test_what_could_be_cut_in_two_is_quoted(text: str) -> None:
    """Also where semicolons separate."""
    assert csv_cell(text) == '"{}"'.format(text.replace('"', '""'))


def test_a_plain_cell_is_left_alone() -> None:
    """So are numbers inside of texts."""
    assert [csv_cell(text) for text in ("shop-tls", "10.0.0.0/26", "", "日本")] == [
        "shop-tls",
        "10.0.0.0/26",
        "",
        "日本",
    ]


def test_control_characters_are_made_visible() -> None:
    """A line break is no new row."""
    assert csv_cell("a\r\nb\x1b[31m") == "a\\r\\nb^[[31m"


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_a_reader_gets_the_cells_back(rows: list[list[str]]) -> None:
    """Whatever is in them: as they are shown, with an apostrophe before a formula."""
    text = "".join(f"{line}\n" for line in CsvTable(["a", "b"]).lines(rows))
    told = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert told[0] == ["A", "B"]
    assert [[cell.removeprefix("'") for cell in row] for row in told[1:]] == [
        [visible(cell).removeprefix("'") for cell in row] for row in rows
    ]


def test_headings_come_once_or_not_at_all() -> None:
    """Rows may follow later."""
    table = CsvTable(["name"])
    assert table.lines([["a"]]) == ["NAME\r", "a\r"]
    assert table.lines([["b"]]) == ["b\r"]
    assert CsvTable(["name"], show_headings=False).lines([["a"]]) == ["a\r"]


def test_numbers_are_ordered_as_numbers_and_before_text() -> None:
    """What has no value stands first; digits in a text count as a number."""
    values: list[Any] = ["node-10", 10**400, 2**53 + 1, 2**53, 10, None, "node-2", 9.5]
    ordered = sorted([{"spec": {"x": value}} for value in values], key=path_rank(".spec.x"))
    assert [obj["spec"]["x"] for obj in ordered] == [
        None, 9.5, 10, 2**53, 2**53 + 1, 10**400, "node-2", "node-10",
    ]  # fmt: skip
