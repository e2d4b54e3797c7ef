"""Paths into objects: kubectl's JSONPath and jsonpath-ng's, compiled where they can be.

>>> from dyninformer.jsonpath import JSONPath
>>> JSONPath(".metadata.name").values({"metadata": {"name": "web-0"}})
['web-0']
"""

from __future__ import annotations

from dyninformer.errors import JSONPathError, JSONPathWarning
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
