"""What is known of one resource beside its objects: columns, types, scope; for all that show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from dyninformer.discovery.declared import Declared
from dyninformer.discovery.lookup import MISS_KEPT, Discovery
from dyninformer.discovery.resources import PrinterColumn, PrinterColumns
from dyninformer.discovery.unknown_paths import PathCheck, Schema, whole_schema
from dyninformer.errors import DynInformerError
from dyninformer.resource import GroupVersionResource

_PATIENCE: Final = 3.0  # seconds that somebody waits, who wants to look at objects
_AGAIN: Final = 10.0  # seconds after a server that gave no answer is asked once more
AGE: Final = PrinterColumn("Age", "date", ".metadata.creationTimestamp")


class Known:
    """What its CRD says of a resource; or what everybody knows, for a built-in one.

    Nothing is asked before it is needed, and nothing here raises: if the server gives no answer
    within three seconds, what it said before counts, or nothing. From any thread.

    Not for import.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        ask: Callable[[float], Declared] = lambda _: Declared(),
        scope: Callable[[], bool | None] = lambda: None,
    ) -> None:
        """``ask`` gives up after so many seconds, with a DynInformerError."""
        self.gvr = gvr
        self.paths = PathCheck(gvr.group_resource, self._whole_schema)
        """Finds paths that no object of the resource can have."""
        self._ask = ask
        self._scope = scope
        # Written by whichever thread asked last; each is replaced as a whole.
        self._last = Declared()
        self._not_before = 0.0

    @classmethod
    def by(cls, discovery: Discovery, gvr: GroupVersionResource) -> Known:
        """As a server tells it."""
        return cls(
            gvr,
            partial(discovery.declared, gvr),
            partial(discovery.scope, gvr, seconds=_PATIENCE),
        )

    def declared(self) -> Declared:
        """What the CRD declares, as far as it is known."""
        if time.monotonic() >= self._not_before:
            try:
                self._last = self._ask(_PATIENCE)
            except DynInformerError:
                self._not_before = time.monotonic() + _AGAIN
        return self._last

    def columns(self) -> PrinterColumns:
        """Its own columns, as kubectl shows them behind namespace and name; else its age."""
        return self.declared().columns or BUILTIN_COLUMNS.get(self.gvr.group_resource) or (AGE,)

    def schema(self) -> Any:
        """Its schema; None if nothing is known of it."""
        schema = self.declared().schema
        return msgspec.json.decode(schema) if schema else None

    def _whole_schema(self, seconds: float) -> Schema:
        found = self._ask(seconds)
        closed = found.schema and not found.keeps_unknown
        return whole_schema(msgspec.json.decode(found.schema) if closed else None)

    def namespaced(self) -> bool | None:
        """Whether its objects are in namespaces; None if that cannot be learned."""
        found = self.declared().namespaced
        if found is None and time.monotonic() >= self._not_before:
            found = self._scope()
            if found is None:
                self._not_before = time.monotonic() + MISS_KEPT
        return found


def _builtin(*named: str, wide: tuple[str, ...] = ()) -> PrinterColumns:
    """Columns written ``Heading:type:path``, with the age at the end, then the wide ones."""
    return (
        *(_printer_column(text, 0) for text in named),
        AGE,
        *(_printer_column(text, 1) for text in wide),
    )


def _printer_column(text: str, priority: int) -> PrinterColumn:
    name, type_, path = text.split(":", 2)
    return PrinterColumn(name, type_, path, priority)


# Columns of built-in resources, as far as paths can tell them.
BUILTIN_COLUMNS: Final[Mapping[str, PrinterColumns]] = {
    "pods": _builtin(
        "Status:string:.status.phase",
        "Restarts:integer:.status.containerStatuses[0].restartCount",
        wide=("IP:string:.status.podIP", "Node:string:.spec.nodeName"),
    ),
    "nodes": _builtin(
        "Ready:string:.status.conditions[?(@.type=='Ready')].status",
        "Version:string:.status.nodeInfo.kubeletVersion",
        wide=("OS-Image:string:.status.nodeInfo.osImage",),
    ),
    "namespaces": _builtin("Status:string:.status.phase"),
    "services": _builtin("Type:string:.spec.type", "Cluster-IP:string:.spec.clusterIP"),
    "secrets": _builtin("Type:string:.type"),
    "persistentvolumeclaims": _builtin(
        "Status:string:.status.phase",
        "Volume:string:.spec.volumeName",
        "StorageClass:string:.spec.storageClassName",
    ),
    "deployments.apps": _builtin(
        "Desired:integer:.spec.replicas",
        "Up-To-Date:integer:.status.updatedReplicas",
        "Available:integer:.status.availableReplicas",
    ),
    "statefulsets.apps": _builtin(
        "Desired:integer:.spec.replicas", "Ready:integer:.status.readyReplicas"
    ),
    "daemonsets.apps": _builtin(
        "Desired:integer:.status.desiredNumberScheduled", "Ready:integer:.status.numberReady"
    ),
    "jobs.batch": _builtin(
        "Completions:integer:.spec.completions", "Succeeded:integer:.status.succeeded"
    ),
    "cronjobs.batch": _builtin(
        "Schedule:string:.spec.schedule", "Last Schedule:date:.status.lastScheduleTime"
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        PrinterColumn("Created At", "string", ".metadata.creationTimestamp"),
    ),
}
