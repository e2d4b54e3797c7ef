"""Columns as a pandas DataFrame: one dtype each, whatever the values are, and null where none is.

Text is ``string``, whole numbers ``Int64``, booleans ``boolean``, other numbers ``float64``, times
``datetime64[us, UTC]``. Lists and objects stay what they are in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dyninformer.frames.types import Kind, Type, fitted, microseconds
from dyninformer.types import Key, Values

if TYPE_CHECKING:
    import pandas

_DTYPES = {Kind.TEXT: "string", Kind.INTEGER: "Int64", Kind.BOOLEAN: "boolean"}
_PLAIN = {Kind.LIST: list, Kind.MAP: dict, Kind.STRUCT: dict}
_NO_TIME = -(1 << 63)  # NaT
_AT_ONCE = 2000


def frame(
    names: Sequence[str], types: Sequence[Type], values: Sequence[Values], keys: Sequence[Key]
) -> pandas.DataFrame:
    """The columns as a frame, with the keys for its index."""
    try:
        import pandas  # noqa: PLC0415 - an extra: only its users pay for the import
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'dyninformer[notebook]'") from error
    index = pandas.Index(keys, name="key", dtype="string")
    columns = {
        name: _column(pandas, of, each) for name, of, each in zip(names, types, values, strict=True)
    }
    return pandas.DataFrame(columns, index=index, columns=list(names))


def _column(pandas: Any, type: Type, values: Values) -> Any:
    if type.nested:
        import numpy  # noqa: PLC0415 - pandas brings it

        kind = _PLAIN.get(type.kind, object)
        fits = (value if isinstance(value, kind) else None for value in values)
        return numpy.fromiter(fits, dtype=object, count=len(values))
    if type.kind is Kind.TIME:
        return _times(pandas, type, values)
    found = fitted(type, values)
    if type.kind is Kind.NUMBER:
        return pandas.array(found, dtype="float64")
    return pandas.array(found, dtype=_DTYPES[type.kind])


def _times(pandas: Any, type: Type, values: Values) -> Any:
    import numpy  # noqa: PLC0415 - pandas brings it

    found = numpy.empty(len(values), dtype="int64")
    # In parts: a moment takes ten times what is kept of it.
    for start in range(0, len(values), _AT_ONCE):
        moments = fitted(type, values[start : start + _AT_ONCE])
        found[start : start + len(moments)] = [
            _NO_TIME if each is None else microseconds(each) for each in moments
        ]
    return pandas.DatetimeIndex(found.view("datetime64[us]"), tz="UTC").array
