"""Objects put into the log as they are: what a recording or a backup holds, no client's request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dyninformer.testing.cluster.bodies import UnreadableError, check_depth
from dyninformer.testing.cluster.incoming import placed
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.metadata import ordered
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.strategies import CRDS
from dyninformer.testing.cluster.timestamps import timestamp
from dyninformer.testing.cluster.typed import read_typed
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


def load(cluster: Cluster, resource: Resource, obj: Object) -> None:
    """Write an object over what is there, with a new resourceVersion.

    Only its metadata and the types of its fields are looked at. It gets a uid and a
    creationTimestamp if it has none, and a namespace if it needs one. ValueError if it
    cannot be held. CRDs are not loaded: they have to be accepted, and then served.
    """
    if resource.collection == CRDS:
        raise ValueError("a CustomResourceDefinition is served once it is installed, not loaded")
    check_depth(obj)
    obj = json.loads(json.dumps(obj, allow_nan=False))  # a copy, which clients can be told
    try:
        typed, _ = read_typed(resource, obj)
    except UnreadableError as error:
        raise ValueError(str(error)) from None
    metadata = typed["metadata"]
    name, namespace = metadata.get("name", ""), ""
    if resource.namespaced:
        namespace = metadata.get("namespace") or "default"
    for each in (name, *([namespace] if resource.namespaced else ())):
        if not _is_segment(each):
            raise ValueError(f"{each!r} is no name: a path could not hold it")
    filled = {
        "uid": cluster.uid(),
        "creationTimestamp": timestamp(cluster.now()),
        **({"generation": 1} if resource.generation else {}),
        **metadata,
    }
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    whole = {
        **kind,
        **obj,
        "metadata": {**filled, **({"namespace": namespace} if namespace else {})},
    }
    with cluster.writing():
        whole = placed(resource, whole, namespace)
        whole = {**whole, "metadata": ordered(whole["metadata"])}
        cluster.log.append(resource.collection, Key(namespace, name), whole)


def unload(cluster: Cluster, resource: Resource, key: Key) -> bool:
    """Take an object out, whatever finalizers it has; whether it was there."""
    if cluster.log.get(resource.collection, key) is None:
        return False
    with cluster.writing():
        cluster.remove(resource.collection, key)
    return True


def _is_segment(name: str) -> bool:
    """Whether a name can be one part of a path."""
    return bool(name) and name not in {".", ".."} and not set(name) & set("/%\0")
