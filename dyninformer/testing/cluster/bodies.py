"""Bytes of a request body -> plain values, with the complaints that a Go server has.

Numbers come out as the server keeps them: integers that fit 64 bits exactly, everything
else as a float, whole floats as integers. Whatever is not UTF-8 becomes U+FFFD. A body that
would exhaust the stack or the memory (nesting, YAML aliases) is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn

import yaml

from dyninformer.testing.status import ApiError, bad_request

MAX_DEPTH: Final = 200
"""How deep a body may nest. The real server takes 10,000 levels, which no schema has."""
MAX_NODES: Final = 1_000_000
"""How many values a YAML body may come to, aliases written out."""

_INT64: Final = range(-(2**63), 2**63)
_TYPE_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyError(ValueError):
    """A body that cannot be read; the message is in the words of Go's decoders."""


class UnreadableError(ValueError):
    """A body that can be read but does not hold the kind of object it is meant to be."""


class NumberRangeError(BodyError):
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


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value as JSON has it, and a complaint for each key that is there twice."""
    if raw.lstrip()[:1] == b"{":
        try:
            return decode_json(raw)
        except BodyError:
            pass  # flow style that is not JSON
    text = raw.decode("utf-8", errors="replace")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise BodyError("yaml: exceeded max depth")
        loader = _Loader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BodyError(f"yaml: {_yaml_words(error)}") from None
    except (ValueError, RecursionError) as error:
        raise BodyError(f"yaml: {error}") from None
    return _Expansion().json(value), tuple(loader.repeated)


def decode_object(
    raw: bytes, kind: str, version: str = "v1", *, yaml_body: bool = False
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object of a create or replace, and its repeated fields; ApiError 400 if it is none.

    ``kind`` and ``version`` are what the path takes: messages name them.
    """
    try:
        value, duplicates = (decode_yaml if yaml_body else decode_json)(raw)
    except NumberRangeError as error:
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
    """A custom resource says itself what it is; ApiError 400 if it does not."""
    if not body.get("kind"):
        missing = f"Object 'Kind' is missing in '{raw.decode(errors='replace')}'"
        raise _unrecognized(kind, missing, raw)


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
        raise BodyError(_go_words(error, text)) from None
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
        raise NumberRangeError(
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
}  # fmt: skip


def _go_words(error: json.JSONDecodeError, text: str) -> str:
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


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML as the server reads it: dates stay strings, and repeated keys are told of."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, regexp) for tag, regexp in found if not tag.endswith(":timestamp")]
        for first, found in _SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.value.__hash__ is not None and (key.tag, key.value) in seen:
                line = key.start_mark.line + 1
                self.repeated.append(f'line {line}: key "{key.value}" already set in map')
            elif isinstance(key.value, str):
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


class _Expansion:
    """Writes aliases out, counting, so that a few lines cannot become gigabytes."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def json(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise BodyError("yaml: document contains excessive aliasing")
        if isinstance(value, dict):
            return {_key(key): self.json(below, depth + 1) for key, below in value.items()}
        if isinstance(value, (list, set, tuple)):
            return [self.json(below, depth + 1) for below in value]
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        if isinstance(value, float):
            if not math.isfinite(value):
                raise BodyError("json: unsupported value: " + str(value))
            return int(value) if value.is_integer() and abs(value) < 2**63 else value
        if isinstance(value, int) and not isinstance(value, bool) and value not in _INT64:
            return float(value)
        return value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    return str(key)


def _yaml_words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
