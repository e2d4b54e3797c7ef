"""What a scalar of YAML stands for, by the rules of the server's reader (YAML 1.1, nearly).

They are not PyYAML's: ``n`` is false, ``1e3`` a number, ``12:30`` a text and so is a date.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

from dyninformer.testing.cluster.json_bodies import INT64, BodyError
from dyninformer.testing.cluster.timestamps import is_date_time

Scalar = str | int | float | bool | None

PLAIN: Final = "plain"
"""The tag of a scalar that has neither a tag nor quotes."""
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


def scalar(tag: str, text: str) -> Scalar:
    """The value of a scalar with this tag; BodyError if the tag does not fit the text."""
    if tag == PLAIN:
        return finite(_plain(text)[1])
    name = tag.removeprefix(_STANDARD)
    if name == "binary":
        try:
            return base64.b64decode(text, validate=True).decode(errors="replace")
        except binascii.Error:
            raise BodyError("yaml: !!binary value contains invalid base64 data") from None
    if name == tag or name not in _RESOLVED:
        return text
    found, value = _plain(text)
    if found == name:
        return finite(value)
    if (name, found) == ("float", "int"):
        return value
    if name == "timestamp" and (is_date_time(text) or _is_date(text)):
        return text
    raise BodyError(f"yaml: cannot decode !!{found} `{text}` as a !!{name}")


def is_text(plain: str) -> bool:
    """Whether a scalar without tag or quotes is a text all the same."""
    return _plain(plain)[0] == "str"


def finite(value: Scalar) -> Scalar:
    """A number as JSON keeps it: whole ones as integers while they fit 64 bits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, int):
        return value if value in INT64 else float(value)
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        raise BodyError(f"json: unsupported value: {shown}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _plain(text: str) -> tuple[str, Scalar]:
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
