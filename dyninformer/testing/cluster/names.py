"""What names, labels and finalizers may look like, and what the server says if they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

Complaints = Iterator[str]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
    rf" (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character"
    f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_QUALIFIED_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
    " (e.g. 'MyValue',  or 'my_value',  or '12345',"
    f" regex used for validation is '({_QUALIFIED})?')"
)
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-',"
    " start with an alphabetic character, and end with an alphanumeric character"
    f" (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
)

Rule = Callable[[str], Complaints]


def subdomain(value: str) -> Complaints:
    """The name of most objects."""
    if len(value) > 253:
        yield "must be no more than 253 characters"
    if not _is(_SUBDOMAIN, value):
        yield _SUBDOMAIN_TEXT


def label(value: str) -> Complaints:
    """The name of a namespace, a CRD's plural: one part of a domain name."""
    if "." in value and _is(_SUBDOMAIN, value):
        yield "must not contain dots"
        return
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if not _is(_LABEL, value):
        yield _LABEL_TEXT


def label_1035(value: str) -> Complaints:
    """A name that begins with a letter, such as a service's or a CRD's plural."""
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if not _is(_LABEL_1035, value):
        yield _LABEL_1035_TEXT


def path_segment(value: str) -> Complaints:
    """The name of a role or binding: whatever can stand in a path."""
    if value in {".", ".."}:
        yield f"may not be '{value}'"
    for mark in "/%":
        if mark in value:
            yield f"may not contain '{mark}'"


def qualified(value: str) -> Complaints:
    """A label key, an annotation key, a finalizer: an optional domain, a slash, a name."""
    domain, slash, name = value.rpartition("/")
    if "/" in domain:
        yield (
            f"a valid label key {_QUALIFIED_TEXT.removeprefix('name part ')}"
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return
    if slash and not domain:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {each}" for each in subdomain(domain))
    if not name:
        yield "name part must be non-empty"
    elif len(name) > 63:
        yield "name part must be no more than 63 bytes"
    if not _is(_QUALIFIED, name):
        yield _QUALIFIED_TEXT


def label_value(value: str) -> Complaints:
    """The value of a label."""
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if value and not _is(_QUALIFIED, value):
        yield _VALUE_TEXT


def name_rule(group: str, plural: str) -> Rule:
    """What the names of a resource's objects must be like."""
    if group == "rbac.authorization.k8s.io":
        return path_segment
    if not group and plural in {"namespaces", "services"}:
        return label if plural == "namespaces" else label_1035
    return subdomain


def _is(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value, re.ASCII) is not None
