"""What a resource's schema does to objects: on the way out, and on the way in.

CEL rules (x-kubernetes-validations) are not evaluated: of what a real server's
schema check does, that alone is missing.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from dyninformer.testing.cluster.bodies import UnreadableError
from dyninformer.testing.cluster.causes import duplicate, invalid_value, required, shown
from dyninformer.testing.cluster.events import EVENTS, converted
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.scale import scale_spec_causes, scale_status_causes
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.cluster.timestamps import is_date_time
from dyninformer.testing.status import cause
from dyninformer.types import Object, Objects

_BLOCKING = frozenset(
    f"FieldValue{why}" for why in ("Required", "NotSupported", "TooLong", "TooMany", "TypeInvalid")
)


def prepare_for_read(resource: Resource, obj: Object) -> Object:
    """``obj`` as a reader of ``resource`` sees it: in its version, defaulted and pruned.

    Shares everything it does not change, and is the very same object if nothing changes.
    """
    if obj.get("apiVersion") != resource.api_version or obj.get("kind") != resource.kind:
        if resource.collection == EVENTS:
            obj = converted(obj, resource.group)
        obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    if resource.structural is None:
        return obj
    seen: Object = resource.structural.coerce(obj, root=True)
    return seen


def admit(
    resource: Resource, obj: Object, field_validation: str = "", noted: tuple[str, ...] = ()
) -> tuple[Object, tuple[str, ...]]:
    """A written object, pruned and with its defaults, and the warnings of fields dropped.

    ``noted`` are the complaints from reading the body. Under Strict, any
    complaint is an UnreadableError.
    """
    unknown = () if resource.structural is None else resource.structural.unknown(obj, root=True)
    complaints = (*noted, *(f'unknown field "{path}"' for path in sorted(unknown)))
    if complaints and field_validation == "Strict":
        raise UnreadableError(f"strict decoding error: {', '.join(complaints)}")
    warnings = complaints if field_validation in {"", "Warn"} else ()
    return prepare_for_read(resource, obj), warnings


def content_causes(resource: Resource, obj: Object, subresource: str = "") -> Objects:
    """What is wrong with an object by its CRD's schema and scale subresource."""
    if resource.structural is None:
        return []
    paths = resource.scale or {}
    if subresource == "status":
        return [*_status_causes(resource.structural, obj), *scale_status_causes(paths, obj)]
    return [
        *schema_causes(resource.structural, obj),
        *scale_spec_causes(paths, obj),
        *scale_status_causes(paths, obj),
    ]


def with_rules_note(resource: Resource, causes: Objects) -> Objects:
    """The causes, and the server's note that its CEL rules were not looked at.

    A value that is merely out of bounds does not keep the rules from being looked at.
    """
    blocking = any(each["reason"] in _BLOCKING for each in causes)
    if blocking and resource.structural is not None and resource.structural.has_rules:
        return [*causes, _RULES_SKIPPED]
    return causes


_RULES_SKIPPED: Final = cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    "<nil>",
)
"""Follows the errors of an object whose schema has CEL rules."""


def schema_causes(structural: Structural, obj: Object) -> Objects:
    """What is wrong with ``obj`` by its schema; empty if nothing is wrong."""
    found: Objects = []
    for name, value in obj.items():
        if name not in {"apiVersion", "kind", "metadata"}:
            node = structural.properties.get(name)
            if node is not None:
                found += _value(node.raw, value, name)
    found += _object(_without_properties(structural.raw), obj, "")
    found += _combined(structural.raw, obj, "")
    found += _restricted_metadata(structural, obj)
    found += _structure_causes(structural, obj, "", root=True)
    return found


def _status_causes(structural: Structural, obj: Object) -> Objects:
    """The same for a write to status alone: messages name fields from status on."""
    node = structural.properties.get("status")
    found: Objects = []
    if node is not None and "status" in obj:
        found += [_in_status(each) for each in _value(node.raw, obj["status"], "")]
    return [*found, *_structure_causes(structural, obj, "", root=True)]


def _in_status(found: Object) -> Object:
    where = found["field"]
    if where == "<nil>":
        return found
    return {**found, "field": f"status.{where}" if where else "status"}


def _without_properties(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**raw, "properties": {}, "additionalProperties": None}


def _restricted_metadata(structural: Structural, obj: Object) -> Objects:
    """A schema may restrict metadata.name and generateName, and nothing else there."""
    node = structural.properties.get("metadata")
    metadata = obj.get("metadata", {})
    return [
        found
        for name in ("name", "generateName")
        if node is not None and name in node.properties and name in metadata
        for found in _value(node.properties[name].raw, metadata[name], f"metadata.{name}")
    ]


def _value(schema: Mapping[str, Any], value: Any, where: str) -> Objects:
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


def _type(schema: Mapping[str, Any], value: Any, where: str) -> Objects:
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


def _enum(schema: Mapping[str, Any], value: Any, where: str) -> Objects:
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


