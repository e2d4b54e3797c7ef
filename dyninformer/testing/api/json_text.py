"""Reading JSON as Go does: its numbers, its leniency with Unicode, its complaints."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_INT64 = range(-(1 << 63), 1 << 63)
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATES = re.compile("[\ud800-\udfff]")


class JsonTextError(ValueError):
    """What is wrong with the text, in the words of Go's encoding/json."""


class _Repeated(dict[str, Any]):
    """An object in which a key came twice; the last value counts, as in Go."""

    keys_repeated: tuple[str, ...] = ()


def read_json(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value in ``body``, and the paths of keys that were given twice.

    Whole numbers beyond 64 bits become floats, bytes that are no UTF-8 and halves of
    surrogate pairs become U+FFFD. Raises JsonTextError.
    """
    text = body.decode("utf-8", "replace")
    repeated: list[_Repeated] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) == len(found):
            return made
        odd = _Repeated(made)
        seen: set[str] = set()
        odd.keys_repeated = tuple(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        repeated.append(odd)
        return odd

    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise JsonTextError(_complaint(text, error)) from error
    except RecursionError as error:
        raise JsonTextError("exceeded max depth") from error
    if _LONE_SURROGATE.search(body):
        value = _without_surrogates(value)
    if not repeated:
        return value, ()
    paths: list[str] = []
    value = _plain(value, "", paths)
    return value, tuple(paths)


def go_type(value: object) -> str:
    """What Go calls the JSON type of ``value``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _integer(text: str) -> int | float:
    if len(text) < 19:
        return int(text)
    number = _float(text)
    exact = int(text) if len(text) <= 20 else None
    return exact if exact is not None and exact in _INT64 else number


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonTextError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _constant(name: str) -> float:
    if name == "-Infinity":
        raise JsonTextError("invalid character 'I' in numeric literal")
    raise JsonTextError(f"invalid character '{name[0]}' looking for beginning of value")


def _plain(value: Any, path: str, paths: list[str]) -> Any:
    """The same value of plain dicts; ``paths`` collects what was repeated, as Go names it."""
    if isinstance(value, list):
        return [_plain(each, f"{path}[{at}]", paths) for at, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    start = f"{path}." if path else ""
    if isinstance(value, _Repeated):
        paths += [f"{start}{key}" for key in value.keys_repeated]
    return {key: _plain(each, f"{start}{key}", paths) for key, each in value.items()}


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


def _complaint(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    if error.msg.startswith("Unterminated string") or not text[at:].strip():
        return "unexpected end of JSON input"
    if error.msg.startswith("Invalid control character"):
        return f"invalid character {_quoted(text[at])} in string literal"
    if error.msg.startswith("Invalid \\u"):
        digits = re.compile(r"[0-9A-Fa-f]*").match(text, at + 1)
        odd = text[digits.end() : digits.end() + 1] if digits else ""
        return f"invalid character {_quoted(odd)} in \\u hexadecimal character escape"
    if error.msg.startswith("Invalid \\"):
        return f"invalid character {_quoted(text[at + 1 : at + 2])} in string escape code"
    at += len(text[at:]) - len(text[at:].lstrip())
    return f"invalid character {_quoted(text[at])} {_expectation(text, at, error.msg)}"


def _expectation(text: str, at: int, message: str) -> str:
    if message.startswith("Expecting property name"):
        return "looking for beginning of object key string"
    if message.startswith("Expecting ':'"):
        return "after object key"
    if message.startswith("Expecting ','"):
        return "after array element" if _inside(text[:at]) == "[" else "after object key:value pair"
    if message.startswith("Extra data"):
        return "after top-level value"
    return "looking for beginning of value"


def _inside(text: str) -> str:
    """The bracket that is open at the end of ``text``."""
    open_: list[str] = []
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        mark = token[0]
        if mark in "[{":
            open_.append(mark)
        elif mark in "]}" and open_:
            open_.pop()
    return open_[-1] if open_ else ""


def _quoted(character: str) -> str:
    if character == "'":
        return "'\\''"
    escaped = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}.get(character)
    if escaped is None and ord(character or "\0") < 32:
        escaped = f"\\x{ord(character or chr(0)):02x}"
    return f"'{escaped or character}'"
