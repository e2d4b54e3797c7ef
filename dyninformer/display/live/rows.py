"""What a live table knows: rows in any order, what changed in them a moment ago, what has gone.

Pure: nothing here has a thread or a clock. One thread uses it at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.display.table import Rank, rank
from dyninformer.jsonpath.indexing import index_text
from dyninformer.types import Key, Keys

Cells: TypeAlias = tuple[Any, ...]
"""The values of a row, as JSON has them; None is no value."""
Found: TypeAlias = Mapping[Key, Cells | None]
"""What became of rows, by their keys; None is one that is gone."""
Columns: TypeAlias = frozenset[int]
Place: TypeAlias = tuple[Rank, Key]

MARKED_SECONDS: Final = 3.0
"""For so long a change is marked, and a row that is gone stays, struck out."""
_ORDERS: Final = 4  # that are kept up to date
_FEW: Final = 1000  # changes that are sorted in one by one, however few rows there are
_SHARE: Final = 8  # more than one in so many rows have changed: sorting anew is quicker
_NO_COLUMNS: Final[Columns] = frozenset()
_NOTHING_LAST: Final[Rank] = (3, 0.0, "")
_NOTHING_FIRST: Final[Rank] = (-1, 0.0, "")


class Query(NamedTuple):
    """Which rows are looked at, and in which order."""

    column: int | None = None
    """What is sorted by: a column's place, or None for the keys."""
    descending: bool = False
    """The greatest first. Rows without a value come last, whatever the direction."""
    words: tuple[str, ...] = ()
    """Each is somewhere in the row's text; in lower case."""


class State(StrEnum):
    """What happened to a row a moment ago."""

    SAME = ""
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


class Row(NamedTuple):
    """A row as it is to be shown."""

    key: Key
    cells: Cells
    state: State = State.SAME
    changed: Columns = _NO_COLUMNS
    """The places of the cells that have changed."""


Rows: TypeAlias = list[Row]


class Window(NamedTuple):
    """Some of the rows that a query finds."""

    total: int
    """How many it finds."""
    start: int
    rows: Rows


class _Mark(NamedTuple):
    state: State
    changed: Columns
    until: float


