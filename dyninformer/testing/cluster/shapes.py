"""Which lists merge by key and which are one value: by a CRD's schema, or by Kubernetes' types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dyninformer.testing.cluster.causes import shown
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.structural import Structural

_Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value merges. The default is that of data without a schema.

    Maps merge field by field unless they are ``atomic``. A list with ``keys`` merges item
    by item; one that ``is_set`` merges by value; any other is replaced as a whole.
    """

    keys: _Keys = ()
    is_set: bool = False
    atomic: bool = False
    key_defaults: tuple[tuple[str, str], ...] = ()
    """The values of keys that an item leaves out."""

    def field(self, name: str) -> Shape:
        """The shape of a map's field."""
        del name
        return UNKNOWN

    @property
    def item(self) -> Shape:
        """The shape of a list's items."""
        return UNKNOWN


UNKNOWN: Final = Shape()


@dataclass(frozen=True, slots=True)
class _SchemaShape(Shape):
    node: Structural | None = None

    def field(self, name: str) -> Shape:
        if self.node is None:
            return UNKNOWN
        below = self.node.properties.get(name) or self.node.additional
        return _of_schema(below) if below is not None else UNKNOWN

    @property
    def item(self) -> Shape:
        node = self.node
        return _of_schema(node.items) if node is not None and node.items is not None else UNKNOWN


@dataclass(frozen=True, slots=True)
class _RootShape(_SchemaShape):
    def field(self, name: str) -> Shape:
        return _METADATA if name == "metadata" else _SchemaShape.field(self, name)


@dataclass(frozen=True, slots=True)
class _TypedShape(Shape):
    """A shape of Kubernetes' own types, known by the names of their fields."""

    where: str = ""

    def field(self, name: str) -> Shape:
        found = _LISTS.get(f"{self.where}.{name}") or _LISTS.get(name) or Shape()
        return _TypedShape(found.keys, found.is_set, found.atomic, found.key_defaults, name)

    @property
    def item(self) -> Shape:
        return _TypedShape(where=self.where, atomic=self.where in _REFERENCES)


_PROTOCOL = (("protocol", "TCP"),)
_LISTS: Mapping[str, Shape] = {
    "finalizers": Shape(is_set=True),
    "ownerReferences": Shape(keys=("uid",)),
    "conditions": Shape(keys=("type",)),
    "containers": Shape(keys=("name",)),
    "initContainers": Shape(keys=("name",)),
    "ephemeralContainers": Shape(keys=("name",)),
    "env": Shape(keys=("name",)),
    "containers.ports": Shape(keys=("containerPort", "protocol"), key_defaults=_PROTOCOL),
    "initContainers.ports": Shape(keys=("containerPort", "protocol"), key_defaults=_PROTOCOL),
    "spec.ports": Shape(keys=("port", "protocol"), key_defaults=_PROTOCOL),
    "volumes": Shape(keys=("name",)),
    "volumeMounts": Shape(keys=("mountPath",)),
    "volumeDevices": Shape(keys=("devicePath",)),
    "imagePullSecrets": Shape(keys=("name",)),
    "hostAliases": Shape(keys=("ip",)),
    "topologySpreadConstraints": Shape(keys=("topologyKey", "whenUnsatisfiable")),
    "resourceClaims": Shape(keys=("name",)),
    "podIPs": Shape(keys=("ip",)),
    "hostIPs": Shape(keys=("ip",)),
    "status.addresses": Shape(keys=("type",)),
    "secrets": Shape(keys=("name",)),
    "webhooks": Shape(keys=("name",)),
    "selector": Shape(atomic=True),
    "nodeSelector": Shape(atomic=True),
    "resourceRef": Shape(atomic=True),
    "secretRef": Shape(atomic=True),
    "fieldRef": Shape(atomic=True),
    "involvedObject": Shape(atomic=True),
    "roleRef": Shape(atomic=True),
    "regarding": Shape(atomic=True),
    "related": Shape(atomic=True),
}

_REFERENCES = frozenset({"ownerReferences", "imagePullSecrets", "secrets"})
"""Lists whose items have one owner each, not one for each field."""

_METADATA: Final[Shape] = _TypedShape(where="metadata")


def shape_of(resource: Resource) -> Shape:
    """How the objects of a resource merge."""
    if resource.builtin:
        return _TypedShape()
    return _RootShape(node=resource.structural)


def item_element(item: Any, shape: Shape) -> str:
    """How a list names its item."""
    if not shape.keys:
        return f"v:{shown(item)}"
    defaults = dict(shape.key_defaults)
    item = item if isinstance(item, dict) else {}
    keys = {key: item.get(key, defaults.get(key)) for key in shape.keys}
    return f"k:{shown(keys)}"


def _of_schema(node: Structural) -> Shape:
    return _SchemaShape(
        keys=node.list_keys if node.list_type == "map" else (),
        is_set=node.list_type == "set",
        atomic=node.map_type == "atomic",
        key_defaults=_key_defaults(node),
        node=node,
    )


def _key_defaults(node: Structural) -> tuple[tuple[str, str], ...]:
    if node.list_type != "map" or node.items is None:
        return ()
    return tuple(
        (name, below.default) for name, below in node.items.with_defaults if name in node.list_keys
    )
