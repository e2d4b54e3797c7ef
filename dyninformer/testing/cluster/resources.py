"""What the cluster serves: each resource of each version, built in or from a CRD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dyninformer.testing.cluster.log import GroupResource

Object = dict[str, Any]

ALL_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the resource's table; ``path`` is kubectl's JSONPath without braces."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One resource in one served version.

    It is compared by identity: a CRD whose spec changes gives new Resource objects,
    so whatever was encoded for the old ones is never served for the new.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    columns: tuple[Column, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    schema: Object | None = None
    """The openAPIV3Schema of a CRD's version; None: everything is kept as it is."""
    status: bool = False
    """The status subresource is on."""
    scale: Object | None = None
    """The scale subresource's paths, as in the CRD."""
    builtin: bool = False
    """Its lists come in struct order, without apiVersion and kind on the items."""
    creatable: bool = True
    """False while the CRD that serves it is terminating."""

    @property
    def collection(self) -> GroupResource:
        """Where its objects are kept, whatever the version."""
        return GroupResource(self.group, self.plural)

    @property
    def api_version(self) -> str:
        """``group/version``, or ``version`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """``plural.group``, as messages name it."""
        return str(self.collection)
