"""Paths into objects: kubectl's JSONPath and jsonpath-ng's, compiled where they can be.

>>> from dyninformer.store.jsonpath import JSONPath
>>> JSONPath(".metadata.name").values({"metadata": {"name": "web-0"}})
['web-0']
"""

from __future__ import annotations

from dyninformer.errors import JSONPathError, JSONPathWarning
from dyninformer.store.jsonpath.conditions import PathCondition
from dyninformer.store.jsonpath.indexing import PathIndex, compound, index_text, jsonpath_index
from dyninformer.store.jsonpath.path import JSONPath
from dyninformer.store.jsonpath.projection import Projection

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
