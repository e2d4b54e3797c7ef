"""Paths into objects: kubectl's JSONPath and jsonpath-ng's, compiled where they can be.

A name is looked up on first use: what only measures JSON bytes needs no paths.

>>> from dyninformer.jsonpath import JSONPath
>>> JSONPath(".metadata.name").values({"metadata": {"name": "web-0"}})
['web-0']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dyninformer.errors import JSONPathError, JSONPathWarning
from dyninformer.first_use import on_first_use

if TYPE_CHECKING:
    from dyninformer.jsonpath.comparisons import PathCondition
    from dyninformer.jsonpath.indexing import PathIndex, compound, index_text, jsonpath_index
    from dyninformer.jsonpath.path import JSONPath, Projection

__all__ = [
    "JSONPath",
    "JSONPathError",
    "JSONPathWarning",
    "PathCondition",
    "PathIndex",
    "Projection",
    "compound",
    "index_text",
    "jsonpath_index",
]

_HOMES = {
    "JSONPath": "path",
    "PathCondition": "comparisons",
    "PathIndex": "indexing",
    "Projection": "path",
    "compound": "indexing",
    "index_text": "indexing",
    "jsonpath_index": "indexing",
}

__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
