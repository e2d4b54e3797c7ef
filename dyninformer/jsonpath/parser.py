"""kubectl's dialect: text to nodes, accepting and refusing exactly what client-go does.

A template is a tuple of top-level nodes: text that stands for itself, and one `PathNode` for
each ``{...}``. Every node is immutable, so that one parsed template serves all threads.

The grammar has corners that look like accidents and are kept, because expressions in the
wild depend on them: a quoted key in brackets is parsed again as a path (``['a.b']`` is two
keys), a bracket ends at the first ``]`` whatever is quoted inside, a comma in brackets always
separates, a filter is cut at its first comparison sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from dyninformer.errors import JSONPathError
from dyninformer.jsonpath.text import explain


@dataclass(frozen=True, slots=True)
class TextNode:
    """Text outside of braces, or a quoted string inside them: printed as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class FieldNode:
    """``.name``: the value under a key."""

    name: str


@dataclass(frozen=True, slots=True)
class WordNode:
    """A bare word: ``range`` or ``end``; any other is an error when it is evaluated."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A number or a boolean, given once for each input."""

    value: bool | int | float


@dataclass(frozen=True, slots=True)
class WildcardNode:
    """``.*``: the values of a map or a list, the bytes of a string."""


@dataclass(frozen=True, slots=True)
class DescentNode:
    """``..``: the value and everything below it that has something below it."""


@dataclass(frozen=True, slots=True)
class SliceNode:
    """``[start:stop:step]``; ``[n]`` is the slice from n to n+1, and then ``single`` is true."""

    start: int | None
    stop: int | None
    step: int | None
    single: bool


@dataclass(frozen=True, slots=True)
class UnionNode:
    """``[a,b]``: what each part finds, one part after the other."""

    parts: tuple[PathNode, ...]


@dataclass(frozen=True, slots=True)
class FilterNode:
    """``[?(left operator right)]``; the operator ``exists`` has no right side."""

    left: PathNode
    operator: str
    right: PathNode
    column: int


@dataclass(frozen=True, slots=True)
class PathNode:
    """The nodes of one ``{...}``, each applied to what the one before it found."""

    nodes: tuple[Node, ...]


Node: TypeAlias = (
    TextNode
    | FieldNode
    | WordNode
    | LiteralNode
    | WildcardNode
    | DescentNode
    | SliceNode
    | UnionNode
    | FilterNode
    | PathNode
)
Template: TypeAlias = tuple[TextNode | PathNode, ...]

MAX_LENGTH = 8192
"""The longest expression that is read; kubectl's own stop at what a command line holds."""

_MAX_NESTING = 16
_INT64 = 1 << 63

_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_NAME_END = frozenset(" \t\r\n.,[]$@{}")


def parse(template: str, *, source: str | None = None, shift: int = 0) -> Template:
    """The nodes of a whole template, or JSONPathError with the column and the likely fix.

    ``source`` is what the user wrote, when the template was made from it; ``shift`` is added
    to a place in the template to get the place in the source.
    """
    shown = template if source is None else source
    if len(template) > MAX_LENGTH:
        raise JSONPathError(
            f"the expression has {len(template)} characters, more than the {MAX_LENGTH} allowed"
        )
    return tuple(_Parser(template, shown, shift, 0).template())


