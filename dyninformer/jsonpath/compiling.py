"""Expressions compiled to functions that answer from an object's bytes, by one partial decode.

The nodes that an expression begins with become steps, where both dialects mean the same by
them. The steps of all expressions that are asked together are laid over each other into one
tree, the tree becomes types for msgspec to decode into, and each expression gets a function
that reads its values from what was decoded. Where an object's types do not fit, the expression
itself is asked, on the whole decoded object, and gives the same answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from operator import attrgetter
from types import GenericAlias
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import UNSET

from dyninformer.jsonpath.json_bytes import decoded
from dyninformer.types import Values

MAX_STEPS = 32
_CACHED = 128

Get: TypeAlias = Callable[[Any], Any]
Find: TypeAlias = Callable[[Any], Values]
Place: TypeAlias = tuple[str | None, ...]
"""The way to a place from the top: keys, and None for the elements of a list."""

UNFIT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a partial decode raises for an object that has to be read as a whole."""


@dataclass(frozen=True, slots=True)
class KeyStep:
    """The value under a key of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class EachStep:
    """Every element of a list."""


@dataclass(frozen=True, slots=True)
class ItemStep:
    """One element of a list, counted from its end if negative."""

    index: int


@dataclass(frozen=True, slots=True)
class FilterStep:
    """The elements of a list that hold a text under a key."""

    name: str
    text: str


Step: TypeAlias = KeyStep | EachStep | ItemStep | FilterStep
Steps: TypeAlias = tuple[Step, ...]


class Expression(ABC):
    """A parsed expression of either dialect; immutable, for use from any thread.

    Not for import.
    """

    dialect: ClassVar[str]
    text: str
    allow_missing: bool
    doubts: tuple[str, ...]
    """Why it can hardly be meant, though it parses."""
    steps: Steps
    """What it begins with, one for each of its nodes; empty if it has to see the whole object."""
    rest: bool
    """Whether nodes follow behind those of the steps."""
    several: bool
    """It asks for each of several, by ``[*]`` above all: what it finds is a list, be it of one."""
    parts: int = 1
    """Of how many it is made: a template of more than one makes one text of them."""

    @cached_property
    def values_in_bytes(self) -> Find:
        """What is found in JSON bytes, presented; only what is needed is decoded."""
        return _finder(self)

    @abstractmethod
    def groups(self, root: Any) -> list[Values]:
        """What each part finds in a decoded object, as the evaluation marks it."""

    @abstractmethod
    def find(self, root: Any) -> Values:
        """Everything found in a decoded object; JSONPathError where it does not fit."""

    @abstractmethod
    def find_from(self, start: int, values: Values) -> Values:
        """What is found from values, by the nodes behind the first ``start``."""

    @abstractmethod
    def present(self, values: Values) -> Values:
        """Values as the original gives them."""

    @abstractmethod
    def missing_index(self, index: int, size: int) -> Values:
        """The answer to an index out of a list's range; JSONPathError where that is one."""


def compilable(steps: Sequence[Step | None]) -> Steps:
    """The steps up to the first that is none; empty unless they begin with a key.

    A key with a quote, a backslash or a control character is none: msgspec cannot match it.
    """
    found: list[Step] = []
    for step in steps[:MAX_STEPS]:
        if step is None or (isinstance(step, KeyStep | FilterStep) and not _matchable(step.name)):
            break
        found.append(step)
    return tuple(found) if found and isinstance(found[0], KeyStep) else ()


