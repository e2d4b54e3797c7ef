"""Which label keys and values are valid, and what the API server says of those that are not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dyninformer.errors import SelectorError

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


def check_key(key: str) -> None:
    """Raises SelectorError, with every rule that the key breaks."""
    complaints = list(_key_complaints(key))
    if complaints:
        raise SelectorError(f'<nil>: Invalid value: "{_quoted(key)}": {"; ".join(complaints)}')


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


def check_values(key: str, operator: str, values: list[str]) -> None:
    """Raises SelectorError, with every rule that the values of a requirement break."""
    complaints = []
    for place, value in enumerate(values):
        if operator in ("gt", "lt") and parse_go_int(value) is None:
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            complaints.append(f'values[{place}]: Invalid value: "{_quoted(value)}": {rule}')
    for place, value in enumerate(values):
        rules = []
        if len(value.encode()) > 63:
            rules.append("must be no more than 63 bytes")
        if value and not _NAME.fullmatch(value):
            rules.append(_VALUE_RULE)
        if rules:
            shown = f'Invalid value: "{_quoted(value)}": {"; ".join(rules)}'
            complaints.append(f"values[{place}][{key}]: {shown}")
    if len(complaints) == 1:
        raise SelectorError(complaints[0])
    if complaints:
        raise SelectorError(f"[{', '.join(complaints)}]")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def parse_go_int(text: str | None) -> int | None:
    """What strconv.ParseInt makes of it, None where it refuses."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text) if len(text) <= 4000 else 1 << 64
    return number if -(1 << 63) <= number < 1 << 63 else None
