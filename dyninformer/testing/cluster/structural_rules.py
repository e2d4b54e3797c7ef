"""Whether a schema is structural: the rules that a CRD's schema must keep."""

from __future__ import annotations

from collections.abc import Iterator

from dyninformer.testing.cluster.causes import invalid_value, required, unsupported
from dyninformer.testing.cluster.patterns import compiled_pattern
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.cluster.validation import schema_causes
from dyninformer.testing.status import cause
from dyninformer.types import Object

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("definitions", "dependencies", "id", "patternProperties", "$ref", "$schema")


def schema_complaints(schema: Object, where: str) -> Iterator[Object]:
    """What a version's openAPIV3Schema, found at ``where``, must not say or must say."""
    kind = schema.get("type")
    if not kind:
        yield required(f"{where}.type", "must not be empty at the root")
    elif kind != "object":
        yield invalid_value(f"{where}.type", kind, "must be object at the root")
    metadata = schema.get("properties", {}).get("metadata")
    if metadata and set(metadata.get("properties", {})) - {"name", "generateName"}:
        why = (
            "Forbidden: must not specify anything other than name and generateName, "
            "but metadata is implicitly specified"
        )
        yield cause("FieldValueForbidden", why, f"{where}.properties[metadata]")
    yield from _schema(schema, where, typed=False)


def _schema(schema: Object, where: str, *, typed: bool = True) -> Iterator[Object]:
    """A node that says which fields there are; ``typed`` if it must say its own type."""
    kind = schema.get("type")
    free = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if not kind and typed and not free:
        yield required(f"{where}.type", "must not be empty for specified object fields")
    elif kind and kind not in _TYPES:
        yield unsupported(f"{where}.type", kind, _TYPES)
    for field in _UNSUPPORTED:
        if schema.get(field):
            text = f"Forbidden: {field} is not supported"
            yield cause("FieldValueForbidden", text, f"{where}.{field}")
    if schema.get("uniqueItems"):
        text = (
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity "
            "becomes quadratic"
        )
        yield cause("FieldValueForbidden", text, f"{where}.uniqueItems")
    if kind == "array" and schema.get("items") is None:
        yield required(f"{where}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties") is not None:
        text = "Forbidden: additionalProperties and properties are mutual exclusive"
        yield cause("FieldValueForbidden", text, f"{where}.additionalProperties")
    yield from _pattern(schema, where)
    yield from _default(schema, where)
    yield from _list(schema, where)
    yield from _logical(schema, where)
    for name, below in schema.get("properties", {}).items():
        yield from _schema(below, f"{where}.properties[{name}]")
    for field in ("items", "additionalProperties"):
        below = schema.get(field)
        if isinstance(below, dict):
            yield from _schema(below, f"{where}.{field}")


def _pattern(schema: Object, where: str) -> Iterator[Object]:
    pattern = schema.get("pattern")
    if pattern and compiled_pattern(pattern) is None and _is_broken(pattern):
        why = f"must be a valid regular expression, but isn't: error parsing regexp: `{pattern}`"
        yield invalid_value(f"{where}.pattern", pattern, why)


def _is_broken(pattern: str) -> bool:
    """Neither Python's nor, as far as can be told, Go's, which knows classes that Python lacks."""
    return not any(mark in pattern for mark in (r"\p", r"\P", "[[:", r"\Q", r"\C", "(?s", "(?U"))


def _default(schema: Object, where: str) -> Iterator[Object]:
    if schema.get("default") is None:
        return
    holder = Structural({"type": "object", "properties": {"": schema}})
    for found in schema_causes(holder, {"": holder.properties[""].coerce(schema["default"])}):
        yield {**found, "field": f"{where}.default{found['field']}"}


def _list(schema: Object, where: str) -> Iterator[Object]:
    kind = schema.get("x-kubernetes-list-type")
    if kind is not None and kind not in {"atomic", "set", "map"}:
        yield unsupported(f"{where}.x-kubernetes-list-type", kind, ("atomic", "map", "set"))
    if kind != "map":
        return
    keys, items = schema.get("x-kubernetes-list-map-keys") or [], schema.get("items") or {}
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{where}.x-kubernetes-list-map-keys", why)
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{where}.items.type", items.get("type"), why)
    elif any(key not in items.get("properties", {}) for key in keys):
        why = "entries must all be names of item properties"
        yield invalid_value(f"{where}.x-kubernetes-list-map-keys", keys, why)


def _logical(schema: Object, where: str) -> Iterator[Object]:
    for field in ("allOf", "anyOf", "oneOf", "not"):
        given = schema.get(field)
        for index, below in enumerate(given if isinstance(given, list) else [given]):
            inside = f"{where}.{field}" if field == "not" else f"{where}.{field}[{index}]"
            if below and below.get("type") and not schema.get("x-kubernetes-int-or-string"):
                text = "Forbidden: must be empty to be structural"
                yield cause("FieldValueForbidden", text, f"{inside}.type")
