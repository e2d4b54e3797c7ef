"""A frozen view of a store, and its form on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from dyninformer.resource import GroupVersionResource
from dyninformer.store.changes import Payload
from dyninformer.store.codec import Codec

Object: TypeAlias = dict[str, Any]


class View:
    """What a store held at one moment; immutable, for any thread.

    It shares the store's entries, so that it costs little, and iterates over objects decoded
    one at a time, each the caller's own.
    """

    codec: Codec

    @property
    def gvr(self) -> GroupVersionResource:
        """The resource it is of."""
        raise NotImplementedError

    def keys(self) -> list[str]:
        """All keys, in the order of the store."""
        raise NotImplementedError

    def get(self, key: str) -> Payload | None:
        """The entry of a key."""
        raise NotImplementedError

    def items(self) -> Iterator[tuple[str, Payload]]:
        """Keys and entries."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Object]:
        """The objects."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, key: str) -> bool:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write it to a file that nobody else may read, all or nothing."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | Path) -> View:
        """Read what ``save`` wrote."""
        raise NotImplementedError
