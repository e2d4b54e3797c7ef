"""Request bodies: which formats are taken, and whether they hold what the path takes.

JSON and YAML are decoded by the cluster's own rules. Protobuf is read here, as kubectl's
generators and typed Go clients send it: ``create deployment``, ``create configmap``,
``auth can-i`` and the like, with JSON accepted in answers. How the messages are laid out is
told by protobuf_messages.txt, which ``clientgo protobuf`` of the conformance tests makes of
the Go types. Kinds that it does not have are refused with 415, and so are clients that want
protobuf answers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from dyninformer.testing.cluster.bodies import (
    BodyError,
    decode_json,
    decode_object,
    decode_yaml,
    require_kind,
    type_name,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.messages import Headers, Request
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

BODY_LIMIT = 3 << 20
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_JSON_TYPES = ("", "application/json")
_TAKEN = f"application/json, application/yaml, {_PROTOBUF}"


def too_large(limit: int = BODY_LIMIT, headers: Headers = ()) -> ApiError:
    """The 413."""
    message = f"Request entity too large: limit is {limit}"
    return ApiError(413, "RequestEntityTooLarge", message, headers=headers)


def media_type(request: Request) -> str:
    """The Content-Type without its parameters, lower case; "" if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _unknown_format(taken: str = _TAKEN) -> ApiError:
    """The 415 that names what would be taken."""
    what = "the body of the request was in an unknown format - accepted media types include"
    return ApiError(415, "UnsupportedMediaType", f"{what}: {taken}")


def read_object(request: Request, resource: Resource) -> tuple[Object, tuple[str, ...]]:
    """The object of a create or update, and the complaints about fields given twice.

    A custom resource must say its kind; whether kind and apiVersion are those of
    ``resource`` is judged by the writer.
    """
    if resource.builtin and request.body.strip() == b"null" and media_type(request) in _JSON_TYPES:
        return {}, ()
    obj, duplicates = read_plain_object(request, resource.kind)
    if not resource.builtin:
        require_kind(obj, resource.kind, request.body)
    return obj, duplicates


def read_plain_object(request: Request, kind: str) -> tuple[Object, tuple[str, ...]]:
    """An object that may leave out what it is (a review, a Scale), and its repeated fields."""
    form, body = media_type(request), request.body
    if form == _PROTOBUF:
        found = read_protobuf(body)
        if found is None:
            raise _unknown_format("application/json, application/yaml")
        return found, ()
    if form not in (*_JSON_TYPES, "application/yaml"):
        raise _unknown_format()
    return decode_object(body, kind, yaml_body=form == "application/yaml")


def read_delete_options(request: Request) -> Object | None:
    """The DeleteOptions of a DELETE's body; None without a body."""
    form, body = media_type(request), request.body
    if not body:
        return None
    if form == _PROTOBUF:
        return read_protobuf(body)
    if form not in (*_JSON_TYPES, "application/yaml"):
        raise _unknown_format()
    try:
        value, _ = (decode_yaml if form == "application/yaml" else decode_json)(body)
    except BodyError as error:
        raise bad_request(_unread(str(error))) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(_unread(f"json: cannot unmarshal {type_name(value)} into Go value"))
    kind, version = value.get("kind") or "", value.get("apiVersion") or ""
    if kind not in ("", "DeleteOptions"):
        raise bad_request(_not_registered(kind, version))
    grace = value.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request(
            f"json: cannot unmarshal {type_name(grace)} into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"
        )
    return value


