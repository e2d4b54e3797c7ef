"""Which columns somebody asks for, of which objects, and the table that comes of it.

A table has one list of values for each column, as JSON has them. Rows are made of it as it is;
pandas' frames and Arrow get the values in the column's one type (`types`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypedDict, Unpack, overload

from dyninformer.checked import checked_mapping, checked_texts, wrong
from dyninformer.discovery import PrinterColumn
from dyninformer.discovery.known import Known
from dyninformer.discovery.unknown_paths import whole_schema
from dyninformer.errors import JSONPathError
from dyninformer.frames import types
from dyninformer.frames.types import Type
from dyninformer.jsonpath import JSONPath, Projection
from dyninformer.jsonpath.cells import check_column
from dyninformer.jsonpath.printing import print_value
from dyninformer.jsonpath.writing import Way
from dyninformer.options import IndexValue, check_known
from dyninformer.shown import Shown
from dyninformer.store.codec import Codec, Entry
from dyninformer.store.collector import made_at_once
from dyninformer.store.matching import entries_of, wanted
from dyninformer.store.snapshot import Columns, Row, Selector, View
from dyninformer.types import Key, Values

if TYPE_CHECKING:
    import pandas

Labels: TypeAlias = str | Sequence[str] | Mapping[str, str]
Several: TypeAlias = str | Sequence[str]
Index: TypeAlias = tuple[str, IndexValue]
"""The name of an index, and what to look up in it."""
Take: TypeAlias = Callable[[Values], Any]
Rank: TypeAlias = tuple[int, float, str]
ColumnList: TypeAlias = "list[Column]"
KeyList: TypeAlias = list[Key]

NAMESPACE, NAME = "namespace", "name"
_TAKEN: Final = "_column"
"""Behind the name of a column that is another's already, and that nobody has chosen."""
_SHOWN: Final = 20  # rows in a repr
_AT_ONCE: Final = 2000  # objects
_FEW: Final = 1000  # texts of a column

_COLUMNS: Final = "a mapping from names to paths, such as {'issuer': '.spec.issuerRef.name'}"
_LABELS: Final = "labels, such as ['app', 'tier'], or a mapping from names to labels"
_QUANTITIES: Final = "names of columns whose values are quantities, such as ['cpu', 'memory']"
_SORT_BY: Final = "a column or a path, or several; the greatest first with a minus: '-created'"


class Column(NamedTuple):
    """One column: its name, where its values are found, and of which type they are."""

    name: str
    path: JSONPath | None
    """None: nothing can be found, since the CRD's path cannot be read."""
    type: Type | None = None
    """None: the values decide."""
    take: Take | None = None
    """Makes the value of what was found; None is the first, or all if the path asks for several."""

    def values(self, found: Iterable[Values]) -> Values:
        """The value of each object, from what the path found in it."""
        if self.take is not None:
            return list(map(self.take, found))
        if self.path is not None and self.path.parsed.several:
            return list(found)
        return [values[0] if values else None for values in found]


class SelectOptions(TypedDict, total=False):
    """What `GenericLister.select` and ``to_frame`` take by name, for type checkers.

    So can a function of yours.

    >>> from typing import Unpack
    >>> from dyninformer import GenericLister, SelectOptions, open_informer
    >>> from dyninformer.testing import ApiServer
    >>> def phases(lister: GenericLister, **options: Unpack[SelectOptions]) -> list:
    ...     return [row["phase"] for row in lister.select({"phase": ".status.phase"}, **options)]
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     phases(namespaces.lister, field_selector="metadata.name=default")
    ['Active']
    """

    selector: Selector | None
    """By labels, as `GenericLister.list`: ``"app=shop,tier in (web,api)"``, or a mapping."""
    field_selector: Selector | None
    """By any field, evaluated here: ``"spec.issuerRef.name=ca"``, or a mapping."""
    index: Index | None
    """An index and what to look up in it: ``("by-node", "n1")``."""
    sort_by: Several | None
    """A column or a path, or several, with a minus for the greatest first; what has no value comes
    last."""
    labels: Labels | None
    """Labels that become columns: ``["app", "tier"]``, or a mapping from names to labels."""
    quantity: Several | None
    """Columns whose values are quantities: of ``"500m"`` and ``"1Gi"`` they make numbers."""


