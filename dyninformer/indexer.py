"""client-go's Store and Indexer: the cache by key and by index, in its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dyninformer.checked import checked, checked_text
from dyninformer.options import IndexFunction, IndexValue
from dyninformer.printable import counted
from dyninformer.shown import Shown
from dyninformer.store.store import Store as Cache
from dyninformer.types import Names, Object, Objects, Texts

_AN_OBJECT: Final = "an object; get_by_key takes its key"


class Store(Shown):
    """The cache by key. Objects returned are the caller's own.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("v1/namespaces", client=server.client()) as found:
    ...     print(found.informer.store.get_by_key("nowhere"))
    ...     found.informer.store.get_by_key("default")["kind"]
    None
    'Namespace'
    """

    def __init__(self, store: Cache, keeps: object = None) -> None:
        """``keeps`` is to stay for as long as this is held."""
        self._store = store
        self._keeps = keeps

    def get(self, obj: Object) -> Object | None:
        """What is held under the key of ``obj``, None if nothing is."""
        metadata = checked("obj", obj, dict, _AN_OBJECT).get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise ValueError(f"obj has no metadata.name: give {_AN_OBJECT}")
        namespace, name = metadata.get("namespace"), metadata["name"]
        return self.get_by_key(f"{namespace}/{name}" if namespace else name)

    def get_by_key(self, key: str) -> Object | None:
        """The object of ``namespace/name``, or of a cluster-scoped name; None if absent."""
        if type(key) is not str:
            checked_text("key", key, "a key such as 'namespace/name'")
        payload = self._store.get(key)
        return None if payload is None else self._store.codec.decode(payload)

    def list(self) -> Objects:
        """All objects, as they are at one moment."""
        return self._store.view().objects()

    def list_keys(self) -> Names:
        """All keys."""
        return self._store.keys()

    @property
    def held(self) -> Cache:
        """What it reads, for displays. Not for import."""
        return self._store

    def __len__(self) -> int:
        return len(self._store)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        held = counted(len(self._store), "object")
        return f"<{type(self).__name__} of {self._store.gvr}, {held}>"


class Indexer(Store):
    """The cache by key and by index. An unknown index is an UnknownIndexError.

    An index function is a JSONPath, as text or made by ``jsonpath_index`` or
    ``compound``, or a callable from an object to strings. ``namespace`` is always there.
    ``add_indexers`` is the informer's, which knows whether it has stopped (S16).

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> by_phase = {"by-phase": "{.status.phase}"}
    >>> with ApiServer() as server, open_informer(
    ...     "v1/namespaces", client=server.client(), indexers=by_phase
    ... ) as namespaces:
    ...     indexer = namespaces.informer.indexer
    ...     print(indexer.list_index_func_values("by-phase"))
    ...     len(indexer.index_keys("by-phase", "Active"))
    ['Active']
    4
    """

    def __init__(
        self,
        store: Cache,
        add_indexers: Callable[[Mapping[str, IndexFunction]], None],
        check_index: Callable[[str], None],
        keeps: object = None,
    ) -> None:
        super().__init__(store, keeps)
        self._add_indexers = add_indexers
        self._check_index = check_index

    def index(self, name: str, obj: Object) -> Objects:
        """The objects that share a value of the index with ``obj``, each once."""
        checked("obj", obj, dict, "an object")
        keys = {
            key: payload
            for value in self._store.values_of(name, obj)
            for key, payload in self._store.by_index(name, value)
        }
        return self._store.codec.decode_all([*keys.values()])

    def by_index(self, name: str, value: IndexValue) -> Objects:
        """The objects under a value of the index; of a `compound` one, a tuple of its parts."""
        found = self._store.by_index(name, value)
        if not found:
            self._check_index(name)
        return self._store.codec.decode_all([entry for _, entry in found])

    def index_keys(self, name: str, value: IndexValue) -> Names:
        """The keys under a value of the index; of a `compound` one, a tuple of its parts."""
        found = self._store.index_keys(name, value)
        if not found:
            self._check_index(name)
        return found

    def list_index_func_values(self, name: str) -> Texts:
        """All values of the index under which something is held."""
        return self._store.index_values(name)

    def get_indexers(self) -> dict[str, IndexFunction]:
        """The index functions by name, as they were given."""
        return self._store.get_indexers()

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Add indexes, also while the informer runs (S15); StoppedError once it has stopped."""
        self._add_indexers(indexers)
