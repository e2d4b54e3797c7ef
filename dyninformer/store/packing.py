"""Entries from before there was a dictionary, and the sample that it is trained on."""

from __future__ import annotations

from itertools import islice
from threading import RLock
from typing import Final, TypeAlias

from dyninformer.store.changes import Payload
from dyninformer.store.codec import SAMPLE_SIZE, Codec
from dyninformer.store.holdings import Holdings
from dyninformer.store.snapshot import View

Payloads: TypeAlias = list[Payload]

_BATCH: Final = 64


def sample_of(view: View) -> Payloads:
    """Entries from all over a view."""
    stride = max(1, len(view) // SAMPLE_SIZE)
    return [payload for _, payload in islice(view.items(), 0, SAMPLE_SIZE * stride, stride)]


def pack_again(holdings: Holdings, lock: RLock, codec: Codec) -> None:
    """Pack all that is held as the codec packs now, batch by batch: readers hardly wait."""
    with lock:
        frozen = holdings.frozen(None)
    held = (
        (namespace, key, payload)
        for namespace, entries in frozen.items()
        for key, payload in entries.items()
    )
    while batch := list(islice(held, _BATCH)):
        packed = [
            (namespace, key, payload, codec.repacked(payload)) for namespace, key, payload in batch
        ]
        with lock:
            holdings.exchange(packed)
