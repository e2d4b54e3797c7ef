"""The output forms other than tables: yaml, json, ndjson, name, jsonpath."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dyninformer.display.text import visible, visible_lines
from dyninformer.printable import counted
from dyninformer.types import Object, Objects

if TYPE_CHECKING:
    from dyninformer.jsonpath import JSONPath


def without_managed_fields(obj: Object) -> Object:
    """The object as people want to read it."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def shareable(obj: Object, *, secret: bool = False) -> Object:
    """The object without managedFields; of a Secret only how many bytes each value has.

    For what is kept and passed on, as a notebook is; Secrets in a list that a client got are hidden
    as well. ``secret`` says that it is one where it does not say so itself, after a transform.

    >>> shareable({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"a": "c2hvcA=="}})
    {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {}, 'data': {'a': '(4 bytes, not shown)'}}
    """
    metadata = obj.get("metadata")
    shown = without_managed_fields(obj) if isinstance(metadata, dict) else dict(obj)
    # What is metadata alone does not say its kind, and holds all of a Secret that was applied.
    if secret or _is_secret(obj) or obj.get("kind") == "PartialObjectMetadata":
        return _without_values(shown)
    items = obj.get("items")
    if obj.get("apiVersion") == "v1" and isinstance(items, list):
        # An item of a SecretList need not say what it is.
        alike = obj.get("kind") == "SecretList"
        shown["items"] = [
            _without_values(each)
            if isinstance(each, dict) and (alike or _is_secret(each))
            else each
            for each in items
        ]
    return shown


def _is_secret(obj: Object) -> bool:
    return obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1"


def _without_values(obj: Object) -> Object:
    shown = dict(obj)
    for name in ("data", "stringData"):
        values = obj.get(name)
        if isinstance(values, dict):
            shown[name] = {key: _size(value, name == "data") for key, value in values.items()}
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        shown["metadata"] = {
            **obj["metadata"],
            "annotations": {**annotations, _LAST_APPLIED: "(not shown)"},
        }
    return shown


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _size(value: object, encoded: bool) -> str:
    text = value if isinstance(value, str) else ""
    size = len(text.rstrip("=")) * 3 // 4 if encoded else len(text.encode())
    return f"({counted(size, 'byte')}, not shown)"


def as_json(objects: Objects, *, one: bool) -> str:
    """One object, or a List of several, as kubectl has it, with every control character escaped."""
    from dyninformer.display import kubectl_text  # noqa: PLC0415 - a table does without

    shown = objects[0] if one and objects else _list(objects)
    return kubectl_text.as_json(shown).translate(_ESCAPED)


def as_ndjson(obj: Object) -> str:
    """One object on one line."""
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)


def as_yaml(objects: Objects, *, one: bool) -> str:
    """One object, or a List of several, as kubectl has it."""
    from dyninformer.display import kubectl_text  # noqa: PLC0415 - a table does without

    shown = objects[0] if one and objects else _list(objects)
    return visible_lines(kubectl_text.as_yaml(shown))


def as_documents(objects: Objects) -> str:
    """Each object as a YAML document of its own, as files have them."""
    return "\n---\n".join(as_yaml([each], one=True) for each in objects)


def as_name(obj: Object, kind: str, group: str) -> str:
    """``certificate.cert-manager.io/shop``, as kubectl's ``-o name``; kubectl takes it back."""
    full = f"{kind}.{group}" if group else kind
    return visible(f"{full.lower()}/{obj['metadata']['name']}")


def as_jsonpath(path: JSONPath, objects: Objects, *, one: bool) -> str:
    """What a template prints of one object, or of the List of all."""
    return visible_lines(path.text(objects[0] if one and objects else _list(objects)))


def _list(objects: Iterable[Object]) -> Object:
    return {
        "apiVersion": "v1",
        "items": list(objects),
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


# json leaves DEL and C1 controls as they are; a terminal acts on some of them.
_ESCAPED = {code: f"\\u{code:04x}" for code in (0x7F, *range(0x80, 0xA0))}
