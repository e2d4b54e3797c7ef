"""metadata as the server keeps it: the order of its fields, its rules on create and update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dyninformer.testing.cluster import names
from dyninformer.testing.cluster.causes import invalid_value, required, shown
from dyninformer.testing.cluster.go_types import STRUCTS
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.status import cause
from dyninformer.types import Object

Causes = list[Object]

IMMUTABLE: Final = (
    "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
SYSTEM_FIELDS: Final = (
    "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip
"""What a create may not choose."""

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_ANNOTATIONS_LIMIT = 256 << 10


def ordered(metadata: Mapping[str, Any]) -> Object:
    """The same fields in the server's order."""
    return {name: metadata[name] for name in STRUCTS["ObjectMeta"] if name in metadata}


def creation_causes(resource: Resource, metadata: Object) -> Causes:
    """What is wrong with the metadata of a new object."""
    found = _prefix(resource, metadata)
    name = metadata.get("name", "")
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = names.name_rule(resource.group, resource.plural)
        found += [invalid_value("metadata.name", name, why) for why in rule(name)]
    return [*found, *_described(metadata), *_finalizers(metadata), *_bare(resource, metadata)]


def finalizer_warnings(metadata: Object, before: Object) -> tuple[str, ...]:
    """The warnings that new finalizers without a domain earn."""
    old = before.get("finalizers", ())
    return tuple(
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
        "accidental conflicts with other finalizer writers"
        for name in metadata.get("finalizers", ())
        if "/" not in name and name not in _STANDARD_FINALIZERS and name not in old
    )


def update_causes(resource: Resource, metadata: Object, before: Object) -> Causes:
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


def _prefix(resource: Resource, metadata: Object) -> Causes:
    prefix = metadata.get("generateName", "")
    if not prefix:
        return []
    rule = names.name_rule(resource.group, resource.plural)
    masked = prefix[:-1] + "a" if prefix.endswith("-") else prefix
    return [invalid_value("metadata.generateName", prefix, why) for why in rule(masked)]


def _immutable(metadata: Object, before: Object) -> Iterator[Object]:
    for name in IMMUTABLE:
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
        yield from (invalid_value("metadata.labels", key, why) for why in names.qualified(key))
        yield from (
            invalid_value("metadata.labels", value, why) for why in names.label_value(value)
        )


def _annotations(metadata: Object) -> Iterator[Object]:
    annotations = metadata.get("annotations", {})
    for key in annotations:
        for why in names.qualified(key.lower()):
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
        for why in names.qualified(name):
            yield invalid_value("metadata.finalizers", name, why)


def _bare(resource: Resource, metadata: Object) -> Iterator[Object]:
    """Finalizers of built-in kinds say whose they are."""
    if not _has_core_rules(resource):
        return
    for index, name in enumerate(metadata.get("finalizers", ())):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", name, why)
