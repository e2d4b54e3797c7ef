"""Request bodies as the server reads them, JSON and YAML, with the complaints of Go's decoders.

Numbers come out as the server keeps them: integers that fit 64 bits exactly, everything
else as a float, whole floats as integers. Whatever is not UTF-8 becomes U+FFFD. A body that
would exhaust the stack or the memory (nesting, YAML aliases) is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn

import yaml

from dyninformer.testing.cluster.timestamps import is_date_time
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

MAX_DEPTH: Final = 200
"""How deep a body may nest. The real server takes 10,000 levels, which no schema needs."""

_INT64: Final = range(-(2**63), 2**63)
"""Integers in this range are kept as they are."""
_TYPE_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyError(ValueError):
    """A body that cannot be read; the message is in the words of Go's decoders."""


class UnreadableError(ValueError):
    """A body that can be read but does not hold the kind of object it is meant to be."""


class _NumberRangeError(BodyError):
    """A number that no float can hold."""


def decode_json(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value and the paths of the fields that it names twice (the last one counts)."""
    text = raw.decode("utf-8", errors="replace")
    repeats = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        found = dict(pairs)
        repeats = repeats or len(found) != len(pairs)
        return found

    value = _loads(raw, text, collect)
    check_depth(value)
    duplicates = tuple(_duplicates(_loads(raw, text, _Pairs), "")) if repeats else ()
    return _without_surrogates(value) if "\\u" in text else value, duplicates


def check_depth(value: Any, limit: int = MAX_DEPTH) -> None:
    """Raise BodyError if ``value`` nests deeper than ``limit``; never recurses."""
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            raise BodyError("invalid character '{' exceeded max depth")
        level = [
            below
            for each in level
            for below in (each.values() if isinstance(each, dict) else each)
            if isinstance(below, (dict, list))
        ]


def type_name(value: Any) -> str:
    """The word of Go's decoder for the type of a JSON value."""
    if value is None:
        return "null"
    return _TYPE_NAMES.get(type(value), "object")


class _Pairs(list[tuple[str, Any]]):
    """An object with its repeated fields still in it."""


def _loads(raw: bytes, text: str, pairs: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=pairs,
            parse_float=_float,
            parse_int=_integer,
            parse_constant=_not_json,
        )
    except json.JSONDecodeError as error:
        raise BodyError(_json_complaint(error, text)) from None
    except RecursionError:
        mark = "{" if raw.count(b"{") > raw.count(b"[") else "["
        raise BodyError(f"invalid character '{mark}' exceeded max depth") from None


def _integer(text: str) -> int | float:
    if len(text) > 20:
        return _float(text)
    value = int(text)
    return value if value in _INT64 else float(text)


def _float(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise _NumberRangeError(
            f"json: cannot unmarshal number {text[:40]} into Go value of type float64"
        )
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _not_json(text: str) -> NoReturn:
    raise BodyError(f"invalid character '{text[0]}' looking for beginning of value")


_AT_KEY: Final = "looking for beginning of object key string"
_CONTEXTS = {
    "Expecting value": "looking for beginning of value",
    "Extra data": "after top-level value",
    "Expecting property name enclosed in double quotes": _AT_KEY,
    "Illegal trailing comma before end of object": _AT_KEY,
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def _json_complaint(error: json.JSONDecodeError, text: str) -> str:
    position = error.pos
    if text.startswith("\ufeff"):
        return "invalid character '\u00ef' looking for beginning of value"
    if error.msg.startswith("Illegal trailing comma"):
        position += 1
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    context = _CONTEXTS.get(error.msg.rstrip(":"))
    if position >= len(text) or context is None:
        return "unexpected end of JSON input"
    mark = text[position]
    return f"invalid character '{chr(92) if mark == chr(39) else ''}{mark}' {context}"


def wrong_type(value: Any) -> str:
    """The complaint about a value where an object should be."""
    return (
        f"json: cannot unmarshal {type_name(value)} into Go value of type struct {{ "
        r'APIVersion string "json:\"apiVersion,omitempty\""; '
        r'Kind string "json:\"kind,omitempty\"" }'
    )


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, below in value:
            where = f"{path}.{name}" if path else name
            yield from _duplicates(below, where)
            if name in seen:
                yield f'duplicate field "{where}"'
            seen.add(name)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _duplicates(below, f"{path}[{index}]")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


_MAX_NODES: Final = 1_000_000
"""How many values a YAML body may have, aliases written out."""

_ALIAS: Final = re.compile(r"\*([\w-]+)")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value as JSON has it, and a complaint for each key that is there twice.

    The first of several documents counts.
    """
    if raw.lstrip()[:1] == b"{":
        try:
            return decode_json(raw)
        except BodyError:
            pass  # flow style that is not JSON
    text = raw.decode("utf-8", errors="replace")
    try:
        anchors = _read_events(text)
        loader = _YamlLoader(text)
        try:
            node = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BodyError(f"yaml: {_yaml_complaint(error, text)}") from None
    except (ValueError, RecursionError) as error:
        raise BodyError(f"yaml: {error}") from None
    if node is None:
        return None, ()
    reader = _YamlReader(anchors)
    return reader.value(node), tuple(reader.repeated)


def _read_events(text: str) -> dict[int, str]:
    """Where the first document has its anchors; BodyError if it nests too deeply."""
    depth = 0
    anchors: dict[int, str] = {}
    for event in yaml.parse(text, Loader=_SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise BodyError("yaml: exceeded max depth")
        if isinstance(event, yaml.DocumentEndEvent):
            break
        anchor = getattr(event, "anchor", None)
        if anchor is not None and event.start_mark is not None:
            anchors[event.start_mark.index] = anchor
    return anchors


_PLAIN: Final = "plain"
"""The tag of a scalar that has neither a tag nor quotes."""


class _YamlLoader(_SafeLoader):  # type: ignore[misc]
    """Composes nodes; it leaves open what a plain scalar stands for."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {None: [(_PLAIN, re.compile(""))]}


class _YamlReader:
    """Writes nodes out as values, aliases too, and counts: few lines cannot become gigabytes."""

    def __init__(self, anchors: dict[int, str]) -> None:
        self._anchors = anchors
        self._left = _MAX_NODES
        self._open: set[int] = set()
        self.repeated: list[str] = []

    def value(self, node: Any) -> Any:
        """What a node stands for."""
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_DEPTH:
            raise BodyError("yaml: document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node.tag, node.value)
        if id(node) in self._open:
            name = self._anchors.get(node.start_mark.index, "")
            raise BodyError(f"yaml: anchor '{name}' value contains itself")
        self._open.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            found: Any = [self.value(below) for below in node.value]
        else:
            found = self._mapping(node)
        self._open.remove(id(node))
        return found

    def _mapping(self, node: Any) -> Object:
        found: Object = {}
        merged: Object = {}
        for key, below in node.value:
            if key.tag == _PLAIN and key.value == "<<":
                merged = {**self._merged(below), **merged}
                continue
            name = self._key(key)
            if name in found:
                line = key.start_mark.line + 1
                quoted = f'"{name}"' if key.tag != _PLAIN or _is_text(key.value) else name
                self.repeated.append(f"line {line}: key {quoted} already set in map")
            found[name] = self.value(below)
        return {**merged, **found} if merged else found

    def _merged(self, node: Any) -> Object:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: Object = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                why = "map merge requires map or sequence of maps as the value"
                raise BodyError(f"yaml: {why}")
            merged = {**self.value(source), **merged}
        return merged

    def _key(self, node: Any) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise BodyError("yaml: invalid map key")
        value = _scalar(node.tag, node.value)
        if value is None:
            raise BodyError("unsupported map key of type: %!s(<nil>), key: <nil>")
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)


def _yaml_complaint(error: yaml.YAMLError, text: str) -> str:
    """The complaint of go-yaml about the same mistake, with the line as it counts them."""
    if isinstance(error, yaml.reader.ReaderError):
        return "control characters are not allowed"
    problem = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if isinstance(error, yaml.composer.ComposerError) and mark is not None:
        alias = _ALIAS.match(text, mark.index)
        if alias is not None:
            return f"unknown anchor '{alias[1]}' referenced"
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else problem


_Scalar = str | int | float | bool | None

_STANDARD: Final = "tag:yaml.org,2002:"
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE: Final = frozenset(
    ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
)
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_OLD_OCTAL: Final = re.compile(r"([-+]?)0([0-7]+)")
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?")
_RESOLVED: Final = frozenset({"bool", "int", "float", "null", "timestamp"})


def _scalar(tag: str, text: str) -> _Scalar:
    """The value of a scalar with this tag; BodyError if the tag does not fit the text."""
    if tag == _PLAIN:
        return _finite(_plain_scalar(text)[1])
    name = tag.removeprefix(_STANDARD)
    if name == "binary":
        try:
            return base64.b64decode(text, validate=True).decode(errors="replace")
        except binascii.Error:
            raise BodyError("yaml: !!binary value contains invalid base64 data") from None
    if name == tag or name not in _RESOLVED:
        return text
    found, value = _plain_scalar(text)
    if found == name:
        return _finite(value)
    if (name, found) == ("float", "int"):
        return value
    if name == "timestamp" and (is_date_time(text) or _is_date(text)):
        return text
    raise BodyError(f"yaml: cannot decode !!{found} `{text}` as a !!{name}")


def _is_text(plain: str) -> bool:
    """Whether a scalar without tag or quotes is a text all the same."""
    return _plain_scalar(plain)[0] == "str"


def _finite(value: _Scalar) -> _Scalar:
    """A number as JSON keeps it: whole ones as integers while they fit 64 bits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else float(value)
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        raise BodyError(f"json: unsupported value: {shown}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _plain_scalar(text: str) -> tuple[str, _Scalar]:
    if text in _NULL:
        return "null", None
    if text in _TRUE or text in _FALSE:
        return "bool", text in _TRUE
    if text[0] not in "+-.0123456789":
        return "str", text
    special = _SPECIAL.fullmatch(text)
    if special is not None:
        return "float", float(text.replace(".", ""))
    bare = text.replace("_", "")
    if _INTEGER.fullmatch(bare):
        value = int(_OLD_OCTAL.sub(r"\g<1>0o\2", bare) if _OLD_OCTAL.fullmatch(bare) else bare, 0)
        if -(2**63) <= value < 2**64:
            return "int", value
    if _FLOAT.fullmatch(bare) and text[:2] != "._" and math.isfinite(float(bare)):
        return "float", float(bare)
    return "str", text


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and is_date_time(f"{text}T00:00:00Z")


def decode_object(
    raw: bytes, kind: str, version: str = "v1", *, yaml_body: bool = False
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object of a create or replace, and its repeated fields; ApiError 400 if it is none.

    ``kind`` and ``version`` are what the path takes: messages name them.
    """
    try:
        value, duplicates = (decode_yaml if yaml_body else decode_json)(raw)
    except _NumberRangeError as error:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        ) from None
    except BodyError as error:
        why = str(error) if yaml_body else f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized(kind, why, raw) from None
    if value is None:
        raise _unrecognized(kind, f"Object 'Kind' is missing in '{raw.decode()}'", raw)
    if not isinstance(value, dict):
        why = f"couldn't get version/kind; json parse error: {wrong_type(value)}"
        raise _unrecognized(kind, why, raw)
    for field in ("apiVersion", "kind"):
        given = value.get(field)
        if given is not None and not isinstance(given, str):
            why = (
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{type_name(given)} into Go struct field .{field} of type string"
            )
            raise _unrecognized(kind, why, raw)
    return value, duplicates


def require_kind(body: dict[str, Any], kind: str, raw: bytes) -> None:
    """The body of a custom resource must have a kind; ApiError 400 if it has none."""
    if not body.get("kind"):
        missing = f"Object 'Kind' is missing in '{raw.decode(errors='replace')}'"
        raise _unrecognized(kind, missing, raw)


def _unrecognized(kind: str, why: str, raw: bytes) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({_excerpt(raw)})"
    )


def _excerpt(raw: bytes) -> str:
    """The beginning of a body, in hexadecimal unless it looks like a JSON object."""
    if not raw:
        return "<empty>"
    if raw.lstrip()[:1] != b"{":
        return raw[:30].hex() + (" ..." if len(raw) > 30 else "")
    return raw[:30].decode(errors="replace") + (" ..." if len(raw) > 30 else "")
