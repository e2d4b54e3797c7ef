"""A table that follows the cluster in its place in a notebook."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from dyninformer.checked import checked, checked_name
from dyninformer.display.live.groups import GroupRows
from dyninformer.display.live.page import Page, page
from dyninformer.display.live.rows import Found, LiveRows, Query
from dyninformer.display.live.screens import READING, Bundle, Screen, screen_here
from dyninformer.display.live.source import Heading, Headings, Source
from dyninformer.display.live.standing import Standing, standing_of
from dyninformer.display.live.view import LiveView, View
from dyninformer.frames.selection import LiveOptions
from dyninformer.store.snapshot import Columns
from dyninformer.types import Key

if TYPE_CHECKING:
    from dyninformer.informer import SharedIndexInformer

_AGES_SECONDS: Final = 10.0
"""After so long the ages are told anew although nothing has happened."""
_COUNT: Final = "count"


class TableRows:
    """The rows of a live table or widget, with the columns that they have."""

    def __init__(self, options: LiveOptions) -> None:
        """With ``by`` there is a row for each group, and it counts the objects."""
        counted = options.get("by") is not None
        self.rows = GroupRows() if counted else LiveRows()
        self.headings: Headings = []
        self.column: int | None = None
        """What is sorted by if nobody asks for anything else; None is the keys."""
        self.descending = False
        """That begins with the greatest."""
        self._counted = counted
        self._sort_by = options.get("sort_by")

    @property
    def noun(self) -> str:
        """What a row is."""
        return "group" if self._counted else "object"

    def begin(self, headings: Headings, found: Found) -> None:
        """Take the columns, and what is there at the beginning."""
        self.headings = [*headings, Heading(_COUNT)] if self._counted else headings
        if self._sort_by is not None:
            self.column, self.descending = self._order(self._sort_by)
        elif self._counted:
            self.column, self.descending = len(self.headings) - 1, True
        self.rows.fill(found)

    def change(self, found: Found, now: float) -> None:
        """Take what became of objects. The first that there are at all are not marked as new."""
        if len(self.rows) or self.rows.next_expiry is not None:
            self.rows.change(found, now)
        else:
            self.rows.fill(found)

    def query(self, column: int | None, *, descending: bool, words: tuple[str, ...] = ()) -> Query:
        """The rows in the order of a column as it is read: what is youngest has the least age."""
        if column is None:
            return Query(words=words)
        return Query(column, descending is not self.headings[column].is_age, words)

    def _order(self, text: str) -> tuple[int, bool]:
        names = [heading.name for heading in self.headings]
        lower = [name.lower() for name in names]
        for given in (text, text.removeprefix("-")):
            if given in names:  # of two that differ in nothing but case, the one that is meant
                return names.index(given), given != text
            if given.lower() in lower:
                return lower.index(given.lower()), given != text
        known = ", ".join(names)
        raise ValueError(f"sort_by is {text!r}, which is no column: there are {known}")

    def due(self, now: float) -> float | None:
        """When something changes by itself: a mark ends, or an age."""
        ends = [] if self.rows.next_expiry is None else [self.rows.next_expiry]
        if any(heading.is_age for heading in self.headings) and len(self.rows):
            ends.append(now + _AGES_SECONDS)
        return min(ends, default=None)


class _Painter:
    """Makes pages, and shows those that differ from the last."""

    def __init__(self, title: str, table: TableRows, most: int, screen: Screen | None) -> None:
        self.page = Page(READING, READING)
        """The last one."""
        self.shown = False
        """It is on the screen, and is to be kept up to date."""
        self._title = title
        self._table = table
        self._most = most
        self._screen = screen
        self._on_screen = self.page

    def begin(self, headings: Headings, found: Found) -> None:
        """See `Painter`, as for the next three."""
        self._table.begin(headings, found)

    def change(self, found: Found, now: float) -> None:
        self._table.change(found, now)

    def keys(self) -> Iterable[Key]:
        return self._table.rows.keys()

    def paint(self, standing: Standing, now: float) -> bool:
        table = self._table
        table.rows.expire(now)
        query = table.query(table.column, descending=table.descending)
        window = table.rows.window(query, 0, self._most)
        self.page = page(
            self._title, table.headings, window, len(table.rows), standing, noun=table.noun
        )
        return self.bring_up_to_date()

    def bring_up_to_date(self) -> bool:
        """Have the screen show the last page; False if nobody looks at it any more."""
        if self._screen is None or not self.shown:
            return True
        if self.page != self._on_screen:
            self._screen.update(bundle(self.page))
            self._on_screen = self.page
        return not self._screen.gone()

    def show(self) -> None:
        """Have the screen show it for the first time, or once more; by the cell's thread."""
        if self._screen is not None:
            shown = self._on_screen = self.page
            self._screen.show(bundle(shown))
            self.shown = True  # from here on the view's thread compares, and updates

    def wanted(self) -> bool:
        return False  # what is gone from the screen does not come back

    def due(self, now: float) -> float | None:
        look_every = None if self._screen is None else self._screen.look_every
        dues = [self._table.due(now), None if look_every is None else now + look_every]
        return min((due for due in dues if due is not None), default=None)


