"""What is cached as tables of DuckDB: those, and the columns of them, that a query names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from dyninformer.checked import checked_name
from dyninformer.discovery.known import Known
from dyninformer.errors import NotSyncedWarning
from dyninformer.frames import types
from dyninformer.frames.selection import (
    Column,
    ColumnList,
    Table,
    free,
    identity,
    is_namespaced,
    printer_columns,
    table_of,
)
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.writing import Way
from dyninformer.store.snapshot import View

if TYPE_CHECKING:
    import duckdb

Words: TypeAlias = set[str]

_METADATA: Final = {
    "uid": (".metadata.uid", types.TEXT),
    "labels": (".metadata.labels", types.TEXTS),
    "annotations": (".metadata.annotations", types.TEXTS),
    "created": (".metadata.creationTimestamp", types.TIME),
    "deleting": (".metadata.deletionTimestamp", types.TIME),
    "generation": (".metadata.generation", types.INTEGER),
    "resource_version": (".metadata.resourceVersion", types.TEXT),
}
_NOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_LOOKED_AT: Final = 100  # objects, for the fields of what has no schema
# Nodes of DuckDB's syntax tree that may take columns without naming them.
_TAKE_ALL: Final = frozenset({"STAR", "POSITIONAL_REFERENCE", "PIVOT", "SHOW_REF", "NATURAL"})


class Cached(NamedTuple):
    """A collection at one moment."""

    view: View
    known: Known
    early: Callable[[], str]
    """What to warn of before it is read; empty if nothing."""


def relation(query: str, cached: Iterable[Cached]) -> duckdb.DuckDBPyRelation:
    """The query's answer, as DuckDB works it out when it is looked at: a relation."""
    checked_name("a query", query, "SQL, such as 'select name from pods'")
    try:
        import duckdb  # noqa: PLC0415 - an extra: only its users pay for the import
    except ImportError as error:
        raise ImportError("sql needs DuckDB: pip install 'dyninformer[sql]'") from error
    connection = duckdb.connect(":memory:")
    words = _words(connection, query)
    tables = dict(_named(cached))
    asked = {
        name: _columns(each) for name, each in tables.items() if words is None or name in words
    }
    for name, columns in asked.items():
        early = tables[name].early()
        if early:
            warnings.warn(early, NotSyncedWarning, stacklevel=3)
        connection.register(name, _Registered(tables[name], _named_of(columns, words)))
    try:
        found: duckdb.DuckDBPyRelation = connection.sql(query)
    except duckdb.CatalogException as error:
        error.add_note(f"cached: {', '.join(sorted(tables)) or 'nothing'}")
        raise
    except duckdb.BinderException as error:  # of the columns DuckDB knows those that are named
        for name, columns in asked.items():
            error.add_note(f"columns of {name}: {', '.join(each.name for each in columns)}")
        raise
    return found


def _named(cached: Iterable[Cached]) -> Iterator[tuple[str, Cached]]:
    """Collections by plural and group; by the plural alone, too, if there is one of that name.

    The core group has no name, so that its resources go by the plural. Two versions of one resource
    go by their versions.
    """
    held = list(cached)
    plurals = [each.known.gvr.resource for each in held]
    groups = [each.known.gvr.group_resource for each in held]
    for each in held:
        gvr = each.known.gvr
        if plurals.count(gvr.resource) == 1:
            yield gvr.resource, each
        if groups.count(gvr.group_resource) > 1:
            yield str(gvr), each
        else:
            yield gvr.group_resource, each


def _words(connection: Any, query: str) -> Words | None:
    """All that the query names, in lower case; None if it cannot be told.

    DuckDB's own parser says it, so that a column cannot be missed for the way it is written.
    """
    try:
        [(found,)] = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
        tree = json.loads(found)
    except Exception:  # noqa: BLE001 - a build of DuckDB without JSON: then all is registered
        return None
    return None if tree.get("error") else set(_texts(tree))


def _texts(tree: Any) -> Iterator[str]:
    """Each text in a syntax tree, and `_ALL` if it takes columns without naming them."""
    waiting, tables, last = [tree], set(), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node.lower()
            if node in _TAKE_ALL:
                yield _ALL
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            tables |= {str(node.get(name, "")).lower() for name in ("alias", "table_name")}
            last |= {str(name).lower() for name in (node.get("column_names") or [])[-1:]}
    if tables & last:  # a table in the place of a column is a whole row
        yield _ALL


_ALL: Final = "*"


def _columns(cached: Cached) -> ColumnList:
    """All columns of a table, each under a name that no other has in any case."""
    found = {each.name: each for each in identity(is_namespaced(cached.view, cached.known))}
    for name, (path, type_) in _METADATA.items():
        found[name] = Column(name, JSONPath(path), type_)
    fields = [
        Column(name, JSONPath(str(Way().to(name))), type_)
        for name, type_ in _fields(cached).items()
    ]
    for each in (*fields, *printer_columns(cached.known, wide=True)):
        name = free(each.name, lambda name: name.lower() in found)
        found[name.lower()] = each._replace(name=name)
    return list(found.values())


def _fields(cached: Cached) -> dict[str, types.Type]:
    """The fields of an object, with their types; spec and status first."""
    schema = cached.known.schema()
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(declared, dict):
        fields = {name: types.of_schema(each) for name, each in sorted(declared.items())}
    else:
        some = cached.view.some(_LOOKED_AT)
        fields = dict.fromkeys(sorted({name for obj in some for name in obj}), types.JSON)
        fields |= {"spec": types.JSON, "status": types.JSON}
    first = ("spec", "status")
    order = [*(name for name in first if name in fields), *(n for n in fields if n not in first)]
    return {name: fields[name] for name in order if name not in _NOT_FIELDS}


class _Registered:
    """A table as DuckDB asks for it: its schema at once, its rows when they are read."""

    def __init__(self, cached: Cached, columns: Sequence[Column]) -> None:
        self._cached = cached
        self._columns = columns
        self._table: Table | None = None

    def __arrow_c_schema__(self) -> object:
        from dyninformer.frames import arrow  # noqa: PLC0415 - few need it

        names = [each.name for each in self._columns]
        return arrow.schema(names, [each.type or types.JSON for each in self._columns])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        del requested_schema
        if self._table is None:  # a relation may be read again, and a table joined with itself
            self._table = table_of(self._cached.view, self._columns)
        return self._table.stream()


def _named_of(columns: ColumnList, words: Words | None) -> Sequence[Column]:
    """Those of the columns that a query names; at least one, to count rows by."""
    if words is None or _ALL in words:
        return columns
    return [each for each in columns if each.name.lower() in words] or columns[:1]