def _not_registered(kind: object, version: object) -> str:
    return (
        f'no kind "{kind}" is registered for version "{version}" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )


def _unread(why: str) -> str:
    return why if why.startswith("yaml:") else f"couldn't get version/kind; json parse error: {why}"


# -- protobuf -------------------------------------------------------------------------------

_MAGIC: Final = b"k8s\x00"


class _Field(NamedTuple):
    """A field of a message.

    Forms: str, int, bool, bytes, time, microtime, json, quantity, intstr, items (a message
    with a list of texts), a message's name; with [] repeated; {form} is a map from texts.
    """

    name: str
    form: str
    keeps_empty: bool
    """Its JSON has the field even when it is empty."""
    inline: bool
    """Its JSON has the fields of the message in place of the field."""


_Fields = dict[int, _Field]


class _Layouts(NamedTuple):
    kinds: dict[tuple[str, str], str]
    messages: dict[str, _Fields]


def read_protobuf(body: bytes) -> Object | None:
    """The object in a body, as its JSON would be read; None if its kind is not known here."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not Kubernetes protobuf: it does not begin with k8s and NUL")
    layouts = _layouts()
    try:
        envelope = dict(_wire(body[len(_MAGIC) :]))
        meta = _message(_bytes(envelope.get(1, b"")), _TYPE_META)
        api_version, kind = meta.get("apiVersion", ""), meta.get("kind", "")
        message = layouts.kinds.get(("v1" if kind == "DeleteOptions" else api_version, kind))
        if message is None:
            return None
        raw = _bytes(envelope.get(2, b""))
        return {"apiVersion": api_version, "kind": kind, **_message(raw, layouts.messages[message])}
    except (IndexError, ValueError) as broken:
        raise bad_request(f"the protobuf body cannot be read: {broken}") from broken


@cache
def _layouts() -> _Layouts:
    """The layouts of protobuf_messages.txt, read when the first body comes."""
    found = _Layouts({}, {})
    text = files(__package__).joinpath("protobuf_messages.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        head, equals, message = line.partition(" = ")
        if equals:
            api_version, _, kind = head.partition(" ")
            found.kinds[api_version, kind] = message
            continue
        name, _, fields = line.partition(":")
        found.messages[name] = dict(_field(each) for each in fields.split())
    return found


def _field(text: str) -> tuple[int, _Field]:
    number, _, rest = text.partition("=")
    name, _, form = rest.partition(":")
    bare = form.removeprefix("&").rstrip("!?")
    return int(number), _Field(name, bare, form.endswith(("!", "?")), form.startswith("&"))


def _plain(**forms: str) -> _Fields:
    return {at: _Field(name, form, True, False) for at, (name, form) in enumerate(forms.items(), 1)}


_TYPE_META: Final = _plain(apiVersion="str", kind="str")
_TIME: Final = _plain(seconds="int", nanos="int")
_TEXT: Final = _plain(text="str")
_TEXTS: Final = {1: _Field("items", "str[]", False, False)}
_RAW: Final = _plain(raw="bytes")
_INT_OR_STRING: Final = _plain(type="int", number="int", text="str")


def _message(data: bytes, fields: _Fields) -> Object:
    found: Object = {}
    for number, value in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        name, form = field.name, field.form
        if form.endswith("[]"):
            found.setdefault(name, []).append(_value(value, form.removesuffix("[]")))
        elif form.startswith("{"):
            entry = _message(_bytes(value), _plain(key="str", value=form[1:-1]))
            found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif field.inline:
            found |= _value(value, form)
        else:
            read = _value(value, form)
            # Go writes fields that are no pointers even when they are empty; JSON leaves them out.
            if read is not None and (field.keeps_empty or read not in ("", 0, {})):
                found[name] = read
    return found


def _value(value: int | bytes, form: str) -> Any:
    if form == "int":
        number = _int(value)
        return number - (1 << 64) if number >= 1 << 63 else number
    if form == "bool":
        return bool(_int(value))
    data = _bytes(value)
    read = _READERS.get(form)
    return read(data) if read is not None else _message(data, _layouts().messages[form])


def _int_or_string(data: bytes) -> int | str:
    read = _message(data, _INT_OR_STRING)
    found: int | str = read.get("text", "") if read.get("type") else read.get("number", 0)
    return found


def _json(data: bytes) -> Any:
    raw = base64.b64decode(_message(data, _RAW).get("raw", ""))
    return json.loads(raw) if raw else None


def _time(data: bytes, *, micro: bool = False) -> str | None:
    parts = _message(data, _TIME)
    if not parts:
        return None
    moment = datetime.fromtimestamp(parts.get("seconds", 0), UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{parts.get('nanos', 0) // 1000:06d}Z" if micro else f"{text}Z"


_READERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "str": bytes.decode,
    "bytes": lambda data: base64.b64encode(data).decode(),
    "time": _time,
    "microtime": lambda data: _time(data, micro=True),
    "json": _json,
    "quantity": lambda data: _message(data, _TEXT).get("text", "0"),
    "intstr": _int_or_string,
    "items": lambda data: _message(data, _TEXTS).get("items", []),
}


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        if at + size > len(data):
            raise ValueError(f"it ends inside field {number}")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(f"a number longer than 64 bits at byte {at}")


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes where a number belongs")  # noqa: TRY004  wire data, no argument
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes belong")  # noqa: TRY004  wire data, no argument
    return value
