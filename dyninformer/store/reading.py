"""One partial decode of an object: what bookkeeping needs, and what all paths of indexes find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath import JSONPath, PathIndex, Projection
from dyninformer.jsonpath.compiling import UNFIT, compiled
from dyninformer.store.fresh_stack import on_fresh_stack

Texts: TypeAlias = list[str]
TextLists: TypeAlias = list[Texts]
Head: TypeAlias = tuple[Any, ...]
"""Name, namespace, uid, resourceVersion, apiVersion, kind: what stands there, which may be
anything in a malformed object, and something other than a text where there is nothing."""

_HEAD: Final = (
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.uid",
    ".metadata.resourceVersion",
    ".apiVersion",
    ".kind",
)
_SIZE: Final = len(_HEAD)


class PartialReader:
    """Reads the head and the values of some path indexes; immutable, for any thread.

    Gives what `Projection` gives for the paths of the head and the indexes. It is this module
    that costs most of what an object costs when it comes in, hence the shorter way for paths of
    nothing but keys.
    """

    def __init__(self, indexes: Sequence[PathIndex] = ()) -> None:
        paths: list[JSONPath | str] = [*_HEAD]
        self._indexes: list[tuple[Callable[[list[list[Any]]], Texts], int, int]] = []
        for index in indexes:
            self._indexes.append((index.values_of, len(paths), len(paths) + len(index.paths)))
            paths += index.paths
        self._projection = Projection(paths)
        plan = compiled([path.parsed for path in self._projection.paths])
        ways = [way for way in plan.ways if way is not None]
        self._decode = plan.decode
        # All values by one call; None if some path is not of keys alone.
        self._values = (
            attrgetter(*ways) if len(ways) == len(paths) == _SIZE + len(indexes) else None
        )
        heads = [way for way in plan.ways[:_SIZE] if way is not None]
        self._heads = attrgetter(*heads) if len(heads) == _SIZE else None
        self._extracts = plan.extracts

    def read(self, data: bytes) -> tuple[Head, TextLists]:
        """The head of an object, and its values in each index.

        Raises JSONPathError for what is no JSON or nested too deep.
        """
        try:
            if self._values is not None:
                values = self._values(self._decode(data))
                row: TextLists = []
                for value in values[_SIZE:]:
                    row.append([value] if type(value) is str else self._other(len(row), value))
                return values, row
            if self._heads is not None:
                root = self._decode(data)
                head = self._heads(root)
                return head, [
                    values_of([extract(root) for extract in self._extracts[start:end]])
                    for values_of, start, end in self._indexes
                ]
        except (AttributeError, JSONPathError, *UNFIT):
            # A null on the way, a path that does not fit this object, an unusual number.
            pass
        found = self._projection.rows(data)
        head = tuple([values[0] if values else None for values in found[:_SIZE]])
        return head, [values_of(found[start:end]) for values_of, start, end in self._indexes]

    def read_accepted(self, data: bytes) -> tuple[Head, TextLists]:
        """The same for an object that was read before: however deep it is, it can be again."""
        try:
            return self.read(data)
        except JSONPathError:
            return on_fresh_stack(self.read, data)

    def _other(self, at: int, value: Any) -> Texts:
        """The index values of something that is no text, or is not there."""
        return [] if value is UNSET else self._indexes[at][0]([[value]])


def text(value: Any) -> str:
    """A value of a head as text, "" if it is none."""
    return value if type(value) is str else ""