class LiveOptions(TypedDict, total=False):
    """What ``live`` and ``live_widget`` take by name, for type checkers.

    So can a function of yours.

    >>> from typing import Unpack
    >>> from dyninformer import LiveOptions, OpenInformer, open_informer
    >>> from dyninformer.testing import ApiServer
    >>> def phases(opened: OpenInformer, **options: Unpack[LiveOptions]) -> object:
    ...     return opened.live({"phase": ".status.phase"}, **options)
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     print(phases(namespaces, field_selector="metadata.name=default"))
    namespaces.v1: 1 object, live
    NAME      PHASE
    default   Active
    """

    by: Several | None
    """A path, or several: the objects are counted by what these find."""
    selector: Selector | None
    """By labels, as `GenericLister.list`: ``"app=shop,tier in (web,api)"``, or a mapping."""
    field_selector: Selector | None
    """By any field, evaluated here: ``"spec.issuerRef.name=ca"``, or a mapping."""
    sort_by: str | None
    """A column, the greatest first with a minus: ``"-age"``."""
    name: str | None
    """One of the same name takes the place of the one before."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which objects, in which order, with which columns; None is all of them, or what is usual.

    Not for import.
    """

    columns: Columns | None = None
    selector: Selector | None = None
    field_selector: Selector | None = None
    sort_by: Several | None = None
    labels: Labels | None = None
    quantity: Several | None = None
    index: Index | None = None

    @classmethod
    def of(cls, columns: Columns | None, **options: Unpack[SelectOptions]) -> Choice:
        """As it is asked for; TypeError names an option that does not exist."""
        check_known("a table", options, SelectOptions.__annotations__)
        return cls(columns, **options)


