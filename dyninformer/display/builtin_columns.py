"""Columns of built-in resources, as far as paths can tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dyninformer.discovery import PrinterColumn

_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")


def _columns(*named: str, wide: tuple[str, ...] = ()) -> tuple[PrinterColumn, ...]:
    """Columns written ``Heading:type:path``, with the age at the end, then the wide ones."""
    return (*(_column(text, 0) for text in named), _AGE, *(_column(text, 1) for text in wide))


def _column(text: str, priority: int) -> PrinterColumn:
    name, type_, path = text.split(":", 2)
    return PrinterColumn(name, type_, path, priority)


BUILTIN: Final[Mapping[str, tuple[PrinterColumn, ...]]] = {
    "pods": _columns(
        "Status:string:.status.phase",
        "Restarts:integer:.status.containerStatuses[0].restartCount",
        wide=("IP:string:.status.podIP", "Node:string:.spec.nodeName"),
    ),
    "nodes": _columns(
        "Ready:string:.status.conditions[?(@.type=='Ready')].status",
        "Version:string:.status.nodeInfo.kubeletVersion",
        wide=("OS-Image:string:.status.nodeInfo.osImage",),
    ),
    "namespaces": _columns("Status:string:.status.phase"),
    "services": _columns("Type:string:.spec.type", "Cluster-IP:string:.spec.clusterIP"),
    "secrets": _columns("Type:string:.type"),
    "persistentvolumeclaims": _columns(
        "Status:string:.status.phase",
        "Volume:string:.spec.volumeName",
        "StorageClass:string:.spec.storageClassName",
    ),
    "deployments.apps": _columns(
        "Desired:integer:.spec.replicas",
        "Up-To-Date:integer:.status.updatedReplicas",
        "Available:integer:.status.availableReplicas",
    ),
    "statefulsets.apps": _columns(
        "Desired:integer:.spec.replicas", "Ready:integer:.status.readyReplicas"
    ),
    "daemonsets.apps": _columns(
        "Desired:integer:.status.desiredNumberScheduled", "Ready:integer:.status.numberReady"
    ),
    "jobs.batch": _columns(
        "Completions:integer:.spec.completions", "Succeeded:integer:.status.succeeded"
    ),
    "cronjobs.batch": _columns(
        "Schedule:string:.spec.schedule", "Last Schedule:date:.status.lastScheduleTime"
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        PrinterColumn("Created At", "string", ".metadata.creationTimestamp"),
    ),
}
