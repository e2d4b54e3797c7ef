"""What is declared for places in objects, by patterns of paths, found step by step on a walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.parser import FieldNode, PathNode, SliceNode, WildcardNode, parse

T = TypeVar("T")


class Patterns(Generic[T]):
    """What is declared here, and below; immutable once it is made.

    ``[*]`` in a pattern is any element of a list, ``.*`` any key that is not named.

    >>> found = Patterns.of({".spec.listeners[*].routes": "to"}).field("spec").field("listeners")
    >>> found.value, found.element().field("routes").value
    (None, 'to')
    """

    __slots__ = ("_any", "_elements", "_fields", "value")

    def __init__(self) -> None:
        self.value: T | None = None
        """What is declared for this place; None for nothing."""
        self._fields: dict[str, Patterns[T]] = {}
        self._any: Patterns[T] | None = None
        self._elements: Patterns[T] | None = None

    @classmethod
    def of(cls, declared: Mapping[str, T]) -> Patterns[T]:
        """The root. JSONPathError if a pattern is none."""
        root = cls()
        for path, value in declared.items():
            place = root
            for step in _parsed(path).nodes:
                if isinstance(step, FieldNode):
                    place = place._fields.setdefault(step.name, cls())
                elif isinstance(step, WildcardNode):
                    place._any = place = place._any or cls()  # noqa: SLF001 - its own
                elif isinstance(step, SliceNode):
                    place._elements = place = place._elements or cls()  # noqa: SLF001 - its own
                else:
                    raise JSONPathError(f"{path}: write names, .* and [*], as in .spec.items[*].x")
            place.value = value
        return root

    def field(self, name: str) -> Patterns[T] | None:
        """What is declared for the value of a key; None for nothing, here and below."""
        return self._fields.get(name, self._any)

    def element(self) -> Patterns[T] | None:
        """What is declared for each element."""
        return self._elements


def _parsed(path: str) -> PathNode:
    relative = path.strip("{}").removeprefix(".")
    parts = parse(f"{{.{relative}}}", source=path, shift=len(path) - len(relative) - 2)
    if len(parts) != 1 or not isinstance(parts[0], PathNode):
        raise JSONPathError(f"{path}: write one path, as in .spec.items[*].x")
    return parts[0]
