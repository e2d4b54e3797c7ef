"""What metrics look at in an informer when they are collected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

from dyninformer.store.store import Store
from dyninformer.watching.status import InformerStatus

Statuses: TypeAlias = Sequence[InformerStatus]

_SAMPLE: Final = 500  # objects whose size is looked at: the others are taken to be as well packed


class InformerGauges:
    """The values of one informer, from any thread. It holds parts of it, and not itself."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._statuses: Callable[[], Statuses] = tuple
        self._began = 0.0

    def start(self, store: Store, statuses: Callable[[], Statuses]) -> None:
        """There is something to look at from now on; ``statuses`` are those of the namespaces."""
        if self._store is None:
            self._began = time.monotonic()
            self._statuses, self._store = statuses, store

    def read(self) -> Iterator[tuple[str, float]]:
        """Each value by its name, of this moment; nothing before the start."""
        store, statuses = self._store, self._statuses()
        if store is None or not statuses:
            return
        yield "objects", len(store)
        held = store.held_bytes
        yield "cache_held_bytes", held
        yield "cache_raw_bytes", _unpacked(store, held)
        yield "untransformed_objects", store.untransformed.count
        yield "synced", all(each.synced for each in statuses)
        yield "live", all(each.live for each in statuses)
        yield "failed_attempts", max(each.attempts for each in statuses)
        yield "contact_age_seconds", self._age(each.last_contact for each in statuses)
        yield "cache_age_seconds", self._age(each.fresh_as_of for each in statuses)

    def _age(self, moments: Iterator[datetime | None]) -> float:
        """Seconds since the first of them; of one that there was not, since the start."""
        now, never = datetime.now(UTC), time.monotonic() - self._began
        return max(
            never if each is None else max(0.0, (now - each).total_seconds()) for each in moments
        )


def _unpacked(store: Store, held: int) -> float:
    """How many bytes would be held were nothing compressed."""
    packed = plain = 0
    for _, entry in store.first(_SAMPLE).items():  # noqa: PERF102 - a view, no dict
        packed += len(entry)
        plain += store.codec.plain_size(entry)
    return held * plain / packed if packed else 0.0
