"""Objects of built-in kinds against their Go types: wrong types refused, unknown fields dropped.

Only the kinds that the cluster itself reads, and the ones that tests write most, are
described. Of other built-in kinds everything is taken as it comes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from dyninformer.testing.cluster.bodies import UnreadableError, type_name
from dyninformer.testing.cluster.resources import Resource

Object = dict[str, Any]
Unknown = list[str]

_STRINGS = "[]string"
_MAP = "map[string]string"
_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    "CustomResourceDefinition": {
        "spec": "v1.CustomResourceDefinitionSpec", "status": "v1.CustomResourceDefinitionStatus",
    },
    "CustomResourceDefinitionSpec": {
        "group": "string", "names": "v1.CustomResourceDefinitionNames", "scope": "string",
        "versions": "[]v1.CustomResourceDefinitionVersion",
        "conversion": "v1.CustomResourceConversion", "preserveUnknownFields": "bool",
    },
    "CustomResourceDefinitionNames": {
        "plural": "string", "singular": "string", "shortNames": _STRINGS, "kind": "string",
        "listKind": "string", "categories": _STRINGS,
    },
    "CustomResourceDefinitionVersion": {
        "name": "string", "served": "bool", "storage": "bool", "deprecated": "bool",
        "deprecationWarning": "string", "schema": "v1.CustomResourceValidation",
        "subresources": "v1.CustomResourceSubresources",
        "additionalPrinterColumns": "[]v1.CustomResourceColumnDefinition",
        "selectableFields": "[]v1.SelectableField",
    },
    "CustomResourceConversion": {"strategy": "string", "webhook": "any"},
    "CustomResourceValidation": {"openAPIV3Schema": "v1.JSONSchemaProps"},
    "CustomResourceSubresources": {
        "status": "v1.CustomResourceSubresourceStatus",
        "scale": "v1.CustomResourceSubresourceScale",
    },
    "CustomResourceSubresourceStatus": {},
    "CustomResourceSubresourceScale": {
        "specReplicasPath": "string", "statusReplicasPath": "string",
        "labelSelectorPath": "string",
    },
    "CustomResourceColumnDefinition": {
        "name": "string", "type": "string", "format": "string", "description": "string",
        "priority": "int32", "jsonPath": "string",
    },
    "SelectableField": {"jsonPath": "string"},
    "CustomResourceDefinitionStatus": {
        "conditions": "[]v1.CustomResourceDefinitionCondition",
        "acceptedNames": "v1.CustomResourceDefinitionNames", "storedVersions": _STRINGS,
        "observedGeneration": "int64",
    },
    "CustomResourceDefinitionCondition": {
        "type": "string", "status": "string", "lastTransitionTime": "string", "reason": "string",
        "message": "string", "observedGeneration": "int64",
    },
    "JSONSchemaProps": {
        "id": "string", "$schema": "string", "$ref": "string", "description": "string",
        "type": "string", "format": "string", "title": "string", "default": "any",
        "maximum": "float64", "exclusiveMaximum": "bool", "minimum": "float64",
        "exclusiveMinimum": "bool", "maxLength": "int64", "minLength": "int64",
        "pattern": "string", "maxItems": "int64", "minItems": "int64", "uniqueItems": "bool",
        "multipleOf": "float64", "enum": "[]any", "maxProperties": "int64",
        "minProperties": "int64", "required": _STRINGS, "items": "v1.JSONSchemaProps",
        "allOf": "[]v1.JSONSchemaProps", "oneOf": "[]v1.JSONSchemaProps",
        "anyOf": "[]v1.JSONSchemaProps", "not": "v1.JSONSchemaProps",
        "properties": "map[string]v1.JSONSchemaProps",
        "additionalProperties": "v1.JSONSchemaPropsOrBool",
        "patternProperties": "map[string]v1.JSONSchemaProps", "dependencies": "any",
        "additionalItems": "any", "definitions": "any", "externalDocs": "any", "example": "any",
        "nullable": "bool", "x-kubernetes-preserve-unknown-fields": "bool",
        "x-kubernetes-embedded-resource": "bool", "x-kubernetes-int-or-string": "bool",
        "x-kubernetes-list-map-keys": _STRINGS, "x-kubernetes-list-type": "string",
        "x-kubernetes-map-type": "string", "x-kubernetes-validations": "[]any",
    },
    "Namespace": {"spec": "v1.NamespaceSpec", "status": "v1.NamespaceStatus"},
    "NamespaceSpec": {"finalizers": _STRINGS},
    "NamespaceStatus": {"phase": "string", "conditions": "[]any"},
    "ConfigMap": {"data": _MAP, "binaryData": "map[string][]uint8", "immutable": "bool"},
    "Secret": {
        "data": "map[string][]uint8", "stringData": _MAP, "immutable": "bool", "type": "string",
    },
    "ServiceAccount": {
        "secrets": "[]any", "imagePullSecrets": "[]any", "automountServiceAccountToken": "bool",
    },
}  # fmt: skip
_INDEX: Final = re.compile(r"\[\d+\]")
_HEAD: Final = ("kind", "apiVersion", "metadata")
_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "bool": (bool,), "int32": (int,), "int64": (int,), "float64": (int, float),
}  # fmt: skip


def read_typed(resource: Resource, obj: Object) -> tuple[Object, Unknown]:
    """The object with the fields its kind has, in their order, and the paths of the others.

    Nulls are left out. Raises UnreadableError for a value of the wrong type.
    """
    fields = _STRUCTS.get(resource.kind) if resource.builtin else None
    if fields is None:
        return obj, []
    reader = _Reader(resource)
    head: Object = {name: obj[name] for name in _HEAD if name in obj}
    rest = {name: value for name, value in obj.items() if name not in head}
    return {**head, **reader.struct(resource.kind, rest, "")}, reader.unknown


class _Reader:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self.unknown: Unknown = []

    def struct(self, name: str, value: Object, where: str) -> Object:
        fields = _STRUCTS[name]
        prefix = f"{where}." if where else ""
        self.unknown += [prefix + field for field in value if field not in fields]
        return {
            field: self.value(of, value[field], prefix + field)
            for field, of in fields.items()
            if value.get(field) is not None
        }

    def value(self, of: str, value: Any, where: str) -> Any:
        if of == "any" or value is None:
            return value
        if of == "v1.JSONSchemaPropsOrBool":
            return value if isinstance(value, bool) else self.value(_PROPS, value, where)
        if of == "[]uint8":
            return self._bytes(value, where)
        if of.startswith("[]"):
            if not isinstance(value, list):
                self._refuse(of, value, where)
            inner = of.removeprefix("[]")
            return [self.item(inner, each, f"{where}[{at}]") for at, each in enumerate(value)]
        if of.startswith("map[string]"):
            if not isinstance(value, dict):
                self._refuse(of, value, where)
            inner = of.removeprefix("map[string]")
            return {key: self.item(inner, each, where) for key, each in value.items()}
        if of in _SCALARS:
            fits = isinstance(value, _SCALARS[of]) and (of == "bool") == isinstance(value, bool)
            return value if fits else self._refuse(of, value, where)
        if not isinstance(value, dict):
            self._refuse(of, value, where)
        return self.struct(of.removeprefix("v1."), value, where)

    def item(self, of: str, value: Any, where: str) -> Any:
        """A member of a list or map; a null one is the type's empty value."""
        if value is None:
            value = "" if of in {"string", "[]uint8"} else {} if of.startswith("v1.") else None
        return self.value(of, value, where)

    def _bytes(self, value: Any, where: str) -> Any:
        if not isinstance(value, str):
            self._refuse("[]uint8", value, where)
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise UnreadableError("illegal base64 data at input byte 0") from None
        return value

    def _refuse(self, of: str, value: Any, where: str) -> NoReturn:
        field = f"{self._resource.kind}.{_INDEX.sub('', where)}"
        raise UnreadableError(
            f"json: cannot unmarshal {type_name(value)} into Go struct field {field} of type {of}"
        )


_PROPS: Final = "v1.JSONSchemaProps"
