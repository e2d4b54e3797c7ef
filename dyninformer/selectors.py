"""Label and field selectors: parsed as the API server parses them, evaluated here.

A selector that the server would refuse is refused with the server's own words, so a
user reads the same complaint whether it is the server or the cache that is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dyninformer.errors import SelectorError

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelRequirement",
    "LabelSelector",
    "SelectorError",
    "escape_field_value",
]


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label; ``operator`` is in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it; a label that is not there meets notin and !."""
        found: object = labels.get(self.key)
        # A malformed object has anything there.
        return self.is_met_by(found if isinstance(found, str) else None)

    def is_met_by(self, value: str | None) -> bool:
        """Whether this value of the label meets it; None is a label that is not there."""
        if self.operator == "in":
            return value in self.values
        if self.operator == "notin":
            return value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        number = _parse_go_int(value)
        if number is None:
            return False
        bound = int(next(iter(self.values)))
        return number > bound if self.operator == "gt" else number < bound


LabelRequirements = tuple[LabelRequirement, ...]


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions on labels, all of which must hold; falsy when there are none.

    >>> LabelSelector.parse("app in (web, api), !canary").matches({"app": "web"})
    True
    """

    requirements: LabelRequirements = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Raises SelectorError, worded as the API server's 400 is."""
        _check_text(text)
        return cls(tuple(_LabelParser(text).requirements()))

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected; None is one without."""
        found = labels or {}
        return all(requirement.matches(found) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """``field`` has, or does not have, exactly this text."""

    field: str
    value: str
    equal: bool = True


FieldRequirements = tuple[FieldRequirement, ...]


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions on fields, all of which must hold; falsy when there are none.

    >>> FieldSelector.parse("metadata.name!=a").matches({"metadata.name": "b"}.__getitem__)
    True
    """

    requirements: FieldRequirements = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Raises SelectorError, worded as the API server's 400 is; any field name is accepted."""
        _check_text(text)
        found = []
        for term in sorted(_split_terms(text)):
            if not term:
                continue
            match = _FIELD_TERM.fullmatch(term)
            if match is None:
                raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
            field, operator, value = match.groups()
            if field or value:  # the server ignores a bare operator
                found.append(FieldRequirement(field, _unescape(value), operator != "!="))
        return cls(tuple(found))

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def exact(self, field: str) -> str | None:
        """The one value that ``field`` must have, None if it need not have a certain one."""
        found = (each.value for each in self.requirements if each.equal and each.field == field)
        return next(found, None)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Whether an object is selected; ``value_of`` gives a field's text, "" if it is not set."""
        return all((value_of(each.field) == each.value) == each.equal for each in self.requirements)


def escape_field_value(value: str) -> str:
    r"""A value as it must be written in a field selector.

    >>> escape_field_value("a=b,c")
    'a\\=b\\,c'
    """
    return re.sub(r"([\\,=])", r"\\\1", value)


