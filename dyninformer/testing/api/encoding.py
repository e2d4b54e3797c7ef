"""JSON as Go writes it: escaping, number forms, key order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import yaml

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_sorted = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False
)

# What Python writes otherwise than Go: floats, and integers past int64. These look for them
# in finished JSON, first cheaply, then closely; a hit in a string costs time but no truth.
_MAYBE_NUMBER = re.compile(r"[:\[,]-?[0-9](?:[0-9]*[.eE]|[0-9]{18})")
_LIKELY_NUMBER = re.compile(r'(?:":|[\[,])-?[0-9](?:[0-9]*[.eE]|[0-9]{18})')
_ESCAPES = {each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_INT64 = 1 << 63


def encode(value: Any, *, sort: bool = True) -> bytes:
    r"""Compact JSON; ``sort`` False keeps the order of the keys (a Status, a struct).

    >>> encode({"b": 1e3, "a": "<é>"}).decode()
    '{"a":"\\u003cé\\u003e","b":1000}'
    """
    encoder = _sorted if sort else _compact
    text = encoder.encode(value)
    odd = _MAYBE_NUMBER.search(text) is not None and _LIKELY_NUMBER.search(text) is not None
    if odd or isinstance(value, float | int):
        text = "".join(_pieces(value, sort))
    return _escaped(text)


def pretty(data: bytes) -> bytes:
    """The same JSON document indented by two spaces, keys in the order they have.

    Numbers keep their text; the document ends with a newline, as the server's does.
    """
    out: list[str] = []
    depth = 0
    for part in _PART.findall(data.decode()):
        if part in ("{}", "[]"):
            out.append(part)
        elif part in "{[":
            depth += 1
            out.append(f"{part}\n{'  ' * depth}")
        elif part in "}]":
            depth -= 1
            out.append(f"\n{'  ' * depth}{part}")
        elif part == ",":
            out.append(f",\n{'  ' * depth}")
        elif part == ":":
            out.append(": ")
        else:
            out.append(part)
    return ("".join(out) + "\n").encode()


_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}\[\],:]|[^\s{}\[\],:"]+')


def _escaped(text: str) -> bytes:
    for special, escape in _ESCAPES.items():
        if special in text:
            text = text.replace(special, escape)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _pieces(value: Any, sort: bool) -> Iterator[str]:
    if isinstance(value, dict):
        opening = "{"
        for key in sorted(value) if sort else value:
            yield f"{opening}{_compact.encode(key)}:"
            yield from _pieces(value[key], sort)
            opening = ","
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        opening = "["
        for each in value:
            yield opening
            yield from _pieces(each, sort)
            opening = ","
        yield "]" if value else "[]"
    elif isinstance(value, float):
        yield _number(value)
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        yield _number(float(value))
    else:
        yield _compact.encode(value)


def _number(value: float) -> str:
    """The shortest digits that read back the same, with an exponent below 1e-6 and from 1e21."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - JSON has no infinities
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + exponent  # where the decimal point stands, counted from the first digit
    if -6 < point <= 21:
        if point <= 0:
            shown = "0." + "0" * -point + text
        elif point >= len(text):
            shown = text + "0" * (point - len(text))
        else:
            shown = f"{text[:point]}.{text[point:]}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        shown = f"{text[0]}{fraction}e{point - 1:+d}".replace("e-0", "e-")
    return f"-{shown}" if sign else shown


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BOOLEANS = re.compile(
    r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"
)


class _KubernetesDumper(_Dumper):  # type: ignore[misc]
    """Strings that would be read as something else, booleans of YAML 1.1 too, are quoted."""


def _string(dumper: Any, text: str) -> Any:
    """Double quotes for what a reader would take for another type, blocks for several lines."""
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    plain = dumper.resolve(yaml.ScalarNode, text, (True, False)) == tag
    return dumper.represent_scalar(tag, text, style=None if plain else '"')


# Copied list by list: PyYAML would add to the lists that all loaders and dumpers share.
_KubernetesDumper.yaml_implicit_resolvers = {
    first: list(found) for first, found in _Dumper.yaml_implicit_resolvers.items()
}
_KubernetesDumper.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEANS, list("yYnNtTfFoO"))
_KubernetesDumper.add_representer(str, _string)


def write_yaml(value: Any) -> bytes:
    """``value`` as the server writes it: keys sorted, block style, long lines folded."""
    text: str = yaml.dump(value, Dumper=_KubernetesDumper, allow_unicode=True, sort_keys=True)
    return text.encode()
