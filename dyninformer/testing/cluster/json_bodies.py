"""JSON as the server reads it, with the complaints that a Go server has.

Numbers come out as the server keeps them: integers that fit 64 bits exactly, everything
else as a float, whole floats as integers. Whatever is not UTF-8 becomes U+FFFD. A body that
would exhaust the stack or the memory (nesting, YAML aliases) is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

MAX_DEPTH: Final = 200
"""How deep a body may nest. The real server takes 10,000 levels, which no schema has."""

INT64: Final = range(-(2**63), 2**63)
"""The integers that are kept as they are."""
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
    return value if value in INT64 else float(text)


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
