"""One object created, updated or deleted: what the server adds, refuses and stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dyninformer.testing.cluster.incoming import placed, require_revision, require_size
from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager, same_value
from dyninformer.testing.cluster.metadata import (
    SYSTEM_FIELDS,
    creation_causes,
    finalizer_warnings,
    ordered,
    update_causes,
)
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import content_causes, prepare_for_read, with_rules_note
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategies import CRDS, NAMESPACES, strategy_of
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import DeleteOptions, WriteOptions, WriteResult
from dyninformer.testing.status import ApiError, already_exists, conflict, forbidden, invalid
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Draft:
    """One object to be written, as its request means it."""

    resource: Resource
    object: Object
    options: WriteOptions
    warnings: tuple[str, ...] = ()
    subresource: str = ""
    managed: ManagedFields | None = None
    """The owners of the fields, if an apply has decided them already."""


def create(cluster: Cluster, draft: Draft, namespace: str) -> WriteResult:
    """Store a new object in a namespace ("" for a cluster-scoped resource)."""
    resource, options = draft.resource, draft.options
    name = draft.object["metadata"].get("name", "")
    if not resource.creatable:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource.group, resource.plural, name, why)
    obj = placed(resource, draft.object, namespace)
    if require_revision(obj) is not None and not options.dry_run:
        raise ApiError(500, None, "resourceVersion should not be set on objects to be created")
    require_size(options.size)
    if resource.namespaced:
        cluster.namespaces.require_open(resource, namespace, name)
    obj = _with_server_fields(cluster, draft, obj)
    _require_valid(draft, obj, None)
    metadata = obj["metadata"]
    key = Key(namespace, metadata["name"])
    there = cluster.log.get(resource.collection, key)
    if there is not None:
        dying = "deletionTimestamp" in there.object["metadata"]
        raise already_exists(resource.group, resource.plural, key.name, deleting=dying)
    if not options.dry_run:
        obj = cluster.log.append(resource.collection, key, obj).object
    return WriteResult(obj, 201, (*draft.warnings, *finalizer_warnings(metadata, {})))


def _with_server_fields(cluster: Cluster, draft: Draft, obj: Object) -> Object:
    """The object with what the server gives every new one."""
    resource = draft.resource
    strategy = strategy_of(resource)
    now = timestamp(cluster.now())
    metadata = {k: v for k, v in obj["metadata"].items() if k not in SYSTEM_FIELDS}
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:58] + cluster.suffix()
        metadata = dict(strategy.defaults({**obj, "metadata": metadata})["metadata"])
    metadata["uid"] = cluster.uid()
    metadata["creationTimestamp"] = now
    if resource.generation:
        metadata["generation"] = 1
    given = metadata.pop("managedFields", ())
    obj = {**obj, "metadata": metadata}
    if resource.status and resource.plural != "nodes":  # kubelets register nodes with their status
        obj.pop("status", None)
    managed = draft.managed
    if managed is None:
        managed = ManagedFields(given)
        manager = Manager(draft.options.manager, "Update", resource.api_version)
        managed.updated(manager, strategy.blank, obj, shape_of(resource), now)
    obj = strategy.prepare(obj, None)
    entries = managed.entries()
    owned = {"managedFields": entries} if entries else {}
    return {**obj, "metadata": ordered({**obj["metadata"], **owned})}


def _require_valid(draft: Draft, obj: Object, before: Object | None) -> None:
    """The object keeps the rules of its metadata, its kind and its schema; ApiError 422 if not."""
    resource, metadata = draft.resource, obj["metadata"]
    name = metadata.get("name", "")
    if before is None:
        found = creation_causes(resource, metadata)
    else:
        found = update_causes(resource, metadata, before["metadata"])
    if name and not draft.subresource:
        found += strategy_of(resource).causes(obj, before)
    found += content_causes(resource, obj, draft.subresource)
    if found:
        raise invalid(resource.group, resource.kind, name, with_rules_note(resource, found))


_STALE: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

_SERVERS_OWN: Final = frozenset({"generation", "selfLink", "creationTimestamp"})
"""An update's values of these are ignored."""


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
    obj = _with_managed_fields(cluster, draft, _with_immutable_kept(draft, before), before)
    if draft.subresource != "finalize":
        obj = strategy_of(resource).prepare(obj, before)
    obj = _with_generation(resource, obj, before)
    _require_valid(draft, obj, before)
    new = finalizer_warnings(obj["metadata"], before["metadata"])
    warnings = (*draft.warnings, *new)
    if _same(obj, before):
        return WriteResult(before, 200, warnings)
    if _can_go(resource, obj):
        if not options.dry_run:
            cluster.remove(resource.collection, key)
    elif not options.dry_run:
        obj = cluster.log.append(resource.collection, key, obj).object
    return WriteResult(obj, 200, warnings)


