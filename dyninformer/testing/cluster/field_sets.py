"""Sets of an object's fields, as managedFields writes them (FieldsV1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dyninformer.testing.cluster.shapes import UNKNOWN, Shape
from dyninformer.types import Object

Path = tuple[str, ...]
"""Elements as in FieldsV1: ``f:name``, ``k:{"key":"value"}``, ``v:"value"``."""
Fields = set[Path]

_NOBODYS: Final = frozenset(
    {("f:apiVersion",), ("f:kind",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation",
            "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    }
)  # fmt: skip
"""Fields that no manager ever owns."""


@dataclass(slots=True)
class Difference:
    """What changed from one object to another."""

    added: Fields = field(default_factory=set)
    changed: Fields = field(default_factory=set)
    removed: Fields = field(default_factory=set)

    @property
    def taken(self) -> Fields:
        """The fields that whoever made the change now owns."""
        return self.added | self.changed


_ABSENT: Final = object()


def mentioned(obj: Object, shape: Shape) -> Fields:
    """The fields that an applied configuration speaks of: its leaves and its list items."""
    found: Fields = set()
    for name, value in obj.items():
        _leaves(value, shape.field(name), (f"f:{name}",), found)
    return {path for path in found if path not in _NOBODYS and path != ("f:metadata",)}


def difference(old: Object, new: Object, shape: Shape) -> Difference:
    """What changed, down to the fields; containers that are new are among the added."""
    found = Difference()
    old = {"metadata": {}, **old}
    for name in old.keys() | new.keys():
        if name in {"apiVersion", "kind"}:
            continue
        path = (f"f:{name}",)
        was, now = old.get(name, _ABSENT), new.get(name, _ABSENT)
        _compare(was, now, shape.field(name), path, found)
    for fields in (found.added, found.changed, found.removed):
        fields.difference_update(_NOBODYS)
    return found


def with_parents(fields: Iterable[Path]) -> Fields:
    """The fields and everything that holds them."""
    return {path[:end] for path in fields for end in range(1, len(path) + 1)}


def to_fields_v1(fields: Fields) -> Object:
    """The nested form, keys sorted."""
    root: Object = {}
    for path in sorted(fields):
        node = root
        for end, element in enumerate(path, 1):
            if element not in node:
                if not node and path[: end - 1] in fields:
                    node["."] = {}
                node[element] = {}
            node = node[element]
    return root


def from_fields_v1(tree: Any) -> Fields:
    """The set that a nested form stands for; what is not of that form is left out."""
    found: Fields = set()

    def walk(node: Any, path: Path) -> None:
        if not isinstance(node, Mapping) or not node:
            found.add(path)
            return
        for element, below in node.items():
            if element == ".":
                found.add(path)
            else:
                walk(below, (*path, element))

    if isinstance(tree, Mapping) and tree:
        walk(tree, ())
    return found


def shown_path(path: Path) -> str:
    """A path as conflicts name it: ``.spec.list[name="x"].v``."""
    return "".join(_shown(element) for element in path)


def item_element(item: Any, shape: Shape) -> str:
    """How a list names its item."""
    if not shape.keys:
        return f"v:{_compact(item)}"
    defaults = dict(shape.key_defaults)
    item = item if isinstance(item, dict) else {}
    keys = {key: item.get(key, defaults.get(key)) for key in shape.keys}
    return f"k:{_compact(keys)}"


def _shown(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{key}={_compact(value)}" for key, value in keys.items()) + "]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _below(value: Any, shape: Shape) -> Iterator[tuple[str, Any, Shape]] | None:
    """The parts of a value that merges part by part, None if it is one whole."""
    if isinstance(value, dict) and not shape.atomic:
        return ((f"f:{name}", each, shape.field(name)) for name, each in value.items())
    if isinstance(value, list) and (shape.keys or shape.is_set):
        return ((item_element(each, shape), each, shape.item) for each in value)
    return None


def _leaves(value: Any, shape: Shape, path: Path, found: Fields) -> None:
    below = _below(value, shape)
    if below is None or not value or shape is UNKNOWN:
        found.add(path)  # nothing declares it: saying its fields is saying that it is there
    if below is None:
        return
    for element, each, inner in below:
        where = (*path, element)
        if element.startswith("k:"):
            found.add(where)
            _leaves(each, inner, where, found)
        elif element.startswith("v:"):
            found.add(where)
        else:
            _leaves(each, inner, where, found)


def _all(value: Any, shape: Shape, path: Path, found: Fields) -> None:
    found.add(path)
    below = _below(value, shape)
    for element, each, inner in below or ():
        if element.startswith("v:"):
            found.add((*path, element))
        else:
            _all(each, inner, (*path, element), found)


def _compare(old: Any, new: Any, shape: Shape, path: Path, found: Difference) -> None:
    if old is new:
        return  # patches and pruning share what they do not change
    if old is _ABSENT or new is _ABSENT:
        if new is not _ABSENT:
            _all(new, shape, path, found.added)
        if old is not _ABSENT:
            _all(old, shape, path, found.removed)
        return
    before, after = _below(old, shape), _below(new, shape)
    if before is None or after is None or isinstance(old, dict) != isinstance(new, dict):
        if old != new or isinstance(old, bool) != isinstance(new, bool):
            found.changed.add(path)
        return
    olds = {element: (each, inner) for element, each, inner in before}
    news = {element: (each, inner) for element, each, inner in after}
    for element in olds.keys() | news.keys():
        was, inner = olds.get(element) or (_ABSENT, UNKNOWN)
        now, inner = news.get(element) or (_ABSENT, inner)
        where = (*path, element)
        if not element.startswith("v:"):
            _compare(was, now, inner, where, found)
        elif element not in olds or element not in news:
            (found.removed if element in olds else found.added).add(where)