EVERYTHING: Final = Choice()


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with the keys of their rows; immutable."""

    columns: Sequence[Column]
    values: Sequence[Values]
    """Of each column one list, as JSON has the values."""
    keys: Sequence[Key]

    def rows(self) -> Rows:
        """One dict for each object."""
        return Rows(self)

    def types(self) -> list[Type]:
        """The type of each column."""
        return [
            _type(column, values) for column, values in zip(self.columns, self.values, strict=True)
        ]

    def frame(self) -> pandas.DataFrame:
        """As pandas has it, with the keys for its index."""
        from dyninformer.frames import pandas_frames  # noqa: PLC0415 - few need it

        names = [column.name for column in self.columns]
        return pandas_frames.frame(names, self.types(), self.values, self.keys)

    def stream(self) -> object:
        """As Arrow has it: a PyCapsule of a C stream."""
        from dyninformer.frames import arrow  # noqa: PLC0415 - few need it

        names = [column.name for column in self.columns]
        return arrow.stream(names, self.types(), self.values)

    def schema(self) -> object:
        """The schema of that stream: a PyCapsule, too."""
        from dyninformer.frames import arrow  # noqa: PLC0415 - few need it

        return arrow.schema([column.name for column in self.columns], self.types())


class Rows(Shown):
    """What ``select`` gives: a dict for each object, which Arrow's readers read as a table.

    A row is made when it is looked at, and is the caller's own. It equals a list of the same rows,
    and does what a sequence does. It is neither by its type: of lists DuckDB does not ask for
    Arrow, and of any ``Sequence`` polars does not, but guesses types from the first rows.

    Not for import.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._names = [column.name for column in table.columns]

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        return {
            name: values[at] for name, values in zip(self._names, self.table.values, strict=True)
        }

    def __iter__(self) -> Iterator[Row]:
        names = self._names
        for each in zip(*self.table.values, strict=True):
            yield dict(zip(names, each, strict=True))

    def __len__(self) -> int:
        return len(self.table.keys)

    def index(self, row: Row) -> int:
        """Where the first row is that equals this one; ValueError if there is none."""
        return list(self).index(row)

    def count(self, row: Row) -> int:
        """How many rows equal this one."""
        return list(self).count(row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Rows):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # its values may be lists

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for polars, DuckDB, pyarrow and others."""
        del requested_schema  # a request, which need not be met
        return self.table.stream()

    def __arrow_c_schema__(self) -> object:
        """The schema of that stream."""
        return self.table.schema()

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:_SHOWN]))
        more = f", ... {len(self):,} rows" if len(self) > _SHOWN else ""
        return f"[{shown}{more}]"


def tabled(
    view: View,
    known: Known,
    choice: Choice = EVERYTHING,
    chosen: Mapping[Key, Entry] | None = None,
) -> Table:
    """The table of a moment. ``chosen`` is what the choice's selectors match, where it is known.

    Then the view may be a part of the moment.
    """
    columns = asked_for(known, choice, namespaced=is_namespaced(view, known))
    if choice == EVERYTHING:
        return table_of(view, columns)
    order = order_of(choice.sort_by, columns)
    entries = chosen
    if entries is None:
        entries = entries_of(view, choice.selector, choice.field_selector)
    keys = list(entries)
    hidden = [column for _, column, _ in order if column not in columns]
    found = gathered([*columns, *hidden], keys, list(entries.values()), view.codec)
    if order:
        places = places_in(order, [*columns, *hidden], found)
        keys = [keys[at] for at in places]
        found = [[values[at] for at in places] for values in found[: len(columns)]]
    return Table(columns, found, keys)


def chosen_paths(choice: Choice, columns: Sequence[Column]) -> list[str | JSONPath]:
    """Return the paths that a caller has written: of columns, of what to sort by, of fields."""
    names = {column.name for column in columns}
    sorts = () if choice.sort_by is None else checked_texts("sort_by", choice.sort_by, _SORT_BY)
    return [
        *(choice.columns or {}).values(),
        *(text.removeprefix("-") for text in sorts if names.isdisjoint((text, text[1:]))),
        *wanted(None, choice.field_selector).field_paths,
    ]


def table_of(view: View, columns: Sequence[Column]) -> Table:
    """These columns of all objects of a moment."""
    keys, entries = view.keys(), [entry for _, entry in view.items()]
    return Table(columns, gathered(list(columns), keys, entries, view.codec), keys)


def stream_schema(view: View, known: Known) -> object:
    """The schema of the stream of all columns that are usual, as a PyCapsule."""
    from dyninformer.frames import arrow  # noqa: PLC0415 - few need it

    columns = asked_for(known, EVERYTHING, namespaced=is_namespaced(view, known))
    return arrow.schema([each.name for each in columns], [_type(each, []) for each in columns])


def asked_for(known: Known, choice: Choice, *, namespaced: bool) -> ColumnList:
    """The columns of a choice, behind namespace and name."""
    columns = {each.name: each for each in identity(namespaced)}
    schema = whole_schema(known.schema())
    if choice.columns is None:
        for each in printer_columns(known, wide=False):
            name = free(each.name, columns.__contains__)
            columns[name] = each._replace(name=name)
    else:
        checked_mapping("columns", choice.columns, _COLUMNS)
        declared = _types_of_printer_columns(known)
        for name, path in choice.columns.items():
            columns[name] = _chosen(name, path, schema, declared)
    for name, label in _labels(choice.labels, columns).items():
        columns[name] = Column(name, _label_path(label), types.TEXT)
    for name in _quantities(choice.quantity, columns):
        columns[name] = _as_quantity(columns[name])
    return list(columns.values())


def is_namespaced(view: View, known: Known) -> bool:
    """Whether there is a column for it; so if nothing is held that tells, and nobody knows."""
    first = next(iter(view.items()), None)
    return known.namespaced() is not False if first is None else "/" in first[0]


def printer_columns(known: Known, *, wide: bool) -> ColumnList:
    """The columns that kubectl shows, with what it shows, except that dates are times."""
    return [_printer_column(each) for each in known.columns() if wide or each.priority == 0]


def gathered(
    columns: ColumnList, keys: KeyList, entries: Sequence[Entry], codec: Codec
) -> list[Values]:
    """The values of each column, by one decode of each object; one is unpacked at a time."""
    places = [column for column in columns if column.path is not None and not _is_text(column)]
    projection = Projection([column.path for column in places if column.path is not None])
    by_column: dict[int, Values] = {id(column): [] for column in places}
    # Texts that a column has again and again, as long as those are few, are one text for all.
    again: dict[int, dict[str, str]] = {id(column): {} for column in places}

    def gather() -> None:
        # In parts: what was found is a list for each value, which need not all be there at once.
        for start in range(0, len(entries) if places else 0, _AT_ONCE):
            part = map(codec.plain, entries[start : start + _AT_ONCE])
            found = zip(*map(projection.rows, part), strict=True)
            for column, groups in zip(places, found, strict=True):
                values = column.values(groups)
                once = again.get(id(column))
                if once is not None:
                    values = [
                        once.setdefault(each, each) if type(each) is str else each
                        for each in values
                    ]
                    if len(once) > _FEW:
                        del again[id(column)]
                by_column[id(column)] += values

    made_at_once(gather)
    for column in columns:
        if column.path is not None and id(column) not in by_column:
            path, take = column.path, column.take
            texts = [_template_text(path, codec.plain(each)) for each in entries]
            by_column[id(column)] = texts if take is None else [take([each]) for each in texts]
    return [_values(column, keys, by_column.get(id(column))) for column in columns]


def _values(column: Column, keys: KeyList, found: Values | None) -> Values:
    if found is not None:
        return found
    if column is _NAMESPACE:
        once: dict[str, str] = {}  # as many texts as there are namespaces, not as there are keys
        return [once.setdefault(name, name) for name in (key.rpartition("/")[0] for key in keys)]
    if column is _NAME:
        return [key.rpartition("/")[2] for key in keys]
    return [None] * len(keys)


_NAMESPACE: Final = Column(NAMESPACE, None, types.TEXT)
_NAME: Final = Column(NAME, None, types.TEXT)


def identity(namespaced: bool) -> ColumnList:
    """The columns that tell objects apart."""
    return [_NAMESPACE, _NAME] if namespaced else [_NAME]


def _chosen(
    name: str, given: str | JSONPath, schema: Any, declared: Mapping[object, Type]
) -> Column:
    path = given if isinstance(given, JSONPath) else JSONPath(given)
    if path.parsed.parts > 1:
        return Column(name, path, types.TEXT)
    found = types.of_path(path, schema)
    if not path.parsed.several:
        by_column = declared.get(_place(path))
        if found is None or (found == types.TEXT and by_column is types.TIME):
            found = by_column or found
    return Column(name, path, found)


def _is_text(column: Column) -> bool:
    """It is a template of several parts, which makes one text of an object."""
    return column.path is not None and column.path.parsed.parts > 1


def _template_text(path: JSONPath, plain: bytes) -> str | None:
    try:
        return path.text(plain)
    except JSONPathError:
        return None


def _place(path: JSONPath) -> object:
    """Equal for two spellings of one plain path."""
    parsed = path.parsed
    return parsed.steps if parsed.steps and not parsed.rest else path


def _types_of_printer_columns(known: Known) -> dict[object, Type]:
    """By their paths. A column of text says nothing: anything can be shown as text."""
    found: dict[object, Type] = {}
    for each in known.columns():
        column = _printer_column(each)
        if column.path is not None and column.type is not types.TEXT and column.type is not None:
            found[_place(column.path)] = column.type
    return found


def _printer_column(column: PrinterColumn) -> Column:
    kind = types.OF_COLUMN.get(column.type, types.TEXT)
    try:
        check_column(column.path)
        path = JSONPath.column(column.path)
    except JSONPathError:
        return Column(column.name, None, kind)  # the API server leaves it empty, too
    return Column(column.name, path, kind, _first_text if kind is types.TEXT else _first)


def _first(found: Values) -> Any:
    return found[0] if found else None


def _first_text(found: Values) -> str | None:
    """As kubectl shows it."""
    if not found:
        return None
    value = found[0]
    if value is None or isinstance(value, str):
        return value
    try:
        return print_value(value)
    except JSONPathError:  # it is nested too deep
        return None


def free(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name, or one made of it that no column has."""
    while is_taken(name):
        name += _TAKEN
    return name


