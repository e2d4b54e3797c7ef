"""JSON values as kubectl prints them in YAML and JSON, to the letter: diff finds nothing.

kubectl's YAML is libyaml's, in go-yaml's port: which strings are quoted, and how, where long lines
are folded, how numbers look. A YAML library can be made to print most of that, at ten times the
cost; here it is one pass over plain JSON values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cmp_to_key, lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

Style: TypeAlias = Literal["plain", "single", "double", "literal"]

_LARGEST_POWER: Final = 6
"""The power of ten from which on a float has an exponent."""
_WIDTH: Final = 80
"""A line is folded at the first space behind this column."""
_INT64: Final = -(1 << 63)
_LONGEST_KEY: Final = 128
"""Bytes of a key, from which on it stands on a line of its own behind a question mark."""

_WORDS: Final = frozenset(
    word
    for lower in ("y", "yes", "on", "n", "no", "off", "true", "false", "null")
    for word in (lower, lower.capitalize(), lower.upper())
) | {"", "~", ".nan", ".NaN", ".NAN"} | {
    sign + infinity for sign in ("", "+", "-") for infinity in (".inf", ".Inf", ".INF")
}  # fmt: skip
"""What YAML 1.1 reads as a boolean, a null or a float."""
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INTEGER: Final = re.compile(r"[-+]?0([xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)\Z")
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]*)?(Z|[-+][0-9]{2}:[0-9]{2})?)?\Z"
)
# What a plain scalar cannot have at its beginning, inside, and at its end, in a block.
_INDICATORS: Final = re.compile(
    r"""---|\.\.\.|[#,\[\]{}&*!|>'"%@`]|[?:-](?=[ \n]|\Z)|.*?(?::(?=[ \n]|\Z)|[ \n]\#)""", re.DOTALL
)
# What is not among the printable ones, in the form that takes a tenth of the time to compile.
_SPECIAL: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe-\U0010ffff]")
_UNREADABLE: Final = re.compile(
    r"[\x00-\x1f\"\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe-\U0010ffff]"
)
_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f",
    "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\xa0": "\\_",
    "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip
_EXPONENT: Final = re.compile(r"^(\s*(?:\"(?:[^\"\\]|\\.)*\": )?-?[0-9.]+)e([0-9])", re.MULTILINE)
_ANY_EXPONENT: Final = re.compile(r"e[0-9]+,?$", re.MULTILINE)
_HTML: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def as_json(value: Any) -> str:
    """Indented by four, keys in order."""
    text = msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=4).decode()
    if _ANY_EXPONENT.search(text):  # few have one, and replacing takes longer than all the rest
        text = _EXPONENT.sub(r"\1e+\2", text)
    return text.translate(_HTML)


def as_yaml(value: Any) -> str:
    """Block style, keys in order, without a line end."""
    lines: list[str] = []
    _node(lines, "", value, 0, in_mapping=False)
    return "\n".join(lines)


def _node(lines: list[str], before: str, value: Any, indent: int, *, in_mapping: bool) -> None:
    """Add a value, whose first line begins with ``before``, and its others with the indent.

    ``before`` is a key with its colon, or the dashes of the lists that the value is first in.
    """
    if type(value) is dict and value:
        if in_mapping:
            lines.append(before)
            before, indent = "", indent + 2
        first = before
        margin = " " * indent
        for key in ordered(tuple(value)):
            text = _key(key)
            if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_KEY or "\n" in key:
                lines.append(f"{first or margin}? {text}")
                _node(lines, f"{margin}: ", value[key], indent + 2, in_mapping=False)
            else:
                _node(lines, f"{first or margin}{text}:", value[key], indent, in_mapping=True)
            first = ""
        return
    if type(value) is list and value:
        first = before
        if in_mapping:  # its dashes stand right below the key
            lines.append(before)
            first = ""
        margin = " " * indent
        for each in value:
            head = f"{first or margin}- "
            first = ""
            _node(lines, head, each, indent + 2, in_mapping=False)
        return
    lead = f"{before} " if in_mapping else before
    if type(value) is str:
        # What follows the first line stands two columns to the right of the key or the dash.
        _string(lines, lead, value, indent + 2 if in_mapping else max(indent, 2))
    else:
        lines.append(lead + _other(value))


@lru_cache(maxsize=1 << 12)
def ordered(keys: tuple[str, ...]) -> tuple[str, ...]:
    """In the order of go-yaml: as text, but numbers in it by their size."""
    return tuple(sorted(keys, key=cmp_to_key(_compared)))