def _check_text(text: str) -> None:
    """Raise SelectorError for what cannot be sent, such as half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SelectorError(
            f"invalid selector: {text[error.start : error.end]!a}, at character {error.start}, "
            "is no text"
        ) from None


_FIELD_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


def _split_terms(text: str) -> Iterator[str]:
    """The parts between commas that no backslash precedes."""
    start = 0
    for match in re.finditer(r"\\.|,", text, re.DOTALL):
        if match.group() == ",":
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _unescape(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped, bare = match.groups()
        if bare:
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(bare)}"
            )
        if escaped not in ("\\", ",", "=") or not escaped:
            raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
        return str(escaped)

    return _ESCAPED.sub(plain, value)


# The label grammar. A token is (kind, text): kind is the symbol itself, "id" or "end";
# in and notin are identifiers wherever no operator can stand.

Token = tuple[str, str]

# Blanks are Go's: other spaces of Unicode are part of a word, as for the server.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[()!=,<>])|([^ \t\r\n()!=,<>]+)|(\Z))")
_OPERATORS = {
    "in": "in",
    "=": "in",
    "==": "in",
    "notin": "notin",
    "!=": "notin",
    ">": "gt",
    "<": "lt",
}


class _LabelParser:
    """A cursor over the tokens of one selector."""

    def __init__(self, text: str) -> None:
        self._tokens: list[Token] = []
        position = 0
        while not self._tokens or self._tokens[-1][0] != "end":
            match = _TOKEN.match(text, position)
            assert match is not None  # noqa: S101 - the three alternatives cover every string
            symbol, word, _ = match.groups()
            self._tokens.append((symbol or ("id" if word else "end"), symbol or word or ""))
            position = match.end()
        self._next = 0

    def requirements(self) -> Iterator[LabelRequirement]:
        kind, text = self._peek()
        while kind != "end":
            if kind not in ("id", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._take()
            if kind == "end":
                return
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("id", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token[0] != "end":
            self._next += 1
        return token

    def _requirement(self) -> LabelRequirement:
        kind, key = self._take()
        absent = kind == "!"
        if absent:
            kind, key = self._take()
        if kind != "id":
            raise SelectorError(f"found '{key}', expected: identifier")
        _check_key(key)
        if absent:
            return LabelRequirement(key, "!")
        if self._peek()[0] in ("end", ","):
            return LabelRequirement(key, "exists")
        _, sign = self._take()
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if sign in ("in", "notin") else self._value()
        _check_values(key, operator, sorted(values))
        return LabelRequirement(key, operator, frozenset(values))

    def _value(self) -> set[str]:
        if self._peek()[0] in ("end", ","):
            return {""}
        kind, text = self._take()
        if kind != "id":
            raise SelectorError(f"found '{text}', expected: identifier")
        return {text}

    def _values(self) -> set[str]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        if self._peek()[0] not in ("id", ",", ")"):
            raise SelectorError(f"found '{self._peek()[1]}', expected: ',', ')' or identifier")
        values: set[str] = set()
        after_comma = True  # an empty place between commas or parentheses is the empty value
        while True:
            kind, text = self._take()
            if kind == "id":
                values.add(text)
                after_comma = False
                if self._peek()[0] not in (",", ")"):
                    raise SelectorError(f"found '{self._peek()[1]}', expected: ',' or ')'")
            elif kind in (",", ")"):
                if after_comma:
                    values.add("")
                if kind == ")":
                    return values
                after_comma = True
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")


# Which label keys and values are valid, and what the API server says of those that are not.

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ALPHABET = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_NAME_RULE = (
    f"{_ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME.pattern}')"
)
_DNS_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_DNS.pattern}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    f"  or '12345', regex used for validation is '({_NAME.pattern})?')"
)


def _check_key(key: str) -> None:
    """Raises SelectorError, with every rule that the key breaks."""
    complaints = list(_key_complaints(key))
    if complaints:
        raise SelectorError(f"<nil>: Invalid value: {go_quoted(key)}: {'; '.join(complaints)}")


def _key_complaints(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield (
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        if len(prefix.encode()) > 253:
            yield "prefix part must be no more than 253 bytes"
        if not _DNS.fullmatch(prefix):
            yield f"prefix part {_DNS_RULE}"
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > 63:
        yield "name part must be no more than 63 bytes"
    if not _NAME.fullmatch(name):
        yield f"name part {_NAME_RULE}"


def _check_values(key: str, operator: str, values: list[str]) -> None:
    """Raises SelectorError, with every rule that the values of a requirement break."""
    complaints = []
    for place, value in enumerate(values):
        if operator in ("gt", "lt") and _parse_go_int(value) is None:
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            complaints.append(f"values[{place}]: Invalid value: {go_quoted(value)}: {rule}")
    for place, value in enumerate(values):
        rules = []
        if len(value.encode()) > 63:
            rules.append("must be no more than 63 bytes")
        if value and not _NAME.fullmatch(value):
            rules.append(_VALUE_RULE)
        if rules:
            shown = f"Invalid value: {go_quoted(value)}: {'; '.join(rules)}"
            complaints.append(f"values[{place}][{key}]: {shown}")
    if len(complaints) == 1:
        raise SelectorError(complaints[0])
    if complaints:
        raise SelectorError(f"[{', '.join(complaints)}]")


def go_quoted(text: str) -> str:
    r"""Quote text as Go's ``%q`` does, which the API server uses in its messages.

    >>> print(go_quoted('a "b"\t\u00a0'))
    "a \"b\"\t\u00a0"
    """
    return '"{}"'.format("".join(map(_go_character, text)))


_GO_ESCAPES = {
    "\\": r"\\", '"': r"\"", "\a": r"\a", "\b": r"\b", "\f": r"\f",
    "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
}  # fmt: skip


def _go_character(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _parse_go_int(text: str | None) -> int | None:
    """What strconv.ParseInt makes of it, None where it refuses."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text) if len(text) <= 4000 else 1 << 64
    return number if -(1 << 63) <= number < 1 << 63 else None
