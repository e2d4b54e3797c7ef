"""The type of a column: the one that is declared, or else the one that its values have.

A declared type does not depend on the objects: a value that does not fit it is null. Where nothing
is declared, all values decide together, and what is of several types becomes text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec

from dyninformer.discovery.unknown_paths import Schema
from dyninformer.jsonpath import JSONPath, index_text
from dyninformer.jsonpath.cells import moment_of
from dyninformer.jsonpath.comparisons import worth
from dyninformer.jsonpath.compiling import EachStep, KeyStep
from dyninformer.types import Values

Fields: TypeAlias = "tuple[tuple[str, Type], ...]"
Convert: TypeAlias = Callable[[Any], Any]

_INT64: Final = 1 << 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DEEPEST: Final = 32
_MOST_FIELDS: Final = 500  # of a struct, with those below: each is a column of its own in Arrow
_PLAIN_TIME: Final = len("2026-05-01T12:00:00Z")


class Kind(Enum):
    """What the values of a column are."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    JSON = "JSON"
    """Anything: objects whose fields nobody has declared, above all."""
    LIST = "list"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a column, or of what is within its values."""

    kind: Kind
    items: Type | None = None
    """Of a list's elements, or of a map's values."""
    fields: Fields = ()
    """Of a struct."""

    @property
    def nested(self) -> bool:
        """Its values have values."""
        return self.kind in _NESTED

    @property
    def size(self) -> int:
        """Of how many columns Arrow makes it."""
        below = 0 if self.items is None else self.items.size
        return 1 + below + sum(each.size for _, each in self.fields)


_NESTED: Final = frozenset({Kind.JSON, Kind.LIST, Kind.MAP, Kind.STRUCT})

TEXT: Final = Type(Kind.TEXT)
INTEGER: Final = Type(Kind.INTEGER)
NUMBER: Final = Type(Kind.NUMBER)
BOOLEAN: Final = Type(Kind.BOOLEAN)
TIME: Final = Type(Kind.TIME)
JSON: Final = Type(Kind.JSON)
TEXTS: Final = Type(Kind.MAP, TEXT)
"""Labels and annotations."""

OF_COLUMN: Final = {
    "string": TEXT,
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": BOOLEAN,
    "date": TIME,
}
"""The types of printer columns."""


def of_schema(schema: Any) -> Type:
    """The type that a schema declares; JSON for what it leaves open.

    >>> of_schema({"type": "array", "items": {"type": "integer"}}).items
    Type(kind=<Kind.INTEGER: 'integer'>, items=None, fields=())
    """
    found = _of_schema(schema, 0)
    return found if found.size <= _MOST_FIELDS else JSON


def _of_schema(schema: Any, depth: int) -> Type:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return JSON
    if schema.get("x-kubernetes-int-or-string"):
        return TEXT
    match schema.get("type"):
        case "string":
            return TIME if schema.get("format") == "date-time" else TEXT
        case "integer":
            return INTEGER
        case "number":
            return NUMBER
        case "boolean":
            return BOOLEAN
        case "array":
            return Type(Kind.LIST, _of_schema(schema.get("items"), depth + 1))
        case "object":
            return _of_object(schema, depth)
    return JSON


def _of_object(schema: Schema, depth: int) -> Type:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if schema.get("x-kubernetes-preserve-unknown-fields") or (properties and others):
        return JSON  # a struct would lose what it has not declared
    if isinstance(properties, dict) and properties:
        if len({name.lower() for name in properties}) < len(properties):
            return JSON  # SQL takes the one for the other
        fields = sorted(properties.items())
        return Type(
            Kind.STRUCT, fields=tuple((name, _of_schema(each, depth + 1)) for name, each in fields)
        )
    if isinstance(others, dict):
        return Type(Kind.MAP, _of_schema(others, depth + 1))
    return JSON


def of_path(path: JSONPath, schema: Any) -> Type | None:
    """The type of what a path finds, as the schema of the object declares it; None if it does not.

    >>> replicas = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    >>> schema = {"type": "object", "properties": {"spec": replicas}}
    >>> of_path(JSONPath(".spec.replicas"), schema).kind
    <Kind.INTEGER: 'integer'>
    """
    parsed = path.parsed
    if parsed.rest or not parsed.steps:
        return None
    place = schema
    for step in parsed.steps:
        if not isinstance(place, dict):
            return None
        if isinstance(step, KeyStep):
            properties = place.get("properties")
            below = properties.get(step.name) if isinstance(properties, dict) else None
            place = place.get("additionalProperties") if below is None else below
        else:
            place = place.get("items")
            if isinstance(step, EachStep) and not isinstance(place, dict):
                return None
    if not isinstance(place, dict) or not place:
        return None
    found = of_schema(place)
    return Type(Kind.LIST, found) if parsed.several else found


def of_values(values: Iterable[Any], *, several: bool = False) -> Type:
    """The type of values of which nothing is declared; of ``several`` each is a list of them.

    >>> of_values([1, None, 2.5]).kind, of_values([1, "a"]).kind
    (<Kind.NUMBER: 'number'>, <Kind.TEXT: 'text'>)
    """
    if several:
        lists = (value for value in values if isinstance(value, list))
        return Type(Kind.LIST, of_values(chain.from_iterable(lists)))
    held = list(values)
    kinds = set(map(type, held)) - {type(None)}
    if kinds & {dict, list}:
        return JSON
    if kinds == {bool}:
        return BOOLEAN
    if kinds == {int}:
        fits = all(-_INT64 <= each < _INT64 for each in held if each is not None)
        return INTEGER if fits else NUMBER
    return NUMBER if kinds and kinds <= {int, float} else TEXT


def fitted(type: Type, values: Sequence[Any]) -> Values:
    """The values as their type wants them: None for what does not fit.

    A time is a `datetime`, JSON its text, a map its pairs, a struct the list of its fields' values.
    """
    if type.kind is Kind.TEXT and set(map(_type_of, values)) <= _TEXT_OR_NONE:
        return list(values)
    convert = _CONVERT.get(type.kind)
    if convert is not None:
        return [None if value is None else convert(value) for value in values]
    return [_nested(type, value) for value in values]


def _nested(type: Type, value: Any) -> Any:
    if type.kind is Kind.LIST and type.items is not None and isinstance(value, list):
        return fitted(type.items, value)
    if isinstance(value, dict):
        if type.kind is Kind.STRUCT:
            return [fitted(below, [value.get(name)])[0] for name, below in type.fields]
        if type.kind is Kind.MAP and type.items is not None:
            return list(zip(value, fitted(type.items, list(value.values())), strict=True))
    return None


def microseconds(moment: datetime) -> int:
    """Since 1970, as Arrow and pandas count them."""
    return (moment - _EPOCH) // _MICROSECOND


def quantity(value: Any) -> float | None:
    """What a quantity is worth; None for what is none.

    >>> quantity("500m"), quantity("1Ki"), quantity(3), quantity("much")
    (0.5, 1024.0, 3.0, None)
    """
    if isinstance(value, str):
        found = worth(value)
        return None if found is None else float(found)
    return _number(value)


def text(value: Any) -> str | None:
    """A value as text: as it is looked up by in an index."""
    return value if isinstance(value, str) else index_text(value)


def json_text(value: Any) -> str:
    """Compact JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except OverflowError:  # a number past 64 bits
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64
    return value if fits else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    if len(value) == _PLAIN_TIME and value[4::3] == "--T::Z" and value[11:13] != "24":
        # Others of that length ISO 8601 knows as well, and from Python 3.14 on the hour 24.
        try:
            return datetime.fromisoformat(value)  # a tenth of what the other way takes
        except ValueError:
            return None
    return moment_of(value)


_type_of = type
_TEXT_OR_NONE: Final = frozenset({str, type(None)})
_CONVERT: Final[dict[Kind, Convert]] = {
    Kind.TEXT: text,
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.TIME: _time,
    Kind.JSON: json_text,
}
