"""What to wait for: kubectl's ``--for`` words, or a function of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.store.jsonpath.conditions import PathCondition

Object: TypeAlias = dict[str, Any]
Condition: TypeAlias = str | Callable[[Object], bool]
Met: TypeAlias = Callable[[Object | None], bool]
"""Whether the wait is over, given the object as it is, or None if there is none."""


def met_when(condition: Condition) -> Met:
    """The test that a condition stands for.

    >>> ready = met_when("condition=Ready")
    >>> ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    True
    >>> met_when("delete")(None)
    True
    """
    if callable(condition):
        test = condition
        return lambda obj: obj is not None and bool(test(obj))
    kind, equals, rest = condition.partition("=")
    if kind == "delete" and not equals:
        return lambda obj: obj is None
    if kind == "create" and not equals:
        return lambda obj: obj is not None
    if kind == "condition" and rest:
        name, _, value = rest.partition("=")
        return _StatusCondition(name, value or "True")
    if kind == "jsonpath" and rest:
        path = PathCondition(rest)
        return lambda obj: obj is not None and _met(path, obj)
    raise ValueError(
        f"{condition!r} is nothing to wait for: expected 'delete', 'create', 'condition=Ready', "
        "'condition=Ready=False', 'jsonpath={.status.phase}=Running', or a function of the object"
    )


def _met(path: PathCondition, obj: Object) -> bool:
    """A path that does not fit this object yet is a condition that is not met yet."""
    try:
        return path.met(obj)
    except JSONPathError:
        return False


class _StatusCondition:
    """One of ``status.conditions``, compared as kubectl does: by any case, and not if outdated."""

    def __init__(self, name: str, value: str) -> None:
        self._name = name.lower()
        self._value = value.lower()

    def __call__(self, obj: Object | None) -> bool:
        if obj is None:
            return False
        generation = _whole(obj.get("metadata"), "generation")
        status = obj.get("status")
        conditions = status.get("conditions") if isinstance(status, dict) else None
        for each in conditions if isinstance(conditions, list) else ():
            if not isinstance(each, dict) or str(each.get("type")).lower() != self._name:
                continue
            observed = _whole(each, "observedGeneration")
            if observed is None:
                observed = _whole(status, "observedGeneration")
            if observed is not None and generation is not None and observed < generation:
                return False
            return str(each.get("status")).lower() == self._value
        return False


def _whole(holder: object, name: str) -> int | None:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, int) else None
