"""Columns as Arrow has them, made by nanoarrow: 3 MB without dependencies, where pyarrow is 170.

Arrow's readers (polars, DuckDB, pandas, pyarrow) ask an object for ``__arrow_c_stream__``, and get
a capsule. What it is made of are the buffers that Arrow's specification describes: for each column
one bit for each value that tells nulls, the values side by side, and offsets where those are of
different lengths.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dyninformer.frames.types import Kind, Type, fitted, microseconds
from dyninformer.types import Values

if TYPE_CHECKING:
    import nanoarrow

Buffer: TypeAlias = "array[int] | array[float] | bytes | None"
Validity: TypeAlias = bytes | None

_BATCH: Final = 1 << 16  # rows: readers with several threads take one each
_MOST_BYTES: Final = 1 << 31  # that 32-bit offsets reach
_WITHOUT: Final = (
    "Arrow needs nanoarrow: pip install 'dyninformer[arrow]' (it is in dyninformer[notebook], too)"
)


def stream(names: Sequence[str], types: Sequence[Type], values: Sequence[Values]) -> object:
    """The capsule of a stream of these columns, in batches."""
    na = _nanoarrow()
    from nanoarrow.c_array_stream import CArrayStream  # noqa: PLC0415 - as in `_nanoarrow`

    wanted = na.c_schema(_struct(na, zip(names, types, strict=True)))
    length = len(values[0]) if values else 0
    batches = [
        _batch(na, wanted, types, [each[start : start + _BATCH] for each in values])
        for start in range(0, length, _BATCH)
    ]
    made: Any = CArrayStream.from_c_arrays(batches, wanted, move=True, validate=False)
    capsule: object = made.__arrow_c_stream__(None)
    return capsule


def schema(names: Sequence[str], types: Sequence[Type]) -> object:
    """The capsule of the schema of such a stream."""
    na = _nanoarrow()
    capsule: object = na.c_schema(_struct(na, zip(names, types, strict=True))).__arrow_c_schema__()
    return capsule


def _nanoarrow() -> Any:
    try:
        import nanoarrow  # noqa: PLC0415 - an extra: only its users pay for the import
    except ImportError as error:
        raise ImportError(_WITHOUT) from error
    return nanoarrow


def _batch(na: Any, wanted: Any, types: Sequence[Type], values: Sequence[Values]) -> Any:
    """The columns of some rows."""
    children = [
        _column(na, _schema(na, of), of, each) for of, each in zip(types, values, strict=True)
    ]
    length = len(values[0])
    return na.c_array_from_buffers(wanted, length, [None], null_count=0, children=children)


def _schema(na: Any, type: Type) -> Any:
    if type.kind is Kind.LIST:
        return na.list_(_schema(na, type.items or _TEXT))
    if type.kind is Kind.MAP:
        return na.map_(na.string(), _schema(na, type.items or _TEXT))
    if type.kind is Kind.STRUCT:
        return _struct(na, type.fields)
    return {
        Kind.INTEGER: na.int64,
        Kind.NUMBER: na.float64,
        Kind.BOOLEAN: na.bool_,
        Kind.TIME: lambda: na.timestamp("us", timezone="UTC"),
    }.get(type.kind, na.string)()


def _struct(na: Any, fields: Iterable[tuple[str, Type]]) -> nanoarrow.Schema:
    found: nanoarrow.Schema = na.struct({name: _schema(na, of) for name, of in fields})
    return found


_TEXT: Final = Type(Kind.TEXT)


def _column(na: Any, wanted: Any, type: Type, values: Values) -> Any:
    """An array of Arrow's, of values as JSON has them."""
    match type.kind:
        case Kind.LIST:
            held = [value if isinstance(value, list) else None for value in values]
            return _listed(na, wanted, type.items or _TEXT, held)
        case Kind.MAP:
            return _mapped(na, wanted, type.items or _TEXT, values)
        case Kind.STRUCT:
            objects = [value if isinstance(value, dict) else None for value in values]
            children = [
                _column(
                    na,
                    _schema(na, below),
                    below,
                    [each.get(name) if each else None for each in objects],
                )
                for name, below in type.fields
            ]
            return _array(na, wanted, objects, [], children)
    found = fitted(type, values)
    if type.kind in {Kind.TEXT, Kind.JSON}:
        return _texts(na, wanted, found)
    if type.kind is Kind.BOOLEAN:
        return _array(na, wanted, found, [_bits(found)])
    if type.kind is Kind.TIME:
        found = [None if each is None else microseconds(each) for each in found]
    buffer: Buffer
    if type.kind is Kind.NUMBER:
        buffer = array("d", [0.0 if each is None else each for each in found])
    else:
        buffer = array("q", [0 if each is None else each for each in found])
    return _array(na, wanted, found, [buffer])


def _texts(na: Any, wanted: Any, values: Values) -> Any:
    encoded = [b"" if value is None else value.encode("utf-8", "replace") for value in values]
    return _array(na, wanted, values, [_offsets(map(len, encoded)), b"".join(encoded)])


def _listed(na: Any, wanted: Any, items: Type, values: Values) -> Any:
    flat = [each for value in values if value for each in value]
    lengths = (len(value) if value else 0 for value in values)
    child = _column(na, _schema(na, items), items, flat)
    return _array(na, wanted, values, [_offsets(lengths)], [child])


def _mapped(na: Any, wanted: Any, items: Type, values: Values) -> Any:
    held = [value if isinstance(value, dict) else None for value in values]
    keys = [key for value in held if value for key in value]
    below = [each for value in held if value for each in value.values()]
    entries = na.c_array_from_buffers(
        na.struct({"key": na.Schema(na.Type.STRING, nullable=False), "value": _schema(na, items)}),
        len(keys),
        [None],
        null_count=0,
        children=[_texts(na, na.string(), keys), _column(na, _schema(na, items), items, below)],
    )
    lengths = (len(value) if value else 0 for value in held)
    return _array(na, wanted, held, [_offsets(lengths)], [entries])


def _array(
    na: Any, wanted: Any, values: Values, buffers: Sequence[Buffer], children: Sequence[Any] = ()
) -> Any:
    """An array of such buffers, with a bit for each value that tells the nulls."""
    nulls = values.count(None)
    validity = _bits([value is not None for value in values]) if nulls else None
    return na.c_array_from_buffers(
        wanted, len(values), [validity, *buffers], null_count=nulls, children=children
    )


def _bits(flags: Sequence[Any]) -> bytes:
    """One bit each, the first the lowest."""
    if not flags:
        return b""
    number = int("".join("1" if flag else "0" for flag in reversed(flags)), 2)
    return number.to_bytes((len(flags) + 7) // 8, "little")


def _offsets(lengths: Iterable[int]) -> array[int]:
    found = list(accumulate(lengths, initial=0))
    if found[-1] >= _MOST_BYTES:
        raise ValueError(
            "a column has more than 2 GiB in 65,536 rows, which is more than Arrow's offsets "
            "reach: choose columns"
        )
    return array("i", found)
