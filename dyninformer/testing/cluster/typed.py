"""Objects of built-in kinds, and all metadata, against their Go types.

Values of a wrong type are refused in the words of Go's decoder, unknown fields are told of
and dropped, and what is left stands in the order of the struct.
"""

from __future__ import annotations

import base64
import json
import re
import string
from typing import Any, Final, NoReturn

from dyninformer.testing.cluster.bodies import UnreadableError, type_name
from dyninformer.testing.cluster.go_types import SCALARS, STRUCTS, Fields
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.timestamps import normalized, to_the_microsecond
from dyninformer.types import Object

Unknown = list[str]

_BASE64: Final = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII
)
_LETTERS: Final = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"+/")
_INDEX: Final = re.compile(r"\[\d+\]")
_META: Final = "v1.ObjectMeta"
_PROPS: Final = "v1.JSONSchemaProps"
_OMIT_EMPTY: Final = frozenset(
    {"ObjectMeta", "ManagedFieldsEntry", "Event", "ObjectReference", "EventSource", "EventSeries"}
)
"""Of these, fields that are empty and no pointers are left out."""


def read_typed(resource: Resource, obj: Object) -> tuple[Object, Unknown]:
    """The object with the fields its type has, in their order, and the paths of the others.

    Nulls are left out; metadata is always there. Of a custom resource, and of a kind that
    `go_types` does not describe, only the metadata has a type here. Raises UnreadableError
    for a value of the wrong type.
    """
    fields = None
    if resource.builtin:
        fields = STRUCTS.get(f"{resource.group}/{resource.kind}") or STRUCTS.get(resource.kind)
    if fields is None:
        head, unknown = _head(resource, obj)
        return {**head, **{name: obj[name] for name in obj if name not in head}}, unknown
    reader = _Reader()
    read = reader.fields(
        resource.kind, {"kind": "any", "apiVersion": "any", "metadata": _META, **fields}, obj, ""
    )
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return {**head, "metadata": {}, **read, **head}, reader.unknown


def _head(resource: Resource, obj: Object) -> tuple[Object, Unknown]:
    metadata = obj.get("metadata")
    head: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    if metadata is None:
        return head, []
    if not resource.builtin:
        if not isinstance(metadata, dict):
            into = "Go value of type v1.ObjectMeta"
            raise UnreadableError(f"json: cannot unmarshal {type_name(metadata)} into {into}")
        metadata = dict(sorted(metadata.items()))  # the server has it from a map by then
    reader = _Reader("" if resource.builtin else "metadata.")
    read = reader.fields(resource.kind, {"metadata": _META}, {"metadata": metadata}, "")
    return {**head, **read}, reader.unknown


class _Reader:
    """Reads values; ``silent`` is what refusals leave out at the beginning of a path."""

    def __init__(self, silent: str = "") -> None:
        self._silent = silent
        self.unknown: Unknown = []

    def fields(self, struct: str, fields: Fields, value: Object, where: str) -> Object:
        """A struct's fields that are there."""
        prefix = f"{where}." if where else ""
        read: Object = {}
        for name, below in value.items():
            if name not in fields:
                self.unknown.append(prefix + name)
            elif below is not None:
                read[name] = self.value(struct, fields[name], below, prefix + name)
        sparse = struct in _OMIT_EMPTY
        return {
            name: read[name]
            for name in fields
            if name in read and not (sparse and _is_empty(name, read[name]))
        }

    def value(self, struct: str, of: str, value: Any, where: str) -> Any:
        """A value that is not null, in a field of ``struct``."""
        if of == "any":
            return value
        if of == "v1.JSONSchemaPropsOrBool":
            return value if isinstance(value, bool) else self.value(struct, _PROPS, value, where)
        reader = {"[]uint8": self._bytes, "time": self._time, "microtime": self._microtime}.get(of)
        if reader is not None:
            return reader(struct, value, where)
        if of == "v1.ExtraValue":  # a list that has a name
            of = "[]string" if isinstance(value, list) else self._refuse(struct, of, value, where)
        if of.startswith("[]"):
            if not isinstance(value, list):
                self._refuse(struct, of, value, where)
            inner = of.removeprefix("[]")
            return [
                self._item(struct, inner, each, f"{where}[{at}]") for at, each in enumerate(value)
            ]
        if of.startswith("map[string]"):
            if not isinstance(value, dict):
                self._refuse(struct, of, value, where)
            inner = of.removeprefix("map[string]")
            return {key: self._item(struct, inner, each, where) for key, each in value.items()}
        if of in SCALARS:
            fits = isinstance(value, SCALARS[of]) and (of == "bool") == isinstance(value, bool)
            return value if fits else self._refuse(struct, of, value, where)
        if not isinstance(value, dict):
            self._refuse(struct, of, value, where)
        inner = of.removeprefix("v1.")
        return self.fields(inner, STRUCTS[inner], value, where)

    def _item(self, struct: str, of: str, value: Any, where: str) -> Any:
        """A member of a list or map; a null one is the type's empty value."""
        if value is not None:
            return self.value(struct, of, value, where)
        if of == "[]uint8" or SCALARS.get(of) == (str,):
            return ""
        return {} if of.startswith("v1.") else None

    def _bytes(self, struct: str, value: Any, where: str) -> Any:
        if not isinstance(value, str):
            self._refuse(struct, "[]uint8", value, where)
        text = value.replace("\r", "").replace("\n", "")
        if _BASE64.fullmatch(text) is None:
            at = _corrupt_at(value.encode("utf-8", "surrogatepass"))
            raise UnreadableError(f"illegal base64 data at input byte {at}")
        return base64.b64encode(base64.b64decode(text)).decode()

    def _time(self, struct: str, value: Any, where: str) -> str:
        if not isinstance(value, str):
            self._refuse(struct, "string", value, where)
        try:
            return normalized(value)
        except ValueError:
            raise UnreadableError(
                f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": '
                f'cannot parse "{value}" as "2006"'
            ) from None

    def _microtime(self, struct: str, value: Any, where: str) -> str:
        if not isinstance(value, str):
            self._refuse(struct, "string", value, where)
        try:
            return to_the_microsecond(value)
        except ValueError as error:
            layout = "2006-01-02T15:04:05.000000Z07:00"
            raise UnreadableError(f'parsing time "{value}" as "{layout}": {error}') from None

    def _refuse(self, struct: str, of: str, value: Any, where: str) -> NoReturn:
        given = type_name(value)
        if of.startswith("int") and given == "number":
            given += f" {json.dumps(value)}"
        field = f"{struct}.{_INDEX.sub('', where).removeprefix(self._silent)}"
        raise UnreadableError(
            f"json: cannot unmarshal {given} into Go struct field {field} of type {of}"
        )


def _corrupt_at(data: bytes) -> int:
    """Where Go's decoder stops in base64 that is none: at a strange byte, or a short quantum."""
    known = 0  # of the four characters of a quantum
    padding = 0
    for at, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if padding == 0 and byte in _LETTERS:
            known = (known + 1) % 4
        elif byte == ord("=") and known + padding in (2, 3):
            padding += 1
        elif padding and known + padding < 4:
            return at - 1
        else:
            return at
    return len(data) if padding else len(data) - known


def _is_empty(name: str, value: Any) -> bool:
    return value in ("", 0, [], {}) and name != "deletionGracePeriodSeconds"
