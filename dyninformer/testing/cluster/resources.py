"""What the cluster serves: each resource of each version, built in or from a CRD."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dyninformer.testing.cluster.log import GroupResource
from dyninformer.testing.cluster.structural import Structural
from dyninformer.types import Object

ALL_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
"""What discovery says of a CRD's resources while the CRD is being deleted."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the resource's table; ``path`` is kubectl's JSONPath without braces.

    An empty ``path`` is a cell that no path can express (``2/3``, ``4d``): the
    tables compute it, from the resource's kind and the column's name.
    """

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
    columns: tuple[Column, ...] | None = None
    """The columns after the name that a CRD's version declares; None if it declares none."""
    selectable_fields: tuple[str, ...] = ()
    """Paths as in the CRD (``.spec.color``); for built-ins as in a selector (``status.phase``)."""
    schema: Object | None = None
    """The openAPIV3Schema of a CRD's version; None: everything is kept as it is."""
    structural: Structural | None = None
    """``schema``, compiled once for defaults, pruning and validation."""
    status: bool = False
    """The status subresource is on."""
    scale: Object | None = None
    """The scale subresource's paths, as in the CRD."""
    builtin: bool = False
    """Its lists come in struct order, without apiVersion and kind on the items."""
    creatable: bool = True
    """False while the CRD that serves it is terminating."""
    generation: bool = True
    """Its objects carry metadata.generation (those of namespaces and configmaps do not)."""
    creates_on_update: bool = False
    """A PUT of an object that is not there creates it (leases, for example)."""
    returns_deleted: bool = False
    """A DELETE that removes the object answers with the object, not with a Status."""
    siblings: tuple[str, ...] = ()
    """Every version of the CRD that serves it, this one and those not served too."""
    kept_in: GroupResource | None = None
    """The collection of another group that has its objects (events); None: its own."""
    deprecation: str = ""
    """The warning that comes with every answer; "" if the version is not deprecated."""

    @property
    def group_resource(self) -> GroupResource:
        """What it is, whatever the version."""
        return GroupResource(self.group, self.plural)

    @property
    def collection(self) -> GroupResource:
        """Where its objects are kept, whatever the version."""
        return self.kept_in or self.group_resource

    @property
    def api_version(self) -> str:
        """``group/version``, or ``version`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """``plural.group``, as messages name it."""
        return str(self.group_resource)


Resources = tuple[Resource, ...]


class ResourceTable:
    """Every resource that is served now, in the order in which discovery prefers them.

    Built-in groups come first, in the order they are put; groups of CRDs follow by name.
    Within a group, versions go from the most to the least preferred (v2, v1, v1beta2),
    and resources of a version by name.
    """

    def __init__(self) -> None:
        self._served: dict[GroupResource, Resources] = {}
        self._builtin_groups: dict[str, int] = {}
        self._listeners: list[Callable[[], None]] = []
        self._ordered: Resources | None = None

    def put(self, collection: GroupResource, versions: Iterable[Resource]) -> None:
        """Serve a collection in these versions instead of the former ones; none: no longer."""
        found = tuple(sorted(versions, key=lambda each: version_priority(each.version)))
        if found:
            self._served[collection] = found
        elif self._served.pop(collection, None) is None:
            return
        if found and found[0].builtin:
            self._builtin_groups.setdefault(collection.group, len(self._builtin_groups))
        self._ordered = None
        for listener in tuple(self._listeners):
            listener()

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource behind a path, None if nothing serves it."""
        versions = self._served.get(GroupResource(group, plural), ())
        return next((each for each in versions if each.version == version), None)

    def of(self, collection: GroupResource) -> Resources:
        """The versions a collection is served in, the preferred one first."""
        return self._served.get(collection, ())

    def versions_of(self, group: str) -> tuple[str, ...]:
        """The versions of a group, the preferred one first; empty if it is unknown."""
        return tuple(dict.fromkeys(each.version for each in self.all() if each.group == group))

    def groups(self) -> tuple[str, ...]:
        """The groups that serve anything, in discovery's order."""
        return tuple(dict.fromkeys(each.group for each in self.all()))

    def all(self) -> Resources:
        """Everything that is served, in discovery's order."""
        if self._ordered is None:
            self._ordered = tuple(
                sorted((each for found in self._served.values() for each in found), key=self._rank)
            )
        return self._ordered

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each change of what is served; returns the way to stop it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _rank(self, resource: Resource) -> tuple[int, str, tuple[int, ...], str, str]:
        rank = self._builtin_groups.get(resource.group, len(self._builtin_groups))
        name = version_priority(resource.version)
        return rank, resource.group, name[0], name[1], resource.plural


_KUBE_VERSION = re.compile(r"v([1-9][0-9]{0,9})(?:(alpha|beta)([1-9][0-9]{0,9}))?")


def version_priority(version: str) -> tuple[tuple[int, ...], str]:
    """A sort key: stable before beta before alpha, newest first; other names last, by name.

    >>> sorted(["v1", "v1beta1", "v11alpha2", "v2", "foo", "v10"], key=version_priority)
    ['v10', 'v2', 'v1', 'v1beta1', 'v11alpha2', 'foo']
    """
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0), version
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0)), ""


def value_at(obj: Object, path: str) -> Any:
    """The value at a simple path such as ``.spec.replicas``; None if there is none."""
    value: Any = obj
    for step in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def with_value_at(obj: Object, path: str, value: Any) -> Object:
    """``obj`` with another value at a simple path, everything else shared."""
    step, _, rest = path.strip(".").partition(".")
    if not rest:
        return {**obj, step: value}
    below = obj.get(step)
    return {**obj, step: with_value_at(below if isinstance(below, dict) else {}, rest, value)}
