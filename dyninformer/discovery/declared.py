"""What a CRD declares of a version: columns, what tells elements of lists apart, and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from dyninformer.discovery.resources import PrinterColumn, PrinterColumns
from dyninformer.jsonpath.writing import Way
from dyninformer.resource import GroupVersionResource
from dyninformer.types import ListKeys

Defaults: TypeAlias = Mapping[str, Any]
"""By the path of a value, what the server fills in where it is absent."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_DEEPEST: Final = 64


class Declared(NamedTuple):
    """What is declared of one version. In paths ``[*]`` is any element, and ``.*`` any key.

    Not for import.
    """

    columns: PrinterColumns = ()
    list_keys: ListKeys = _NOTHING
    defaults: Defaults = _NOTHING
    schema: bytes = b""
    """As JSON: a large one as dicts is ten times as large, and few ask for it."""
    namespaced: bool | None = None
    keeps_unknown: bool = False
    """The server stores fields that the schema does not have."""


class _Column(msgspec.Struct, rename="camel"):
    name: str
    type: str
    json_path: str
    priority: int = 0


class _Schema(msgspec.Struct, rename={"root": "openAPIV3Schema"}):
    root: Any = None


class _Version(msgspec.Struct, rename="camel"):
    name: str
    additional_printer_columns: list[_Column] | None = None
    schema: _Schema | None = None


class _Spec(msgspec.Struct, rename="camel"):
    versions: list[_Version]
    scope: str = ""
    preserve_unknown_fields: bool | None = None


class _Crd(msgspec.Struct):
    spec: _Spec


def declared(crd: object, gvr: GroupVersionResource) -> Declared:
    """What a CRD says of one version; nothing where it cannot be read."""
    try:
        spec = msgspec.convert(crd, _Crd).spec
    except msgspec.ValidationError:
        return Declared()
    version = next((each for each in spec.versions if each.name == gvr.version), None)
    if version is None:
        return Declared()
    columns = tuple(
        PrinterColumn(each.name, each.type, each.json_path, each.priority)
        for each in version.additional_printer_columns or ()
    )
    keys: dict[str, list[str]] = {}
    defaults: dict[str, Any] = {}
    root = version.schema.root if version.schema is not None else None
    for path, schema in _places(root):
        names = schema.get("x-kubernetes-list-map-keys")
        if isinstance(names, list) and names and all(isinstance(each, str) for each in names):
            keys[path] = names
        if schema.get("default") is not None:
            defaults[path] = schema["default"]
    return Declared(
        columns,
        keys,
        defaults,
        msgspec.json.encode(root) if isinstance(root, dict) else b"",
        spec.scope == "Namespaced" if spec.scope else None,
        bool(spec.preserve_unknown_fields),
    )


def _places(root: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema within a schema, with the path of the values that it is for."""
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    while waiting:
        path, schema, depth = waiting.pop()
        if not isinstance(schema, dict) or depth > _DEEPEST:
            continue
        if path:
            yield path, schema
        properties = schema.get("properties")
        for name, below in properties.items() if isinstance(properties, dict) else ():
            step = Way().to(name)
            if not step.beyond:
                waiting.append((path + step.text, below, depth + 1))
        waiting.append((f"{path}.*", schema.get("additionalProperties"), depth + 1))
        waiting.append((f"{path}[*]", schema.get("items"), depth + 1))
