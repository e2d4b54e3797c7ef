"""An object against a CRD's schema: every field at fault, in the server's words.

CEL rules are not evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from dyninformer.testing.cluster.causes import invalid_value, required, shown
from dyninformer.testing.cluster.formats import has_format
from dyninformer.testing.cluster.patterns import matches
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.cluster.structure import structure_causes
from dyninformer.testing.status import cause
from dyninformer.types import Object

Causes = list[Object]

RULES_SKIPPED: Final = cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    "<nil>",
)
"""Follows the errors of an object whose schema has CEL rules."""


def schema_causes(structural: Structural, obj: Object) -> Causes:
    """What is wrong with ``obj`` by its schema; empty if nothing is."""
    found: Causes = []
    for name, value in obj.items():
        if name not in {"apiVersion", "kind", "metadata"}:
            node = structural.properties.get(name)
            if node is not None:
                found += _value(node.raw, value, name)
    found += _object(_without_properties(structural.raw), obj, "")
    found += _combined(structural.raw, obj, "")
    found += _restricted_metadata(structural, obj)
    found += structure_causes(structural, obj, "", root=True)
    return found


def status_causes(structural: Structural, obj: Object) -> Causes:
    """The same for a write to status alone: messages name fields from status on."""
    node = structural.properties.get("status")
    found: Causes = []
    if node is not None and "status" in obj:
        found += [_in_status(each) for each in _value(node.raw, obj["status"], "")]
    return [*found, *structure_causes(structural, obj, "", root=True)]


def _in_status(found: Object) -> Object:
    where = found["field"]
    if where == "<nil>":
        return found
    return {**found, "field": f"status.{where}" if where else "status"}


def _without_properties(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**raw, "properties": {}, "additionalProperties": None}


def _restricted_metadata(structural: Structural, obj: Object) -> Causes:
    """A schema may restrict metadata.name and generateName, and nothing else there."""
    node = structural.properties.get("metadata")
    metadata = obj.get("metadata", {})
    return [
        found
        for name in ("name", "generateName")
        if node is not None and name in node.properties and name in metadata
        for found in _value(node.properties[name].raw, metadata[name], f"metadata.{name}")
    ]


def _value(schema: Mapping[str, Any], value: Any, where: str) -> Causes:
    if value is None:
        return [] if schema.get("nullable") else _type(schema, value, where)
    found = _type(schema, value, where)
    if not isinstance(value, (dict, list)):
        found += _format(schema, value, where)
    elif isinstance(value, dict):
        found += _combined(schema, value, where)
        return found + _enum(schema, value, where) + _object(schema, value, where)
    else:
        found += _combined(schema, value, where)
        return found + _array(schema, value, where) + _enum(schema, value, where)
    found += _combined(schema, value, where)
    if isinstance(value, str):
        found += _string(schema, value, where)
    elif not isinstance(value, bool):
        found += _number(schema, value, where)
    return found + _enum(schema, value, where)


def _type(schema: Mapping[str, Any], value: Any, where: str) -> Causes:
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        wanted = "integer,string"
    if not wanted:
        return []
    actual = _type_of(value)
    if actual in wanted.split(",") or (actual == "integer" and wanted == "number"):
        return []
    if schema.get("format") and not isinstance(value, (str, list)):
        formats = {"integer": "int64", "number": "float64"}
        return [_type_cause(where, schema["format"], formats.get(actual, ""))]
    return [_type_cause(where, wanted, actual)]


def _type_cause(where: str, wanted: str, value: str) -> Object:
    quoted = shown(value)
    text = f"Invalid value: {quoted}: {where} in body must be of type {wanted}: {quoted}"
    return cause("FieldValueTypeInvalid", text, where)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return "integer"
    names = {int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _enum(schema: Mapping[str, Any], value: Any, where: str) -> Causes:
    allowed = schema.get("enum")
    if not allowed or any(value == each and _same_kind(value, each) for each in allowed):
        return []
    listed = ", ".join(
        f'"{each}"' if isinstance(each, str) else f'"{shown(each)}"' for each in allowed
    )
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return [cause("FieldValueNotSupported", text, where)]


def _same_kind(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool)


def _string(schema: Mapping[str, Any], value: str, where: str) -> Causes:
    most, least, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if most is not None and len(value) > most:
        return [cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", where)]
    if least is not None and len(value) < least:
        return [
            invalid_value(where, value, f"{where} in body should be at least {least} chars long")
        ]
    if pattern and not matches(pattern, value):
        return [invalid_value(where, value, f"{where} in body should match '{pattern}'")]
    return []


def _number(schema: Mapping[str, Any], value: float, where: str) -> Causes:
    found: Causes = []

    def complain(why: str) -> None:
        found.append(invalid_value(where, value, f"{where} in body should be {why}"))

    step, most, least = (schema.get(key) for key in ("multipleOf", "maximum", "minimum"))
    if step and not _is_multiple(value, step):
        complain(f"a multiple of {shown(step)}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            complain(f"less than {shown(most)}")
        elif value > most:
            complain(f"less than or equal to {shown(most)}")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            complain(f"greater than {shown(least)}")
        elif value < least:
            complain(f"greater than or equal to {shown(least)}")
    return found


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    return abs(math.remainder(value, step)) <= 1e-9 * abs(step)


def _array(schema: Mapping[str, Any], value: list[Any], where: str) -> Causes:
    found: Causes = []
    items = schema.get("items")
    if isinstance(items, Mapping):
        for index, item in enumerate(value):
            found += _value(items, item, f"{where}[{index}]")
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        why = f"{where} in body should have at least {least} items"
        found.append(invalid_value(where, len(value), why))
    if most is not None and len(value) > most:
        found.append(_too_many(where, len(value), most))
    return found


def _too_many(where: str, count: int, most: int) -> Object:
    return cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", where)


def _object(schema: Mapping[str, Any], value: Object, where: str) -> Causes:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        why = f"{where} in body should have at least {least} properties"
        return [invalid_value(where, len(value), why)]
    if most is not None and len(value) > most:
        return [_too_many(where, len(value), most)]
    prefix = f"{where}." if where else ""
    found = [
        required(f"{prefix}{name}")
        for name in schema.get("required") or ()
        if name not in value
    ]  # fmt: skip
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, below in value.items():
        inner = properties.get(name, additional)
        if isinstance(inner, Mapping):
            found += _value(inner, below, prefix + name)
    return found


def _combined(schema: Mapping[str, Any], value: Any, where: str) -> Causes:
    found: Causes = []

    def complain(why: str) -> None:
        text = f'Invalid value: "": "{where}" must {why}'
        found.append(cause("FieldValueInvalid", text, "<nil>"))

    if schema.get("anyOf"):
        tried = [_value(each, value, where) for each in schema["anyOf"]]
        if all(tried):
            complain("validate at least one schema (anyOf)")
            found += tried[0]
    if schema.get("oneOf"):
        tried = [_value(each, value, where) for each in schema["oneOf"]]
        valid = sum(not each for each in tried)
        if valid == 0:
            complain("validate one and only one schema (oneOf). Found none valid")
            found += tried[0]
        elif valid > 1:
            alternatives = f"Found {valid} valid alternatives"
            complain(f"validate one and only one schema (oneOf). {alternatives}")
    if schema.get("allOf"):
        wrong = [each for below in schema["allOf"] for each in _value(below, value, where)]
        if wrong:
            found += wrong
            complain("validate all the schemas (allOf)")
    if schema.get("not") and not _value(schema["not"], value, where):
        complain("not validate the schema (not)")
    return found


def _format(schema: Mapping[str, Any], value: Any, where: str) -> Causes:
    name, kind = schema.get("format"), schema.get("type")
    if not isinstance(value, str):
        return _integer_format(name, kind, value, where)
    if kind != "string" or has_format(str(name), value):
        return []
    text = f"Invalid value: {shown(value)}: {where} in body must be of type {name}: {shown(value)}"
    return [cause("FieldValueTypeInvalid", text, where)]


def _integer_format(name: Any, kind: Any, value: Any, where: str) -> Causes:
    if kind != "integer" or isinstance(value, bool):
        return []
    if value == int(value):
        limits = {"int32": 2**31, "int64": 2**63}
        if name not in limits or -limits[name] <= value < limits[name]:
            return []
        shape = f"with format {name}"
    else:
        shape = f"with format {name}" if name else "(default format)"
    text = f'Invalid value: "": Checked value must be of type integer {shape} in {where}'
    return [cause("FieldValueInvalid", text, "<nil>")]
