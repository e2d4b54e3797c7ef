"""A request's object before it is written: read against its Go type, named, placed; or refused."""

from __future__ import annotations

import base64
import json
import re
import string
from typing import Any, Final, NoReturn

from dyninformer.testing.cluster.bodies import UnreadableError, type_name, wrong_type
from dyninformer.testing.cluster.causes import shown
from dyninformer.testing.cluster.events import EVENT_VERSIONS, EVENTS
from dyninformer.testing.cluster.go_types import SCALARS, STRUCTS, Fields
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import admit
from dyninformer.testing.cluster.strategies import strategy_of
from dyninformer.testing.cluster.timestamps import normalized, to_the_microsecond
from dyninformer.testing.cluster.write_options import WriteOptions
from dyninformer.testing.status import ApiError, bad_request, cause, conflict, invalid, warned
from dyninformer.types import Object

Warnings = tuple[str, ...]


def read_object(resource: Resource, body: Object, options: WriteOptions) -> tuple[Object, Warnings]:
    """The object of a body: typed, pruned, defaulted, with well-formed metadata."""
    try:
        if resource.builtin:
            _require_builtin_type(resource, body)
        else:
            _require_kind(resource, body, options)
        return _read(resource, body, options)
    except UnreadableError as error:
        kind, version = resource.kind, resource.version
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise bad_request(why) from None


def read_patched(
    resource: Resource, changed: Any, options: WriteOptions
) -> tuple[Object, Warnings]:
    """The object after a patch; what is wrong with it is reported as wrong with the patch."""
    try:
        _require_named_type(changed)
        _require_same_type(resource, changed)
        return _read(resource, changed, options)
    except UnreadableError as error:
        text = f"Invalid value: {shown(shown(changed))}: {error}"
        details = {"causes": [cause("FieldValueInvalid", text, "patch")]}
        message = f' "" is invalid: patch: {text}'
        raise ApiError(422, "Invalid", message, details=details) from None


def _read(resource: Resource, body: Object, options: WriteOptions) -> tuple[Object, Warnings]:
    obj, unknown = read_typed(resource, body)
    noted = (*options.duplicates, *(f'unknown field "{path}"' for path in unknown))
    obj, warnings = admit(resource, obj, options.field_validation, noted)
    return strategy_of(resource).defaults(obj), warnings


def placed(resource: Resource, obj: Object, namespace: str) -> Object:
    """The object in its namespace; ApiError 400 if it names another."""
    metadata: Object = obj["metadata"]
    if not resource.namespaced:
        if "namespace" not in metadata:
            return obj
        metadata = {name: value for name, value in metadata.items() if name != "namespace"}
        return {**obj, "metadata": metadata}
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def require_name(obj: Object, key: Key) -> None:
    """The object's name is that of the path; ApiError 400 otherwise."""
    name = obj["metadata"].get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({key.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != key.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({key.name})"
        )


def require_revision(obj: Object) -> int | None:
    """The resourceVersion an object carries, None if none; ApiError 500 if it is not a number."""
    text = obj["metadata"].get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ApiError(500, None, f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) >= 2**64:
        raise ApiError(500, None, f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def require_size(size: int) -> None:
    """Etcd's limits on one object, by the size of the body it came in."""
    if size > 2_097_152:
        why = f"trying to send message larger than max ({size} vs. 2097152)"
        raise ApiError(500, None, f"rpc error: code = ResourceExhausted desc = {why}")
    if size > 1_572_864:
        raise ApiError(500, None, "etcdserver: request is too large")


def wrong_uid(resource: Resource, key: Key, uid: str, actual: str) -> ApiError:
    """The 409 of a write that is meant for another object of the same name."""
    path = "/".join(
        part for part in (resource.group, resource.plural, key.namespace, key.name) if part
    )
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {actual}"
    )
    return conflict(resource.group, resource.plural, key.name, why)


def _require_kind(resource: Resource, body: Object, options: WriteOptions) -> None:
    """The body of a custom resource is of the type that the path takes; ApiErrors if not."""
    version = body.get("apiVersion") or ""
    if version != resource.api_version:
        with warned(_strange_fields(resource, body, options)):
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected "
                f"API version ({resource.api_version})"
            )
    _require_same_type(resource, body)


def _strange_fields(resource: Resource, body: Object, options: WriteOptions) -> Warnings:
    """The warnings about a body of a version that the CRD does not have: it has no fields."""
    version = str(body["apiVersion"]).rpartition("/")[2] if body.get("apiVersion") else ""
    if version in resource.siblings:
        return ()
    metadata, unknown = read_typed(resource, {"metadata": body.get("metadata")})
    unknown += sorted(name for name in body if name not in metadata)
    complaints = (*options.duplicates, *(f'unknown field "{path}"' for path in unknown))
    if complaints and options.strict:
        raise bad_request(
            f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {', '.join(complaints)}"
        )
    return complaints if options.warns else ()


def _require_named_type(changed: Any) -> None:
    if not isinstance(changed, dict):
        raise UnreadableError(f"couldn't get version/kind; json parse error: {wrong_type(changed)}")
    if not changed.get("kind"):
        raise UnreadableError(f"Object 'Kind' is missing in '{shown(changed)}'")


def _require_same_type(resource: Resource, body: Object) -> None:
    metadata, kind = body.get("metadata"), str(body.get("kind") or resource.kind)
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    version = str(body.get("apiVersion") or "")
    wanted = {"kind": (kind, resource.kind), "apiVersion": (version, resource.api_version)}
    for field, (given, expected) in wanted.items():
        if given != expected:
            why = f'Invalid value: "{given}": must be {expected}'
            found = [cause("FieldValueInvalid", why, field)]
            raise invalid(resource.group, kind, str(name), found)


def _require_builtin_type(resource: Resource, body: Object) -> None:
    """The body of a built-in may leave out its type, but may not give another one."""
    api_version = body.get("apiVersion") or resource.api_version
    kind = body.get("kind") or resource.kind
    version = str(api_version).rpartition("/")[2]
    prefix = f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
    if resource.collection == EVENTS and api_version in EVENT_VERSIONS - {resource.api_version}:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API "
            f"version ({resource.api_version})"
        )
    if api_version != resource.api_version:
        raise bad_request(
            f'{prefix}no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    if kind != resource.kind:
        raise bad_request(
            f"{prefix}converting ({version}.{kind}) to "
            f"({resource.group or 'core'}.{resource.kind}): unknown conversion"
        )


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
"""Types whose fields are left out when they are empty, unless they are pointers."""


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
    """Reads values; ``silent`` is the beginning of a path that refusals leave out."""

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
