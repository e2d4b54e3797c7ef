"""A store of one moment: the reads of a `Store`, over entries that nothing changes any more."""

from __future__ import annotations

from collections.abc import Mapping

from dyninformer.options import IndexFunction, IndexValue
from dyninformer.store.indexes import same_function
from dyninformer.store.snapshot import View
from dyninformer.store.store import KeyedEntries, Store
from dyninformer.types import Keys, Object, Values


class FrozenStore(Store):
    """What a view has, with the indexes that were there; any thread may read it.

    An index is built when it is first asked for: most snapshots are only compared, or walked over,
    and a copy of each live index would take as much memory as the view itself.
    """

    def __init__(self, view: View, indexers: Mapping[str, IndexFunction]) -> None:
        super().__init__(view.gvr, codec=view.codec)
        self._frozen = view
        self._unbuilt = self._without_namespace(indexers)  # `adding` is the turn to change it
        self.entries.by_namespace = view.by_namespace
        self.entries.count = len(view)

    def view(self, namespace: str | None = None) -> View:
        """What was held, of one namespace or of all; there is nothing to copy."""
        if namespace is None:
            return self._frozen
        entries = self._frozen.by_namespace.get(namespace)
        found = {} if entries is None else {namespace: entries}
        return View(self.gvr, self.codec, found)

    def by_index(self, name: str, sought: IndexValue, namespace: str | None = None) -> KeyedEntries:
        """Keys and entries under an index value, of one namespace or of all."""
        self._build(name)
        return super().by_index(name, sought, namespace)

    def index_keys(self, name: str, sought: IndexValue) -> Keys:
        """The keys under an index value."""
        self._build(name)
        return super().index_keys(name, sought)

    def index_values(self, name: str) -> Values:
        """All values of an index under which something is held."""
        self._build(name)
        return super().index_values(name)

    def values_of(self, name: str, obj: Object) -> Values:
        """The values that an index's function gives for an object. It may raise."""
        self._build(name)
        return super().values_of(name, obj)

    def get_indexers(self) -> dict[str, IndexFunction]:
        """The index functions by name, as they were given."""
        return {**super().get_indexers(), **self._unbuilt}

    def add_indexers(self, indexers: Mapping[str, IndexFunction]) -> None:
        """Have more indexes; OptionsConflictError for another function under a known name."""
        with self.adding:
            known, added = self.get_indexers(), self._without_namespace(indexers)
            for name, function in added.items():
                if name in known and not same_function(function, known[name]):
                    raise self._conflict(name, function, known[name])
            self._unbuilt = {
                **self._unbuilt,
                **{name: function for name, function in added.items() if name not in known},
            }

    def _build(self, name: str) -> None:
        """Have an index of that name, if there is one."""
        if name not in self._unbuilt:
            return
        with self.adding:
            function = self._unbuilt.get(name)
            if function is None:
                return  # another thread has built it meanwhile
            super().add_indexers({name: function})
            self._unbuilt = {key: each for key, each in self._unbuilt.items() if key != name}
