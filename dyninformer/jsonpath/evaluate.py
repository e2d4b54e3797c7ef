"""kubectl's dialect on a decoded object, answering as client-go does.

Where client-go loses data or crashes this module does the sane thing instead: an empty list
among the inputs of ``[*]`` ends nothing, a template with ``{range}`` can be used any number of
times, and a null met inside a range is a null like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.parser import (
    DescentNode,
    FieldNode,
    FilterNode,
    LiteralNode,
    Node,
    PathNode,
    SliceNode,
    Template,
    TextNode,
    UnionNode,
    WildcardNode,
    WordNode,
)
from dyninformer.types import Values

Groups: TypeAlias = list[Values]

_INT64: Final = 1 << 63

MAX_WORK = 2_000_000
"""How many values one evaluation may go through, so that no expression runs for minutes."""


class _NoValue:
    """The null that a ``{range}`` walks over: printed as ``<no value>``, else a null."""

    __slots__ = ()


NO_VALUE: Final = _NoValue()


class GoInt(int):
    """A whole number that Go does not hold as int64: a literal, or a byte of a string.

    Only the cells of a table tell it from another number, and it never leaves this package.
    """

    __slots__ = ()


class _FailedError(JSONPathError):
    """An evaluation that ended in an error, with what client-go returns beside the error.

    A filter that only asks whether something exists looks at that, and not at the error.
    """

    def __init__(self, message: str, values: Values) -> None:
        super().__init__(message)
        self.values = values


def evaluate(template: Template, root: Any, *, allow_missing: bool = True) -> Groups:
    """What each top-level part of a template finds; a ``{range}`` gives its parts every turn."""
    run = _Run(template, allow_missing=allow_missing)
    return run.parts(root, 0)


def evaluate_from(nodes: Iterable[Node], values: Values) -> Values:
    """What the last of some nodes finds, when the first is given ``values``."""
    run = _Run((), allow_missing=True)
    for node in nodes:
        values = run.walk(values, node)
    return values


class _Run:
    """One evaluation: where it stands among ranges, and how much work it may still do."""

    __slots__ = ("allow_missing", "begins", "ends", "inside", "last_end", "template", "work")

    def __init__(self, template: Template, *, allow_missing: bool) -> None:
        self.template = template
        self.allow_missing = allow_missing
        self.begins = 0
        self.inside = 0
        self.ends = 0
        self.last_end = -1
        self.work = MAX_WORK

    def parts(self, root: Any, start: int) -> Groups:
        """Evaluate the parts from ``start`` on the root; inside a range, up to its end."""
        groups: Groups = []
        current = [root]
        at = start
        while at < len(self.template):
            found = self.walk(current, self.template[at])
            if 0 < self.ends <= self.inside:
                self.ends -= 1
                self.last_end = at
                break
            if self.begins:
                self.turns(found, at, groups)
                # Resume behind the end that closed the last turn; without one, client-go
                # evaluates the rest once more on the outer value.
                at = max(at, self.last_end)
            else:
                groups.append(found)
            at += 1
        return groups

    def turns(self, found: Values, at: int, groups: Groups) -> None:
        self.begins -= 1
        self.inside += 1
        for value in found:
            groups.extend(self.parts(NO_VALUE if value is None else value, at + 1))
        if not found:
            # The parts are walked all the same, to learn where the range ends.
            self.parts(NO_VALUE, at + 1)
        self.inside -= 1

    def walk(self, values: Values, node: Node) -> Values:
        found = _WALKERS[type(node)](self, values, node)
        self.spend(len(found) + 1)
        return found

    def spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise JSONPathError(
                f"gave up after {MAX_WORK} values: the expression multiplies what it finds"
            )

    def path(self, values: Values, node: PathNode) -> Values:
        for part in node.nodes:
            values = self.walk(values, part)
        return values

    def text(self, values: Values, node: TextNode) -> Values:  # noqa: ARG002 - one of the walkers
        return [node.text]

    def literal(self, values: Values, node: LiteralNode) -> Values:
        value = node.value
        return [GoInt(value) if type(value) is int else value] * len(values)

    def word(self, values: Values, node: WordNode) -> Values:
        if node.name == "range":
            self.begins += 1
            return values
        if node.name != "end":
            raise _FailedError(f"the word {node.name!r} means nothing here", values)
        if not self.inside:
            raise _FailedError("{end} without a {range} before it", [])
        self.ends += 1
        return []

    def field(self, values: Values, node: FieldNode) -> Values:
        name = node.name
        found = [value[name] for value in values if isinstance(value, dict) and name in value]
        if values and not found and not self.allow_missing:
            raise _FailedError(f"{name!r} is not found", found)
        return found

    def wildcard(self, values: Values, node: WildcardNode) -> Values:  # noqa: ARG002 - as above
        return [child for value in values for child in _children(value)]

    def descent(self, values: Values, node: DescentNode) -> Values:  # noqa: ARG002 - as above
        found: Values = []
        waiting = values[::-1]
        while waiting:
            value = waiting.pop()
            children = _children(value)
            if children:
                self.spend(1)
                found.append(value)
                if not isinstance(value, str):
                    waiting.extend(reversed(children))
        return found

    def slice(self, values: Values, node: SliceNode) -> Values:
        found: Values = []
        for value in values:
            if isinstance(value, list):
                found.extend(_cut(value, node, values))
            elif value is not None and value is not NO_VALUE:
                raise _FailedError(f"{_named(value)} is no list and has no index", values)
        return found

    def union(self, values: Values, node: UnionNode) -> Values:
        found: Values = []
        for part in node.parts:
            try:
                found.extend(self.path(values, part))
            except _FailedError as failure:
                raise _FailedError(str(failure), values) from None
        return found

    def filter(self, values: Values, node: FilterNode) -> Values:
        found: Values = []
        exists = node.operator == "exists"
        for value in values:
            if not isinstance(value, list):
                raise _FailedError(f"{_named(value)} is no list and cannot be filtered", values)
            if exists:
                found.extend(item for item in value if self.exists(item, node))
            else:
                for item in value:
                    self.spend(1)
                    if self.passes(item, node, values, found):
                        found.append(item)
        return found

    def exists(self, item: Any, node: FilterNode) -> bool:
        try:
            return bool(self.path([item], node.left))
        except _FailedError as failure:
            return bool(failure.values)

    def passes(self, item: Any, node: FilterNode, values: Values, found: Values) -> bool:
        operands: Values = []
        for side in (node.left, node.right):
            try:
                given = self.path([item], side)
            except _FailedError as failure:
                raise _FailedError(str(failure), values) from None
            if not given:
                return False
            if len(given) > 1:
                raise _FailedError("a filter can only compare one value at a time", values)
            operands.append(given[0])
        try:
            return _OPERATORS[node.operator](*operands)
        except KeyError:
            raise _FailedError(f"unknown filter operator {node.operator!r}", found) from None
        except TypeError as bad:
            raise _FailedError(str(bad), found) from None


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [GoInt(byte) for byte in value.encode("utf-8", "replace")]
    return []


def _cut(value: Values, node: SliceNode, values: Values) -> Values:
    """The part of a list that a slice names; unlike Python's, one out of range is an error."""
    size = len(value)
    start = node.start or 0
    stop = size if node.stop is None else node.stop
    if start < 0:
        start += size
    if stop < 0 or (stop == 0 and node.single):
        stop += size
    if start == stop:
        return []
    if not 0 <= start < size:
        raise _FailedError(f"index {start} is out of bounds of a list of {size}", values)
    if not 0 <= stop <= size:
        raise _FailedError(f"index {stop - 1} is out of bounds of a list of {size}", values)
    if start > stop:
        raise _FailedError(f"the slice starts at {start} and ends before that", values)
    if node.step is not None and node.step <= 0:
        raise _FailedError("the step of a slice must be above 0", values)
    return value[start : stop : node.step or 1]


