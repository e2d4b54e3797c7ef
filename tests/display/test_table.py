"""Tables as kubectl prints them."""

from __future__ import annotations

from dyninformer.display.table import Table


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