def _matchable(name: str) -> bool:
    return not any(char in '"\\' or char < " " or "\ud800" <= char < "\ue000" for char in name)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A decoder of what some expressions need, and for each how to find its values in that.

    Where the bytes do not fit the decoder raises (`UNFIT`), and the expressions have to be
    asked on the whole object.
    """

    decode: Get
    extracts: tuple[Find, ...]
    ways: tuple[str | None, ...]
    """For each expression of nothing but keys, the attributes that lead to its value."""


def compiled(expressions: Sequence[Expression]) -> Compiled:
    """The expressions laid over each other, for one decode.

    What is asked for the same again, as by a thousand informers, is the same: it is immutable.
    """
    return _compiled(*expressions)


# Each has types of its own, 15 kB and half a millisecond; an expression is known by its identity.
@lru_cache(maxsize=_CACHED)
def _compiled(*expressions: Expression) -> Compiled:
    top, covered = _tree([expression.steps for expression in expressions])
    laid = list(zip(expressions, covered, strict=True))
    whole = top.whole or not laid
    return Compiled(
        decoded if whole else msgspec.json.Decoder(_struct_of(top)).decode,
        tuple(_extraction(expression, top, covered) for expression, covered in laid),
        tuple(_plain_way(expression, top, covered) for expression, covered in laid),
    )


def _finder(expression: Expression) -> Find:
    """How to find one expression's values in JSON bytes, and to present them."""
    plan, present = compiled([expression]), expression.present
    if plan.ways[0] is not None:
        return _plain_finder(expression, plan.decode, attrgetter(plan.ways[0]))
    decode, extract = plan.decode, plan.extracts[0]

    def find(raw: Any) -> Values:
        try:
            root = decode(raw)
        except UNFIT:
            return present(expression.find(decoded(raw)))
        return present(extract(root))

    return find


def _plain_finder(expression: Expression, decode: Get, get: Get) -> Find:
    """The same with fewer calls, for the paths that are asked most."""
    present = expression.present

    def find(raw: Any) -> Values:
        try:
            value = get(decode(raw))
        except AttributeError:  # a null on the way
            return []
        except UNFIT:
            return present(expression.find(decoded(raw)))
        if type(value) is str:
            return [value]
        return [] if value is UNSET else present([value])

    return find


# -- the tree of what all expressions need -----------------------------------------------


@dataclass(slots=True)
class _Branch:
    """What is wanted at one place of the object.

    A place that two expressions want in different ways, as an object and as a list, or whole
    and in part, is decoded whole, and the expressions go on from there by themselves.
    """

    keys: dict[str, _Branch] = field(default_factory=dict)
    items: _Branch | None = None
    whole: bool = False
    text: bool = False
    filtered: bool = False

    def key(self, name: str) -> _Branch:
        """The place under a key, from now on wanted."""
        return self.keys.setdefault(name, _Branch())

    def attribute(self, name: str) -> str:
        """The attribute that holds the value under a key."""
        return f"f{list(self.keys).index(name)}"


def _tree(wanted: Sequence[Steps]) -> tuple[_Branch, tuple[int, ...]]:
    """The smallest tree that serves all; and how many steps of each expression it covers."""
    opaque: set[Place] = set()
    while True:
        top = _Branch()
        covered = tuple(_add(top, steps, opaque) for steps in wanted)
        clash = _clash(top, ())
        if clash is None:
            return top, covered
        opaque.add(clash)


def _add(top: _Branch, steps: Steps, opaque: set[Place]) -> int:
    """Lay an expression's steps into the tree; the number of them that the tree covers."""
    branch, listed = top, False
    place: Place = ()
    for at, step in enumerate(steps):
        if (
            place in opaque
            or (listed and not isinstance(step, KeyStep))
            or (isinstance(step, FilterStep) and (*place, None) in opaque)
        ):
            branch.whole = True
            return at
        if isinstance(step, KeyStep):
            branch, place = branch.key(step.name), (*place, step.name)
            continue
        branch.items = branch.items or _Branch()
        if isinstance(step, FilterStep):
            branch.filtered = True
            branch.items.key(step.name).text = True
        branch, place, listed = branch.items, (*place, None), True
    branch.whole = True
    return len(steps)


def _clash(branch: _Branch, place: Place) -> Place | None:
    """A place to be decoded whole, because it is wanted in more than one way."""
    if (branch.whole or branch.text) + bool(branch.keys) + (branch.items is not None) > 1:
        return place
    below = [((*place, name), child) for name, child in branch.keys.items()]
    if branch.items is not None:
        below.append(((*place, None), branch.items))
    return next((clash for way, child in below if (clash := _clash(child, way)) is not None), None)


