"""Entries by key, their indexes, and the one lock of an informer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import IndexFunction, Transform
from dyninformer.resource import GroupVersionResource
from dyninformer.store.changes import Changes, Payload
from dyninformer.store.codec import Codec
from dyninformer.store.receiving import Received
from dyninformer.store.relist import Relist
from dyninformer.store.snapshot import View

Object: TypeAlias = dict[str, Any]
Entry: TypeAlias = tuple[str, Payload]
Entries: TypeAlias = list[Entry]
Texts: TypeAlias = list[str]
WatchType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


def _ignore(changes: Changes) -> None:
    """Nobody is told."""


class Store:
    """What is known of one resource.

    Reads may be made from any thread. Each scope, a namespace or "" for all, is written by one
    thread at a time, its reflector. ``lock`` guards entries and indexes, and whoever delivers
    guards the handlers and their queues with it (S7): ``on_changes`` is called under it, right
    after the state has changed. The lock may be taken again by the thread that holds it.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        *,
        codec: Codec | None = None,
        indexers: Mapping[str, IndexFunction] | None = None,
        transform: Transform | None = None,
        metadata_only: bool = False,
        metrics: Metrics = NO_METRICS,
        on_changes: Callable[[Changes], None] = _ignore,
    ) -> None:
        self.gvr = gvr
        self.codec = codec or Codec()
        self.lock = threading.RLock()
        self.on_changes = on_changes
        raise NotImplementedError

    # What the reflectors' threads call.

    def receive(
        self, data: bytes, api_version: str = "", kind: str = "", *, deleted: bool = False
    ) -> Received:
        """Read an object as it came, outside the lock.

        ``api_version`` and ``kind`` are filled in where it has none (S31). ``deleted``: it came
        as DELETED, so that no transform sees it (S17). Raises UnusableObjectError (S32) and
        TransformError (S17), both counted.
        """
        raise NotImplementedError

    def apply(self, type: WatchType, received: Received) -> None:
        """Take a watch event (S6, S12, S30)."""
        raise NotImplementedError

    def relist(self, scope: str = "") -> Relist:
        """Begin a new state of a scope."""
        raise NotImplementedError

    def clear(self, scope: str = "") -> None:
        """Delete all that is held of a scope, and tell it (S33)."""
        raise NotImplementedError

    def set_transform(self, transform: Transform | None) -> None:
        """Transform what is received from now on."""
        raise NotImplementedError

    # Reads.

    def get(self, key: str) -> Payload | None:
        """The entry of a key."""
        raise NotImplementedError

    def shared(self, key: str) -> Object | None:
        """The object of a key, decoded once and shared by all who ask: not to be changed."""
        raise NotImplementedError

    def view(self, namespace: str | None = None) -> View:
        """What is held at this moment, of one namespace or of all."""
        raise NotImplementedError

    def keys(self) -> Texts:
        """All keys."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, key: str) -> bool:
        raise NotImplementedError

    # Indexes. An unknown name is UnknownIndexError.

    def by_index(self, name: str, value: str) -> Entries:
        """Keys and entries under an index value."""
        raise NotImplementedError

    def index_keys(self, name: str, value: str) -> Texts:
        """The keys under an index value."""
        raise NotImplementedError

    def index_values(self, name: str) -> Texts:
        """All values of an index under which something is held."""
        raise NotImplementedError

    def values_of(self, name: str, obj: Object) -> Texts:
        """The values that an index's function gives for an object."""
        raise NotImplementedError

    def get_indexers(self) -> dict[str, IndexFunction]:
        """The index functions by name, as they were given."""
        raise NotImplementedError

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while the store is written (S15)."""
        raise NotImplementedError