def _labels(given: Labels | None, taken: Container[str]) -> Mapping[str, str]:
    """Labels by the names of their columns: which somebody said, or else the free ones."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        found = checked_mapping("labels", given, _LABELS)
        for each in found.values():
            if not isinstance(each, str):
                raise wrong("a label", each, "its key, such as 'app.kubernetes.io/name'")
        return found
    named: dict[str, str] = {}
    for each in dict.fromkeys(checked_texts("labels", given, _LABELS)):
        named[free(each, lambda name: name in taken or name in named)] = each
    return named


def _label_path(label: str) -> JSONPath:
    return JSONPath(str(Way().to("metadata").to("labels").to(label)))


def _quantities(given: Several | None, columns: Mapping[str, Column]) -> tuple[str, ...]:
    names = () if given is None else checked_texts("quantity", given, _QUANTITIES)
    for name in names:
        if name not in columns:
            known = ", ".join(columns)
            raise ValueError(f"quantity names {name!r}, which is no column: there are {known}")
    return names


def _as_quantity(column: Column) -> Column:
    path = column.path
    several = column.take is None and path is not None and path.parsed.several
    several = several and not _is_text(column)

    def worth(found: Values) -> Any:
        worths = [types.quantity(each) for each in found]
        return worths if several else _first(worths)

    made = Type(types.Kind.LIST, types.NUMBER) if several else types.NUMBER
    return column._replace(type=made, take=worth)


def _type(column: Column, values: Values) -> Type:
    if column.type is not None:
        return column.type
    several = column.path is not None and column.path.parsed.several and column.take is None
    return types.of_values(values, several=several)


# -- order -------------------------------------------------------------------------------


class _Order(NamedTuple):
    greatest_first: bool
    column: Column
    name: str


def order_of(given: Several | None, columns: ColumnList) -> list[_Order]:
    """What to sort by, the first of them before the others."""
    if given is None:
        return []
    known = {column.name: column for column in columns}
    orders = []
    for text in checked_texts("sort_by", given, _SORT_BY):
        name = text.removeprefix("-") if text not in known else text
        column = known.get(name)
        if column is None:
            column = Column(name, JSONPath(name))
        orders.append(_Order(name != text, column, name))
    return orders


def places_in(orders: Sequence[_Order], columns: ColumnList, found: Sequence[Values]) -> list[int]:
    """The places of the rows in their new order; rows that are equal stay in theirs."""
    places = list(range(len(found[0])))
    for order in reversed(orders):
        ranks = _ranks(order.column, found[columns.index(order.column)])
        there = [at for at in places if ranks[at] is not None]
        there.sort(key=lambda at: ranks[at] or _LEAST, reverse=order.greatest_first)
        places = there + [at for at in places if ranks[at] is None]
    return places


_LEAST: Final[Rank] = (0, 0.0, "")


def _ranks(column: Column, values: Values) -> Sequence[Rank | None]:
    if column.type != types.TIME:
        return list(map(_rank, values))
    # As texts, times of other zones, or with fractions, would be in another order.
    moments = types.fitted(types.TIME, values)
    return [None if each is None else (1, types.microseconds(each), "") for each in moments]


def _rank(value: Any) -> Rank | None:
    """Numbers, then texts; what is not there comes last, whatever the order."""
    if value is None or value == []:
        return None
    if isinstance(value, bool | int | float):
        return (1, value, "")  # a whole number as it is: a float is exact up to 2**53
    return (2, 0.0, value if isinstance(value, str) else types.json_text(value))
