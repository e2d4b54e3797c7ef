"""How Go prints what a path finds: kubectl's plain text, its JSON, and ``fmt.Sprint``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.evaluate import NO_VALUE, Groups, kind

_HTML = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
        **{chr(code): "\ufffd" for code in range(0xD800, 0xE000)},
    }
)


def print_groups(groups: Groups) -> str:
    """What ``kubectl -o jsonpath=`` prints: a space inside a group, nothing between groups."""
    return "".join(" ".join(map(print_value, group)) for group in groups)


def print_json(groups: Groups) -> str:
    """What ``kubectl -o jsonpath-as-json=`` prints: one indented list for each group."""
    return "".join(
        _json([_plain(value) for value in group], indent="\n") + "\n" for group in groups
    )


def print_value(value: Any) -> str:
    """One value as kubectl prints it: containers as JSON, everything else bare."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return _json(value, indent="")
    return "null" if value is None else _scalar(value, null="<no value>")


def sprint(value: Any) -> str:
    """One value as ``fmt.Sprint`` prints it: ``map[a:1 b:<nil>]``, ``[1 2]``."""
    return _guarded(_sprint, value)


def _sprint(value: Any) -> str:
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_sprint(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_sprint, value))}]"
    return value if isinstance(value, str) else _scalar(value, null="<nil>")


def _scalar(value: Any, *, null: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value is NO_VALUE:
        return null
    named = kind(value)
    return str(int(value)) if named == "integer" else print_float(as_float(value))


def as_float(value: float) -> float:
    """A number as Go's float64, which is infinite where Python refuses the conversion."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def print_float(value: float) -> str:
    """A float64 as Go's ``%v``: shortest digits, an exponent from 1e+06 up and 1e-05 down."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = _digits(value)
    if not -4 <= exponent < 6:
        return _scientific(sign, digits, exponent, places=2)
    return _positional(value)


def _digits(value: float) -> tuple[str, str, int]:
    """The sign, the shortest digits, and the decimal exponent of the first digit."""
    negative, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    trailing = len(text) - len(text.rstrip("0"))
    text = text.rstrip("0") or "0"
    first = len(text) + trailing - 1 + int(exponent) if text != "0" else 0
    return "-" if negative else "", text, first


def _scientific(sign: str, digits: str, exponent: int, *, places: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    direction = "-" if exponent < 0 else "+"
    return f"{sign}{digits[0]}{fraction}e{direction}{abs(exponent):0{places}d}"


def _positional(value: float) -> str:
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _json_float(value: float) -> str:
    if not math.isfinite(value):
        return "1e999" if value > 0 else "-1e999"
    sign, digits, exponent = _digits(value)
    if value and not -6 <= exponent < 21:
        return _scientific(sign, digits, exponent, places=1)
    return _positional(value)


def _json(value: Any, *, indent: str) -> str:
    """Go's ``json.Marshal``: sorted keys, HTML escaped; indented if ``indent`` is a newline."""
    return _guarded(lambda each: _encode(each, indent), value)


def _encode(value: Any, indent: str) -> str:
    if isinstance(value, str):
        return _string(value)
    inner = indent and indent + "    "
    if isinstance(value, dict):
        colon = ": " if indent else ":"
        members = (f"{_string(key)}{colon}{_encode(value[key], inner)}" for key in sorted(value))
        return _enclosed("{", members, "}", indent, inner)
    if isinstance(value, list):
        return _enclosed("[", (_encode(each, inner) for each in value), "]", indent, inner)
    if kind(value) == "float":
        return _json_float(as_float(value))
    return _scalar(value, null="null")


def _enclosed(opening: str, members: Iterable[str], closing: str, indent: str, inner: str) -> str:
    body = f",{inner}".join(members)
    return f"{opening}{inner}{body}{indent}{closing}" if body else opening + closing


def _string(value: str) -> str:
    return encode_basestring(value).translate(_HTML)


def _plain(value: Any) -> Any:
    return None if value is NO_VALUE else value


def _guarded(write: Callable[[Any], str], value: Any) -> str:
    try:
        return write(value)
    except RecursionError:
        raise JSONPathError("the value is nested too deep to be printed") from None
