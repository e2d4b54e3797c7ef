"""A CRD's structural schema, compiled: what it prunes, what it fills in, how its lists merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, Literal

from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.types import Object

_ABSENT: Final = object()
_EMBEDDED_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class Structural:
    """One node of a compiled schema. It is never changed once it is built.

    ``coerce`` is what the server does to an object each time it is decoded: fields that
    the schema does not know are dropped, defaults are filled in, nulls that may not be
    are dropped. It shares with the original whatever it does not change.
    """

    __slots__ = (
        "additional",
        "default",
        "embedded",
        "has_rules",
        "inert",
        "items",
        "list_keys",
        "list_type",
        "map_type",
        "nullable",
        "open",
        "properties",
        "raw",
        "with_defaults",
    )

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.raw = schema
        """The schema's own words, for validation."""
        self.properties = {
            name: Structural(below) for name, below in _object(schema.get("properties")).items()
        }
        additional = schema.get("additionalProperties")
        self.additional = Structural(additional) if isinstance(additional, Mapping) else None
        items = schema.get("items")
        self.items = Structural(items) if isinstance(items, Mapping) else None
        self.open = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True
        """Fields that are not named are kept as they are."""
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(schema.get("nullable"))
        self.default = schema.get("default", _ABSENT)
        self.list_type = schema.get("x-kubernetes-list-type", "atomic")
        self.list_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.map_type = schema.get("x-kubernetes-map-type", "granular")
        self.with_defaults = tuple(
            (name, below) for name, below in self.properties.items() if below.default is not _ABSENT
        )
        self.inert = self._is_inert(schema)
        """Nothing at or below this node is ever pruned or filled in."""
        self.has_rules: bool = bool(schema.get("x-kubernetes-validations")) or any(
            below.has_rules for below in self._below()
        )
        """A CEL rule stands somewhere at or below."""

    def coerce(self, value: Any, *, root: bool = False) -> Any:
        """``value`` as this schema lets it be seen; the very same object if nothing changes."""
        if self.inert:
            return value
        if isinstance(value, dict):
            return self._coerce_object(value, root=root)
        if isinstance(value, list) and self.items is not None:
            coerced = [self.items.coerce(item) for item in value]
            changed = any(new is not old for new, old in zip(coerced, value, strict=True))
            return coerced if changed else value
        return value

    def unknown(self, value: Any, path: str = "", *, root: bool = False) -> Iterator[str]:
        """The paths that ``coerce`` drops because the schema does not know them."""
        if self.inert:
            return
        if isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                yield from self.items.unknown(item, f"{path}[{index}]")
        elif isinstance(value, dict):
            for name, below in value.items():
                where = f"{path}.{name}" if path else name
                node = self._of(name, root=root)
                if isinstance(node, Structural):
                    yield from node.unknown(below, where)
                elif node is None:
                    yield where

    def _coerce_object(self, value: Object, *, root: bool) -> Object:
        changed: Object = {}
        dropped: list[str] = []
        for name, below in value.items():
            node = self._of(name, root=root)
            if node is None:
                dropped.append(name)
            elif node is True:
                continue
            elif below is None and not node.nullable:
                if name in self.properties and node.default is _ABSENT:
                    dropped.append(name)
            elif not node.inert and (coerced := node.coerce(below)) is not below:
                changed[name] = coerced
        for name, node in self.with_defaults:
            if value.get(name) is None and not (name in value and node.nullable):
                changed[name] = node.coerce(deepcopy(node.default))
        if not changed and not dropped:
            return value
        result = {**value, **changed}
        for name in dropped:
            del result[name]
        return result

    def _of(self, name: str, *, root: bool) -> Structural | Literal[True] | None:
        """What stands for a field: its node, True if it is kept as it is, None if unknown."""
        if (root or self.embedded) and name in _EMBEDDED_FIELDS:
            return True if root or name != "metadata" else _OBJECT_META
        return self.properties.get(name) or self.additional or (True if self.open else None)

    def _is_inert(self, schema: Mapping[str, Any]) -> bool:
        if self.embedded or self.with_defaults or not all(below.inert for below in self._below()):
            return False
        if not all(below.nullable for below in self.properties.values()):
            return False  # their nulls are dropped
        return self.open or self.additional is not None or schema.get("type") != "object"

    def _below(self) -> Iterator[Structural]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_OBJECT_META: Final = Structural(
    {
        "type": "object",
        "properties": {
            name: {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}
            for name in STRUCTS["ObjectMeta"]
        },
    }
)
"""The metadata of an embedded object; that of the object itself is read elsewhere."""
