"""What a store held at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from dyninformer.jsonpath import JSONPath
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.store.codec import Codec, Entry
from dyninformer.types import Key, Keys, Object, Objects

ByNamespace: TypeAlias = dict[str, dict[Key, Entry]]
"""Entries by namespace and key; what is cluster-scoped is under ""."""
Selector: TypeAlias = str | Mapping[str, str]
Columns: TypeAlias = Mapping[str, str | JSONPath]
Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]


class View:
    """What a store held at one moment; immutable, for any thread.

    It shares the store's entries, so that it costs little, and iterates over objects decoded
    one at a time, each the caller's own.

    Not for import.
    """

    def __init__(self, gvr: GroupVersionResource, codec: Codec, entries: ByNamespace) -> None:
        """The entries must not change any more."""
        self.gvr = gvr
        self.codec = codec
        self._entries = entries

    @property
    def by_namespace(self) -> ByNamespace:
        """The entries themselves: to be read, and not to be changed."""
        return self._entries

    def keys(self) -> Keys:
        """All keys, in the order of the store."""
        return [key for entries in self._entries.values() for key in entries]

    def get(self, key: Key) -> Entry | None:
        """The entry of a key."""
        namespace, slash, _ = key.partition("/")
        return self._entries.get(namespace if slash else "", {}).get(key)

    def items(self) -> Iterator[tuple[Key, Entry]]:
        """Keys and entries."""
        for entries in self._entries.values():
            yield from entries.items()

    def __iter__(self) -> Iterator[Object]:
        """The objects."""
        decode = self.codec.decode
        for entries in self._entries.values():
            for entry in entries.values():
                yield decode(entry)

    def objects(self) -> Objects:
        """All objects, decoded."""
        entries = [entry for each in self._entries.values() for entry in each.values()]
        return self.codec.decode_all(entries)

    def some(self, count: int) -> Objects:
        """The first objects, decoded."""
        return [self.codec.decode(entry) for _, entry in islice(self.items(), count)]

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"View({self.gvr}, {counted(len(self), 'object')})"
