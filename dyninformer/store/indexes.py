"""Index functions, and the indexes they fill: name -> value -> keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count, islice
from struct import Struct
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias

from dyninformer.jsonpath import JSONPath, PathIndex
from dyninformer.jsonpath.indexing import index_text
from dyninformer.jsonpath.writing import Way
from dyninformer.options import IndexFunction
from dyninformer.store.codec import (
    HEAD_READER,
    NO_STAMP,
    Head,
    IndexRow,
    PartialReader,
    Stamp,
    Values,
    read,
)
from dyninformer.threads import is_interrupt
from dyninformer.types import Key, Keys, Object, Texts

IndexList: TypeAlias = list["Index"]
Holders: TypeAlias = list[Collection[Key]]

NAMESPACE: Final = "namespace"
"""The index that is always there. It needs no sets of keys: entries are kept by namespace."""

_VALUE_BYTES = 160  # of a text without its characters, and its place in a table
_FEW = 8
_DIGITS = 19  # a number of so many fits into 64 bits

_stamp = Struct(">qQ").pack
_serial = count()


class Asked(NamedTuple):
    """A label, or a field, that selectors look at; the name of its index, if it has one (S43).

    No index of a user's has such a name: theirs are texts.
    """

    label: bool
    name: str
    """The label's key, or the field's path without a dot in front."""

    @property
    def path(self) -> str:
        """Where its value is, in kubectl's dialect."""
        if self.label:
            return str(Way().to("metadata").to("labels").to(self.name))
        return f".{self.name}"

    def __str__(self) -> str:
        return f"{'label' if self.label else 'field'} {self.name}"


IndexName: TypeAlias = str | Asked
FunctionsByName: TypeAlias = (
    Mapping[str, IndexFunction] | Mapping[Asked, IndexFunction] | Mapping[IndexName, IndexFunction]
)


class AskedIndex(PathIndex):
    """The index function of a label or a field. A label is a text, or it is none."""

    __slots__ = ("_label",)

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.path)
        self._label = asked.label

    def values_of(self, rows: list[list[Any]]) -> Texts:
        """The index values, from what the path found."""
        if self._label:
            return [value for value in rows[0] if type(value) is str]
        return super().values_of(rows)


def namespace_index(obj: Object) -> Texts:
    """The function of the index ``namespace``; "" for a cluster-scoped object."""
    return [obj.get("metadata", {}).get("namespace", "")]


