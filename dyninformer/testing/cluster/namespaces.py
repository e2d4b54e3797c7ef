"""Namespaces: what may be created in them, and how a terminating one is emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dyninformer.testing.cluster.log import Key, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.strategies import NAMESPACES
from dyninformer.testing.cluster.write_options import DeleteOptions
from dyninformer.testing.cluster.writes import delete
from dyninformer.testing.status import cause, forbidden, not_found

if TYPE_CHECKING:
    from dyninformer.testing.cluster.cluster import Cluster


class Namespaces:
    """The rules of namespaces and, with ``remove``, the controller that removes them.

    A bare API server leaves a deleted namespace Terminating for ever. With the
    controller, everything in it is deleted, and when nothing is left (finalizers may
    hold objects up), it goes.
    """

    def __init__(self, cluster: Cluster, *, remove: bool) -> None:
        self._cluster = cluster
        self._remove = remove

    def watch_log(self) -> None:
        """Follow the cluster's log from now on."""
        if self._remove:
            self._cluster.log.listen(NAMESPACES, self._on_namespace)

    def take_up(self) -> None:
        """Go on with the namespaces that are terminating already."""
        if not self._remove:
            return
        for version in self._cluster.log.items(NAMESPACES):
            self._on_namespace(version)

    def require_open(self, resource: Resource, namespace: str, name: str) -> None:
        """The namespace exists and is not terminating; ApiErrors 404 and 403 otherwise."""
        version = self._cluster.log.get(NAMESPACES, Key("", namespace))
        if version is None:
            raise not_found("", "namespaces", namespace)
        if "deletionTimestamp" in version.object["metadata"]:
            why = (
                f"unable to create new content in namespace {namespace} "
                "because it is being terminated"
            )
            text = f"namespace {namespace} is being terminated"
            found = cause("NamespaceTerminating", text, "metadata.namespace")
            raise forbidden(resource.group, resource.plural, name, why, [found])

    def object_gone(self, namespace: str) -> None:
        """An object was deleted: perhaps the last one of a terminating namespace."""
        version = self._cluster.log.get(NAMESPACES, Key("", namespace)) if self._remove else None
        if version is not None:
            self._on_namespace(version)

    def _on_namespace(self, version: Version) -> None:
        if not version.deleted and "deletionTimestamp" in version.object["metadata"]:
            self._cluster.defer(lambda: self._empty(version.key))

    def _empty(self, key: Key) -> None:
        log = self._cluster.log
        version = log.get(NAMESPACES, key)
        if version is None or "deletionTimestamp" not in version.object["metadata"]:
            return
        left = False
        for collection in tuple(log.collections()):
            served = self._cluster.resources.of(collection)
            if not served or not served[0].namespaced:
                continue
            for each in log.items(collection, key.name):
                if "deletionTimestamp" not in each.object["metadata"]:
                    delete(self._cluster, served[0], each, DeleteOptions())
            left = left or bool(log.items(collection, key.name))
        if not left and not version.object["metadata"].get("finalizers"):
            self._cluster.remove(NAMESPACES, key)
