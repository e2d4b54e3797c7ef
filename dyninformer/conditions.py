"""What to wait for: kubectl's ``--for`` words, or a function of the object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.comparisons import Comparison, PathCondition, divided
from dyninformer.types import Object

Condition: TypeAlias = str | Callable[[Object], bool]

_SHOWN = 200  # characters of a value in a message


class Met(Protocol):
    """Whether the wait is over, given the object as it is, or None if there is none."""

    def __call__(self, obj: Object | None, /) -> bool:
        """True if it is."""

    def found(self, obj: Object | None, /) -> str:
        """What there is instead of what is wanted, for a message."""


def met_when(condition: Condition) -> Met:
    """The test that a condition stands for.

    >>> ready = met_when("condition=Ready")
    >>> ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    True
    >>> ready.found({"status": {}})
    'it has no condition Ready'
    >>> met_when("jsonpath={.status.replicas}>=3")({"status": {"replicas": 5}})
    True
    >>> met_when("delete")(None)
    True
    """
    if callable(condition):
        return _Function(condition)
    kind, equals, rest = condition.partition("=")
    if kind == "delete" and not equals:
        return _Presence(wanted=False)
    if kind == "create" and not equals:
        return _Presence(wanted=True)
    if kind == "condition" and rest:
        name, _, value = rest.partition("=")
        return _StatusCondition(name, value or "True")
    if kind == "jsonpath" and rest:
        return _Path(Comparison(rest) if divided(rest)[1] not in ("", "=") else PathCondition(rest))
    raise ValueError(
        f"{condition!r} is nothing to wait for: expected 'delete', 'create', 'condition=Ready', "
        "'condition=Ready=False', 'jsonpath={.status.phase}=Running', "
        "'jsonpath={.status.replicas}>=3' (also !=, <, <=, >), or a function of the object"
    )


class _Function:
    def __init__(self, function: Callable[[Object], bool]) -> None:
        self._function = function

    def __call__(self, obj: Object | None) -> bool:
        return obj is not None and bool(self._function(obj))

    def found(self, obj: Object | None) -> str:
        return "it does not meet the condition" if obj is not None else _NO_OBJECT


class _Presence:
    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted

    def __call__(self, obj: Object | None) -> bool:
        return (obj is not None) == self._wanted

    def found(self, obj: Object | None) -> str:
        return "it is still there" if obj is not None else _NO_OBJECT


class _Path:
    """A path that does not fit this object yet is a condition that is not met yet."""

    def __init__(self, condition: PathCondition | Comparison) -> None:
        self._condition = condition

    def __call__(self, obj: Object | None) -> bool:
        try:
            return obj is not None and self._condition.met(obj)
        except JSONPathError:
            return False

    def found(self, obj: Object | None) -> str:
        if obj is None:
            return _NO_OBJECT
        path = self._condition.path
        try:
            values = path.values(obj)
        except JSONPathError as error:
            return str(error)
        if not values:
            return f"{path.expression} finds nothing"
        shown = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        return f"{path.expression} is {_shortened(shown)}"


class _StatusCondition:
    """One of ``status.conditions``, compared as kubectl does: by any case, and not if outdated."""

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._value = value.lower()

    def __call__(self, obj: Object | None) -> bool:
        held = _held(obj, self._name)
        if held is None or _outdated(obj, held):
            return False
        return str(held.get("status")).lower() == self._value

    def found(self, obj: Object | None) -> str:
        if obj is None:
            return _NO_OBJECT
        held = _held(obj, self._name)
        if held is None:
            return f"it has no condition {self._name}"
        why = [str(held[name]) for name in ("reason", "message") if held.get(name)]
        told = f"condition {self._name} is {': '.join([str(held.get('status')), *why])}"
        if _outdated(obj, held):
            told += ", but says so of an older generation"
        return _shortened(told)


_NO_OBJECT = "there is no such object"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _held(obj: Object | None, name: str) -> Object | None:
    """The condition of that name."""
    status = obj.get("status") if obj is not None else None
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and str(each.get("type")).lower() == name.lower():
            return each
    return None


def _outdated(obj: Object | None, held: Object) -> bool:
    """The object has changed since a controller last looked at it."""
    if obj is None:
        return False
    generation = _whole(obj.get("metadata"), "generation")
    observed = _whole(held, "observedGeneration")
    if observed is None:
        observed = _whole(obj.get("status"), "observedGeneration")
    return observed is not None and generation is not None and observed < generation


def _whole(holder: object, name: str) -> int | None:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, int) else None