class Index:
    """The keys under each value. A writer holds the store's lock, or is the only one to know it.

    A value's one key is kept as it is, a few as a tuple, more as a dict without values: there
    is nothing in it for the garbage collector to walk through, key by key.

    ``remembers``: the values of each key are kept as well, because what the index function says
    of an object cannot be relied upon to be the same again.
    """

    __slots__ = ("_many", "_one", "_values", "complete")

    def __init__(self, remembers: bool) -> None:
        self._one: dict[str, Key] = {}
        self._many: dict[str, tuple[Key, ...] | dict[Key, None]] = {}
        self._values: dict[Key, Values] | None = {} if remembers else None
        self.complete = True
        """Every key is under its old values when it is moved. Not so while the index is built."""

    def enter(self, keys: Sequence[Key], column: Sequence[Values]) -> None:
        """Put keys that are under nothing under their values, in the same place of the column."""
        if self._values is not None:
            self._values.update(
                (key, values) for key, values in zip(keys, column, strict=True) if values
            )
        many_of, only = self._many.get, self._one.setdefault
        for key, values in zip(keys, column, strict=True):
            for value in values:
                many = many_of(value)
                if type(many) is dict:  # the usual one of many keys, without a call
                    many[key] = None
                elif many is not None or only(value, key) is not key:
                    self._insert(value, key)

    def replace(self, key: Key, old: Values, new: Values) -> None:
        """Move a key from its old values to its new ones."""
        if self._values is not None:
            old = self._values.pop(key, ())
            if new:
                self._values[key] = new
        elif not self.complete:
            for value in old:
                self._discard(value, key)
            old = ()
        if old == new:
            return
        for value in old:
            if value not in new:
                self._discard(value, key)
        for value in new:
            if value not in old:
                self._insert(value, key)

    def _insert(self, value: str, key: Key) -> None:
        many = self._many.get(value)
        if many is None:
            only = self._one.setdefault(value, key)
            if only != key:
                del self._one[value]
                self._many[value] = (only, key)
        elif isinstance(many, dict):
            many[key] = None
        elif key not in many:
            keys = (*many, key)
            self._many[value] = keys if len(keys) <= _FEW else dict.fromkeys(keys)

    def _discard(self, value: str, key: Key) -> None:
        many = self._many.get(value)
        if many is None:
            if self._one.get(value) == key:
                del self._one[value]
            return
        if isinstance(many, dict):
            many.pop(key, None)
            if len(many) > 1:
                return
            rest = tuple(many)
        else:
            rest = tuple(each for each in many if each != key)
        if len(rest) > 1:
            self._many[value] = rest
        else:
            del self._many[value]
            if rest:
                self._one[value] = rest[0]

    def absorb(self, other: Index) -> None:
        """Take over another index of the same function, of other keys. It is not used again."""
        if self._values is not None:
            self._values.update(other._values or {})
        if not self._one and not self._many:
            self._one, self._many = other._one, other._many
            return
        for value, key in other._one.items():
            self._insert(value, key)
        for value, keys in other._many.items():
            held = self._many.get(value)
            if held is None and value not in self._one:
                self._many[value] = keys
            elif isinstance(held, dict):
                held.update(dict.fromkeys(keys))
            else:
                for key in keys:
                    self._insert(value, key)

    def keys(self, value: str) -> Keys:
        """The keys under a value, in the order in which they came there."""
        only = self._one.get(value)
        return [only] if only is not None else list(self._many.get(value, ()))

    def count(self, value: str) -> int:
        """How many keys are under a value."""
        return 1 if value in self._one else len(self._many.get(value, ()))

    def among(self, keys: Keys, values: Iterable[str], *, under: bool) -> Keys:
        """Of these keys those under one of the values, or those under none of them."""
        holders: Holders = [
            self._many.get(value, ()) or (self._one[value],)
            for value in values
            if value in self._many or value in self._one
        ]
        if len(holders) == 1:
            holder = holders[0]
            return [key for key in keys if (key in holder) is under]
        return [key for key in keys if any(key in each for each in holders) is under]

    def count_all(self) -> int:
        """How many keys there are, each once for every value that it is under."""
        return len(self._one) + sum(map(len, self._many.values()))

    def all_keys(self) -> Keys:
        """The keys under any value."""
        return [*self._one.values(), *(key for keys in self._many.values() for key in keys)]

    def contents(self) -> tuple[Texts, Holders]:
        """Its values, and what holds the keys of those that have several: to be measured."""
        return self.values(), [*self._many.values()]

    def sizes(self, count: int) -> tuple[int, dict[str, int]]:
        """How many values have a key, and of the first so many how many keys each has."""
        found = {value: len(self._many[value]) for value in islice(self._many, count)}
        found.update(dict.fromkeys(islice(self._one, count - len(found)), 1))
        return len(self._one) + len(self._many), found

    def values(self) -> Texts:
        """Each value that has a key."""
        return [*self._one, *self._many]


def held_bytes(values: Texts, holders: Holders) -> int:
    """About how many bytes an index of such contents takes; its keys are the store's.

    It may be measured while the index changes.
    """
    return sum(map(getsizeof, holders)) + sum(map(len, values)) + _VALUE_BYTES * len(values)