def _string(schema: Mapping[str, Any], value: str, where: str) -> Objects:
    most, least, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if most is not None and len(value) > most:
        return [cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", where)]
    if least is not None and len(value) < least:
        return [
            invalid_value(where, value, f"{where} in body should be at least {least} chars long")
        ]
    if pattern and not _matches(pattern, value):
        return [invalid_value(where, value, f"{where} in body should match '{pattern}'")]
    return []


def _number(schema: Mapping[str, Any], value: float, where: str) -> Objects:
    found: Objects = []

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


def _array(schema: Mapping[str, Any], value: list[Any], where: str) -> Objects:
    found: Objects = []
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


def _object(schema: Mapping[str, Any], value: Object, where: str) -> Objects:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        why = f"{where} in body should have at least {least} properties"
        return [invalid_value(where, len(value), why)]
    if most is not None and len(value) > most:
        return [_too_many(where, len(value), most)]
    prefix = f"{where}." if where else ""
    missing = [name for name in schema.get("required") or () if name not in value]
    found = [required(f"{prefix}{name}") for name in missing]
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, below in value.items():
        inner = properties.get(name, additional)
        if isinstance(inner, Mapping):
            found += _value(inner, below, prefix + name)
    return found


def _combined(schema: Mapping[str, Any], value: Any, where: str) -> Objects:
    found: Objects = []

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


def _format(schema: Mapping[str, Any], value: Any, where: str) -> Objects:
    name, kind = schema.get("format"), schema.get("type")
    if not isinstance(value, str):
        return _integer_format(name, kind, value, where)
    if kind != "string" or _has_format(str(name), value):
        return []
    text = f"Invalid value: {shown(value)}: {where} in body must be of type {name}: {shown(value)}"
    return [cause("FieldValueTypeInvalid", text, where)]


def _integer_format(name: Any, kind: Any, value: Any, where: str) -> Objects:
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


def _structure_causes(
    node: Structural, value: Any, where: str, *, root: bool = False
) -> Iterator[Object]:
    """What is wrong with ``value`` by this node and those below it."""
    if isinstance(value, list) and node.items is not None:
        if node.list_type in {"set", "map"}:
            yield from _repeated(node, value, where)
        for index, item in enumerate(value):
            yield from _structure_causes(node.items, item, f"{where}[{index}]")
    elif isinstance(value, dict):
        if node.embedded and not root:
            yield from _embedded(value, where)
        for name, below in value.items():
            inner = node.properties.get(name) or node.additional
            if inner is not None and isinstance(below, (dict, list)):
                yield from _structure_causes(inner, below, f"{where}.{name}" if where else name)


def _repeated(node: Structural, items: list[Any], where: str) -> Iterator[Object]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        identity = item
        if node.list_type == "map":
            if not isinstance(item, dict):
                continue
            identity = {key: item[key] for key in node.list_keys if key in item}
        text = shown(identity)
        if text in seen:
            yield duplicate(f"{where}[{index}]", identity)
        seen.add(text)


def _embedded(value: Object, where: str) -> Iterator[Object]:
    for name in ("apiVersion", "kind"):
        given = value.get(name)
        if not given:
            yield required(f"{where}.{name}")
        elif name == "apiVersion" and str(given).count("/") > 1:
            why = f"unexpected GroupVersion string: {given}"
            yield invalid_value(f"{where}.{name}", given, why)


_Check = Callable[[str], object]


def _has_format(name: str, value: str) -> bool:
    """Whether ``value`` is of the format; rather too lenient than too strict.

    >>> _has_format("ipv4", "10.0.0.1"), _has_format("ipv4", "10.0.0"), _has_format("color", "x")
    (True, False, True)
    """
    check = _FORMATS.get(name)
    if check is None:
        return True
    try:
        return check(value) is not False
    except (ValueError, binascii.Error):
        return False


def _fully(pattern: str) -> _Check:
    compiled = re.compile(pattern)
    return lambda value: compiled.fullmatch(value) is not None


_UNIT = r"\s*(?:ns|us|µs|ms|s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)"
_FORMATS: dict[str, _Check] = {
    "date-time": is_date_time,
    "datetime": is_date_time,
    "date": _fully(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": lambda value: "/" in value and ipaddress.ip_network(value, strict=False),
    "uri": lambda value: bool(urlsplit(value).scheme) or value.startswith("/"),
    "email": _fully(r"[^@\s]+@[^@\s]+"),
    "uuid": _fully(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "byte": lambda value: base64.b64decode(value, validate=True),
    "duration": _fully(rf"[-+]?(?:\d+(?:\.\d+)?{_UNIT})+|0"),
}


def _matches(pattern: str, value: str) -> bool:
    """Whether a Go pattern is found in a text.

    Unlike the server's engine, ``re`` can backtrack for very long: patterns come from the
    author of the CRD, and are trusted as much. A pattern that ``re`` does not know is not
    checked.
    """
    compiled = compiled_pattern(pattern)
    return compiled is None or compiled.search(value) is not None


@lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """A Go pattern as Python's, None if it has what Python does not know."""
    translated = re.sub(r"\\z", r"\\Z", pattern)
    for name, members in _POSIX.items():
        translated = translated.replace(f"[:{name}:]", members)
    translated = re.sub(r"(?<!\\)((?:\\\\)*)\$(?=\)|\||$)", r"\1\\Z", translated)
    translated = _SET.sub(lambda found: _plain_set(found[0]), translated)
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


def _plain_set(text: str) -> str:
    r"""A set whose signs mean what they mean in Go in later versions of Python as well.

    Python warns of those. An escape that stands outside of sets is left as it is.

    >>> print(_plain_set("[[&&a-c--z]"))
    [\[\&\&a-c\--z]
    """
    if text[0] != "[":
        return text
    start = 2 if text[1] == "^" else 1
    return text[:start] + _MEMBERS.sub(_plain_members, text[start:-1]) + "]"


def _plain_members(found: re.Match[str]) -> str:
    first, last = (_escaped(each) for each in found.groups(""))
    return f"{first}-{last}" if last else first


def _escaped(member: str) -> str:
    return f"\\{member}" if member in _SIGNS else member


_SET: Final = re.compile(r"\[\^?]?(?:\\.|[^\]\\])*]|\\.", re.DOTALL)
_MEMBER = r"(\\x[0-9A-Fa-f]{2}|\\[0-7]{1,3}|\\.|.)"
_MEMBERS: Final = re.compile(f"{_MEMBER}(?:-{_MEMBER})?", re.DOTALL)
_SIGNS: Final = frozenset("[-&~|")

_POSIX = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}
