"""What no OpenAPI keyword says of an object: keyed and set-like lists, embedded objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dyninformer.testing.cluster.causes import duplicate, invalid_value, required, shown
from dyninformer.testing.cluster.structural import Structural
from dyninformer.types import Object


def structure_causes(
    node: Structural, value: Any, where: str, *, root: bool = False
) -> Iterator[Object]:
    """What is wrong with ``value`` by this node and those below it."""
    if isinstance(value, list) and node.items is not None:
        if node.list_type in {"set", "map"}:
            yield from _repeated(node, value, where)
        for index, item in enumerate(value):
            yield from structure_causes(node.items, item, f"{where}[{index}]")
    elif isinstance(value, dict):
        if node.embedded and not root:
            yield from _embedded(value, where)
        for name, below in value.items():
            inner = node.properties.get(name) or node.additional
            if inner is not None and isinstance(below, (dict, list)):
                yield from structure_causes(inner, below, f"{where}.{name}" if where else name)


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
