"""What the parts of an answer say, put together for the protocol."""

from __future__ import annotations

import logging

from dyninformer.store.receive import Received, UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.watching.answers import Batch, Event, StatusError

_logger = logging.getLogger(__name__)


class Gathered:
    """A batch in the making."""

    __slots__ = (
        "_failed",
        "_failure",
        "_name",
        "_store",
        "_unusable",
        "_why",
        "events",
        "live",
        "skipped",
    )

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._unusable: list[str | None] = []
        self.skipped = 0
        self._why = ""
        self._failed = 0
        self._failure = ""
        self.events: list[Event] = []
        self.live = False

    def skip(self, why: str) -> None:
        """Something is left out, which is said once per batch (S32)."""
        self.skipped += 1
        self._why = self._why or why

    def refuse(self, error: UnusableObjectError) -> None:
        """An object is left out. It counts as present, if its key is known."""
        self._store.count_unusable()
        self.skip(str(error))
        self._unusable.append(error.key)

    def fail(self, received: Received) -> None:
        """The transform failed on an object: what is to be kept of it, the store knows (S17)."""
        self._failed += 1
        self._failure = self._failure or received.failure

    def batch(
        self,
        version: str,
        *,
        mark: bool = False,
        error: StatusError | None = None,
        broken: str = "",
    ) -> Batch:
        """What was gathered, and how it ends."""
        if self.skipped:
            _logger.warning("%s: skipped %d of what came: %s", self._name, self.skipped, self._why)
        if self._failed:
            self._store.count_failures(self._failed)
        return Batch(
            self.events, version, self.live, tuple(self._unusable), mark, error, broken,
            self._failed, self._failure,
        )  # fmt: skip
