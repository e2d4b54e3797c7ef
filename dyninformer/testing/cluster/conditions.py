"""Conditions in a status: what holds of an object, since when and why."""

from __future__ import annotations

from typing import Any

from dyninformer.types import Object

Conditions = list[Object]


def condition(kind: str, holds: bool, now: str, reason: str, message: str) -> Object:
    """One condition, keys in the server's order."""
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def with_condition(conditions: Conditions, condition: Object) -> Conditions:
    """The conditions with one set; its lastTransitionTime stays while its status does."""
    result = list(conditions)
    for at, each in enumerate(result):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"] and "lastTransitionTime" in each:
                condition = {**condition, "lastTransitionTime": each["lastTransitionTime"]}
            result[at] = condition
            return result
    return [*result, condition]


def _found(conditions: Any, kind: str) -> Object:
    return next((each for each in conditions or () if each.get("type") == kind), {})


def is_true(conditions: Any, kind: str) -> bool:
    """Whether there is such a condition, and it holds."""
    return bool(_found(conditions, kind).get("status") == "True")


def reason_of(conditions: Any, kind: str) -> str:
    """Why a condition is as it is, "" if there is none."""
    return str(_found(conditions, kind).get("reason", ""))
