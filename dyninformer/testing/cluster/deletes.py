"""Deleting one object: preconditions, finalizers, propagation, and what the server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dyninformer.testing.cluster.conditions import condition, with_condition
from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.metadata import ordered
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.schema import prepare_for_read
from dyninformer.testing.cluster.strategies import CRDS, NAMESPACES
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.write_options import DeleteOptions
from dyninformer.testing.status import conflict, forbidden
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


CRD_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

_UNDELETABLE: Final = frozenset({"default", "kube-system", "kube-public"})


def delete(cluster: Cluster, resource: Resource, live: Version, options: DeleteOptions) -> Object:
    """Delete what ``live`` is, or mark it; the Status of what has gone, else what stays."""
    obj = prepare_for_read(resource, live.object)
    _check_preconditions(resource, obj, options)
    if resource.collection == NAMESPACES and live.key.name in _UNDELETABLE:
        why = "this namespace may not be deleted"
        raise forbidden(resource.group, resource.plural, live.key.name, why)
    if resource.collection == CRDS:
        return _mark_crd(cluster, live, obj, options)
    if resource.collection == NAMESPACES and obj.get("spec", {}).get("finalizers"):
        return _mark_namespace(cluster, live, obj, options)
    finalizers = _finalizers(obj["metadata"], options)
    if finalizers:
        return _mark(cluster, live, obj, options, finalizers)
    if not options.dry_run:
        cluster.remove(live.collection, live.key)
    return obj if resource.returns_deleted else gone(resource, obj)


def gone(resource: Resource, obj: Object) -> Object:
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
    """What must be done before the object can go, the collector's part as asked for."""
    found = list(metadata.get("finalizers", ()))
    asked = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(options.propagation_policy or "")
    if options.propagation_policy is not None:
        found = [each for each in found if each not in {FOREGROUND, ORPHAN} or each == asked]
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
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return obj
    marked = ordered({**metadata, "deletionTimestamp": timestamp(cluster.now())})
    status = {**(obj.get("status") or {}), "phase": "Terminating"}
    return _stored(cluster, live, {**obj, "metadata": marked, "status": status}, options)


def _mark_crd(cluster: Cluster, live: Version, obj: Object, options: DeleteOptions) -> Object:
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return obj
    now = timestamp(cluster.now())
    finalizers = [*metadata.get("finalizers", ())]
    if CRD_CLEANUP not in finalizers:
        finalizers.append(CRD_CLEANUP)
    marked = ordered({**metadata, "deletionTimestamp": now, "finalizers": finalizers})
    begun = condition(
        "Terminating", True, now, "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; "
        "CustomResource deletion will begin soon",
    )  # fmt: skip
    status = obj["status"]
    conditions = with_condition(status.get("conditions") or [], begun)
    changed = {**obj, "metadata": marked, "status": {**status, "conditions": conditions}}
    return _stored(cluster, live, changed, options)


def _stored(cluster: Cluster, live: Version, obj: Object, options: DeleteOptions) -> Object:
    if options.dry_run:
        return obj
    return cluster.log.append(live.collection, live.key, obj).object