def _with_immutable_kept(draft: Draft, before: Object) -> Object:
    """The object as an update of this kind may change it; everything else is as before."""
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


def _with_managed_fields(cluster: Cluster, draft: Draft, obj: Object, before: Object) -> Object:
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


def _can_go(resource: Resource, obj: Object) -> bool:
    """Whether an object that is being deleted has no finalizers left."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return resource.collection != NAMESPACES or not obj.get("spec", {}).get("finalizers")


def _with_generation(resource: Resource, obj: Object, before: Object) -> Object:
    """The object, its generation one higher if what the generation counts has changed.

    That is everything outside metadata, and outside status where that is a subresource.
    """
    old = before["metadata"].get("generation")
    ignored = frozenset({"metadata", "status"} if resource.status else {"metadata"})
    if old is None or not _differ(obj, before, ignored):
        return obj
    return {**obj, "metadata": ordered({**obj["metadata"], "generation": old + 1})}


def _differ(one: Object, other: Object, ignored: frozenset[str]) -> bool:
    return any(
        not same_value(one.get(name), other.get(name))
        for name in one.keys() | other.keys()
        if name not in ignored
    )


def _same(one: Object, other: Object) -> bool:
    """Whether a write changes nothing; the times of managers' writes do not count."""
    if _differ(one, other, frozenset({"metadata"})):
        return False
    return _without_times(one["metadata"]) == _without_times(other["metadata"])


def _without_times(metadata: Object) -> Object:
    entries = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata.get("managedFields", ())
    ]
    return {**metadata, "managedFields": entries}


_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"

_UNDELETABLE: Final = frozenset({"default", "kube-system", "kube-public"})


def delete(cluster: Cluster, resource: Resource, live: Version, options: DeleteOptions) -> Object:
    """Delete an object, or mark it: the Status of a deletion, or the object that stays."""
    obj = prepare_for_read(resource, live.object)
    _check_preconditions(resource, obj, options)
    if resource.collection == NAMESPACES and live.key.name in _UNDELETABLE:
        why = "this namespace may not be deleted"
        raise forbidden(resource.group, resource.plural, live.key.name, why)
    terminating = "deletionTimestamp" in obj["metadata"]
    if resource.collection == CRDS:
        return obj if terminating else _stored(cluster, live, cluster.crds.marked(obj), options)
    if resource.collection == NAMESPACES and obj.get("spec", {}).get("finalizers"):
        return obj if terminating else _mark_namespace(cluster, live, obj, options)
    finalizers = _finalizers(obj["metadata"], options)
    if finalizers:
        return _mark(cluster, live, obj, options, finalizers)
    if not options.dry_run:
        cluster.remove(live.collection, live.key)
    return obj if resource.returns_deleted else _gone(resource, obj)


def _gone(resource: Resource, obj: Object) -> Object:
    """The Status that says an object was deleted."""
    details: Object = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": obj["metadata"]["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _check_preconditions(resource: Resource, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    name = metadata["name"]
    if options.uid is not None and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated"
        )
        raise conflict(resource.group, resource.kind, name, why)
    version = options.resource_version
    if version is not None and version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). "
            "The object might have been modified"
        )
        raise conflict(resource.group, resource.kind, name, why)


def _finalizers(metadata: Object, options: DeleteOptions) -> list[str]:
    """What must be done before the object can go, with the propagation that was asked for."""
    found = list(metadata.get("finalizers", ()))
    asked = {"Foreground": _FOREGROUND, "Orphan": _ORPHAN}.get(options.propagation_policy or "")
    if options.propagation_policy is not None:
        found = [each for each in found if each not in {_FOREGROUND, _ORPHAN} or each == asked]
    if asked is not None and asked not in found:
        found.append(asked)
    return found


def _mark(
    cluster: Cluster, live: Version, obj: Object, options: DeleteOptions, finalizers: list[str]
) -> Object:
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata and finalizers == metadata.get("finalizers"):
        return obj
    marked = {**metadata, "finalizers": finalizers}
    if "deletionTimestamp" not in metadata:
        marked |= {
            "deletionTimestamp": timestamp(cluster.now()),
            "deletionGracePeriodSeconds": 0,
        }
        if "generation" in metadata:
            marked["generation"] = metadata["generation"] + 1
    return _stored(cluster, live, {**obj, "metadata": ordered(marked)}, options)


def _mark_namespace(cluster: Cluster, live: Version, obj: Object, options: DeleteOptions) -> Object:
    marked = ordered({**obj["metadata"], "deletionTimestamp": timestamp(cluster.now())})
    status = {**(obj.get("status") or {}), "phase": "Terminating"}
    return _stored(cluster, live, {**obj, "metadata": marked, "status": status}, options)


def _stored(cluster: Cluster, live: Version, obj: Object, options: DeleteOptions) -> Object:
    if options.dry_run:
        return obj
    return cluster.log.append(live.collection, live.key, obj).object
