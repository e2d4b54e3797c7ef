"""Updating an object: what an update cannot change, generations, owners, and no-ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dyninformer.testing.cluster.drafts import Draft
from dyninformer.testing.cluster.incoming import require_revision, require_size
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager
from dyninformer.testing.cluster.metadata import (
    SYSTEM_FIELDS,
    finalizer_warnings,
    ordered,
    update_causes,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import (
    content_causes,
    prepare_for_read,
    with_rules_note,
)
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategies import NAMESPACES, strategy_of
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import WriteResult
from dyninformer.testing.status import conflict, invalid
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


_STALE: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

_SERVERS_OWN: Final = frozenset({"generation", "selfLink", "creationTimestamp"})
"""What an update says of these is not even looked at."""


def update(cluster: Cluster, draft: Draft, live: Version) -> WriteResult:
    """Store a new state of an object that is there; a no-op is answered and not stored.

    An object that is being deleted goes with its last finalizer.
    """
    resource, options, key = draft.resource, draft.options, live.key
    require_size(options.size)
    revision = require_revision(draft.object)
    before = prepare_for_read(resource, live.object)
    if revision is not None and str(revision) != before["metadata"]["resourceVersion"]:
        raise conflict(resource.group, resource.plural, key.name, _STALE)
    obj = _owned(cluster, draft, _carried(draft, before), before)
    if draft.subresource != "finalize":
        obj = strategy_of(resource).prepare(obj, before)
    obj = _with_generation(resource, obj, before)
    _require_valid(draft, obj, before)
    new = finalizer_warnings(obj["metadata"], before["metadata"])
    warnings = (*draft.warnings, *new)
    if _same(obj, before):
        return WriteResult(before, 200, warnings)
    if _is_done(resource, obj):
        if not options.dry_run:
            cluster.remove(resource.collection, key)
    elif not options.dry_run:
        obj = cluster.log.append(resource.collection, key, obj).object
    return WriteResult(obj, 200, warnings)


def _require_valid(draft: Draft, obj: Object, before: Object) -> None:
    resource = draft.resource
    found = update_causes(resource, obj["metadata"], before["metadata"])
    if not draft.subresource:
        found += strategy_of(resource).causes(obj, before)
    found += content_causes(resource, obj, draft.subresource)
    if found:
        causes = with_rules_note(resource, found)
        raise invalid(resource.group, resource.kind, obj["metadata"]["name"], causes)


def _carried(draft: Draft, before: Object) -> Object:
    """The object with what an update of this kind cannot change taken from before."""
    resource, obj = draft.resource, draft.object
    old = before["metadata"]
    if draft.subresource == "status":
        entries = obj["metadata"].get("managedFields")
        given = {"managedFields": entries} if entries is not None else {}
        result = {**before, "metadata": {**old, **given}}
        result.pop("status", None)
        return {**result, "status": obj["status"]} if obj.get("status") is not None else result
    if draft.subresource == "finalize":
        spec = obj.get("spec") or {}
        return {**before, "spec": {name: value for name, value in spec.items() if value}}
    if resource.status and not draft.subresource:
        obj = {name: value for name, value in obj.items() if name != "status"}
        if "status" in before:
            obj["status"] = before["status"]
    metadata = dict(obj["metadata"])
    for name in (*SYSTEM_FIELDS, "resourceVersion"):
        if name in old and (name not in metadata or name in _SERVERS_OWN):
            metadata[name] = old[name]
    for name in ("generation", "selfLink"):
        if name not in old:
            metadata.pop(name, None)
    return {**obj, "metadata": ordered(metadata)}


def _owned(cluster: Cluster, draft: Draft, obj: Object, before: Object) -> Object:
    """The object with its managedFields brought up to date."""
    resource, managed = draft.resource, draft.managed
    metadata = dict(obj["metadata"])
    given = metadata.pop("managedFields", None)
    if managed is None:
        managed = ManagedFields(
            before["metadata"].get("managedFields", ()) if given is None else given
        )
        managed.forget_other_groups(resource.group)
        manager = Manager(draft.options.manager, "Update", resource.api_version, draft.subresource)
        blank = strategy_of(resource).blank
        now = timestamp(cluster.now())
        managed.updated(manager, {**blank, **before}, {**blank, **obj}, shape_of(resource), now)
    entries = managed.entries()
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": ordered(metadata)}


def _is_done(resource: Resource, obj: Object) -> bool:
    """Whether nothing holds an object any more that is being deleted."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return resource.collection != NAMESPACES or not obj.get("spec", {}).get("finalizers")


def _with_generation(resource: Resource, obj: Object, before: Object) -> Object:
    """The object, its generation one higher if what the generation counts has changed.

    That is everything outside metadata, and outside status where status is apart.
    """
    old = before["metadata"].get("generation")
    ignored = frozenset({"metadata", "status"} if resource.status else {"metadata"})
    if old is None or not _differ(obj, before, ignored):
        return obj
    return {**obj, "metadata": ordered({**obj["metadata"], "generation": old + 1})}


def _differ(one: Object, other: Object, ignored: frozenset[str]) -> bool:
    return any(
        one.get(name) != other.get(name)
        for name in one.keys() | other.keys()
        if name not in ignored
    )


def _same(one: Object, other: Object) -> bool:
    """Whether a write changes nothing; when managers last wrote is no change."""
    if _differ(one, other, frozenset({"metadata"})):
        return False
    return _timeless(one["metadata"]) == _timeless(other["metadata"])


def _timeless(metadata: Object) -> Object:
    entries = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata.get("managedFields", ())
    ]
    return {**metadata, "managedFields": entries}
