"""A write that has been read but not yet decided: what creates and updates pass along."""

from __future__ import annotations

from dataclasses import dataclass

from dyninformer.testing.cluster.managed_fields import ManagedFields
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.write_options import WriteOptions
from dyninformer.types import Object


@dataclass(frozen=True, slots=True)
class Draft:
    """One object to be written, as its request means it."""

    resource: Resource
    object: Object
    options: WriteOptions
    warnings: tuple[str, ...] = ()
    subresource: str = ""
    managed: ManagedFields | None = None
    """Who owns the fields, if an apply has decided it already."""