def bundle(shown: Page) -> Bundle:
    """A page, for IPython."""
    return {"text/html": shown.html, "text/plain": shown.text}


class LiveTable(LiveView):
    """A table that follows the cluster in its place in a notebook, from when it is shown.

    ``informer.live()`` gives it. Cells that have changed are marked for three seconds, rows that
    are gone are struck out for as long; at most five times a second it is brought up to date,
    and only if something is to be seen. It ends with `stop`, with its informer, and when its cell
    is run again; the last picture stays, and says so. Elsewhere than in a notebook it is the
    table of the moment at which it is looked at.

    Not for import.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     print(namespaces.live({"phase": ".status.phase"}))
    namespaces.v1: 4 objects, live
    NAME              PHASE
    default           Active
    kube-node-lease   Active
    kube-public       Active
    kube-system       Active
    """

    def __init__(self, source: Source, rows: int, options: LiveOptions) -> None:
        """``informer.live()`` makes it."""
        self._source = source
        self._new_rows = partial(TableRows, options)
        self._most = rows
        self._screen = screen_here()
        self._painter = _Painter(str(source.gvr), self._new_rows(), rows, self._screen)
        like = f"live table {source!r} {options.get('sort_by')} {rows}"
        new_thread = None if self._screen is None else self._screen.new_thread
        self._view = View(source, self._painter, options.get("name"), like, new_thread)

    def _ipython_display_(self) -> None:
        """Show it, and follow the cluster from now on."""
        if self._screen is None:
            print(self)  # noqa: T201 - a terminal, whose reader has asked for it
            return
        self._view.start()
        self._painter.show()
        self._view.look()

    def _mime_(self) -> tuple[str, str]:
        """The same for marimo, which shows what this returns."""
        if self._screen is None:
            return "text/html", self._still().html
        self._view.start()
        self._painter.show()
        self._view.look()
        return "text/html", self._painter.page.html

    def _still(self) -> Page:
        return still(self._source, self._new_rows(), self._most)

    def __str__(self) -> str:
        if self._view.begun:
            return self._painter.page.text
        return f"{self._source.gvr}: stopped" if self._source.ended else self._still().text

    def __repr__(self) -> str:
        return str(self)


def still(source: Source, table: TableRows, most: int) -> Page:
    """The first rows of this moment; a view of the source may be running."""
    painter = _Painter(str(source.gvr), table, most, None)
    with source.apart() as here:
        painter.begin(here.headings(), here.all())
        painter.paint(standing_of(here.status()), time.monotonic())
    return painter.page


def check_order(source: Source, table: TableRows) -> None:
    """ValueError if it is to be sorted by what is no column. No object is read."""
    with source.apart() as here:
        table.begin(here.headings(), {})


def live_table(
    informer: SharedIndexInformer, columns: Columns | None, rows: int, options: LiveOptions
) -> LiveTable:
    """What ``informer.live()`` gives, whose docstring says what these are."""
    return LiveTable(source_of(informer, columns, rows, options), rows, options)


def source_of(
    informer: SharedIndexInformer, columns: Columns | None, rows: object, options: LiveOptions
) -> Source:
    """What is shown. What is wrong is refused, but that there is no column to sort by."""
    source = Source(
        informer,
        columns,
        options.get("selector"),
        options.get("field_selector"),
        options.get("by"),
    )
    check_shown(options.get("sort_by"), rows, options.get("name"))
    return source


def check_shown(sort_by: object, rows: object, name: object) -> None:
    """What is wrong of these is refused; whether there is such a column shows when it is made."""
    if sort_by is not None:
        checked_name("sort_by", sort_by, "a column, the greatest first with a minus: '-age'")
    if checked("rows", rows, int, "how many rows are shown") < 1:
        raise ValueError(f"rows is {rows}: give how many rows are shown, at least 1")
    if name is not None:
        checked_name("name", name)