class IndexFunctions:
    """The index functions of a store; immutable, for any thread. `NAMESPACE` is none of them.

    An `IndexRow` has a place for each function, in their order.
    """

    def __init__(
        self,
        functions: FunctionsByName,
        failed: Callable[[IndexName, BaseException], None],
    ) -> None:
        """``failed`` is told the index and the error where a function raises (S18)."""
        self.by_name: dict[IndexName, IndexFunction] = {**functions}  # type: ignore[dict-item]
        self._failed = failed
        self._calls: list[tuple[int, IndexName, Callable[[Object], Iterable[str]]]] = []
        paths: list[PathIndex] = []
        for at, (name, given) in enumerate(self.by_name.items()):
            function = as_function(given)
            if isinstance(function, PathIndex):
                paths.append(function)
            else:
                self._calls.append((at, name, function))
        self._reader = PartialReader(paths) if paths else HEAD_READER
        self.read: Callable[[bytes], tuple[Head, IndexRow]] = (
            self._read_and_spread if self._calls else self._reader.read
        )
        """The head and the row of an object that may yet be malformed; functions not called.

        Their places are empty, for `call` to fill: what they said of an object that is held
        their indexes remember. Raises JSONPathError for what is no JSON or nested too deep.
        """
        self.read_accepted: Callable[[bytes], tuple[Head, IndexRow]] = (
            self._read_accepted_and_spread if self._calls else self._reader.read_accepted
        )
        """The same for an object that was accepted before: it can always be read."""
        self.only_paths = not self._calls
        """All functions are paths: the values follow from the object alone."""
        self.no_values: IndexRow = [()] * len(self.by_name)
        """The row of an object that is not there."""
        self._number = next(_serial)  # the same row of other functions has another stamp

    def stamp(self, uid: str, version: str, row: IndexRow) -> Stamp:
        """What is packed with an object of this row, for its next update to be compared with.

        Of two uids or rows that differ the hashes are the same once in 2**64. A row that functions
        have made is not relied upon to be made again; neither is an opaque version a number.
        """
        known = version.isascii() and version.isdigit() and len(version) <= _DIGITS
        if not known or not self.only_paths:
            return NO_STAMP
        return _stamp(hash((self._number, uid, *row)), int(version))

    def new_indexes(self, names: Iterable[IndexName] | None = None) -> IndexList:
        """An empty index for each function, or each of those named, in the order of the rows."""
        return [
            Index(remembers=not isinstance(as_function(given), PathIndex))
            for name, given in self.by_name.items()
            if names is None or name in names
        ]

    def call(self, data: bytes, row: IndexRow) -> IndexRow:
        """The row with the values that functions give for an accepted object."""
        for at, name, function in self._calls:
            try:
                # Each gets an object of its own: it may keep or change it.
                row[at] = _checked(function(read(data)))
            except BaseException as error:  # a user's function may raise anything
                if is_interrupt(error):
                    raise
                self._failed(name, error)
        return row

    def row_of(self, data: bytes) -> IndexRow:
        """All index values of an accepted object."""
        return self.call(data, self.read_accepted(data)[1])

    def _read_and_spread(self, data: bytes) -> tuple[Head, IndexRow]:
        head, row = self._reader.read(data)
        return head, self._spread(row)

    def _read_accepted_and_spread(self, data: bytes) -> tuple[Head, IndexRow]:
        head, row = self._reader.read_accepted(data)
        return head, self._spread(row)

    def _spread(self, row: IndexRow) -> IndexRow:
        """The row with an empty place for each function that is to be called."""
        for at, _, _ in self._calls:
            row.insert(at, ())
        return row


def enter_rows(indexes: Iterable[Index], keys: Sequence[Key], rows: Iterable[IndexRow]) -> None:
    """Enter keys in all indexes, each with its row."""
    if keys:
        for index, column in zip(indexes, zip(*rows, strict=True), strict=True):
            index.enter(keys, column)


def as_function(given: IndexFunction | JSONPath) -> PathIndex | Callable[[Object], Iterable[str]]:
    """An index function, as it was given or made of the path that was given."""
    if isinstance(given, str | JSONPath):
        return PathIndex(given)
    if not callable(given):
        raise TypeError(
            f"{given!r} is no index function: give a path, or a function from an object to the "
            "texts it is found under"
        )
    return given


def same_function(left: IndexFunction, right: IndexFunction) -> bool:
    """Paths are the same by their text, functions by identity."""
    first, second = as_function(left), as_function(right)
    return first == second if isinstance(first, PathIndex) else first is second


def index_value(name: str, given: IndexFunction, sought: object) -> str:
    """The text to look for: the parts of a compound index, joined. TypeError says what fits.

    >>> from dyninformer import compound
    >>> index_value("place", compound(".metadata.namespace", ".spec.node"), ("prod", "a/b"))
    'prod/a~1b'
    """
    if isinstance(sought, str):
        return str(sought)
    function = as_function(given)
    if not isinstance(sought, tuple):
        text = index_text(sought) if isinstance(sought, int | float) else None
        instead = "give text" if text is None else f"give {text!r}"
        raise TypeError(f"what is looked for in index {name!r} is {sought!r}: {instead}")
    if not isinstance(function, PathIndex) or len(function.paths) != len(sought):
        parts = len(function.paths) if isinstance(function, PathIndex) else 1
        wanted = "one text" if parts == 1 else f"a tuple of {parts}, one for each of its paths"
        raise TypeError(f"what is looked for in index {name!r} is {sought!r}: give {wanted}")
    if not all(isinstance(part, str) for part in sought):
        raise TypeError(
            f"what is looked for in index {name!r} is {sought!r}: each part of it must be text"
        )
    return function.key(*sought)


def _checked(values: Iterable[str]) -> Values:
    """Each value once."""
    if isinstance(values, str):
        raise TypeError("it returned one text: an index function returns a list of texts")
    texts = tuple(dict.fromkeys(values))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("it returned something other than texts")
    return texts