class _Parser:
    """One pass over one text; brackets and filters start another over a part of it."""

    def __init__(self, text: str, source: str, shift: int, nesting: int) -> None:
        self.text = text
        self.source = source
        self.shift = shift
        self.nesting = nesting
        self.at = 0

    def template(self) -> list[TextNode | PathNode]:
        parts: list[TextNode | PathNode] = []
        while self.at < len(self.text):
            opening = self.text.find("{", self.at)
            if opening < 0:
                parts.append(TextNode(self.text[self.at :]))
                break
            if opening > self.at:
                parts.append(TextNode(self.text[self.at : opening]))
            self.at = opening + 1
            parts.append(self.braced(opening))
        return parts

    def braced(self, opening: int) -> PathNode:
        """The nodes up to the closing brace; the place is just behind it afterwards."""
        nodes: list[Node] = []
        text = self.text
        while not text.startswith("}", self.at):
            if self.at >= len(text) or text[self.at] in "\r\n":
                raise self.error("the brace opened here is not closed on its line", opening)
            self.step(nodes, text[self.at])
        self.at += 1
        return PathNode(tuple(nodes))

    def step(self, nodes: list[Node], char: str) -> None:
        """Read one node, or skip one character that means nothing."""
        text = self.text
        if text.startswith("[?(", self.at):
            nodes.append(self.filter())
        elif text.startswith("..", self.at):
            self.descent(nodes)
        elif char in " @$":
            self.at += 1
        elif char == "[":
            self.bracket(nodes)
        elif char in "\"'":
            nodes.append(TextNode(self.quoted(char)))
        elif char == ".":
            self.at += 1
            nodes.append(self.field())
        elif char in "+-" or char.isdecimal():
            nodes.append(self.number())
        elif _is_name_start(char):
            nodes.append(self.word())
        else:
            raise self.error(f"{char!r} means nothing here", self.at)

    def field(self) -> Node:
        start = self.at
        text = self.text
        while self.at < len(text) and text[self.at] not in _NAME_END:
            self.at += 2 if text[self.at] == "\\" else 1
        self.at = min(self.at, len(text))
        name = text[start : self.at]
        return WildcardNode() if name == "*" else FieldNode(name.replace("\\", ""))

    def word(self) -> Node:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _NAME_END:
            self.at += 1
        name = self.text[start : self.at]
        if name in {"true", "false"}:
            return LiteralNode(name == "true")
        return WordNode(name, self.column(start))

    def descent(self, nodes: list[Node]) -> None:
        if nodes and isinstance(nodes[-1], DescentNode):
            raise self.error("'..' cannot follow '..'", self.at)
        self.at += 2
        nodes.append(DescentNode())
        if self.at < len(self.text) and _is_name_start(self.text[self.at]):
            nodes.append(self.field())

    def number(self) -> Node:
        start = self.at
        self.at += self.text[start] in "+-"
        while self.at < len(self.text) and (
            self.text[self.at] == "." or self.text[self.at].isdecimal()
        ):
            self.at += 1
        digits = self.text[start : self.at]
        if _INTEGER.fullmatch(digits) and (whole := _int64(digits)) is not None:
            return LiteralNode(whole)
        if _DECIMAL.fullmatch(digits) and abs(number := float(digits)) != float("inf"):
            return LiteralNode(number)
        raise self.error(f"{digits!r} is not a number", start)

    def quoted(self, quote: str) -> str:
        start = self.at
        self.at += 1
        while True:
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                raise self.error("the quote opened here is not closed", start)
            self.at += 1
            if self.text[self.at - 1] == quote and self.text[self.at - 2] != "\\":
                break
        body = self.text[start + 1 : self.at - 1]
        try:
            return _unquote(body, quote) if "\\" in body else body
        except ValueError as bad:
            raise self.error(f"{bad} in the quoted text", start) from None

    def bracket(self, nodes: list[Node]) -> None:
        opening = self.at
        closing = self.text.find("]", opening)
        newline = self.text.find("\n", opening)
        if closing < 0 or 0 <= newline < closing:
            raise self.error("the bracket opened here is not closed", opening)
        self.at = closing + 1
        body = self.text[opening + 1 : closing]
        if body == "*":
            nodes.append(SliceNode(None, None, None, single=False))
        elif "," in body:
            nodes.append(self.union(body, opening + 1))
        elif key := _KEY.fullmatch(body):
            # The key stands at opening + 2; in the text that is parsed, behind "{.".
            nodes.extend(self.inner(f".{key[1]}", opening + 1).nodes)
        else:
            nodes.append(self.slice(body, opening))

    def union(self, body: str, start: int) -> Node:
        parts: list[PathNode] = []
        for part in body.split(","):
            trimmed = part.strip(" ")
            inside = start + len(part) - len(part.lstrip(" "))
            parts.append(self.inner(f"[{trimmed}]", inside - 1))
            start += len(part) + 1
        return UnionNode(tuple(parts))

    def slice(self, body: str, opening: int) -> Node:
        match = _SLICE.fullmatch(body)
        if match is None:
            raise self.error(f"[{body}] is no index, slice or quoted key", opening)
        start, stop, step = (self.bound(text, opening) for text in match.groups(default=""))
        single = not match[2]
        return SliceNode(start, (start or 0) + 1 if single else stop, step, single)

    def bound(self, text: str, opening: int) -> int | None:
        digits = text.removeprefix(":")
        if not digits:
            return None
        number = None if digits == "-" else _int64(digits)
        if number is None:
            raise self.error(f"{digits!r} is no number that an index can be", opening)
        return number

    def filter(self) -> Node:
        opening = self.at
        self.at += len("[?(")
        start = self.at
        self.skip_filter(opening)
        body = self.text[start : self.at - 1]
        if not self.text.startswith("]", self.at):
            raise self.error("')' ends the filter, so ']' must follow it", self.at)
        self.at += 1
        column = self.column(opening)
        match = _COMPARISON.fullmatch(body)
        if match is None:
            return FilterNode(self.inner(body, start), "exists", PathNode(()), column)
        left = self.inner(match[1], start)
        right = self.inner(match[3], start + match.start(3))
        return FilterNode(left, match[2], right, column)

    def skip_filter(self, opening: int) -> None:
        """Go behind the first ``)`` that is not inside the first quoted string."""
        quote = ""
        closed = True
        while True:
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                raise self.error("the filter opened here is not closed by ')]'", opening)
            char = self.text[self.at]
            self.at += 1
            if char in "\"'":
                if not quote:
                    quote, closed = char, False
                elif char == quote and self.text[self.at - 2] != "\\":
                    closed = True
            elif char == ")" and closed:
                return

    def inner(self, text: str, start: int) -> PathNode:
        """Parse a part as a path of its own, as if it stood in braces at ``start``."""
        if self.nesting >= _MAX_NESTING:
            raise self.error("brackets nested too deep", start)
        template = "{" + text + "}"
        parser = _Parser(template, self.source, self.shift + start - 1, self.nesting + 1)
        parser.at = 1
        # A '}' inside the part ends it there, and what follows is dropped, as client-go does;
        # it is parsed all the same, because client-go refuses what is malformed.
        path = parser.braced(0)
        parser.template()
        return path

    def column(self, at: int) -> int:
        return max(1, min(self.shift + at + 1, len(self.source) + 1))

    def error(self, problem: str, at: int) -> JSONPathError:
        return explain(self.source, problem, self.column(at))


