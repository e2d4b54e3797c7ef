"""Entries by key, their indexes, and the one lock of an informer."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from dyninformer.errors import OptionsConflictError, UnknownIndexError
from dyninformer.metrics import NO_METRICS, Metrics
from dyninformer.options import IndexFunction, Transform
from dyninformer.resource import GroupVersionResource
from dyninformer.store.adding import add_indexes
from dyninformer.store.changes import Change, Changes, Payload, Run
from dyninformer.store.codec import SAMPLE_SIZE, Codec
from dyninformer.store.holdings import Failed, Holdings
from dyninformer.store.indexers import (
    NAMESPACE,
    Index,
    Indexing,
    as_function,
    by_namespace,
    same_function,
)
from dyninformer.store.packing import pack_again, sample_of
from dyninformer.store.receiving import Receive, Received, Receiver
from dyninformer.store.relist import Relist
from dyninformer.store.sharing import SharedObjects
from dyninformer.store.snapshot import View
from dyninformer.store.steps import Deciding, WatchEvent, WatchType
from dyninformer.threads import in_forked_child, lock_across_forks
from dyninformer.types import Object

Entry: TypeAlias = tuple[str, Payload]
EntryList: TypeAlias = list[Entry]
Texts: TypeAlias = list[str]
Payloads: TypeAlias = list[Payload]

_log = logging.getLogger(__name__)


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
        self.lock = lock_across_forks()
        self.on_changes = on_changes
        self._metrics = metrics
        self._metadata_only = metadata_only
        self._deciding = Deciding(self.codec)
        self._shared = SharedObjects(self.codec)
        # Held by the one thread that adds indexers, while it runs a user's functions: no fork
        # waits for those.
        self._adding = threading.RLock()
        self._index_failures: set[str] = set()
        functions = self._without_namespace(indexers or {})
        self.holdings = Holdings(Indexing(functions, self._index_failed))
        self.failed = Failed()
        self._receiver = Receiver(self.holdings, transform, metadata_only)
        in_forked_child(self, then=Store._withdraw_half_added)

    # What the reflectors' threads call.

    @property
    def receive(self) -> Receive:
        """How to read objects as they come, outside the lock; whoever reads many may keep it."""
        return self._receiver.receive

    def count_unusable(self) -> None:
        """Count an object that is left out."""
        self._metrics.count("unusable_objects", self.gvr)

    def count_failures(self, amount: int) -> None:
        """Count objects on which the transform failed."""
        self._metrics.count("transform_errors", self.gvr, amount)

    def apply(self, type: WatchType, received: Received) -> None:
        """Take a watch event (S6, S12, S30)."""
        self.apply_all(((type, received),))

    def apply_all(self, events: Sequence[WatchEvent]) -> None:
        """Take watch events that came together, one after the other, in one section.

        What they change is told as one `Run`, so that a handler's thread is woken once for it.
        """
        holdings = self.holdings
        while True:
            indexing = holdings.indexing
            # Only this thread writes the scope, so what is held now is held below, if perhaps
            # in other bytes: another thread may have compressed it.
            steps = self._deciding.of_events(events, holdings.get_of, indexing)
            noted = [received for _, received in events if received.failure or self.failed.count]
            if not steps and not noted:
                return
            run = Run([step.change for step in steps])
            with self.lock:
                if holdings.indexing is not indexing:
                    continue  # an index was added in between
                for received in noted:
                    self.failed.note(received)
                for step in steps:
                    holdings.make(step)
                if steps:
                    self.on_changes(run)
            break
        self.count(run)
        self._look_for_dictionary()

    def _look_for_dictionary(self) -> None:
        if self.codec.wants_sample and self.holdings.count >= SAMPLE_SIZE:
            self.learn(lambda: sample_of(self.view()))

    def relist(self, scope: str = "") -> Relist:
        """Begin a new state of a scope."""
        return Relist(self, scope)

    def clear(self, scope: str = "") -> None:
        """Delete all that is held of a scope, and tell it (S33)."""
        self.relist(scope).swap(first=False)

    def set_transform(self, transform: Transform | None) -> None:
        """Transform what is received from now on."""
        self._receiver = Receiver(self.holdings, transform, self._metadata_only)

    # Reads.

    def get(self, key: str) -> Payload | None:
        """The entry of a key."""
        return self.holdings.get(key)

    def shared(self, key: str) -> Object | None:
        """The object of a key, decoded once and shared by all who ask: not to be changed."""
        payload = self.holdings.get(key)
        return None if payload is None else self.shared_of(key, payload)

    def shared_of(self, key: str, payload: Payload) -> Object:
        """The object of an entry, decoded once and shared by all who ask: not to be changed."""
        return self._shared.get(key, payload)

    def view(self, namespace: str | None = None) -> View:
        """What is held at this moment, of one namespace or of all."""
        with self.lock:
            entries = self.holdings.frozen(namespace)
        return View(self.gvr, self.codec, entries)

    def keys(self) -> Texts:
        """All keys."""
        with self.lock:
            return [key for entries in self.holdings.entries.values() for key in entries]

    def __len__(self) -> int:
        return self.holdings.count

    def __contains__(self, key: str) -> bool:
        return self.holdings.get(key) is not None

    # Indexes. An unknown name is UnknownIndexError.

    def by_index(self, name: str, value: str) -> EntryList:
        """Keys and entries under an index value."""
        holdings = self.holdings
        with self.lock:
            if name == NAMESPACE:
                return list(holdings.entries.get(value, {}).items())
            keys = self._index(name).keys(value)
            found = [(key, holdings.get(key)) for key in keys]
        return [(key, payload) for key, payload in found if payload is not None]

    def index_keys(self, name: str, value: str) -> Texts:
        """The keys under an index value."""
        with self.lock:
            if name == NAMESPACE:
                return list(self.holdings.entries.get(value, ()))
            return self._index(name).keys(value)

    def index_values(self, name: str) -> Texts:
        """All values of an index under which something is held."""
        with self.lock:
            return list(self.holdings.entries) if name == NAMESPACE else self._index(name).values()

    def values_of(self, name: str, obj: Object) -> Texts:
        """The values that an index's function gives for an object. It may raise."""
        given = self.get_indexers().get(name)
        if given is None:
            raise self._unknown(name)
        return list(as_function(given)(obj))

    def get_indexers(self) -> dict[str, IndexFunction]:
        """The index functions by name, as they were given."""
        with self.lock:
            functions = self.holdings.indexing.functions
            return {
                NAMESPACE: by_namespace,
                **{name: functions[name] for name in self.holdings.published},
            }

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while the store is written (S15).

        All or nothing: an error, an interrupt too, leaves the indexes as they were.
        """
        with self._adding:
            holdings, before = self.holdings, self.holdings.indexing
            added = self._without_namespace(indexers)
            for name in [name for name in added if name in before.functions]:
                if not same_function(added[name], before.functions[name]):
                    raise self._conflict(name, added[name], before.functions[name])
                del added[name]
            if not added:
                return
            add_indexes(holdings, self.lock, self.codec, added, self._index_failed)

    def _withdraw_half_added(self) -> None:
        """In a forked child: what another thread was adding is not added."""
        if self._adding.acquire(blocking=False):  # nobody's, or this thread's, which goes on
            self._adding.release()
        else:
            self._adding = threading.RLock()
            self.holdings.withdraw()

    def _without_namespace(self, indexers: Mapping[str, IndexFunction]) -> dict[str, IndexFunction]:
        """The indexers but for the one that is always there, which may be named, not changed."""
        rest = dict(indexers)
        given = rest.pop(NAMESPACE, None)
        if given is not None and given is not by_namespace:
            raise self._conflict(NAMESPACE, given, by_namespace)
        for function in rest.values():
            as_function(function)
        return rest

    def _conflict(
        self, name: str, given: IndexFunction, held: IndexFunction
    ) -> OptionsConflictError:
        return OptionsConflictError(
            f"{self.gvr} has an index {name!r} already, of another function: {held!r}, "
            f"now {given!r}. Give one of them another name."
        )

    def _unknown(self, name: str) -> UnknownIndexError:
        known = ", ".join(sorted([NAMESPACE, *self.holdings.published]))
        return UnknownIndexError(
            f"{self.gvr} has no index {name!r}; it has: {known}. Add it with indexers= or "
            "add_indexers."
        )

    def _index(self, name: str) -> Index:
        index = self.holdings.published.get(name)
        if index is None:
            raise self._unknown(name)
        return index

    def _index_failed(self, name: str, error: BaseException) -> None:
        """An object is under nothing in an index whose function raised (S18)."""
        self._metrics.count("index_errors", self.gvr, index=name)
        if name not in self._index_failures:
            self._index_failures.add(name)
            _log.warning(
                "%s: the function of index %r raised; such objects are under nothing in it "
                "(further ones are counted, not logged)",
                self.gvr,
                name,
                exc_info=error,
            )

    # What a relist calls.

    def learn(self, sample: Callable[[], Payloads]) -> None:
        """Train the codec on the sample, unless that is done, and pack what is held again."""
        if self.codec.learn(sample):
            pack_again(self.holdings, self.lock, self.codec)

    def tell(self, changes: Changes) -> None:
        """Tell the changes; called with the lock held."""
        if changes:
            self.on_changes(changes)

    def count(self, changes: Changes) -> None:
        """Count what was told; called without the lock."""
        if self._metrics is NO_METRICS:
            return
        kinds = Counter(_kind(change) for change in changes)
        for kind, amount in kinds.items():
            self._metrics.count("events", self.gvr, amount, type=kind)
        self._metrics.gauge("objects", self.gvr, len(self))


def _kind(change: Change) -> str:
    if change.old is None:
        return "ADDED"
    return "DELETED" if change.new is None else "UPDATED"
