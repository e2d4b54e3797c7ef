"""metadata.managedFields: which manager owns which fields, and when an apply conflicts.

Sets of fields are written as FieldsV1.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dyninformer.testing.cluster.causes import shown
from dyninformer.testing.cluster.shapes import UNKNOWN, Shape, item_element
from dyninformer.testing.status import ApiError, cause
from dyninformer.types import Object, Objects

_METADATA: Final = ("f:metadata",)


class Manager(NamedTuple):
    """A writer: its name, how it wrote, in which version, through which subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


class ManagedFields:
    """The owners of one object's fields. Build it from the stored entries, change it, render it."""

    def __init__(self, entries: Iterable[Object] = ()) -> None:
        self._sets: dict[Manager, Fields] = {}
        self._times: dict[Manager, str] = {}
        for entry in entries:
            if not isinstance(entry.get("fieldsV1"), dict):
                continue
            manager = Manager(
                str(entry.get("manager", "")),
                str(entry.get("operation", "Update")),
                str(entry.get("apiVersion", "")),
                str(entry.get("subresource", "")),
            )
            self._sets[manager] = _from_fields_v1(entry["fieldsV1"])
            self._times[manager] = str(entry.get("time", ""))

    def entries(self) -> Objects:
        """As they stand in metadata, in the server's order."""

        def rank(manager: Manager) -> tuple[str, ...]:
            time = self._times[manager]
            return manager.operation, time, manager.name, manager.api_version, manager.subresource

        return [self._entry(manager) for manager in sorted(self._sets, key=rank)]

    def updated(self, manager: Manager, old: Object, new: Object, shape: Shape, time: str) -> None:
        """``manager`` has made ``old`` into ``new``: it owns what it changed, others lose it."""
        change = difference(old, new, shape)
        taken = change.taken
        for fields in self._sets.values():
            fields.difference_update(taken, change.removed)
        if taken:
            self._sets[manager] = self._sets.get(manager, set()) | taken
            self._times[manager] = time
        self._drop_empty()

    def applied(
        self, manager: Manager, config: Object, shape: Shape, time: str
    ) -> tuple[Fields, Fields]:
        """``manager`` now owns just what ``config`` mentions.

        Returns what it mentions, and what it gave up that no other manager owns: those fields
        are removed from the object. Metadata itself stays: the server's fields have no owner.
        """
        wanted = mentioned(config, shape)
        before = self._sets.get(manager, set())
        others = with_parents(
            path for each, fields in self._sets.items() if each != manager for path in fields
        )
        if wanted != before:
            self._sets[manager] = wanted
            self._times[manager] = time
        self._drop_empty()
        return wanted, with_parents(before) - with_parents(wanted) - others - {_METADATA}

    def forget_other_groups(self, group: str) -> None:
        """Drop what is owned in the words of another group: nothing translates it."""
        for manager in [each for each in self._sets if _group_of(each.api_version) != group]:
            del self._sets[manager], self._times[manager]

    def __bool__(self) -> bool:
        """Whether any field has an owner."""
        return bool(self._sets)

    def time_of(self, manager: Manager) -> str:
        """When ``manager`` last wrote, "" if that is not known."""
        return self._times.get(manager, "")

    def set_time(self, manager: Manager, time: str) -> None:
        """When ``manager`` last wrote."""
        self._times[manager] = time

    def conflicts(self, manager: Manager, changed: Fields) -> dict[Manager, list[Path]]:
        """Which of the fields that an apply changes belong to others."""
        found: dict[Manager, list[Path]] = {}
        for each, fields in self._sets.items():
            if each != manager and (shared := fields & changed):
                found[each] = sorted(shared, key=_leaves_first)
        return found

    def take(self, manager: Manager, fields: Fields) -> None:
        """Only ``manager`` owns ``fields`` from now on."""
        for each, owned in self._sets.items():
            if each != manager:
                owned.difference_update(fields)
        self._drop_empty()

    def conflict_error(self, found: dict[Manager, list[Path]]) -> ApiError:
        """The 409 of an apply without force."""
        pairs = [(self._shown(each), shown_path(path)) for each in found for path in found[each]]
        causes = [
            cause("FieldManagerConflict", f"conflict with {name}", path) for name, path in pairs
        ]
        if len(pairs) == 1:
            name, path = pairs[0]
            message = f"Apply failed with 1 conflict: conflict with {name}: {path}"
        else:
            by_manager: dict[str, list[str]] = defaultdict(list)
            for name, path in pairs:
                by_manager[name].append(path)
            lines = []
            for name in sorted(by_manager):
                lines += [
                    f"conflicts with {name}:",
                    *(f"- {path}" for path in by_manager[name]),
                ]
            message = f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines)
        return ApiError(409, "Conflict", message, details={"causes": causes})

    def _entry(self, manager: Manager) -> Object:
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            **({"time": self._times[manager]} if self._times[manager] else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": _to_fields_v1(self._sets[manager]),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        return entry

    def _shown(self, manager: Manager) -> str:
        text = f'"{manager.name}"'
        if manager.subresource:
            text += f' with subresource "{manager.subresource}"'
        if manager.operation == "Update":
            text += f" using {manager.api_version}"
        return text

    def _drop_empty(self) -> None:
        for manager in [each for each, fields in self._sets.items() if not fields]:
            del self._sets[manager], self._times[manager]


def _group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _leaves_first(path: Path) -> tuple[tuple[bool, str], ...]:
    """At each level, the fields that end there come before those that go deeper."""
    last = len(path) - 1
    return tuple((at < last, element) for at, element in enumerate(path))


Path = tuple[str, ...]
"""Elements as in FieldsV1: ``f:name``, ``k:{"key":"value"}``, ``v:"value"``."""
Fields = set[Path]

_SERVERS_METADATA: Final = (
    *("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields"),
    *("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"),
)
_NEVER_OWNED: Final = frozenset(
    {("f:apiVersion",), ("f:kind",), *(("f:metadata", f"f:{name}") for name in _SERVERS_METADATA)}
)
"""Fields that no manager ever owns."""


@dataclass(slots=True)
class Difference:
    """What changed from one object to another."""

    added: Fields = field(default_factory=set)
    changed: Fields = field(default_factory=set)
    removed: Fields = field(default_factory=set)

    @property
    def taken(self) -> Fields:
        """The fields that the maker of the change now owns."""
        return self.added | self.changed


_ABSENT: Final = object()


def mentioned(obj: Object, shape: Shape) -> Fields:
    """The fields that an applied configuration speaks of: its leaves and its list items."""
    found: Fields = set()
    for name, value in obj.items():
        _leaves(value, shape.field(name), (f"f:{name}",), found)
    return {path for path in found if path not in _NEVER_OWNED and path != ("f:metadata",)}


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
        fields.difference_update(_NEVER_OWNED)
    return found


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: to Python True is 1."""
    if one != other:
        return False
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if isinstance(one, dict):
            waiting.extend((value, other[name]) for name, value in one.items())
        elif isinstance(one, list):
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) is not isinstance(other, bool):
            return False
    return True


def with_parents(fields: Iterable[Path]) -> Fields:
    """The fields and everything that holds them."""
    return {path[:end] for path in fields for end in range(1, len(path) + 1)}


def _to_fields_v1(fields: Fields) -> Object:
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


def _from_fields_v1(tree: Any) -> Fields:
    """The set of a nested form; what is not of that form is left out."""
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


def _shown(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{key}={shown(value)}" for key, value in keys.items()) + "]"


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
        found.add(path)  # no schema declares it: a configuration of its fields owns it as well
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
        if not same_value(old, new):
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
