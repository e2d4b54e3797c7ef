"""The part of an object that some expressions need, as types for msgspec to decode into.

The expressions' steps are laid over each other into one tree. Where two want to see the same
place in different ways, as an object and as a list, or whole and in part, that place is decoded
whole, and the expressions go on from there by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec

from dyninformer.jsonpath.shape import Key, Shape, Where

Place: TypeAlias = tuple[str | None, ...]
"""The way to a place from the top: keys, and None for the elements of a list."""


@dataclass(slots=True)
class Branch:
    """What is wanted at one place of the object."""

    keys: dict[str, Branch] = field(default_factory=dict)
    items: Branch | None = None
    whole: bool = False
    text: bool = False
    filtered: bool = False

    def key(self, name: str) -> Branch:
        """The place under a key, from now on wanted."""
        return self.keys.setdefault(name, Branch())

    def attribute(self, name: str) -> str:
        """The attribute that holds the value under a key."""
        return f"f{list(self.keys).index(name)}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The tree for some shapes, and how many steps of each shape it covers."""

    top: Branch
    covered: tuple[int, ...]


def lay_out(shapes: Sequence[Shape]) -> Layout:
    """The smallest tree that serves all shapes; each part of it is wanted in one way only."""
    opaque: set[Place] = set()
    while True:
        top = Branch()
        covered = tuple(_add(top, shape, opaque) for shape in shapes)
        clash = _clash(top, ())
        if clash is None:
            return Layout(top, covered)
        opaque.add(clash)


def _add(top: Branch, shape: Shape, opaque: set[Place]) -> int:
    """Lay one shape into the tree; the number of its steps that the tree covers."""
    branch, listed = top, False
    place: Place = ()
    for at, step in enumerate(shape):
        if (
            place in opaque
            or (listed and not isinstance(step, Key))
            or (isinstance(step, Where) and (*place, None) in opaque)
        ):
            branch.whole = True
            return at
        if isinstance(step, Key):
            branch, place = branch.key(step.name), (*place, step.name)
            continue
        branch.items = branch.items or Branch()
        if isinstance(step, Where):
            branch.filtered = True
            branch.items.key(step.name).text = True
        branch, place, listed = branch.items, (*place, None), True
    branch.whole = True
    return len(shape)


def _clash(branch: Branch, place: Place) -> Place | None:
    """A place to be decoded whole, because it is wanted in more than one way."""
    if (branch.whole or branch.text) + bool(branch.keys) + (branch.items is not None) > 1:
        return place
    below = [((*place, name), child) for name, child in branch.keys.items()]
    if branch.items is not None:
        below.append(((*place, None), branch.items))
    return next((clash for way, child in below if (clash := _clash(child, way)) is not None), None)


def type_of(branch: Branch) -> Any:
    """The type that msgspec decodes a place into.

    A null may stand where an object or a list is wanted, except for a list that is filtered,
    because kubectl's dialect cannot filter a null. Anything else of the wrong type makes
    msgspec refuse the object, and then the expressions are asked themselves.
    """
    if branch.text:
        return str
    if branch.keys:
        return struct_of(branch) | None
    if branch.items is not None:
        listed = GenericAlias(list, (type_of(branch.items),))
        return listed if branch.filtered else listed | None
    return Any


def struct_of(branch: Branch) -> Any:
    """The struct for an object: whatever is missing on a way through it ends in UNSET."""
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for name, child in branch.keys.items():
        attribute = branch.attribute(name)
        names[attribute] = name
        if child.keys and not child.text:
            inner = struct_of(child)
            fields.append((attribute, inner | None, inner()))
        else:
            fields.append((attribute, type_of(child), msgspec.UNSET))
    return msgspec.defstruct("Part", fields, rename=names, frozen=True, gc=False)
