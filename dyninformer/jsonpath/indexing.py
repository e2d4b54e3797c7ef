"""Index functions made of paths, and the text of an index value."""

from __future__ import annotations

import json
from itertools import product
from math import isfinite, prod
from typing import Any

from dyninformer.checked import checked_text
from dyninformer.jsonpath.path import JSONPath, Projection
from dyninformer.types import Texts, Values

MAX_COMBINATIONS = 10_000
"""The most values that a compound index gives for one object; with more it gives none."""


def index_text(value: Any) -> str | None:
    """A value as text to look it up by; None for a null, and for what is nested past all use.

    Text stands for itself, booleans are ``true`` and ``false``, whole numbers have no exponent
    (``4.0`` is ``4``, as large as it may be), objects and lists are compact JSON with sorted
    keys.

    >>> [index_text(value) for value in ("a", True, 10**20, 4.0, 0.5, {"b": [1]}, None)]
    ['a', 'true', '100000000000000000000', '4', '0.5', '{"b":[1]}', None]
    """
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if isfinite(value) and value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:  # too deep to be looked up by
        return None


class PathIndex:
    """An index function: the values of one path, or the combinations of several.

    Immutable, for use from any thread. Two of the same paths are equal.

    >>> by_node = PathIndex(".spec.nodeName")
    >>> by_node({"spec": {"nodeName": "worker-1"}})
    ['worker-1']
    """

    __slots__ = ("_projection", "paths")

    paths: tuple[JSONPath, ...]
    """The paths, for a caller that answers several index functions from one decode."""

    def __init__(self, *paths: JSONPath | str) -> None:
        if not paths:
            raise TypeError("an index needs at least one path")
        self._projection = Projection(paths)
        self.paths = self._projection.paths

    def __call__(self, obj: Any) -> Texts:
        """The index values of an object, a dict or JSON bytes; each once."""
        return self.values_of(self._projection.rows(obj))

    def values_of(self, rows: list[Values]) -> Texts:
        """The index values, from what each of the paths found."""
        if len(rows) == 1:
            return _texts(rows[0])
        texts = [_texts(row) for row in rows]
        if prod(map(len, texts)) > MAX_COMBINATIONS:
            return []
        return [self.key(*parts) for parts in product(*texts)]

    def key(self, *parts: str) -> str:
        """The index value for one text for each path, in the order of the paths.

        Joined by ``/``; a ``/`` in a part is written ``~1``, a ``~`` is ``~0``, as in a JSON
        Pointer, so that different parts never give the same value.

        >>> compound(".metadata.namespace", ".spec.node").key("prod", "worker/1")
        'prod/worker~11'
        """
        if len(parts) != len(self.paths):
            raise TypeError(f"{len(self.paths)} parts are wanted, one for each path")
        for part in parts:
            checked_text("a part", part)
        if len(parts) == 1:
            return parts[0]
        return "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathIndex) and self.paths == other.paths

    def __hash__(self) -> int:
        return hash(self.paths)

    def __repr__(self) -> str:
        name = "jsonpath_index" if len(self.paths) == 1 else "compound"
        return f"{name}({', '.join(repr(path.expression) for path in self.paths)})"


def jsonpath_index(expression: JSONPath | str) -> PathIndex:
    """An index function that gives what a path finds, in either dialect, as text.

    A null is no index value; neither is anything of a path that does not fit the object.

    >>> by_image = jsonpath_index("{.spec.containers[*].image}")
    >>> by_image({"spec": {"containers": [{"image": "a"}, {"image": "b"}, {"image": "a"}]}})
    ['a', 'b']
    """
    return PathIndex(expression)


def compound(*expressions: JSONPath | str) -> PathIndex:
    """An index function over several paths at once: every combination of their values.

    >>> by_place = compound("{.metadata.namespace}", "{.spec.nodeName}")
    >>> by_place({"metadata": {"namespace": "prod"}, "spec": {"nodeName": "worker-1"}})
    ['prod/worker-1']
    >>> by_place.key("prod", "worker-1")
    'prod/worker-1'

    Lookups take the parts as a tuple: ``lister.by_index("place", ("prod", "worker-1"))``.
    """
    return PathIndex(*expressions)


def _texts(values: Values) -> Texts:
    """The index values of what one path found, each once, in order."""
    if len(values) == 1 and type(values[0]) is str:
        return values
    texts = [text for value in values if (text := index_text(value)) is not None]
    return list(dict.fromkeys(texts)) if len(texts) > 1 else texts
