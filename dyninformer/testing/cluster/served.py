"""A stored object as one served version of its resource shows it."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource

Object = dict[str, Any]


def as_served(obj: Object, resource: Resource) -> Object:
    """With the version's apiVersion, the schema's defaults filled in, unknown fields dropped.

    It shares with ``obj`` whatever is the same: neither may be changed.
    """
    if resource.structural is not None:
        obj = resource.structural.coerce(obj, root=True)
    if obj.get("apiVersion") == resource.api_version and obj.get("kind") == resource.kind:
        return obj
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind}


def as_read(version: Version, resource: Resource) -> Object:
    """`as_served`, of a version in the log."""
    return as_served(version.object, resource)
