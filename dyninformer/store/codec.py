"""Objects as bytes: packed for the store, plain and decoded for readers."""

from __future__ import annotations

from typing import Any, TypeAlias

from dyninformer.store.changes import Payload

Object: TypeAlias = dict[str, Any]


class Codec:
    """Packs and unpacks the entries of one store. Any thread may use it."""

    def __init__(self, compress: bool = True) -> None:
        raise NotImplementedError

    def pack(self, data: bytes) -> Payload:
        """The entry for an object's plain JSON."""
        raise NotImplementedError

    def plain(self, payload: Payload) -> bytes:
        """An entry's plain JSON."""
        raise NotImplementedError

    def decode(self, payload: Payload) -> Object:
        """An entry as a new dict, which is the caller's own."""
        raise NotImplementedError
