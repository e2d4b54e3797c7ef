"""Entries by key, their indexes, and the one lock of an informer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from cachetools import LRUCache

from dyninformer.checked import checked_text
from dyninformer.errors import OptionsConflictError, UnknownIndexError
from dyninformer.metrics.told import NO_METRICS, Metrics
from dyninformer.options import IndexFunction, IndexValue, Transform
from dyninformer.resource import GroupVersionResource
from dyninformer.shard import Part
from dyninformer.store.asked import AskedIndexes
from dyninformer.store.codec import SAMPLE_SIZE, Codec, Entry, IndexRow
from dyninformer.store.decide import (
    Decider,
    Delta,
    Deltas,
    LiveDeltas,
    WatchEvent,
    Write,
    Writes,
)
from dyninformer.store.indexes import (
    NAMESPACE,
    Asked,
    FunctionsByName,
    Index,
    IndexFunctions,
    IndexList,
    IndexName,
    as_function,
    enter_rows,
    index_value,
    namespace_index,
    same_function,
)
from dyninformer.store.matching import wanted
from dyninformer.store.memory import give_back_memory
from dyninformer.store.receive import Received, Receiver
from dyninformer.store.relist import Relist
from dyninformer.store.repacking import Repacking
from dyninformer.store.snapshot import ByNamespace, Selector, View
from dyninformer.store.versions import lowest
from dyninformer.threads import ReentrantLock, in_forked_child, lock_across_forks
from dyninformer.types import Key, Keys, Object, Objects, Texts

KeyedEntries: TypeAlias = list[tuple[Key, Entry]]
EntriesByKey: TypeAlias = dict[Key, Entry]

_INDEXED: Final = 128  # so many objects are read between two sections that enter their values
_SHARED: Final = 4096  # so many decoded objects are shared

_logger = logging.getLogger(__name__)


def _ignore(deltas: Deltas) -> None:
    """Tell nobody."""


class Store:
    """What is known of one resource.

    Reads may be made from any thread. Each scope, a namespace or "" for all, is written by one
    thread at a time, its reflector.

    ``lock`` guards ``entries`` with their indexes, ``versions`` and ``untransformed``. The informer
    guards its handlers and their queues with it too (S7): ``on_changes`` is called under it, right
    after the state has changed. The thread that holds it may take it again.

    Not for import.
    """

    def __init__(
        self,
        gvr: GroupVersionResource,
        *,
        codec: Codec | None = None,
        indexers: Mapping[str, IndexFunction] | None = None,
        transform: Transform | None = None,
        metadata_only: bool = False,
        shard: Part | None = None,
        metrics: Metrics = NO_METRICS,
        on_changes: Callable[[Deltas], None] = _ignore,
    ) -> None:
        self.gvr = gvr
        self.codec = codec or Codec()
        self.lock = lock_across_forks()
        self.on_changes = on_changes
        self._metrics = metrics
        self._metadata_only = metadata_only
        self.repacking = Repacking(self)
        self._shard = shard
        self._decider = Decider(self.codec)
        self._shared = SharedObjects(self.codec)
        # Its holder runs a user's functions, so it is not held across forks.
        self.adding = ReentrantLock()
        """Guards nothing but the turn to add indexers; it is taken before ``lock``."""
        self.asked = AskedIndexes(self)
        """The indexes that reads by selectors have asked for."""
        self._index_failures: set[IndexName] = set()
        functions = self._without_namespace(indexers or {})
        self.entries = Entries(IndexFunctions(functions, self._index_failed))
        self.versions: dict[str, str] = {}
        """By scope, the version of the server's that its entries are the state of. What changes
        them says so in the same section; a version that changes none may be noted without."""
        self.untransformed = Untransformed()
        self.receive = Receiver(self.entries, transform, metadata_only, shard).receive
        """Reads an object as it came, outside the lock. A thread that reads many may keep it."""
        self.transforms = transform is not None
        """Something may be kept otherwise than the server has it, or not at all."""
        in_forked_child(self, then=Store._withdraw_half_added)

    # What the reflectors' threads call.

    def count_unusable(self) -> None:
        """Count an object that is left out."""
        self._metrics.count("unusable_objects", self.gvr)

    def count_failures(self, amount: int) -> None:
        """Count objects on which the transform failed."""
        self._metrics.count("transform_errors", self.gvr, amount)

    def apply(
        self,
        events: Sequence[WatchEvent],
        scope: str = "",
        version: str = "",
        came: float = 0.0,
    ) -> None:
        """Take watch events that came together (S6, S12, S30), in order and in one section.

        What they change is told as one `LiveDeltas`, so that it wakes a handler's thread once.
        ``version`` is the one that the scope has come to with them, ``came`` as a delta has it.
        """
        entries, untransformed = self.entries, self.untransformed
        while True:
            functions = entries.functions
            # Only this thread writes the scope, so what is held now is held below, if perhaps
            # in other bytes: another thread may have compressed it.
            writes = self._decider.of_events(events, entries.get_of, functions, came)
            noted = [received for _, received in events if received.failure or untransformed.count]
            if not writes and not noted:
                return
            if self._take(writes, noted, functions, scope, version):
                break
        if entries.count >= SAMPLE_SIZE:
            self.repacking.look_at_held()

    def settle(self, key: Key, received: Received | None) -> Delta | None:
        """Hold one object as the server has it, None if it has none; what that changed (S36).

        What is missing is told as a relist tells it (S13). By the scope's thread, as `apply`.
        """
        entries, untransformed = self.entries, self.untransformed
        namespace = key.rpartition("/")[0]
        while True:
            functions, current = entries.functions, entries.get_of(namespace, key)
            write: Write | None = None
            if received is not None and (received.data is not None or received.failure):
                write = self._decider.kept(received, current, functions, live=False)
            elif current is not None:
                write = self._decider.missing(namespace, key, current, functions)
            if received is None:
                with self.lock:
                    untransformed.forget(key)
            noted = [] if received is None else [received]
            if self._take([] if write is None else [write], noted, functions):
                return None if write is None else write.delta

    def _take(
        self,
        writes: Writes,
        noted: Sequence[Received],
        functions: IndexFunctions,
        scope: str = "",
        version: str = "",
    ) -> bool:
        """Make the writes, and tell them, in one section.

        False if an index was added since they were decided: nothing is done.
        """
        entries, deltas = self.entries, LiveDeltas([write.delta for write in writes])
        with self.lock:
            if entries.functions is not functions:
                return False
            for received in noted:
                self.untransformed.note(received)
            for write in writes:
                entries.write(write)
            if version:
                self.versions[scope] = version
            if writes:
                self.on_changes(deltas)
        self.count(deltas)
        return True

    def relist(self, scope: str = "") -> Relist:
        """Begin a new state of a scope."""
        return Relist(self, scope)

    def clear(self, scope: str = "") -> None:
        """Delete all that is held of a scope, and tell it (S33)."""
        self.relist(scope).swap(first=False)

    def let_go(self) -> None:
        """Hold nothing any more, and tell nobody: nothing reads it, nor writes it (S42)."""
        with self.lock:
            held = self.entries.take_all()
        self._shared.clear()
        del held  # the objects are freed here, without the lock
        give_back_memory()

    def set_transform(self, transform: Transform | None) -> None:
        """Transform what is received from now on; called before the informer starts (S16)."""
        self.receive = Receiver(self.entries, transform, self._metadata_only, self._shard).receive
        self.transforms = transform is not None

    # Reads.

    def get(self, key: Key) -> Entry | None:
        """The entry of a key."""
        return self.entries.get(key)

    def shared(self, key: Key) -> Object | None:
        """The object of a key, decoded once for all readers: not to be changed."""
        entry = self.entries.get(key)
        return None if entry is None else self.shared_of(key, entry)

    def shared_of(self, key: Key, entry: Entry) -> Object:
        """The object of an entry, decoded once for all readers: not to be changed."""
        return self._shared.get(key, entry)

    def view(self, namespace: str | None = None) -> View:
        """What is held at this moment, of one namespace or of all."""
        with self.lock:
            entries = self.entries.frozen(namespace)
        return View(self.gvr, self.codec, entries)

    def first(self, count: int, namespace: str | None = None) -> View:
        """So many of what is held at this moment: costs the same however many there are."""
        with self.lock:
            entries = self.entries.some(count, namespace)
        return View(self.gvr, self.codec, entries)

    def some_json(self, count: int) -> Iterator[bytes]:
        """Return the JSON of so many of the cached objects, one unpacked at a time."""
        return (self.codec.plain(entry) for _, entry in self.first(count).items())

    @property
    def held_bytes(self) -> int:
        """How many bytes the entries are, and the dictionaries that they need.

        Without keys and indexes. A number of this moment.
        """
        return self.entries.size + self.codec.memory

    def moment(self, scopes: Iterable[str]) -> tuple[View, str]:
        """What is held at this moment, and the version of the server's that it is the state of.

        Of several scopes that is the lowest, since each has a stream of its own; "" if one of them
        has no state yet.
        """
        with self.lock:
            entries = self.entries.frozen(None)
            found = [self.versions.get(scope, "") for scope in scopes]
        return View(self.gvr, self.codec, entries), lowest(found) if all(found) else ""

    def keys(self) -> Keys:
        """All keys."""
        with self.lock:
            return [key for entries in self.entries.by_namespace.values() for key in entries]

    def __len__(self) -> int:
        return self.entries.count

    def __contains__(self, key: Key) -> bool:
        return self.entries.get(key) is not None

    # Selections. A selector that cannot be read is SelectorError.

    def selected(
        self,
        selector: Selector | None,
        field_selector: Selector | None = None,
        namespace: str | None = None,
    ) -> Objects:
        """The objects that both selectors match, of one namespace or of all, at one moment.

        Each is decoded for the caller alone. They come in no order.
        """
        asked = wanted(selector, field_selector)
        if asked.everything:
            return self.view(namespace).objects()
        return self.asked.objects(asked, namespace)

    def selected_entries(
        self,
        selector: Selector | None,
        field_selector: Selector | None = None,
        namespace: str | None = None,
    ) -> EntriesByKey:
        """Their keys and entries."""
        asked = wanted(selector, field_selector)
        if asked.everything:
            return dict(self.view(namespace).items())
        return self.asked.entries(asked, namespace)

    # Indexes. An unknown name is UnknownIndexError.

    def by_index(self, name: str, sought: IndexValue, namespace: str | None = None) -> KeyedEntries:
        """Keys and entries under an index value, of one namespace or of all."""
        entries = self.entries
        value = sought if type(sought) is str else self._index_value(name, sought)
        with self.lock:
            if name == NAMESPACE:
                if namespace not in (None, value):
                    return []
                return list(entries.by_namespace.get(value, {}).items())
            keys = self._index(name).keys(value)
            if namespace is not None:
                inside = f"{namespace}/"
                keys = [key for key in keys if key.startswith(inside)]
            found = [(key, entries.get(key)) for key in keys]
        return [(key, entry) for key, entry in found if entry is not None]

    def index_keys(self, name: str, sought: IndexValue) -> Keys:
        """The keys under an index value."""
        value = sought if type(sought) is str else self._index_value(name, sought)
        with self.lock:
            if name == NAMESPACE:
                return list(self.entries.by_namespace.get(value, ()))
            return self._index(name).keys(value)

    def index_values(self, name: str) -> Texts:
        """All values of an index under which something is held."""
        with self.lock:
            if name == NAMESPACE:
                return list(self.entries.by_namespace)
            return self._index(name).values()

    def values_of(self, name: str, obj: Object) -> Texts:
        """The values that an index's function gives for an object. It may raise."""
        given = self.get_indexers().get(checked_text("the name of an index", name))
        if given is None:
            raise self._unknown(name)
        return list(as_function(given)(obj))

    def count_in(self, namespace: str) -> int:
        """How many objects a namespace has."""
        return len(self.entries.by_namespace.get(namespace, ()))

    def index_sizes(self, name: str, count: int) -> tuple[int, dict[str, int]]:
        """How many values an index has, and of the first so many how many keys each has."""
        with self.lock:
            if name == NAMESPACE:
                spaces = self.entries.by_namespace
                return len(spaces), {value: len(spaces[value]) for value in islice(spaces, count)}
            return self._index(name).sizes(count)

    def get_indexers(self) -> dict[str, IndexFunction]:
        """The index functions by name, as they were given."""
        with self.lock:
            by_name = self.entries.functions.by_name
            return {
                NAMESPACE: namespace_index,
                **{
                    name: by_name[name]
                    for name in self.entries.published
                    if not isinstance(name, Asked)
                },
            }

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while the store is written (S15).

        All or nothing: an error, an interrupt too, leaves the indexes as they were.
        """
        with self.adding:
            before = self.entries.functions
            added = self._without_namespace(indexers)
            for name in [name for name in added if name in before.by_name]:
                if not same_function(added[name], before.by_name[name]):
                    raise self._conflict(name, added[name], before.by_name[name])
                del added[name]
            if added:
                self._add_indexes(added)

    def add_asked(self, added: Mapping[Asked, IndexFunction]) -> None:
        """Add indexes that users do not see. The caller has the turn, ``adding``."""
        if added:
            self._add_indexes(added)

    def drop_asked(self, dropped: Iterable[Asked]) -> None:
        """Take such indexes away again. The caller has the turn, ``adding``."""
        gone = set(dropped)
        kept = {
            name: function
            for name, function in self.entries.functions.by_name.items()
            if name not in gone
        }
        functions = IndexFunctions(kept, self._index_failed)
        with self.lock:
            self.entries.drop(functions)

    def _add_indexes(self, added: FunctionsByName) -> None:
        """Build the indexes from what is held, and publish them when nothing is missing.

        From the moment that is frozen for the build, writers keep the new indexes too, and note
        which keys they wrote: those are complete, and the build passes them over. One thread at a
        time adds. If this raises, whatever the reason, all is as it was before.
        """
        entries, plain = self.entries, self.codec.plain
        alone = IndexFunctions(added, self._index_failed)
        all_ = IndexFunctions({**entries.functions.by_name, **alone.by_name}, self._index_failed)
        try:
            with self.lock:
                indexes = entries.begin(all_)
                frozen = entries.frozen(None)
            items = (item for each in frozen.values() for item in each.items())
            while batch := list(islice(items, _INDEXED)):
                rows = {key: alone.row_of(plain(entry)) for key, entry in batch}
                with self.lock:
                    entries.fill(indexes, rows)
            with self.lock:
                entries.publish()
        except BaseException:
            with self.lock:
                entries.withdraw()
            raise

    def _withdraw_half_added(self) -> None:
        """In a forked child: what another thread was adding is not added."""
        if self.adding.acquire(blocking=False):  # nobody's, or this thread's, which goes on
            self.adding.release()
        else:
            self.adding = ReentrantLock()
            self.entries.withdraw()

    def _without_namespace(self, indexers: Mapping[str, IndexFunction]) -> dict[str, IndexFunction]:
        """The indexers except the one that is always there, which may be named, not changed."""
        rest = dict(indexers)
        given = rest.pop(NAMESPACE, None)
        if given is not None and given is not namespace_index:
            raise self._conflict(NAMESPACE, given, namespace_index)
        for function in rest.values():
            as_function(function)
        return rest

    def _conflict(
        self, name: str, given: IndexFunction, known: IndexFunction
    ) -> OptionsConflictError:
        return OptionsConflictError(
            f"{self.gvr} has an index {name!r} already, of another function: {known!r}, "
            f"now {given!r}. Give one of them another name."
        )

    def _index_value(self, name: str, sought: object) -> str:
        """The text of what is not a plain text: the parts of a compound index, above all."""
        checked_text("the name of an index", name)
        given = self.get_indexers().get(name)
        if given is None:
            raise self._unknown(name)
        return index_value(name, given, sought)

    def _unknown(self, name: str) -> UnknownIndexError:
        known = ", ".join(sorted(self.get_indexers()))
        return UnknownIndexError(
            f"{self.gvr} has no index {name!r}; it has: {known}. Add it with indexers= or "
            "add_indexers."
        )

    def _index(self, name: str) -> Index:
        checked_text("the name of an index", name)
        index = self.entries.published.get(name)
        if index is None:
            raise self._unknown(name)
        return index

    def _index_failed(self, name: IndexName, error: BaseException) -> None:
        """An object is under nothing in an index whose function raised (S18)."""
        self._metrics.count("index_errors", self.gvr, index=str(name))
        if name not in self._index_failures:
            self._index_failures.add(name)
            _logger.warning(
                "%s: the function of index %r raised; such objects are under nothing in it "
                "(further ones are counted, not logged)",
                self.gvr,
                name,
                exc_info=error,
            )

    # What a relist calls too.

    def count(self, deltas: Deltas) -> None:
        """Count what was told; called without the lock."""
        if self._metrics is NO_METRICS:
            return
        kinds = Counter(kind_of(delta) for delta in deltas)
        for kind, amount in kinds.items():
            self._metrics.count("events", self.gvr, amount, type=kind)
        self._metrics.gauge("objects", self.gvr, len(self))


def kind_of(delta: Delta) -> str:
    """What a watch calls it."""
    if delta.old is None:
        return "ADDED"
    return "DELETED" if delta.new is None else "UPDATED"


class Entries:
    """Entries by namespace and key, and their indexes.

    The store's lock is held for every method except `get` and `get_of`. Nothing per object in here
    is looked at by the garbage collector.
    """

    def __init__(self, functions: IndexFunctions) -> None:
        self.by_namespace: ByNamespace = {}
        """No namespace is empty; cluster-scoped objects are under ""."""
        self.functions = functions
        """The functions of all indexes, also of those under construction."""
        self.published: dict[IndexName, Index] = dict(
            zip(functions.by_name, functions.new_indexes(), strict=True)
        )
        """The indexes that are read."""
        self._indexes: IndexList = list(self.published.values())
        self._written: set[Key] | None = None
        self._published_functions = functions
        self.count = 0
        self.size = 0
        """The bytes of all entries."""

    def get(self, key: Key) -> Entry | None:
        """The entry of a key. Needs no lock: what it finds was there while it looked."""
        namespace, slash, _ = key.partition("/")
        entries = self.by_namespace.get(namespace if slash else "")
        return None if entries is None else entries.get(key)

    def get_of(self, namespace: str, key: Key) -> Entry | None:
        """As `get`, where the namespace is at hand."""
        entries = self.by_namespace.get(namespace)
        return None if entries is None else entries.get(key)

    def write(self, write: Write) -> None:
        """Make one write."""
        key, new = write.delta.key, write.delta.new
        entries = self.by_namespace.get(write.namespace)
        if new is None:
            gone = None if entries is None else entries.pop(key, None)
            if entries is not None and gone is not None:
                self.count -= 1
                self.size -= len(gone)
                if not entries:
                    del self.by_namespace[write.namespace]
        else:
            if entries is None:
                entries = self.by_namespace[write.namespace] = {}
            held = entries.get(key)
            if held is None:
                self.count += 1
                self.size += len(new)
            else:
                self.size += len(new) - len(held)
            entries[key] = new
        if write.old_row is write.new_row:
            return  # an index under construction gets the same values from what was frozen
        if self._written is not None:
            self._written.add(key)
        for index, old, values in zip(self._indexes, write.old_row, write.new_row, strict=True):
            index.replace(key, old, values)

    def adopt(self, entries: ByNamespace, indexes: IndexList) -> None:
        """Take over entries of keys that are not held, and their indexes, built apart.

        None of them need be noted as written: a key that was held when an index was begun, and is
        not held now, was noted when it was deleted.
        """
        for namespace, added in entries.items():
            present = self.by_namespace.get(namespace)
            if present is None:
                self.by_namespace[namespace] = added
            else:
                present.update(added)
            self.count += len(added)
            self.size += sum(map(len, added.values()))
        for index, added_index in zip(self._indexes, indexes, strict=True):
            index.absorb(added_index)

    def take_all(self) -> object:
        """Hold nothing from now on; what was held, to be let go of."""
        held = self.by_namespace, self.published, self._indexes
        self.by_namespace, self.count, self.size = {}, 0, 0
        self._indexes = self.functions.new_indexes()
        self.publish()
        return held

    def exchange(self, packed: Iterable[tuple[str, Key, Entry, Entry]]) -> None:
        """Hold the same objects in other bytes, where they are still held."""
        for namespace, key, before, after in packed:
            entries = self.by_namespace.get(namespace)
            if entries is not None and entries.get(key) is before:
                entries[key] = after
                self.size += len(after) - len(before)

    def frozen(self, namespace: str | None) -> ByNamespace:
        """A copy of one namespace or of all; it shares the entries."""
        if namespace is None:
            return {name: entries.copy() for name, entries in self.by_namespace.items()}
        entries = self.by_namespace.get(namespace)
        return {} if entries is None else {namespace: entries.copy()}

    def some(self, count: int, namespace: str | None) -> ByNamespace:
        """The first entries, of one namespace or of all."""
        found: ByNamespace = {}
        for name in [*self.by_namespace] if namespace is None else [namespace]:
            entries = self.by_namespace.get(name)
            if not count or entries is None:
                break
            found[name] = dict(islice(entries.items(), count))
            count -= len(found[name])
        return found

    # Indexes that are added and dropped while the store is written (S15, S43). What belongs
    # together is assigned in one statement: an interrupt comes before all of it, or after.

    @property
    def is_added_to(self) -> bool:
        """Some index was begun, and is neither published nor withdrawn."""
        return self._written is not None

    def begin(self, functions: IndexFunctions) -> IndexList:
        """From now on keep indexes for those of the functions that are new, unpublished."""
        before = self.functions.by_name
        added = functions.new_indexes([name for name in functions.by_name if name not in before])
        for index in added:
            index.complete = False
        indexes, written = [*self._indexes, *added], set[Key]()
        self._indexes, self.functions, self._written = indexes, functions, written
        return added

    def fill(self, added: IndexList, rows: Mapping[Key, IndexRow]) -> None:
        """Enter keys as they were at `begin`, except those written since: they are in."""
        written = self._written or ()
        keys = [key for key in rows if key not in written]
        enter_rows(added, keys, [rows[key] for key in keys])

    def publish(self) -> None:
        """Let readers see the indexes that were begun."""
        for index in self._indexes:
            index.complete = True
        published = dict(zip(self.functions.by_name, self._indexes, strict=True))
        self.published, self._published_functions, self._written = published, self.functions, None

    def drop(self, functions: IndexFunctions) -> None:
        """Keep only the indexes of these functions, which are all known. None must be begun."""
        published = {name: self.published[name] for name in functions.by_name}
        kept = published, list(published.values()), functions, functions
        self.published, self._indexes, self.functions, self._published_functions = kept

    def withdraw(self) -> None:
        """Give up the indexes that were begun and not published."""
        indexes = list(self.published.values())
        self._indexes, self.functions, self._written = indexes, self._published_functions, None


class Untransformed:
    """Objects on whose newest state the transform failed: held in an older one, or not at all.

    Changed with the store's lock held; any thread may read `count` and `first`.
    """

    def __init__(self) -> None:
        self._why: dict[Key, str] = {}
        self.count = 0
        """How many there are."""
        self.first = ""
        """Why the one failed that has been so for the longest; "" if there is none."""

    def why(self, key: Key) -> str:
        """Why the transform failed on an object; "" if it did not. From any thread."""
        return self._why.get(key, "")

    def note(self, received: Received) -> None:
        """The newest state of an object has come, or it is gone."""
        if received.failure:
            self._why[received.key] = received.failure
            self._look()
        else:
            self.forget(received.key)

    def forget(self, key: Key) -> None:
        """It is gone, or has its newest state."""
        if self._why and self._why.pop(key, None) is not None:
            self._look()

    def replace(self, scope: str, failed: Mapping[Key, str]) -> None:
        """The whole state of a scope has come, a namespace's or "" for all."""
        if not self._why and not failed:
            return
        inside = f"{scope}/"
        rest = {key: why for key, why in self._why.items() if scope and not key.startswith(inside)}
        self._why = {**rest, **failed}
        self._look()

    def _look(self) -> None:
        self.count, self.first = len(self._why), next(iter(self._why.values()), "")


_SharedCache: TypeAlias = LRUCache[Key, tuple[Entry, Object]]


def _new_cache() -> _SharedCache:
    return LRUCache(_SHARED)


class SharedObjects:
    """One decoded dict for each of the entries that were asked for last.

    A dict belongs to the entry it was decoded from, whatever its version says (S12): another
    entry of the same key is decoded anew.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._lock = ReentrantLock()  # guards _cache: cachetools is not for several threads
        self._cache: _SharedCache = _new_cache()
        in_forked_child(self, "_lock", _cache=_new_cache)

    def get(self, key: Key, entry: Entry) -> Object:
        """The object of an entry: the same dict each time, not to be changed."""
        with self._lock:
            try:
                known, obj = self._cache[key]
            except KeyError:
                known = None
        if known is entry:
            return obj
        obj = self._codec.decode(entry)
        with self._lock:
            other = self._cache.get(key)
            if other is not None and other[0] is entry:
                return other[1]  # another thread was as fast: all have its dict
            self._cache[key] = (entry, obj)
        return obj

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._cache.clear()
