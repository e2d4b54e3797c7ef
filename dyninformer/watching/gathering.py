"""What the parts of an answer say, put together for the protocol."""

from __future__ import annotations

import logging
from typing import Protocol

from dyninformer.store.receiving import Receive
from dyninformer.store.refused import TransformError, UnusableObjectError
from dyninformer.watching.answers import Batch, Event, StatusError

_logger = logging.getLogger(__name__)


class Receiving(Protocol):
    """What is needed of a store."""

    @property
    def receive(self) -> Receive:
        """See `Store.receive`."""

    def count_refused(self, error: UnusableObjectError | TransformError) -> None:
        """See `Store.count_refused`."""


class Gathered:
    """A batch in the making."""

    __slots__ = ("_name", "_store", "_unusable", "_why", "events", "live", "skipped")

    def __init__(self, store: Receiving, name: str) -> None:
        self._store = store
        self._name = name
        self._unusable: list[str | None] = []
        self.skipped = 0
        self._why = ""
        self.events: list[Event] = []
        self.live = False

    def skip(self, why: str) -> None:
        """Something is left out, which is said once per batch (S32)."""
        self.skipped += 1
        self._why = self._why or why

    def refuse(self, error: UnusableObjectError | TransformError) -> None:
        """An object is left out. One that cannot be used counts as present, if its key is known."""
        self._store.count_refused(error)
        self.skip(str(error))
        if isinstance(error, UnusableObjectError):
            self._unusable.append(error.key)

    def fail(self, error: TransformError) -> Batch:
        """What was gathered before a transform failed where nothing may be left out (S17)."""
        self._store.count_refused(error)
        return self.batch("", failure=str(error))

    def batch(
        self,
        version: str,
        *,
        mark: bool = False,
        error: StatusError | None = None,
        broken: str = "",
        failure: str = "",
    ) -> Batch:
        """What was gathered, and how it ends."""
        if self.skipped:
            _logger.warning("%s: skipped %d of what came: %s", self._name, self.skipped, self._why)
        unusable = tuple(self._unusable)
        return Batch(self.events, version, self.live, unusable, mark, error, broken, failure)
