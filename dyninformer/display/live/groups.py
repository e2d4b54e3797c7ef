"""Objects counted by what paths find in them, and kept count of as they change.

Pure, as `rows` is. One thread uses it at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.display.live.rows import Cells, Found, LiveRows
from dyninformer.jsonpath.indexing import index_text
from dyninformer.types import Key

Group: TypeAlias = tuple[str, ...]
Groups: TypeAlias = tuple[Group, ...]
Counts: TypeAlias = Mapping[Group, int]

NO_VALUE: Final = "<none>"
"""The group of what has no value."""
_BETWEEN: Final = "\x1f"


class GroupCounts:
    """How many objects are in each group.

    What a row has in its cells are the values it is counted under; under each, where a cell is a
    list, and under ``<none>`` where there is nothing.

    >>> counts = GroupCounts()
    >>> counts.take({"a": ("ca",), "b": ("ca",), "c": (None,)})
    {'ca': ('ca', 2), '<none>': ('<none>', 1)}
    >>> counts.take({"a": ("acme",), "c": None})
    {'ca': ('ca', 1), 'acme': ('acme', 1), '<none>': None}
    """

    def __init__(self) -> None:
        self._groups: dict[Key, Groups] = {}
        self._counts: Counter[Group] = Counter()

    def keys(self) -> Iterable[Key]:
        """The keys of all objects that are counted."""
        return self._groups.keys()

    @property
    def counts(self) -> Counts:
        """The groups that there are, and how many objects each has."""
        return self._counts

    def take(self, found: Found) -> dict[Key, Cells | None]:
        """Take what became of objects; what this makes of the groups, as rows of their own."""
        touched: dict[Group, None] = {}
        for key, cells in found.items():
            for group in self._groups.pop(key, ()):
                self._counts[group] -= 1
                touched[group] = None
            if cells is not None:
                groups = self._groups[key] = _groups(cells)
                for group in groups:
                    self._counts[group] += 1
                    touched[group] = None
        rows: dict[Key, Cells | None] = {}
        for group in touched:
            count = self._counts[group]
            if not count:
                del self._counts[group]
            rows[_BETWEEN.join(group)] = (*group, count) if count else None
        return rows


def _groups(cells: Cells) -> Groups:
    return tuple(product(*map(_texts, cells)))


def _texts(cell: Any) -> list[str]:
    values = cell if isinstance(cell, list) else [cell]
    texts = dict.fromkeys(index_text(value) or NO_VALUE for value in values)
    return list(texts) or [NO_VALUE]


class GroupRows(LiveRows):
    """A row for each group, of the objects that it is told of.

    >>> from dyninformer.display.live.rows import Query
    >>> rows = GroupRows()
    >>> rows.fill({"a": ("ca",), "b": ("ca",)})
    >>> [row.cells for row in rows.window(Query(), 0, 10).rows], list(rows.keys())
    ([('ca', 2)], ['a', 'b'])
    """

    def __init__(self) -> None:
        super().__init__()
        self._groups = GroupCounts()

    def keys(self) -> Iterable[Key]:
        """The keys of the objects."""
        return self._groups.keys()

    def fill(self, found: Found) -> None:
        """Count the objects that are there at the beginning."""
        super().fill(self._groups.take(found))

    def change(self, found: Found, now: float) -> bool:
        """Count what became of objects; whether any count has changed."""
        return super().change(self._groups.take(found), now)


class Sample(NamedTuple):
    """The counts at one moment."""

    at: float
    counts: Counts


class Course:
    """How counts have gone: what they were whenever they changed, the oldest first.

    It holds so many samples; of more it keeps every second one of the older half.

    >>> course = Course(most=4)
    >>> for at in range(7):
    ...     _ = course.add(float(at), {("ca",): at})
    >>> [sample.at for sample in course.samples]
    [0.0, 4.0, 5.0, 6.0]
    """

    def __init__(self, most: int = 600) -> None:
        self._most = most
        self._samples: deque[Sample] = deque()

    @property
    def samples(self) -> list[Sample]:
        """All that are held."""
        return list(self._samples)

    def add(self, at: float, counts: Counts) -> bool:
        """Take the counts of a moment; False if they are as they were."""
        if self._samples and self._samples[-1].counts == counts:
            return False
        self._samples.append(Sample(at, dict(counts)))
        if len(self._samples) > self._most:
            kept = list(self._samples)
            half = self._most // 2
            self._samples = deque([*kept[:half:2], *kept[half:]])
        return True