def _compared(one: str, other: str) -> int:
    """Below zero if ``one`` comes first: decided at the first character that differs."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return len(one) - len(other)
    a, b = one[at], other[at]
    if a.isalpha() or b.isalpha():
        return -1 if (b.isalpha() if a.isalpha() != b.isalpha() else a < b) else 1
    # Zeros behind a digit other than zero belong to the number that it begins.
    within = "0" in (a, b) and bool(one[_number_start(one, at) : at].strip("0"))
    numbers = [("1" if within else "") + _digits(text, at) for text in (one, other)]
    values = [int(each or "0") for each in numbers]
    if values[0] != values[1]:
        return values[0] - values[1]
    if len(numbers[0]) != len(numbers[1]):
        return len(numbers[0]) - len(numbers[1])
    return -1 if a < b else 1


def _digits(text: str, start: int) -> str:
    end = start
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[start:end]


def _number_start(text: str, end: int) -> int:
    while end and text[end - 1].isdecimal():
        end -= 1
    return end


def _key(key: str) -> str:
    style, text = _scalar(key)
    return _double(key) if style == "literal" else text


def _other(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float) or (isinstance(value, int) and not _INT64 <= value < -2 * _INT64):
        return _float(float(value))
    if value == {}:
        return "{}"
    return "[]" if value == [] else str(value)


def _float(value: float) -> str:
    """As Go's %g prints it: the shortest digits, with an exponent from 1e+06 on and below 1e-4."""
    if value != value:  # noqa: PLR0124 - not a number
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures = "".join(map(str, digits))
    tens = len(figures) + int(exponent) - 1  # of the first figure
    minus = "-" if sign else ""
    if not -4 <= tens < _LARGEST_POWER:
        point = "." if len(figures) > 1 else ""
        power = f"{'-' if tens < 0 else '+'}{abs(tens):02d}"
        return f"{minus}{figures[0]}{point}{figures[1:]}e{power}"
    if tens < 0:
        return f"{minus}0.{'0' * (-tens - 1)}{figures}"
    whole, rest = figures[: tens + 1].ljust(tens + 1, "0"), figures[tens + 1 :]
    return f"{minus}{whole}{'.' if rest else ''}{rest}"


def _string(lines: list[str], lead: str, value: str, indent: int) -> None:
    style, text = _scalar(value) if len(value) <= _CACHED else _styled(value)
    if style == "literal":
        lines.append(lead + _literal_header(value))
        margin = " " * indent
        lines.extend(margin + line if line else "" for line in text.split("\n"))
        return
    if len(lead) + len(text) <= _WIDTH or " " not in text:
        lines.append(lead + text)
        return
    lines.extend(_folded(lead, text, style, indent))


_CACHED: Final = 200
"""Characters of a string whose style is remembered: names and values that come again and again."""


@lru_cache(maxsize=1 << 14)
def _scalar(text: str) -> tuple[Style, str]:
    return _styled(text)


def _styled(text: str) -> tuple[Style, str]:
    """The style that go-yaml chooses, and the text in it on one line; of a literal, its lines."""
    special = _SPECIAL.search(text) is not None
    space_break = " \n" in text
    edges = text[:1] in (" ", "\n") or text[-1:] in (" ", "\n")
    if "\n" in text:
        if special or space_break or text.endswith(" "):
            return "double", _double(text)
        return "literal", text.removesuffix("\n")
    if _means_something_else(text):
        return "double", _double(text)
    if special:
        return "double", _double(text)
    if edges or _INDICATORS.match(text):
        return "single", f"'{text.replace(chr(39), chr(39) * 2)}'"
    return "plain", text


def _means_something_else(text: str) -> bool:
    """Read as YAML without quotes it would be no string."""
    if text in _WORDS:
        return True
    if text[0] not in "0123456789+-.":
        return False
    if text[0] == ".":
        return _DECIMAL.match(text) is not None
    digits = text.replace("_", "")
    return any(
        pattern.match(each) is not None
        for pattern, each in (
            (_DECIMAL, digits), (_INTEGER, digits), (_BASE_60, text), (_TIME, text),
        )
    )  # fmt: skip


def _double(text: str) -> str:
    if text[:1] == "\ufeff":  # go-yaml takes each of its characters for a byte order mark
        return f'"{"".join(map(_spelled, text))}"'
    return f'"{_UNREADABLE.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    return _spelled(found[0])


def _spelled(character: str) -> str:
    short = _ESCAPES.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _literal_header(text: str) -> str:
    """``|``, how far its lines are indented where that is not plain to see, and how it ends."""
    hint = "2" if text[0] in " \n" else ""
    if not text.endswith("\n"):
        return f"|{hint}-"
    return f"|{hint}+" if text == "\n" or text.endswith("\n\n") else f"|{hint}"


def _folded(lead: str, text: str, style: Style, indent: int) -> Iterable[str]:
    """The lines of a long scalar: each ends at the first single space behind the width."""
    margin = " " * indent
    line = lead
    last = len(text) - 1
    previous_space = False
    at = 0
    while at <= last:
        character = text[at]
        if character != " ":
            line += character
            previous_space = False
            at += 1
            continue
        breaks = not previous_space and len(line) > _WIDTH
        follows = text[at + 1] if at < last else ""
        if style == "plain":
            breaks = breaks and follows != " "
        elif style == "single":
            breaks = breaks and 1 < at < last - 1 and follows != " "
        else:
            breaks = breaks and 1 < at < last - 1
        if breaks:
            yield line
            line = margin
            if style == "double" and follows == " ":
                line += "\\"
        else:
            line += " "
        previous_space = True
        at += 1
    yield line
