"""Counts of objects by what paths find in them, kept up to date object by object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.store.jsonpath import JSONPath, index_text

Object: TypeAlias = dict[str, Any]
Group: TypeAlias = tuple[str, ...]
Rows: TypeAlias = list[list[str]]

_NOTHING = "<none>"


class Tally:
    """Groups, and how many objects are in each. For one thread at a time.

    A path that finds several values counts as their list, one that finds nothing
    as ``<none>``.

    >>> tally = Tally([".spec.issuer"])
    >>> for issuer in "ca", "acme", "ca":
    ...     tally.add({"spec": {"issuer": issuer}})
    >>> tally.rows()
    [['2', 'ca'], ['1', 'acme']]
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = [JSONPath(path) for path in paths]
        self._counts: Counter[Group] = Counter()

    def add(self, obj: Object) -> None:
        """One more."""
        self._counts[self._group(obj)] += 1

    def remove(self, obj: Object) -> None:
        """One less, of the group that it was added to: in the state that it had then."""
        group = self._group(obj)
        self._counts[group] -= 1
        if self._counts[group] <= 0:
            del self._counts[group]

    @property
    def total(self) -> int:
        """All objects."""
        return self._counts.total()

    def rows(self) -> Rows:
        """The number and the values of each group, the largest group first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [[str(count), *(value or _NOTHING for value in group)] for group, count in ordered]

    def _group(self, obj: Object) -> Group:
        return tuple(_text(path, obj) for path in self._paths)


def _text(path: JSONPath, obj: Object) -> str:
    try:
        values = path.values(obj)
    except JSONPathError:  # the path does not fit this object
        return ""
    return ",".join(text for value in values if (text := index_text(value)) is not None)
