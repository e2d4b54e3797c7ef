"""Tables: the rows and columns that ``kubectl get`` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from dyninformer.jsonpath import cells
from dyninformer.testing.api.encoding import encode
from dyninformer.testing.api.printers import UNKNOWN, Age, printer_of
from dyninformer.testing.api.representations import (
    event_line,
    list_metadata,
    partial_bookmark,
    partial_object,
)
from dyninformer.testing.cluster.lists import Page, Representation
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Column, Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.messages import Request
from dyninformer.testing.status import bad_request
from dyninformer.types import Object

Now = Callable[[], datetime]

_INCLUDES: Final = ("Metadata", "Object", "None")
_NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/"
    "names#names"
)
_AGE_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be set in happens-before order across separate operations. Clients "
    "may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the "
    "system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/"
    "devel/sig-architecture/api-conventions.md#metadata"
)
_AGE = Column("Age", "date", ".metadata.creationTimestamp", description=_AGE_TEXT)

_KEPT = 1000

# A row is kept with each age as its moment between two of these, which no JSON text holds
# unescaped: filling in the ages of a list is one substitution.
_MARK = b"\x00"
_MOMENT = re.compile(rb"\x00([^\x00]*)\x00")


def read_include(request: Request) -> str:
    """What each row carries of its object: Metadata unless ``includeObject`` says otherwise."""
    asked = request.param("includeObject") or "Metadata"
    if asked not in _INCLUDES:
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{asked}\": must be 'Metadata', 'Object', 'None', or empty"
        )
    return asked


class Tables:
    """The representation of clients that ask ``as=Table``.

    ``plain`` gives the objects of ``includeObject=Object``; ``now`` is what ages are
    counted to.
    """

    first_line_differs = True

    def __init__(self, api_version: str, include: str, plain: Representation, now: Now) -> None:
        self._api_version = api_version
        self._include = include
        self._plain = plain
        self._now = now
        self._definitions: dict[Resource, bytes] = {}

    def item(self, version: Version, resource: Resource) -> bytes:
        """One row."""
        return self._aged(self._row(version, resource))

    def single(self, version: Version, resource: Resource) -> bytes:
        """A table of one row."""
        return self._table(version, resource, self._columns(resource)) + b"\n"

    def list_(self, page: Page, resource: Resource) -> Iterable[bytes]:
        """The table, a row for each object."""
        return self._pieces(page, resource)

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:
        """A table of one row; only the first of a stream defines its columns."""
        definitions = self._columns(resource) if first else b"null"
        table = self._table(version, resource, definitions)
        line = event_line(kind, table)
        key = (self, kind, resource, first)
        known = version.encoded.get(key)
        if known == line:
            return known
        version.encoded[key] = line
        return line

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        """A BOOKMARK line whose row is that of an object without anything."""
        nothing: Object = {"metadata": {}}
        cells = self._aged(_join(_cells(nothing, resource)))
        obj = partial_bookmark(revision, initial_end=initial_end)
        row = b'{"cells":[%b],"object":%b}' % (cells, obj)
        head = self._head({"resourceVersion": str(revision)})
        definitions = self._columns(resource) if first else b"null"
        table = b'%b,"columnDefinitions":%b,"rows":[%b]}' % (head, definitions, row)
        return event_line("BOOKMARK", table)

    def _pieces(self, page: Page, resource: Resource) -> Iterator[bytes]:
        head = self._head(list_metadata(page))
        yield b'%b,"columnDefinitions":%b,"rows":[' % (head, self._columns(resource))
        rows = b",".join([self._row(version, resource) for version in page.versions])
        yield self._aged(rows)
        yield b"]}\n"

    def _table(self, version: Version, resource: Resource, definitions: bytes) -> bytes:
        metadata = {"resourceVersion": version.object["metadata"].get("resourceVersion", "")}
        head, row = self._head(metadata), self.item(version, resource)
        return b'%b,"columnDefinitions":%b,"rows":[%b]}' % (head, definitions, row)

    def _head(self, metadata: Object) -> bytes:
        head = {"kind": "Table", "apiVersion": self._api_version, "metadata": metadata}
        return encode(head, sort=False)[:-1]

    def _row(self, version: Version, resource: Resource) -> bytes:
        key = (self, resource)
        found = version.encoded.get(key)
        if found is None:
            cells = _join(_cells(prepare_for_read(resource, version.object), resource))
            found = b'{"cells":[%b],"object":%b}' % (cells, self._object(version, resource))
            version.encoded[key] = found
        return found

    def _object(self, version: Version, resource: Resource) -> bytes:
        if self._include == "None":
            return b"null"
        if self._include == "Metadata":
            return partial_object(version.object["metadata"], self._api_version)
        item = self._plain.item(version, resource)
        if not resource.builtin:
            return item
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        return b"%b,%b" % (encode(kind, sort=False)[:-1], item[1:])

    def _columns(self, resource: Resource) -> bytes:
        found = self._definitions.get(resource)
        if found is None:
            if len(self._definitions) > _KEPT:  # each change of a CRD makes a new Resource
                self._definitions.clear()
            found = encode([_definition(each) for each in _all_columns(resource)], sort=False)
            self._definitions[resource] = found
        return found

    def _aged(self, text: bytes) -> bytes:
        """``text`` with its moments told as ages."""
        if _MARK not in text:
            return text
        now = self._now()
        known: dict[bytes, bytes] = {}

        def age(match: re.Match[bytes]) -> bytes:
            moment = match[1]
            found = known.get(moment)
            if found is None:
                told = cells.cell(".t", "date", {"t": moment.decode()}, now=now) or UNKNOWN
                found = known[moment] = encode([told])[2:-2]
            return found

        return _MOMENT.sub(age, text)


def _all_columns(resource: Resource) -> list[Column]:
    name = Column("Name", "string", ".metadata.name", format="name", description=_NAME_TEXT)
    if not resource.builtin:
        return [name, *_own_columns(resource)]
    found = [name, *printer_of(resource.collection).columns]
    if resource.plural == "events":
        found[0] = Column("Last Seen", "string", "")
    return found


def _definition(column: Column) -> Object:
    description = column.description
    if not description and column.path:
        description = f"Custom resource definition column (in JSONPath format): {column.path}"
    if not description and column.name in ("Age", "Created At"):
        description = _AGE_TEXT
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    }


def _cells(obj: Object, resource: Resource) -> list[Any]:
    if resource.builtin:
        printer = printer_of(resource.collection)
        try:
            return printer.cells(obj)
        except (AttributeError, KeyError, TypeError, ValueError):  # nobody has checked its fields
            return [obj["metadata"].get("name", ""), *(UNKNOWN for _ in printer.columns)]
    name = obj["metadata"].get("name", "")
    return [name, *(_cell(column, obj) for column in _own_columns(resource))]


def _own_columns(resource: Resource) -> tuple[Column, ...]:
    return (_AGE,) if resource.columns is None else resource.columns


def _cell(column: Column, obj: Object) -> Any:
    """What a CRD's column shows; a date that is told as an age is kept as its moment."""
    shown = cells.cell(column.path, column.type, obj)
    if column.type != "date" or shown is None:
        return shown
    return Age(cells.cell(column.path, "string", obj))


def _join(cells: list[Any]) -> bytes:
    return b",".join(_encoded(cell) for cell in cells)


def _encoded(cell: Any) -> bytes:
    """A cell as JSON; one of several parts is one string."""
    if isinstance(cell, Age):
        return b'"%b"' % _part(cell)
    if isinstance(cell, tuple):
        return b'"%b"' % b"".join(_part(part) for part in cell)
    return encode([cell])[1:-1]


def _part(part: Any) -> bytes:
    if not isinstance(part, Age):
        return encode([part])[2:-2]
    if not part.moment:
        return encode([UNKNOWN])[2:-2]
    return _MARK + part.moment.encode().replace(_MARK, b"") + _MARK
