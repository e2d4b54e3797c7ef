"""What a read or watch selects of a collection: namespace, labels, fields, shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dyninformer.selectors import FieldSelector, LabelSelector
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.paths import value_at
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.cluster.sharding import ShardSelector
from dyninformer.testing.status import ApiError, bad_request
from dyninformer.types import Object

ANY_LABELS = LabelSelector()
ANY_FIELDS = FieldSelector()


@dataclass(frozen=True, slots=True)
class Selection:
    """Equal selections select the same objects of the same resource."""

    namespace: str = ""
    labels: LabelSelector = ANY_LABELS
    fields: FieldSelector = ANY_FIELDS
    shard: ShardSelector | None = None

    @property
    def everything(self) -> bool:
        """Nothing but the namespace is asked of an object."""
        return not self.labels and not self.fields and self.shard is None

    def matches(self, version: Version, resource: Resource) -> bool:
        """Whether the object was selected in the state of this version."""
        if self.namespace and version.key.namespace != self.namespace:
            return False
        if self.labels and not self.labels.matches(version.object["metadata"].get("labels")):
            return False
        if self.shard is not None and not self.shard.matches(version):
            return False
        return not self.fields or self.fields.matches(partial(field_text, version, resource))


def check_field_labels(selector: FieldSelector, resource: Resource) -> None:
    """Raises the 400 that names the first field by which the resource cannot be selected."""
    named = {"metadata.name", *(path.lstrip(".") for path in resource.selectable_fields)}
    plain = resource.builtin and not resource.selectable_fields
    if resource.namespaced or plain:
        named.add("metadata.namespace")
    for requirement in selector.requirements:
        if requirement.field not in named:
            raise _unknown_field(requirement.field, resource, plain=plain)


def _unknown_field(field: str, resource: Resource, *, plain: bool) -> ApiError:
    if plain:
        known = 'only "metadata.name", "metadata.namespace"'
        return bad_request(f'"{field}" is not a known field selector: {known}')
    if (resource.group, resource.plural) == ("batch", "jobs"):
        return bad_request(f'field label "{field}" not supported for Job')
    return bad_request(f"field label not supported: {field}")


def field_text(version: Version, resource: Resource, field: str) -> str:
    """A selectable field's value as text: "" where there is none."""
    if field == "metadata.name":
        return version.key.name
    if field == "metadata.namespace":
        return version.key.namespace
    special = _SPECIAL.get((resource.group, resource.plural, field))
    obj = prepare_for_read(resource, version.object) if resource.builtin else version.object
    if special is not None:
        return special(obj)
    value = value_at(obj, field)
    if value is None and resource.structural is not None:
        value = value_at(prepare_for_read(resource, obj), field)
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""


def _flag(path: str) -> Callable[[Object], str]:
    return lambda obj: _text(bool(value_at(obj, path)))


def _count(path: str) -> Callable[[Object], str]:
    return lambda obj: _text(value_at(obj, path) or 0)


def _source(event: Object) -> str:
    return _text(value_at(event, "source.component") or event.get("reportingComponent"))


_SPECIAL: dict[tuple[str, str, str], Callable[[Object], str]] = {
    ("", "pods", "spec.hostNetwork"): _flag("spec.hostNetwork"),
    ("", "nodes", "spec.unschedulable"): _flag("spec.unschedulable"),
    ("", "replicationcontrollers", "status.replicas"): _count("status.replicas"),
    ("", "events", "source"): _source,
    ("batch", "jobs", "status.successful"): _count("status.succeeded"),
}
"""Fields of built-ins whose text is not simply the value at the path of that name."""