class LiveRows:
    """Rows by key, in as many orders as are looked at.

    >>> rows = LiveRows()
    >>> rows.fill({"prod/shop": ("shop", 1), "prod/api": ("api", 3)})
    >>> rows.change({"prod/shop": ("shop", 2), "prod/api": None}, now=10.0)
    True
    >>> for row in rows.window(Query(), 0, 10).rows:
    ...     print(row.key, row.cells, row.state, sorted(row.changed))
    prod/api ('api', 3) gone []
    prod/shop ('shop', 2) changed [1]
    >>> rows.expire(now=13.0)
    True
    >>> [row.key for row in rows.window(Query(), 0, 10).rows], rows.next_expiry
    (['prod/shop'], None)
    """

    def __init__(self) -> None:
        self._there: dict[Key, Cells] = {}
        self._gone: dict[Key, Cells] = {}
        self._marks: dict[Key, _Mark] = {}  # in the order of their ends
        self._orders: OrderedDict[Query, _Order] = OrderedDict()

    def __len__(self) -> int:
        return len(self._there)

    def keys(self) -> Iterable[Key]:
        """The keys of all objects that are there."""
        return self._there.keys()

    def fill(self, found: Found) -> None:
        """Take rows that nobody is to be told of: what is there at the beginning."""
        self._orders.clear()
        for key, cells in found.items():
            if cells is not None:
                self._there[key] = cells

    def change(self, found: Found, now: float) -> bool:
        """Take what became of rows; whether anything has changed in what is shown."""
        if len(found) > max(_FEW, len(self._there) // _SHARE):
            self._orders.clear()
        changed = False
        for key, cells in found.items():
            changed = self._change(key, cells, now + MARKED_SECONDS) or changed
        return changed

    def expire(self, now: float) -> bool:
        """Forget the marks that have been there long enough; whether there were any."""
        over = []
        for key, mark in self._marks.items():
            if mark.until > now:
                break
            over.append(key)
        if len(over) > max(_FEW, len(self._there) // _SHARE):
            self._orders.clear()
        for key in over:
            del self._marks[key]
            cells = self._gone.pop(key, None)
            if cells is not None:
                self._take_out(key, cells)
        return bool(over)

    @property
    def next_expiry(self) -> float | None:
        """When the next mark has been there long enough; None without any."""
        return next((mark.until for mark in self._marks.values()), None)

    def window(self, query: Query, start: int, count: int) -> Window:
        """The rows of a query from a place on. It is kept up to date from now on, or again."""
        order = self._orders.get(query)
        if order is None:
            order = _Order(query, (*self._there.items(), *self._gone.items()))
            self._orders[query] = order
            while len(self._orders) > _ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(query)
        start = max(0, min(start, len(order) - count))
        return Window(len(order), start, [self._row(key) for key in order.keys(start, count)])

    def _row(self, key: Key) -> Row:
        cells = self._gone.get(key)
        if cells is None:
            cells = self._there[key]
        mark = self._marks.get(key)
        return Row(key, cells) if mark is None else Row(key, cells, mark.state, mark.changed)

    def _change(self, key: Key, cells: Cells | None, until: float) -> bool:
        there = self._there.get(key)
        if cells is None:
            if there is None:
                return False
            del self._there[key]
            self._gone[key] = there
            self._mark(key, _Mark(State.GONE, _NO_COLUMNS, until))
            return True
        before = self._gone.pop(key, None) if there is None else there
        if there is not None and all(map(_alike, there, cells)):
            return False
        self._there[key] = cells
        if before is not None:
            self._take_out(key, before)
        for order in self._orders.values():
            order.add(key, cells)
        mark = self._marks.get(key)
        if before is None or (mark is not None and mark.state is State.NEW):
            self._mark(key, _Mark(State.NEW, _NO_COLUMNS, until))
        else:
            columns = frozenset(
                at
                for at, (was, now) in enumerate(zip(before, cells, strict=True))
                if not _alike(was, now)
            )
            self._mark(
                key, _Mark(State.CHANGED, columns | (mark.changed if mark else _NO_COLUMNS), until)
            )
        return True

    def _mark(self, key: Key, mark: _Mark) -> None:
        self._marks.pop(key, None)  # to stand at the end
        self._marks[key] = mark

    def _take_out(self, key: Key, cells: Cells) -> None:
        for order in self._orders.values():
            order.discard(key, cells)


class _Order:
    """The keys of what a query finds, sorted: a change costs a search and a move of pointers."""

    def __init__(self, query: Query, rows: Iterable[tuple[Key, Cells]]) -> None:
        self._query = query
        words = query.words
        self._places: list[Place] = sorted(
            self._place(key, cells) for key, cells in rows if not words or _has(cells, words)
        )
        if query.descending:  # a stable sort: rows that are equal stay in the order of their keys
            self._places.sort(key=itemgetter(0), reverse=True)

    def __len__(self) -> int:
        return len(self._places)

    def keys(self, start: int, count: int) -> Keys:
        """So many from a place on."""
        return [key for _, key in self._places[start : start + count]]

    def add(self, key: Key, cells: Cells) -> None:
        """One more, if it fits."""
        if _has(cells, self._query.words):
            place = self._place(key, cells)
            self._places.insert(self._find(place), place)

    def discard(self, key: Key, cells: Cells) -> None:
        """One less; the cells are those with which it was added."""
        place = self._place(key, cells)
        at = self._find(place)
        if at < len(self._places) and self._places[at] == place:
            del self._places[at]

    def _find(self, place: Place) -> int:
        if self._query.descending:
            return bisect_left(self._places, _downwards(place), key=_downwards)
        return bisect_left(self._places, place)

    def _place(self, key: Key, cells: Cells) -> Place:
        column, descending, _ = self._query
        if column is None:
            return rank(key), key
        value = cells[column]
        if value is None or value == []:
            return _NOTHING_FIRST if descending else _NOTHING_LAST, key
        return rank(value), key


class _Down:
    """A rank that is less than what is less than it."""

    __slots__ = ("rank",)

    def __init__(self, rank: Rank) -> None:
        self.rank = rank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and self.rank == other.rank

    def __lt__(self, other: _Down) -> bool:
        return other.rank < self.rank

    __hash__ = None  # type: ignore[assignment] # it is only compared


def _downwards(place: Place) -> tuple[_Down, Key]:
    return _Down(place[0]), place[1]


def _has(cells: Cells, words: tuple[str, ...]) -> bool:
    if not words:
        return True
    text = "\n".join(map(text_of, cells)).lower()
    return all(word in text for word in words)


def _alike(one: Any, other: Any) -> bool:
    """Equal, and shown alike: to Python True is 1."""
    return one == other and text_of(one) == text_of(other)


def text_of(cell: Any) -> str:
    """The text of a value, as it is looked for by its words.

    >>> text_of(None), text_of(True), text_of(["a", "b"]), text_of({"a": 1})
    ('', 'true', 'a, b', '{"a":1}')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list):
        try:
            return ", ".join(map(text_of, cell))
        except RecursionError:  # it is nested too deep to be told
            return ""
    return index_text(cell) or ""
