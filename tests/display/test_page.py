"""What a page is made of."""

from __future__ import annotations

from dyninformer.display.page import Page, Standing, grid, without_blank


def test_a_table_says_how_many_there_are() -> None:
    """And how many of them it shows."""
    assert grid(["n"], [[1]]).count == "1 row"
    assert grid(["n"], [[1], [2]], 100_000, noun="object").count == "2 of 100,000 objects"


def test_a_cell_is_one_line_of_safe_text() -> None:
    """Of a long one the beginning; nothing where there is no value."""
    (row,) = grid(["a", "b", "c"], [["x\n\x1b[31m", None, "y" * 1000]]).rows
    assert row[0] == "x\\n^[[31m"
    assert row[1] == ""
    assert row[2] == "y" * 500 + "..."


def test_a_column_that_says_nothing_is_left_out() -> None:
    """If it is blank in every row."""
    blank = grid(["a", "why", "b"], [["1", "", "2"]])
    assert without_blank(blank, "why").headings == ["a", "b"]
    assert without_blank(blank, "why").rows == [["1", "2"]]
    told = grid(["a", "why"], [["1", ""], ["2", "since"]])
    assert without_blank(told, "why") is told


def test_a_page_is_its_text_in_a_terminal() -> None:
    """Its repr, too: a plain prompt shows what a notebook does."""
    page = Page("Thing", Standing("live", ("2 objects",), "All is well.", "4m"), [])
    assert str(page) == repr(page) == "Thing\nlive for 4m · 2 objects\nAll is well."
