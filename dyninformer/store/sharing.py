"""Decoded objects that all readers share, for hot loops that change nothing."""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

from cachetools import LRUCache

from dyninformer.store.changes import Payload
from dyninformer.store.codec import Codec
from dyninformer.threads import in_forked_child
from dyninformer.types import Object

_SIZE: Final = 4096


class SharedObjects:
    """One dict for each entry, of those that were asked for last.

    A dict belongs to the entry it was decoded from, whatever its version says (S12): another
    entry of the same key is decoded anew.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._lock = threading.RLock()  # guards _cache: cachetools is not for several threads
        self._cache: LRUCache[str, tuple[Payload, Object]] = LRUCache(_SIZE)
        in_forked_child(self, "_lock", _cache=partial(LRUCache, _SIZE))

    def get(self, key: str, payload: Payload) -> Object:
        """The object of an entry: the same dict each time, not to be changed."""
        with self._lock:
            try:
                known, obj = self._cache[key]
            except KeyError:
                known = None
        if known is payload:
            return obj
        obj = self._codec.decode(payload)
        with self._lock:
            other = self._cache.get(key)
            if other is not None and other[0] is payload:
                return other[1]  # another thread was as fast: all have its dict
            self._cache[key] = (payload, obj)
        return obj
