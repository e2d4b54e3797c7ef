"""What a CustomResourceDefinition and its schemas must contain, in the words of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dyninformer.testing.cluster.causes import invalid_value, required, unsupported
from dyninformer.testing.cluster.metadata import label_1035, subdomain
from dyninformer.testing.cluster.schema import compiled_pattern, schema_causes
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.status import cause
from dyninformer.types import Object, Objects

_APPROVAL: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def crd_causes(crd: Object) -> Objects:
    """What is wrong with a CRD by itself; empty if nothing is wrong."""
    spec, metadata = crd["spec"], crd["metadata"]
    found: Objects = []
    wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
    if metadata["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid_value("metadata.name", metadata["name"], why))
    found += _group(spec.get("group", ""), metadata)
    found += _scope(spec.get("scope", ""))
    found += _names(spec["names"])
    found += _versions(spec.get("versions", []), crd.get("status", {}).get("storedVersions"))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        found.append(invalid_value("spec.preserveUnknownFields", True, why))
    found += _conversion(spec.get("conversion", {}))
    return found


def crd_update_causes(crd: Object, before: Object) -> Objects:
    """What an update of a CRD may not change."""
    new, old = crd["spec"], before["spec"]
    found: Objects = []
    conditions = before.get("status", {}).get("conditions") or ()
    established = any(
        each.get("type") == "Established" and each.get("status") == "True" for each in conditions
    )
    if new.get("group") != old.get("group"):
        found.append(_immutable("spec.group", new.get("group")))
    if new["names"].get("plural") != old["names"].get("plural"):
        found.append(_immutable("spec.names.plural", new["names"].get("plural")))
    if established:
        if new.get("scope") != old.get("scope"):
            found.append(_immutable("spec.scope", new.get("scope")))
        if new["names"].get("kind") != old["names"].get("kind"):
            found.append(_immutable("spec.names.kind", new["names"].get("kind")))
    # A wrong group or plural is reported once, not again as a mismatch with the name.
    reported = {each["field"] for each in found}
    more = crd_causes(crd)
    if reported & {"spec.group", "spec.names.plural"}:
        more = [each for each in more if each["field"] != "metadata.name"]
    return found + more


def _conversion(conversion: Object) -> Iterator[Object]:
    strategy = conversion.get("strategy")
    if strategy not in {"None", "Webhook"}:
        yield unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        webhook = conversion.get("webhook")
        webhook = webhook if isinstance(webhook, dict) else {}
        if not webhook.get("clientConfig"):
            why = "required when strategy is set to Webhook"
            yield required("spec.conversion.webhookClientConfig", why)
        if not webhook.get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")


def _immutable(where: str, value: Any) -> Object:
    return invalid_value(where, value, "field is immutable")


def _group(group: str, metadata: Object) -> Iterator[Object]:
    if not group:
        yield required("spec.group")
        return
    for why in subdomain(group):
        yield invalid_value("spec.group", group, why)
    if "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    protected = group.endswith((".k8s.io", ".kubernetes.io")) or group in {
        "k8s.io",
        "kubernetes.io",
    }
    if protected and not metadata.get("annotations", {}).get(_APPROVAL):
        why = (
            f'protected groups must have approval annotation "{_APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required(f"metadata.annotations[{_APPROVAL}]", why)


def _scope(scope: str) -> Iterator[Object]:
    if not scope:
        yield required("spec.scope")
    elif scope not in {"Cluster", "Namespaced"}:
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _names(given: Object) -> Iterator[Object]:
    for field in ("plural", "singular", "kind", "listKind"):
        where, value = f"spec.names.{field}", given.get(field, "")
        if not value:
            yield required(where)
            continue
        mixed = field in {"kind", "listKind"}
        for why in label_1035(value.lower() if mixed else value):
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield invalid_value(where, value, prefix + why)
    for field in ("shortNames", "categories"):
        for index, value in enumerate(given.get(field, ())):
            for why in label_1035(value):
                yield invalid_value(f"spec.names.{field}[{index}]", value, why)
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        yield invalid_value(
            "spec.names.listKind", given["kind"], "kind and listKind may not be the same"
        )


def _versions(versions: Objects, stored: Any) -> Iterator[Object]:
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        for why in label_1035(version.get("name", "")):
            yield invalid_value(f"{where}.name", version.get("name", ""), why)
        yield from _version(version, where, alone=len(versions) == 1)
    found = [version.get("name", "") for version in versions]
    if len(set(found)) != len(found):
        why = "must contain unique version names"
        yield invalid_value("spec.versions", _quoted(versions), why)
    storage = [version["name"] for version in versions if version.get("storage")]
    if len(storage) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", _quoted(versions), why)
    if not stored:
        yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    for index, name in enumerate(stored or ()):
        if name not in found:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", name, why)


def _quoted(versions: Objects) -> Objects:
    """Versions as the server quotes them: the fields of its own type, the big ones left out."""
    present = ("Deprecated", "Name", "Served", "Storage")
    absent = ("DeprecationWarning", "Schema", "Subresources", "AdditionalPrinterColumns")
    return [
        {
            **dict.fromkeys((*absent, "SelectableFields")),
            **{name: version.get(name.lower(), False) for name in present},
        }
        for version in versions
    ]


def _version(version: Object, where: str, *, alone: bool) -> Iterator[Object]:
    """What is wrong with one version; the server names the field of an only version ``spec``."""
    schema = version.get("schema", {}).get("openAPIV3Schema")
    if schema is None:
        yield required(f"{where}.schema.openAPIV3Schema")
    else:
        inner = "spec.validation" if alone else f"{where}.schema"
        yield from schema_complaints(schema, f"{inner}.openAPIV3Schema")
    outer = "spec" if alone else where
    scale = version.get("subresources", {}).get("scale")
    if scale is not None:
        for field in ("specReplicasPath", "statusReplicasPath"):
            if not scale.get(field):
                yield required(f"{outer}.subresources.scale.{field}")
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        yield from _column(column, f"{outer}.additionalPrinterColumns[{index}]")
    for index, selectable in enumerate(version.get("selectableFields", ())):
        inside = f"{outer}.selectableFields[{index}].jsonPath"
        yield from _selectable(selectable.get("jsonPath", ""), schema or {}, inside)


def _column(column: Object, where: str) -> Iterator[Object]:
    if not column.get("name"):
        yield required(f"{where}.name")
    kind = column.get("type", "")
    if not kind:
        yield required(f"{where}.type")
    elif kind not in _COLUMN_TYPES:
        yield invalid_value(f"{where}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    path = column.get("jsonPath", "")
    if not path:
        yield required(f"{where}.JSONPath")
    elif not path.startswith("."):
        why = "must be a simple json path starting with ."
        yield invalid_value(f"{where}.JSONPath", path, why)


def _selectable(path: str, schema: Object, where: str) -> Iterator[Object]:
    if not path:
        yield required(where)
        return
    if not path.startswith("."):
        yield invalid_value(where, path, f"is an invalid path: expected [ or . but got: {path}")
        return
    node: Any = schema
    for step in path[1:].split("."):
        node = node.get("properties", {}).get(step) if isinstance(node, dict) else None
    if node is None:
        yield invalid_value(where, path, "is an invalid path: does not refer to a valid field")
    elif node.get("type") not in {"string", "boolean", "integer"}:
        why = (
            "must point to a field of type string, boolean or integer. "
            "Enum string fields and strings with formats are allowed."
        )
        yield invalid_value(where, path, why)


_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("definitions", "dependencies", "id", "patternProperties", "$ref", "$schema")


def schema_complaints(schema: Object, where: str) -> Iterator[Object]:
    """What is wrong with a version's openAPIV3Schema, found at ``where``."""
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
    """What is wrong with a node and those below it; if ``typed`` it needs a type of its own."""
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
    """Whether it is no pattern for Go either, as far as we can see, since Go has more classes."""
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
