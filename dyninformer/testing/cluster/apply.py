"""Server-side apply: a configuration merged into what is there, by key where lists have keys."""

from __future__ import annotations

import json
from typing import Any, Final

from dyninformer.testing.cluster.field_sets import (
    Fields,
    Path,
    difference,
    item_element,
    mentioned,
    with_parents,
)
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager
from dyninformer.testing.cluster.shapes import Shape
from dyninformer.types import Object

Conflicts = dict[Manager, list[Path]]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Where ``kubectl apply`` without --server-side keeps what it applied."""
_KUBECTL: Final = "kubectl"


def apply(
    live: Object,
    config: Object,
    shape: Shape,
    managed: ManagedFields,
    manager: Manager,
    *,
    time: str,
    force: bool,
) -> Object:
    """``live`` with ``config`` merged in, and what ``manager`` gave up removed.

    ``managed`` is brought up to date. Raises the 409 of a conflict unless ``force``.
    """
    merged = _merge(live, config, shape)
    change = difference(live, merged, shape)
    found = managed.conflicts(manager, change.taken)
    if found and not force and not _was_kubectls_own(manager, live, shape, found):
        raise managed.conflict_error(found)
    managed.take(manager, change.taken)
    last_time = managed.time_of(manager)
    _, given_up = managed.applied(manager, config, shape, time)
    result: Object = _without(merged, shape, (), given_up)
    if result == live:
        managed.set_time(manager, last_time)  # owning alone is no write
    if manager.name == _KUBECTL and LAST_APPLIED in _annotations(result):
        return _with_last_applied(result, config)
    return result


def _was_kubectls_own(manager: Manager, live: Object, shape: Shape, found: Conflicts) -> bool:
    """Whether kubectl conflicts with nothing but what it has applied from the client's side."""
    if manager.name != _KUBECTL:
        return False
    try:
        applied = json.loads(_annotations(live).get(LAST_APPLIED, ""))
    except ValueError:
        return False
    if not isinstance(applied, dict):
        return False
    own = with_parents(mentioned(applied, shape))
    return all(path in own for paths in found.values() for path in paths)


def _with_last_applied(obj: Object, config: Object) -> Object:
    """``obj`` with its annotation telling ``config``, for a later apply from the client's side."""
    metadata = dict(config["metadata"])
    annotations = {k: v for k, v in _annotations(config).items() if k != LAST_APPLIED}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    told = {**config, "metadata": metadata}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    kept = {**_annotations(obj), LAST_APPLIED: f"{text}\n"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _annotations(obj: Object) -> Object:
    found: Object = obj.get("metadata", {}).get("annotations") or {}
    return found


def _merge(old: Any, new: Any, shape: Shape) -> Any:
    if isinstance(old, dict) and isinstance(new, dict) and not shape.atomic:
        result = dict(old)
        for name, value in new.items():
            result[name] = _merge(old.get(name), value, shape.field(name))
        return result
    if isinstance(old, list) and isinstance(new, list) and (shape.keys or shape.is_set):
        wanted = {item_element(item, shape): item for item in new}
        kept = [
            _merge(item, wanted.pop(element), shape.item) if element in wanted else item
            for item, element in ((item, item_element(item, shape)) for item in old)
        ]
        return kept + list(wanted.values())
    return new


def _without(value: Any, shape: Shape, path: Path, gone: Fields) -> Any:
    if not gone:
        return value
    if isinstance(value, dict) and not shape.atomic:
        return {
            name: _without(below, shape.field(name), (*path, f"f:{name}"), gone)
            for name, below in value.items()
            if (*path, f"f:{name}") not in gone
        }
    if isinstance(value, list) and (shape.keys or shape.is_set):
        named = [((*path, item_element(item, shape)), item) for item in value]
        return [
            _without(item, shape.item, where, gone) for where, item in named if where not in gone
        ]
    return value
