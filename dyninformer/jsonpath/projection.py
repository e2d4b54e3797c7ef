"""Several paths answered together: what indexes, selections and tables ask of every object."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import UNSET

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.compiling import UNFIT, Find, compiled
from dyninformer.jsonpath.document import check_depth, decoded
from dyninformer.jsonpath.path import JSONPath

Values: TypeAlias = list[Any]
Rows: TypeAlias = list[Values]


class Projection:
    """What several paths find in an object; immutable, for use from any thread.

    From bytes, all the paths share one decode, of only what they need. Unlike
    ``JSONPath.values``, a path that does not fit an object finds nothing in it, and whole
    numbers stay whole however large.

    >>> projection = Projection([".metadata.name", ".spec.ports[*].port", ".spec.ports[5]"])
    >>> projection.rows(b'{"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}')
    [['web'], [80], []]
    """

    __slots__ = ("_decode", "_extracts", "_finds", "_others", "_plain", "paths")

    paths: tuple[JSONPath, ...]
    """The paths, in the order of the rows."""

    def __init__(self, paths: Iterable[JSONPath | str]) -> None:
        self.paths = tuple(path if isinstance(path, JSONPath) else JSONPath(path) for path in paths)
        expressions = [path.parsed for path in self.paths]
        plan = compiled(expressions)
        self._finds = [expression.find for expression in expressions]
        self._decode, self._extracts = plan.decode, plan.extracts
        ways = [way for way in plan.ways if way is not None]
        # One call gets the values of all plain paths, as a tuple if there are at least two.
        self._plain = attrgetter(*ways) if len(ways) > 1 else None
        self._others = [
            (at, extract) for at, extract in enumerate(plan.extracts) if plan.ways[at] is None
        ]

    def rows(self, obj: Any) -> Rows:
        """The values of each path, in order. The object is a dict, or JSON bytes."""
        if type(obj) is not bytes:
            return self._in_whole(decoded(obj))
        check_depth(obj)
        try:
            root = self._decode(obj)
        except UNFIT:
            return self._in_whole(decoded(obj))
        try:
            if self._plain is None:
                return [extract(root) for extract in self._extracts]
            rows: Rows = [[] if value is UNSET else [value] for value in self._plain(root)]
            for at, extract in self._others:
                rows.insert(at, extract(root))
        except (AttributeError, JSONPathError):
            # A null on the way of a plain path, or a path that does not fit this object.
            return [_lenient(extract, root) for extract in self._extracts]
        return rows

    def _in_whole(self, root: Any) -> Rows:
        return [_lenient(find, root) for find in self._finds]

    def __repr__(self) -> str:
        return f"Projection({[path.expression for path in self.paths]!r})"


def _lenient(find: Find, root: Any) -> Values:
    try:
        return find(root)
    except JSONPathError:
        return []