_WALKERS: dict[type, Callable[[_Run, Values, Any], Values]] = {
    PathNode: _Run.path,
    TextNode: _Run.text,
    LiteralNode: _Run.literal,
    WordNode: _Run.word,
    FieldNode: _Run.field,
    WildcardNode: _Run.wildcard,
    DescentNode: _Run.descent,
    SliceNode: _Run.slice,
    UnionNode: _Run.union,
    FilterNode: _Run.filter,
}


# -- what filters make of two values: types first, and only then the values ---------------


def kind(value: Any) -> str:
    """The group of types a value is compared in; "" for what cannot be compared."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_INT64 <= value < _INT64 else "float"
    if isinstance(value, float):
        return "float"
    return "string" if isinstance(value, str) else ""


def _compared(left: Any, right: Any) -> str:
    """The kind that both share; TypeError if they share none."""
    kinds = kind(left), kind(right)
    if not all(kinds):
        raise TypeError(f"{_named(left if not kinds[0] else right)} cannot be compared")
    if kinds[0] != kinds[1]:
        raise TypeError(f"{_named(left)} cannot be compared with {_named(right)}")
    return kinds[0]


def _equal(left: Any, right: Any) -> bool:
    if _compared(left, right) == "float":
        return float(left) == float(right)
    return bool(left == right)


def _less(left: Any, right: Any) -> bool:
    shared = _compared(left, right)
    if shared == "boolean":
        raise TypeError("booleans have no order")
    if shared == "float":
        return float(left) < float(right)
    return bool(left < right)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _less,
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">": lambda left, right: not (_less(left, right) or _equal(left, right)),
    ">=": lambda left, right: not _less(left, right),
}


def _named(value: Any) -> str:
    """The type of a value for a message; never the value, which may be a secret."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    group = kind(value)
    return f"{'an' if group == 'integer' else 'a'} {group}" if group else "a null"
