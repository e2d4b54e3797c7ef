"""Indexes that are added while the store is written (S15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from threading import RLock
from typing import Final

from dyninformer.options import IndexFunction
from dyninformer.store.codec import Codec
from dyninformer.store.holdings import Holdings
from dyninformer.store.indexers import Indexing

_BATCH: Final = 128  # so many objects are read between two sections that enter their values


def add_indexes(
    holdings: Holdings,
    lock: RLock,
    codec: Codec,
    added: Mapping[str, IndexFunction],
    failed: Callable[[str, BaseException], None],
) -> None:
    """Build the indexes from what is held, and publish them when nothing is missing.

    From the moment that is frozen for the build, writers keep the new indexes too, and note
    which keys they wrote: those are complete, and the build passes them over. One thread at a
    time adds. If this raises, whatever the reason, all is as it was before.
    """
    alone = Indexing(added, failed)
    enlarged = Indexing({**holdings.indexing.functions, **added}, failed)
    try:
        with lock:
            indexes = holdings.begin(enlarged)
            frozen = holdings.frozen(None)
        held = (item for entries in frozen.values() for item in entries.items())
        while batch := list(islice(held, _BATCH)):
            rows = {key: alone.row_of(codec.plain(payload)) for key, payload in batch}
            with lock:
                holdings.fill(indexes, rows)
        with lock:
            holdings.publish()
    except BaseException:
        with lock:
            holdings.withdraw()
        raise
