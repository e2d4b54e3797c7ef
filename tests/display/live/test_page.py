"""A live table as HTML and as text."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

from dyninformer.display.live.page import Page, page
from dyninformer.display.live.rows import Row, State, Window
from dyninformer.display.live.source import Heading
from dyninformer.display.live.standing import Standing

LIVE = Standing("live", True)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOSTILE = '<img src=x onerror="alert(1)">'


def made(*rows: Row, total: int | None = None, standing: Standing = LIVE) -> Page:
    """A page of a name and a time."""
    headings = [Heading("name"), Heading("age", is_age=True)]
    window = Window(len(rows) if total is None else total, 0, list(rows))
    return page(HOSTILE, headings, window, len(rows), standing, now=NOW)


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Note it, too."""
        self.texts.append(data)


def test_hostile_text_is_text_wherever_it_stands() -> None:
    """In a title, a cell, and in why the server is away."""
    shown = made(Row("a", (HOSTILE, HOSTILE)), standing=Standing("away", False, HOSTILE))
    elements = Elements(shown.html)
    assert elements.names <= {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td"}
    assert elements.attributes <= {"style", "scope"}
    assert elements.texts.count(HOSTILE) == 3


def test_a_terminal_cannot_be_moved_by_a_cell() -> None:
    """Control characters are spelled out in both forms."""
    shown = made(Row("a", ("\x1b[31m", None)))
    assert "\x1b" not in shown.text + shown.html
    assert "^[[31m" in shown.text


def test_times_are_told_as_ages_and_rows_that_are_gone_are_no_text() -> None:
    """The text is what is there."""
    shown = made(
        Row("a", ("shop", "2026-05-01T11:00:00Z")), Row("b", ("api", None), State.GONE), total=5
    )
    assert shown.text.splitlines()[1:] == ["NAME   AGE", "shop   60m", "and 3 more rows"]
    assert "line-through" in shown.html


def test_what_is_marked_can_be_told_from_what_is_not() -> None:
    """Only the cell that has changed, or the row that is new."""
    plain, marked = (
        made(Row("a", ("shop", None))),
        Row("a", ("shop", None), State.CHANGED, frozenset({0})),
    )
    assert made(marked).html.count("rgba(255") == 1
    assert plain.html.count("rgba(255") == 0
    assert made(Row("a", ("shop", None), State.NEW)).html.count("rgba(46") == 1


def test_an_empty_table_says_so() -> None:
    """Instead of showing nothing."""
    assert "there is nothing to show" in made().text
