"""What ``kubectl wait --for=jsonpath=`` waits for, decided on one object."""

from __future__ import annotations

import re
from typing import Any

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.path import JSONPath
from dyninformer.jsonpath.printing import sprint


class PathCondition:
    """A condition in kubectl's words: a path, and behind ``=`` the value it must have.

    Without a value, finding anything is enough. Immutable, for use from any thread.

    >>> running = PathCondition("{.status.phase}=Running")
    >>> running.met({"status": {"phase": "Running"}}), running.met({"status": {}})
    (True, False)
    """

    __slots__ = ("path", "text", "wanted")

    def __init__(self, text: str) -> None:
        self.text = text
        expression, *values = _split(text)
        if not expression:
            raise JSONPathError("the condition is empty; write one as {.status.phase}=Running")
        if len(values) > 1:
            raise JSONPathError(
                f"{text}: more than one value; write a condition as {{.status.phase}}=Running"
            )
        self.path = JSONPath.relaxed(expression)
        self.wanted = values[0].strip("'\"") if values else None
        if self.wanted == "":
            raise JSONPathError(f"{text}: no value behind '='; leave it out to wait for any")

    def met(self, obj: Any) -> bool:
        """Whether an object, a dict or JSON bytes, meets the condition.

        JSONPathError where kubectl gives up: the path fails or finds several values, or an
        object or a list is to equal a value.
        """
        groups = self.path.groups(obj)
        if not groups or not groups[0]:
            return False
        if len(groups) > 1 or len(groups[0]) > 1:
            raise JSONPathError(f"{self.text}: the path finds more than one value")
        if self.wanted is None:
            return True
        value = groups[0][0]
        if isinstance(value, dict | list):
            raise JSONPathError(f"{self.text}: the path finds an object or a list, not a value")
        return sprint(value).strip() == self.wanted.strip()

    def __repr__(self) -> str:
        return f"PathCondition({self.text!r})"


def _split(text: str) -> list[str]:
    """The text cut at each ``=`` that is not one of two."""
    parts = [""]
    for piece in re.findall("==|=|[^=]+", text):
        if piece == "=":
            parts.append("")
        else:
            parts[-1] += piece
    return parts
