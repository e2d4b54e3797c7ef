"""metadata.managedFields: which manager owns which fields, and when an apply conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from dyninformer.testing.cluster.field_sets import (
    Fields,
    Path,
    difference,
    from_fields_v1,
    mentioned,
    shown_path,
    to_fields_v1,
    with_parents,
)
from dyninformer.testing.cluster.shapes import Shape
from dyninformer.testing.status import ApiError, cause
from dyninformer.types import Object

Entries = list[Object]

_METADATA: Final = ("f:metadata",)


class Manager(NamedTuple):
    """Who wrote, how, in which version, through which subresource."""

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
            self._sets[manager] = from_fields_v1(entry["fieldsV1"])
            self._times[manager] = str(entry.get("time", ""))

    def entries(self) -> Entries:
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

        Returns what it mentions, and what it gave up that nobody else owns: that goes
        from the object. Metadata itself stays, as what the server says there is nobody's.
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
        """Let go of what was owned in the words of another group: nobody translates it."""
        for manager in [each for each in self._sets if _group_of(each.api_version) != group]:
            del self._sets[manager], self._times[manager]

    def __bool__(self) -> bool:
        """Whether anybody owns anything."""
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
        """Nobody but ``manager`` owns ``fields`` any more."""
        for each, owned in self._sets.items():
            if each != manager:
                owned.difference_update(fields)
        self._drop_empty()

    def conflict_error(self, found: dict[Manager, list[Path]]) -> ApiError:
        """The 409 of an apply without force."""
        pairs = [(self._shown(each), shown_path(path)) for each in found for path in found[each]]
        causes = [
            cause("FieldManagerConflict", f"conflict with {who}", path) for who, path in pairs
        ]
        if len(pairs) == 1:
            who, path = pairs[0]
            message = f"Apply failed with 1 conflict: conflict with {who}: {path}"
        else:
            by_manager: dict[str, list[str]] = defaultdict(list)
            for who, path in pairs:
                by_manager[who].append(path)
            lines = []
            for who in sorted(by_manager):
                lines += [f"conflicts with {who}:", *(f"- {path}" for path in by_manager[who])]
            message = f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines)
        return ApiError(409, "Conflict", message, details={"causes": causes})

    def _entry(self, manager: Manager) -> Object:
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            **({"time": self._times[manager]} if self._times[manager] else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(self._sets[manager]),
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
