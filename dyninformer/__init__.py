"""Live, indexed, in-memory copies of any Kubernetes collection, as plain dicts."""

from dyninformer.delivery.events import Event, EventType
from dyninformer.delivery.registration import Registration
from dyninformer.delivery.stream import EventStream
from dyninformer.errors import (
    AmbiguousResourceError,
    CacheSyncError,
    ConfigError,
    DynInformerError,
    JSONPathError,
    JSONPathWarning,
    NotSyncedWarning,
    ObjectNotFoundError,
    OptionsConflictError,
    SelectorError,
    StoppedError,
    UnknownIndexError,
    UnknownResourceError,
    UnreachableError,
    WaitTimeoutError,
)
from dyninformer.factory import (
    DynamicSharedInformerFactory,
    GenericInformer,
    OpenInformer,
    SyncResult,
    open_informer,
)
from dyninformer.informer import SharedIndexInformer
from dyninformer.lister import GenericLister, GenericNamespaceLister
from dyninformer.options import DROP, ListOptions, ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.store.jsonpath import JSONPath, compound, jsonpath_index
from dyninformer.store.transforms import strip
from dyninformer.watching.status import InformerState, InformerStatus

__all__ = [
    "DROP",
    "AmbiguousResourceError",
    "CacheSyncError",
    "ConfigError",
    "DynInformerError",
    "DynamicSharedInformerFactory",
    "Event",
    "EventStream",
    "EventType",
    "GenericInformer",
    "GenericLister",
    "GenericNamespaceLister",
    "GroupVersionResource",
    "InformerState",
    "InformerStatus",
    "JSONPath",
    "JSONPathError",
    "JSONPathWarning",
    "ListOptions",
    "NotSyncedWarning",
    "ObjectNotFoundError",
    "OpenInformer",
    "OptionsConflictError",
    "Registration",
    "ResourceOptions",
    "SelectorError",
    "SharedIndexInformer",
    "StoppedError",
    "SyncResult",
    "UnknownIndexError",
    "UnknownResourceError",
    "UnreachableError",
    "WaitTimeoutError",
    "compound",
    "jsonpath_index",
    "open_informer",
    "strip",
]