def _type_of(branch: _Branch) -> Any:
    """The type that msgspec decodes a place into.

    A null may stand where an object or a list is wanted, except for a list that is filtered,
    because kubectl's dialect cannot filter a null. Anything else of the wrong type makes
    msgspec refuse the object, and then the expressions are asked themselves.
    """
    if branch.text:
        return str
    if branch.keys:
        return _struct_of(branch) | None
    if branch.items is not None:
        listed = GenericAlias(list, (_type_of(branch.items),))
        return listed if branch.filtered else listed | None
    return Any


def _struct_of(branch: _Branch) -> Any:
    """The struct for an object: whatever is missing on a way through it ends in UNSET."""
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for name, child in branch.keys.items():
        attribute = branch.attribute(name)
        names[attribute] = name
        if child.keys and not child.text:
            inner = _struct_of(child)
            fields.append((attribute, inner | None, inner()))
        else:
            fields.append((attribute, _type_of(child), UNSET))
    return msgspec.defstruct("Part", fields, rename=names, frozen=True, gc=False)


# -- from what was decoded to what an expression finds -----------------------------------


def _extraction(expression: Expression, top: _Branch, covered: int) -> Find:
    """How to find an expression's values in a decoded top, which covers so many of its steps."""
    if not covered:
        # The whole object was decoded. Only its first step may be a key.
        return expression.find
    steps = expression.steps[:covered]
    extract = _steps_taken(expression, top, steps)
    if covered == len(expression.steps) and not expression.rest:
        return extract
    return lambda root: expression.find_from(covered, extract(root))


def _plain_way(expression: Expression, top: _Branch, covered: int) -> str | None:
    """The attributes, joined by dots, that lead to the value of a path of nothing but keys."""
    steps = expression.steps
    if not covered or covered < len(steps) or expression.rest:
        return None
    if not all(isinstance(step, KeyStep) for step in steps):
        return None
    return ".".join(_attributes(top, steps)[0])


def _steps_taken(expression: Expression, top: _Branch, steps: Steps) -> Find:
    """What some steps find: keys, and at most one step into a list, with keys behind it."""
    keys = tuple(takewhile(lambda step: isinstance(step, KeyStep), steps))
    get, branch = _getter(top, keys)
    if len(keys) == len(steps):
        return _one(get)
    step, behind = steps[len(keys)], steps[len(keys) + 1 :]
    items = branch.items or _Branch()
    tail = _getter(items, behind)[0]
    if isinstance(step, ItemStep):
        return _at(expression, get, step.index, tail)
    if isinstance(step, FilterStep):
        key, ways = items.attribute(step.name), _attributes(items, behind)[0]
        both = attrgetter(key, ".".join(ways))
        return _where(get, attrgetter(key), step.text, tail, both)
    return _each(get, tail)


def _getter(branch: _Branch, keys: Steps) -> tuple[Get, _Branch]:
    """The value at the end of some keys, and the branch that stands there."""
    attributes, end = _attributes(branch, keys)
    return (attrgetter(".".join(attributes)) if attributes else _itself), end


def _attributes(branch: _Branch, keys: Steps) -> tuple[list[str], _Branch]:
    attributes: list[str] = []
    for step in keys:
        if isinstance(step, KeyStep):
            attributes.append(branch.attribute(step.name))
            branch = branch.keys[step.name]
    return attributes, branch


def _itself(value: Any) -> Any:
    return value


def _one(get: Get) -> Find:
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


def _at(expression: Expression, get: Get, index: int, tail: Get) -> Find:
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


def _each(get: Get, tail: Get) -> Find:
    def extract(root: Any) -> Values:
        items = _listed(get, root)
        try:
            return [value for value in map(tail, items) if value is not UNSET]
        except AttributeError:
            return _skipping_nulls(tail, items)

    return extract


def _where(get: Get, key: Get, text: str, tail: Get, both: Get) -> Find:
    """``both`` gives key and tail at once: for most objects there is one loop, and no call."""

    def extract(root: Any) -> Values:
        found: Values = []
        try:
            for held, value in map(both, get(root)):
                if held == text and value is not UNSET:
                    found.append(value)
        except (AttributeError, TypeError):  # a null on the way, or among the elements; no list
            items = [item for item in _listed(get, root) if item is not None]
            return _skipping_nulls(tail, [item for item in items if key(item) == text])
        return found

    return extract


def _skipping_nulls(tail: Get, items: Values) -> Values:
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