def _int64(digits: str) -> int | None:
    """The number, or None past 64 bits; Python itself refuses to convert thousands of digits."""
    if len(digits.lstrip("+-").lstrip("0")) > len(str(_INT64)):
        return None
    number = int(digits[-32:] if digits[0] not in "+-" else digits[0] + digits[1:][-32:])
    return number if -_INT64 <= number < _INT64 else None


def _is_name_start(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


# -- the escapes of a quoted text, which are Go's ------------------------------------------

_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def _unquote(body: str, quote: str) -> str:
    """Go's escapes of a quoted string; ValueError for one that Go refuses."""
    out = bytearray()
    at = 0
    while at < len(body):
        char = body[at]
        if char == quote:
            raise ValueError(f"a {quote} of its own")
        if char != "\\":
            out += char.encode("utf-8", "replace")
            at += 1
            continue
        piece, at = _escape(body, at + 1, quote)
        out += piece
    return out.decode("utf-8", "replace")


def _escape(body: str, at: int, quote: str) -> tuple[bytes, int]:
    """The bytes of the escape whose letter stands at ``at``, and the place behind it."""
    char = body[at : at + 1]
    bad = ValueError(f"the escape '\\{char}' is unknown")
    if char in _ESCAPES and char:
        return _ESCAPES[char].encode(), at + 1
    if char in _HEX_DIGITS:
        digits = body[at + 1 : at + 1 + _HEX_DIGITS[char]]
        if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX_DIGITS[char]}}}", digits):
            raise bad
        code = int(digits, 16)
        if char == "x":
            return bytes([code]), at + 3
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise bad
        return chr(code).encode(), at + 1 + len(digits)
    if re.fullmatch("[0-7]{3}", octal := body[at : at + 3]) and int(octal, 8) <= 0xFF:
        return bytes([int(octal, 8)]), at + 3
    if char == quote:
        return quote.encode(), at + 1
    raise bad
