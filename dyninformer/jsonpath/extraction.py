"""From what msgspec decoded to what an expression finds: one small function for each.

Every function here gives exactly what the expression itself would find in the whole object.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import UNSET

from dyninformer.jsonpath.layout import Branch
from dyninformer.jsonpath.shape import At, Expression, Key, Shape, Step, Where

Values: TypeAlias = list[Any]
Extract: TypeAlias = Callable[[Any], Values]
Get: TypeAlias = Callable[[Any], Any]


def extraction(expression: Expression, top: Branch, covered: int) -> Extract:
    """How to find an expression's values in a decoded top, whose steps cover so many of its."""
    if not covered:
        # The whole object was decoded. Only its first step may be a key.
        return expression.find
    steps = expression.shape[:covered]
    extract = _extract(expression, top, steps)
    if covered == len(expression.shape) and not expression.rest:
        return extract
    return lambda root: expression.follow(covered, extract(root))


def plain_way(expression: Expression, top: Branch, covered: int) -> str | None:
    """The attributes, joined by dots, that lead to the value of a path of nothing but keys."""
    shape = expression.shape
    if not covered or covered < len(shape) or expression.rest:
        return None
    if not all(isinstance(step, Key) for step in shape):
        return None
    return ".".join(_attributes(top, shape)[0])


def _extract(expression: Expression, top: Branch, steps: Shape) -> Extract:
    listing = next((at for at, step in enumerate(steps) if not isinstance(step, Key)), len(steps))
    get, branch = _getter(top, steps[:listing])
    if listing == len(steps):
        return _one(get)
    step = steps[listing]
    items = branch.items or Branch()
    tail = _getter(items, steps[listing + 1 :])[0]
    if isinstance(step, At):
        return _at(expression, get, step.index, tail)
    if isinstance(step, Where):
        key, ways = items.attribute(step.name), _attributes(items, steps[listing + 1 :])[0]
        both = attrgetter(key, ".".join(ways))
        return _where(get, attrgetter(key), step.text, tail, both)
    return _each(get, tail)


def _getter(branch: Branch, keys: tuple[Step, ...]) -> tuple[Get, Branch]:
    """The value at the end of some keys, and the branch that stands there."""
    attributes, end = _attributes(branch, keys)
    return (attrgetter(".".join(attributes)) if attributes else _itself), end


def _attributes(branch: Branch, keys: tuple[Step, ...]) -> tuple[list[str], Branch]:
    attributes: list[str] = []
    for step in keys:
        if isinstance(step, Key):
            attributes.append(branch.attribute(step.name))
            branch = branch.keys[step.name]
    return attributes, branch


def _itself(value: Any) -> Any:
    return value


def _one(get: Get) -> Extract:
    def extract(root: Any) -> Values:
        try:
            value = get(root)
        except AttributeError:  # a null on the way
            return []
        return [] if value is UNSET else [value]

    return extract


def _listed(get: Get, root: Any) -> Values:
    """The list; empty where it is missing or null, or a null stands on the way to it."""
    try:
        items = get(root)
    except AttributeError:
        return []
    return items or []  # UNSET is false


def _at(expression: Expression, get: Get, index: int, tail: Get) -> Extract:
    def extract(root: Any) -> Values:
        try:
            items = get(root)
        except AttributeError:
            return []
        if items is None or items is UNSET:
            return []
        try:
            value = tail(items[index])
        except IndexError:
            return expression.missing_index(index, len(items))
        except AttributeError:
            return []
        return [] if value is UNSET else [value]

    return extract


def _each(get: Get, tail: Get) -> Extract:
    def extract(root: Any) -> Values:
        items = _listed(get, root)
        try:
            return [value for value in map(tail, items) if value is not UNSET]
        except AttributeError:
            return _patient(tail, items)

    return extract


def _where(get: Get, key: Get, text: str, tail: Get, both: Get) -> Extract:
    """``both`` gives key and tail at once: for most objects there is one loop, and no call."""

    def extract(root: Any) -> Values:
        found: Values = []
        try:
            for held, value in map(both, get(root)):
                if held == text and value is not UNSET:
                    found.append(value)
        except (AttributeError, TypeError):  # a null on the way, or among the elements; no list
            items = [item for item in _listed(get, root) if item is not None]
            return _patient(tail, [item for item in items if key(item) == text])
        return found

    return extract


def _patient(tail: Get, items: Values) -> Values:
    """The values of elements among which some are null, or hold a null on the way."""
    found: Values = []
    for item in items:
        try:
            value = tail(item)
        except AttributeError:
            continue
        if value is not UNSET:
            found.append(value)
    return found
