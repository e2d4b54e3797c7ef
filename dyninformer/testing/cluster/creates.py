"""Creating an object: what the server adds, what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dyninformer.testing.cluster.drafts import Draft
from dyninformer.testing.cluster.incoming import placed, require_revision, require_size
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.managed_fields import ManagedFields, Manager
from dyninformer.testing.cluster.metadata import (
    SYSTEM_FIELDS,
    creation_causes,
    finalizer_warnings,
    ordered,
)
from dyninformer.testing.cluster.schema import content_causes, with_rules_note
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.cluster.strategies import strategy_of
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import WriteResult
from dyninformer.testing.status import ApiError, already_exists, forbidden, invalid
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


def create(cluster: Cluster, draft: Draft, namespace: str) -> WriteResult:
    """Store a new object in a namespace ("" for a cluster-scoped resource)."""
    resource, options = draft.resource, draft.options
    name = draft.object["metadata"].get("name", "")
    if not resource.creatable:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource.group, resource.plural, name, why)
    obj = placed(resource, draft.object, namespace)
    if require_revision(obj) is not None and not options.dry_run:  # said by the store itself
        raise ApiError(500, None, "resourceVersion should not be set on objects to be created")
    require_size(options.size)
    if resource.namespaced:
        cluster.namespaces.require_open(resource, namespace, name)
    obj = _new(cluster, draft, obj)
    _require_valid(draft, obj)
    metadata = obj["metadata"]
    key = Key(namespace, metadata["name"])
    there = cluster.log.get(resource.collection, key)
    if there is not None:
        dying = "deletionTimestamp" in there.object["metadata"]
        raise already_exists(resource.group, resource.plural, key.name, deleting=dying)
    if not options.dry_run:
        obj = cluster.log.append(resource.collection, key, obj).object
    return WriteResult(obj, 201, (*draft.warnings, *finalizer_warnings(metadata, {})))


def _new(cluster: Cluster, draft: Draft, obj: Object) -> Object:
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
    if resource.status and resource.plural != "nodes":  # kubelets register with their status
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


def _require_valid(draft: Draft, obj: Object) -> None:
    resource, name = draft.resource, obj["metadata"].get("name", "")
    found = creation_causes(resource, obj["metadata"])
    if name:
        found += strategy_of(resource).causes(obj, None)
    found += content_causes(resource, obj)
    if found:
        causes = with_rules_note(resource, found)
        raise invalid(resource.group, resource.kind, name, causes)
