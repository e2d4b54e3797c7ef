"""What paths find in the objects of a view, as rows and as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.path import Projection
from dyninformer.store.snapshot import View

if TYPE_CHECKING:
    import pandas

Columns: TypeAlias = Mapping[str, str | JSONPath]
Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]

_USUAL: Columns = {"created": ".metadata.creationTimestamp", "labels": ".metadata.labels"}


def rows_of(view: View, columns: Columns) -> Rows:
    """One row per object: ``namespace`` where it has one, ``name``, and the columns.

    A path that finds nothing gives None, one that finds several values their list. A
    column of the same name replaces the object's own.
    """
    projection = Projection(columns.values())
    rows: Rows = []
    for key, payload in view.items():
        namespace, _, name = key.rpartition("/")
        row: Row = {"namespace": namespace, "name": name} if namespace else {"name": name}
        found = projection.rows(view.codec.plain(payload))
        for column, values in zip(columns, found, strict=True):
            row[column] = values[0] if len(values) == 1 else (values or None)
        rows.append(row)
    return rows


def frame(view: View, columns: Columns | None) -> pandas.DataFrame:
    """The rows as a DataFrame; creation times become timestamps."""
    try:
        import pandas  # noqa: PLC0415 - an extra: only who asks for it pays
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'dyninformer[notebook]'") from error
    chosen = _USUAL if columns is None else columns
    found = pandas.DataFrame(rows_of(view, chosen))
    if columns is None and "created" in found:
        found["created"] = pandas.to_datetime(found["created"], utc=True, errors="coerce")
    return found
