"""Tables of several caches of one resource as one, with the name of each in the first column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from dyninformer.discovery.known import Known
from dyninformer.frames import types
from dyninformer.frames.selection import (
    Choice,
    Column,
    ColumnList,
    Table,
    asked_for,
    gathered,
    is_namespaced,
    order_of,
    places_in,
)
from dyninformer.store.codec import Entry
from dyninformer.store.matching import entries_of
from dyninformer.store.snapshot import View
from dyninformer.types import Key, Values

CLUSTER: Final = "cluster"

_CLUSTER: Final = Column(CLUSTER, None, types.TEXT)


class Part(NamedTuple):
    """One cache at one moment."""

    cluster: str
    view: View
    chosen: Mapping[Key, Entry] | None
    """What the choice's selectors match, where it is known; the view may be a part, then."""
    known: Known


def tabled_together(parts: Sequence[Part], choice: Choice) -> Table:
    """The table of all: a row for each object, cache by cache, or sorted over all of them.

    It has the columns that any of them has; of what differs in type the values decide.
    """
    if choice.columns is not None and CLUSTER in choice.columns:
        raise ValueError(f"{CLUSTER!r} is the first column: call yours something else")
    held = [part for part in parts if len(part.view)] or parts[:1]
    namespaced = any(is_namespaced(part.view, part.known) for part in held)
    each_columns = [
        list(map(_renamed, asked_for(part.known, choice, namespaced=namespaced))) for part in parts
    ]
    columns = [_CLUSTER, *_merged(each_columns)]
    order = order_of(choice.sort_by, columns)
    hidden = [column for _, column, _ in order if column not in columns]
    values: list[Values] = [[] for _ in (*columns, *hidden)]
    keys: list[str] = []
    for part, own in zip(parts, each_columns, strict=True):
        entries = part.chosen
        if entries is None:
            entries = entries_of(part.view, choice.selector, choice.field_selector)
        found = gathered([*own, *hidden], list(entries), list(entries.values()), part.view.codec)
        names = [column.name for column in own]
        by_name = dict(zip(names, found, strict=False))  # behind them are the hidden ones
        for at, column in enumerate(columns):
            values[at] += (
                [part.cluster] * len(entries)
                if column is _CLUSTER
                else by_name.get(column.name, [None] * len(entries))
            )
        for at, _ in enumerate(hidden):
            values[len(columns) + at] += found[len(own) + at]
        keys += entries
    if order:
        places = places_in(order, [*columns, *hidden], values)
        keys = [keys[at] for at in places]
        values = [[each[at] for at in places] for each in values]
    return Table(columns, values[: len(columns)], keys)


def _renamed(column: Column) -> Column:
    """A CRD's own column of that name."""
    return column._replace(name=f"{CLUSTER}_column") if column.name == CLUSTER else column


def _merged(several: Iterable[ColumnList]) -> ColumnList:
    """Each column once; its type is None where caches declare different ones."""
    merged: dict[str, Column] = {}
    for columns in several:
        for column in columns:
            known = merged.get(column.name)
            if known is None:
                merged[column.name] = column
            elif known.type != column.type:
                merged[column.name] = known._replace(type=None)
    return list(merged.values())
