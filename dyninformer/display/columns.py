"""Which columns a resource has, and the cells that an object has in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dyninformer.discovery import PrinterColumn
from dyninformer.discovery.known import AGE, BUILTIN_COLUMNS
from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.cells import cell, check_column, custom_column
from dyninformer.jsonpath.text import outside_brackets
from dyninformer.resource import GroupVersionResource
from dyninformer.types import Object

Cell: TypeAlias = Callable[[Object], str]

NOTHING: Final = "<none>"
"""What kubectl shows where a path finds nothing."""
_LONGEST_AGE: Final = "2y364d"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and how a cell below it is made."""

    heading: str
    cell: Cell
    widest: str = ""
    """As wide as its cells may become by and by."""


Columns: TypeAlias = list[Column]


def widest_row(columns: Iterable[Column]) -> list[str]:
    """What the cells of any object may become by themselves, as an age does."""
    return [column.widest for column in columns]


def row(columns: Iterable[Column], obj: Object) -> list[str]:
    """The cells of one object."""
    return [column.cell(obj) for column in columns]


def table_columns(
    gvr: GroupVersionResource,
    declared: Sequence[PrinterColumn],
    *,
    wide: bool = False,
    with_namespace: bool = False,
    ages: bool = True,
) -> Columns:
    """The columns in which kubectl would show the resource: its own, else name and age.

    ``declared`` are the CRD's. ``wide`` adds those of lower priority. Without ``ages`` a date is
    the time itself, for programs.
    """
    own = declared or BUILTIN_COLUMNS.get(gvr.group_resource) or (AGE,)
    named = [Column("name", _name)]
    if with_namespace:
        named.insert(0, Column("namespace", _namespace))
    chosen = (each for each in own if wide or each.priority == 0)
    if not ages:
        chosen = (each._replace(type="string") if each.type == "date" else each for each in chosen)
    return named + [
        Column(each.name, _maker(each), _LONGEST_AGE if each.type == "date" else "")
        for each in chosen
    ]


def custom_columns(text: str, *, nothing: str = NOTHING) -> Columns:
    """What ``-o custom-columns=NAME:.metadata.name,...`` asks for.

    A path that finds nothing makes a cell of ``nothing``.

    >>> columns = custom_columns("NAME:.metadata.name,ISSUER:spec.issuerRef.name")
    >>> row(columns, {"metadata": {"name": "shop"}})
    ['shop', '<none>']
    """
    columns = []
    for part in _split(text):
        heading, colon, path = part.partition(":")
        if not heading or not colon or not path:
            raise ValueError(
                f"custom-columns: {part!r} is not HEADING:PATH, as in NAME:.metadata.name"
            )
        custom_column(path, {})  # a path that cannot be read is refused here
        columns.append(Column(heading, _custom(path, nothing)))
    return columns


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    commas = [at for at, character in outside_brackets(text) if character == ","]
    begins = [0, *(at + 1 for at in commas)]
    return [text[begin:end] for begin, end in zip(begins, [*commas, len(text)], strict=True)]


def _maker(column: PrinterColumn) -> Cell:
    try:
        check_column(column.path)
    except JSONPathError:
        return lambda _: ""  # the API server leaves out what it cannot read, too

    def shown(obj: Object) -> str:
        found = cell(column.path, column.type, obj)
        if found is None:
            return ""
        return str(found).lower() if isinstance(found, bool) else str(found)

    return shown


def _custom(path: str, nothing: str) -> Cell:
    def shown(obj: Object) -> str:
        text = custom_column(path, obj)
        return nothing if text == NOTHING else text

    return shown


def metadata_of(obj: Object) -> Object:
    """The metadata of an object, which may be anybody's; empty if it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def _name(obj: Object) -> str:
    return str(metadata_of(obj).get("name", ""))


def _namespace(obj: Object) -> str:
    return str(metadata_of(obj).get("namespace", ""))
