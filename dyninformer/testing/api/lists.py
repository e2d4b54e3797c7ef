"""The plain JSON representation of objects, lists and watch lines."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.representation import Page, Representation
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.status import ApiError

__all__ = ["Page", "Representation", "as_read", "encode_object", "error_line"]

Object = dict[str, Any]


def as_read(version: Version, resource: Resource) -> Object:
    """The object as this resource's version shows it: its apiVersion, defaults, pruned."""
    raise NotImplementedError


def encode_object(obj: Object, resource: Resource) -> bytes:
    """An object that is no stored version (a dry run's answer), without a newline."""
    raise NotImplementedError


def error_line(error: ApiError) -> bytes:
    """The in-stream ERROR, the same in every representation."""
    raise NotImplementedError
