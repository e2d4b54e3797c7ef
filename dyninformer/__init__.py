"""Live, indexed, in-memory copies of any Kubernetes collection, as plain dicts.

A name is looked up on first use, so that a program pays only for the parts that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dyninformer.first_use import on_first_use

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dyninformer.delivery.changes import Change
    from dyninformer.delivery.events import Event, EventType
    from dyninformer.delivery.handlers import HandlerOptions, Registration
    from dyninformer.delivery.stream import EventStream
    from dyninformer.discovery import Discovery, PrinterColumn, ResolvedResource
    from dyninformer.display.notebook import show
    from dyninformer.errors import (
        AmbiguousResourceError,
        AuditError,
        CacheSyncError,
        ConfigError,
        ConflictError,
        DynInformerError,
        EventTypeWarning,
        ForbiddenError,
        IncompleteRecordingWarning,
        InvalidError,
        JSONPathError,
        JSONPathWarning,
        LostShardError,
        NotKeptError,
        NotSyncedWarning,
        ObjectNotFoundError,
        OptionsConflictError,
        SelectorError,
        StaleCacheError,
        StoppedError,
        UnauthorizedError,
        UnknownClusterError,
        UnknownIndexError,
        UnknownResourceError,
        UnreachableError,
        UnreadableFileError,
        WaitTimeoutError,
        WriteError,
    )
    from dyninformer.factory import (
        DynamicSharedInformerFactory,
        GenericInformer,
        OpenInformer,
        SyncResult,
        open_informer,
    )
    from dyninformer.fleet.fleet import Fleet
    from dyninformer.fleet.follower import FleetFollower
    from dyninformer.fleet.handlers import FleetRegistration
    from dyninformer.fleet.informer import FleetGenericInformer, FleetInformer
    from dyninformer.fleet.lister import ClusterKey, FleetLister, FleetNamespaceLister
    from dyninformer.fleet.status import FleetSyncResult
    from dyninformer.fleet.stream import FleetEventStream
    from dyninformer.follow import Follower
    from dyninformer.frames.selection import LiveOptions, SelectOptions
    from dyninformer.indexer import Indexer, Store
    from dyninformer.informer import Controller, SharedIndexInformer
    from dyninformer.jsonpath import JSONPath, compound, jsonpath_index
    from dyninformer.lister import GenericLister, GenericNamespaceLister
    from dyninformer.metrics import Metrics
    from dyninformer.moments.difference import Difference, ObjectDifference
    from dyninformer.moments.recording import Recording, open_recording
    from dyninformer.moments.snapshot import Snapshot
    from dyninformer.moments.version import Version
    from dyninformer.options import (
        DROP,
        Drop,
        History,
        ListOptions,
        ResourceOptions,
        ResourceOptionsDict,
    )
    from dyninformer.relations.tree import Tree, TreeNode
    from dyninformer.resource import GroupVersionResource
    from dyninformer.scale.fences import Fence
    from dyninformer.scale.leader import Leader
    from dyninformer.scale.membership import MembershipStatus, ShardMembership
    from dyninformer.scale.sharded import ShardedInformer, ShardedRegistration, ShardEvent
    from dyninformer.shard import Shard
    from dyninformer.store.transforms import strip
    from dyninformer.watching.audit import AuditReport
    from dyninformer.watching.status import InformerState, InformerStatus, InformerTrouble
    from dyninformer.work import RateLimited, WorkItem, WorkQueue

__all__ = [
    "DROP",
    "AmbiguousResourceError",
    "AuditError",
    "AuditReport",
    "CacheSyncError",
    "Change",
    "ClusterKey",
    "ConfigError",
    "ConflictError",
    "Controller",
    "Difference",
    "Discovery",
    "Drop",
    "DynInformerError",
    "DynamicSharedInformerFactory",
    "Event",
    "EventStream",
    "EventType",
    "EventTypeWarning",
    "Fence",
    "Fleet",
    "FleetEventStream",
    "FleetFollower",
    "FleetGenericInformer",
    "FleetInformer",
    "FleetLister",
    "FleetNamespaceLister",
    "FleetRegistration",
    "FleetSyncResult",
    "Follower",
    "ForbiddenError",
    "GenericInformer",
    "GenericLister",
    "GenericNamespaceLister",
    "GroupVersionResource",
    "HandlerOptions",
    "History",
    "IncompleteRecordingWarning",
    "Indexer",
    "InformerState",
    "InformerStatus",
    "InformerTrouble",
    "InvalidError",
    "JSONPath",
    "JSONPathError",
    "JSONPathWarning",
    "Leader",
    "ListOptions",
    "LiveOptions",
    "LostShardError",
    "MembershipStatus",
    "Metrics",
    "NotKeptError",
    "NotSyncedWarning",
    "ObjectDifference",
    "ObjectNotFoundError",
    "OpenInformer",
    "OptionsConflictError",
    "PrinterColumn",
    "RateLimited",
    "Recording",
    "Registration",
    "ResolvedResource",
    "ResourceOptions",
    "ResourceOptionsDict",
    "SelectOptions",
    "SelectorError",
    "Shard",
    "ShardEvent",
    "ShardMembership",
    "ShardedInformer",
    "ShardedRegistration",
    "SharedIndexInformer",
    "Snapshot",
    "StaleCacheError",
    "StoppedError",
    "Store",
    "SyncResult",
    "Tree",
    "TreeNode",
    "UnauthorizedError",
    "UnknownClusterError",
    "UnknownIndexError",
    "UnknownResourceError",
    "UnreachableError",
    "UnreadableFileError",
    "Version",
    "WaitTimeoutError",
    "WorkItem",
    "WorkQueue",
    "WriteError",
    "__version__",
    "compound",
    "jsonpath_index",
    "open_informer",
    "open_recording",
    "show",
    "strip",
]

_HOMES = {
    "Fleet": "fleet.fleet",
    "FleetEventStream": "fleet.stream",
    "FleetFollower": "fleet.follower",
    "FleetGenericInformer": "fleet.informer",
    "FleetInformer": "fleet.informer",
    "FleetLister": "fleet.lister",
    "FleetNamespaceLister": "fleet.lister",
    "FleetRegistration": "fleet.handlers",
    "FleetSyncResult": "fleet.status",
    "ClusterKey": "fleet.lister",
    "UnauthorizedError": "errors",
    "UnknownClusterError": "errors",
    "TreeNode": "relations.tree",
    "Tree": "relations.tree",
    "History": "options",
    "open_recording": "moments.recording",
    "Recording": "moments.recording",
    "Version": "moments.version",
    "IncompleteRecordingWarning": "errors",
    "NotKeptError": "errors",
    "UnreadableFileError": "errors",
    "ObjectDifference": "moments.difference",
    "Difference": "moments.difference",
    "Snapshot": "moments.snapshot",
    "Controller": "informer",
    "Discovery": "discovery",
    "PrinterColumn": "discovery",
    "ResolvedResource": "discovery",
    "Drop": "options",
    "Follower": "follow",
    "Indexer": "indexer",
    "Store": "indexer",
    "Metrics": "metrics",
    "Change": "delivery.changes",
    "Event": "delivery.events",
    "EventType": "delivery.events",
    "HandlerOptions": "delivery.handlers",
    "LiveOptions": "frames.selection",
    "SelectOptions": "frames.selection",
    "Registration": "delivery.handlers",
    "EventStream": "delivery.stream",
    "AmbiguousResourceError": "errors",
    "AuditError": "errors",
    "AuditReport": "watching.audit",
    "CacheSyncError": "errors",
    "ConfigError": "errors",
    "DynInformerError": "errors",
    "EventTypeWarning": "errors",
    "JSONPathError": "errors",
    "JSONPathWarning": "errors",
    "NotSyncedWarning": "errors",
    "ObjectNotFoundError": "errors",
    "OptionsConflictError": "errors",
    "SelectorError": "errors",
    "StaleCacheError": "errors",
    "StoppedError": "errors",
    "UnknownIndexError": "errors",
    "UnknownResourceError": "errors",
    "UnreachableError": "errors",
    "WaitTimeoutError": "errors",
    "ConflictError": "errors",
    "ForbiddenError": "errors",
    "InvalidError": "errors",
    "WriteError": "errors",
    "DynamicSharedInformerFactory": "factory",
    "GenericInformer": "factory",
    "OpenInformer": "factory",
    "SyncResult": "factory",
    "open_informer": "factory",
    "SharedIndexInformer": "informer",
    "GenericLister": "lister",
    "GenericNamespaceLister": "lister",
    "DROP": "options",
    "ListOptions": "options",
    "ResourceOptions": "options",
    "ResourceOptionsDict": "options",
    "GroupVersionResource": "resource",
    "Shard": "shard",
    "Fence": "scale.fences",
    "Leader": "scale.leader",
    "LostShardError": "errors",
    "MembershipStatus": "scale.membership",
    "ShardEvent": "scale.sharded",
    "ShardMembership": "scale.membership",
    "ShardedInformer": "scale.sharded",
    "ShardedRegistration": "scale.sharded",
    "JSONPath": "jsonpath",
    "compound": "jsonpath",
    "jsonpath_index": "jsonpath",
    "show": "display.notebook",
    "strip": "store.transforms",
    "InformerState": "watching.status",
    "InformerStatus": "watching.status",
    "InformerTrouble": "watching.status",
    "RateLimited": "work",
    "WorkItem": "work",
    "WorkQueue": "work",
}

__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
