"""Live, indexed, in-memory copies of any Kubernetes collection, as plain dicts."""

from dyninformer.errors import JSONPathError, JSONPathWarning
from dyninformer.store.jsonpath import JSONPath, compound, jsonpath_index

__all__ = ["JSONPath", "JSONPathError", "JSONPathWarning", "compound", "jsonpath_index"]
