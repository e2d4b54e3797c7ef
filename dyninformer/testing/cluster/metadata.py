"""metadata as the server keeps it: the order of its fields, the rules of names and labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dyninformer.testing.cluster.causes import invalid_value, required, shown
from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.status import cause
from dyninformer.types import Object, Objects

_DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_IMMUTABLE: Final = ("namespace", "uid", "creationTimestamp", *_DELETION)
SYSTEM_FIELDS: Final = ("uid", "creationTimestamp", "generation", "selfLink", *_DELETION)
"""The fields that a create may not choose."""

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_ANNOTATIONS_LIMIT = 256 << 10


def ordered(metadata: Mapping[str, Any]) -> Object:
    """The same fields in the server's order."""
    return {name: metadata[name] for name in STRUCTS["ObjectMeta"] if name in metadata}


def creation_causes(resource: Resource, metadata: Object) -> Objects:
    """What is wrong with the metadata of a new object."""
    found = _prefix(resource, metadata)
    name = metadata.get("name", "")
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = _name_rule(resource.group, resource.plural)
        found += [invalid_value("metadata.name", name, why) for why in rule(name)]
    return [*found, *_described(metadata), *_finalizers(metadata), *_bare(resource, metadata)]


def finalizer_warnings(metadata: Object, before: Object) -> tuple[str, ...]:
    """The warnings about new finalizers without a domain."""
    old = before.get("finalizers", ())
    return tuple(
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
        "accidental conflicts with other finalizer writers"
        for name in metadata.get("finalizers", ())
        if "/" not in name and name not in _STANDARD_FINALIZERS and name not in old
    )


def update_causes(resource: Resource, metadata: Object, before: Object) -> Objects:
    """What is wrong with an object's new metadata, seen against the old.

    The real server looks more than once, at some kinds more often than at others, and each
    time says what it finds.
    """
    whole = [*_described(metadata), *_finalizers(metadata)]
    against = [*_immutable(metadata, before), *_described(metadata)]
    found = [*whole, *against, *against]
    if _has_core_rules(resource):
        bare = list(_bare(resource, metadata))
        found += [*bare, *_prefix(resource, metadata), *whole, *bare]
    return found


def _has_core_rules(resource: Resource) -> bool:
    return resource.builtin and resource.group != "apiextensions.k8s.io"


def _prefix(resource: Resource, metadata: Object) -> Objects:
    prefix = metadata.get("generateName", "")
    if not prefix:
        return []
    rule = _name_rule(resource.group, resource.plural)
    masked = prefix[:-1] + "a" if prefix.endswith("-") else prefix
    return [invalid_value("metadata.generateName", prefix, why) for why in rule(masked)]


def _immutable(metadata: Object, before: Object) -> Iterator[Object]:
    for name in _IMMUTABLE:
        given, kept = metadata.get(name), before.get(name)
        if given != kept:
            yield invalid_value(f"metadata.{name}", given, "field is immutable")
    old = before.get("finalizers", ())
    new = [name for name in metadata.get("finalizers", ()) if name not in old]
    if new and before.get("deletionTimestamp"):
        listed = ", ".join(f'"{name}"' for name in new)
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{listed}}}"
        )
        yield cause("FieldValueForbidden", why, "metadata.finalizers")


def _described(metadata: Object) -> Iterator[Object]:
    yield from _labels(metadata)
    yield from _annotations(metadata)
    yield from _owners(metadata)


def _labels(metadata: Object) -> Iterator[Object]:
    for key, value in metadata.get("labels", {}).items():
        yield from (invalid_value("metadata.labels", key, why) for why in _qualified(key))
        yield from (invalid_value("metadata.labels", value, why) for why in _label_value(value))


def _annotations(metadata: Object) -> Iterator[Object]:
    annotations = metadata.get("annotations", {})
    for key in annotations:
        for why in _qualified(key.lower()):
            yield invalid_value("metadata.annotations", key, why)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        why = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield cause("FieldValueTooLong", why, "metadata.annotations")


def _owners(metadata: Object) -> Iterator[Object]:
    controllers: list[str] = []
    for owner in metadata.get("ownerReferences", ()):
        field = "metadata.ownerReferences"
        if not owner.get("apiVersion"):
            yield invalid_value(f"{field}.apiVersion", "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid_value(f"{field}.{name}", "", "must not be empty")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        text = f"Invalid value: {shown(metadata['ownerReferences'], sort=False)}: {why}"
        yield cause("FieldValueInvalid", text, "metadata.ownerReferences")


def _finalizers(metadata: Object) -> Iterator[Object]:
    for name in metadata.get("finalizers", ()):
        for why in _qualified(name):
            yield invalid_value("metadata.finalizers", name, why)


def _bare(resource: Resource, metadata: Object) -> Iterator[Object]:
    """What is wrong with finalizers of built-in kinds: they need a domain."""
    if not _has_core_rules(resource):
        return
    for index, name in enumerate(metadata.get("finalizers", ())):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", name, why)


_Complaints = Iterator[str]

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

_Rule = Callable[[str], _Complaints]


def subdomain(value: str) -> _Complaints:
    """The name of most objects."""
    if len(value) > 253:
        yield "must be no more than 253 characters"
    if not _is(_SUBDOMAIN, value):
        yield _SUBDOMAIN_TEXT


def _label(value: str) -> _Complaints:
    """The name of a namespace, a CRD's plural: one part of a domain name."""
    if "." in value and _is(_SUBDOMAIN, value):
        yield "must not contain dots"
        return
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if not _is(_LABEL, value):
        yield _LABEL_TEXT


def label_1035(value: str) -> _Complaints:
    """A name that begins with a letter, such as a service's or a CRD's plural."""
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if not _is(_LABEL_1035, value):
        yield _LABEL_1035_TEXT


def _path_segment(value: str) -> _Complaints:
    """The name of a role or binding: whatever can stand in a path."""
    if value in {".", ".."}:
        yield f"may not be '{value}'"
    for mark in "/%":
        if mark in value:
            yield f"may not contain '{mark}'"


def _qualified(value: str) -> _Complaints:
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


def _label_value(value: str) -> _Complaints:
    """The value of a label."""
    if len(value) > 63:
        yield "must be no more than 63 bytes"
    if value and not _is(_QUALIFIED, value):
        yield _VALUE_TEXT


def _name_rule(group: str, plural: str) -> _Rule:
    """What the names of a resource's objects must be like."""
    if group == "rbac.authorization.k8s.io":
        return _path_segment
    if not group and plural in {"namespaces", "services"}:
        return _label if plural == "namespaces" else label_1035
    return subdomain


def _is(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value, re.ASCII) is not None
