"""Counts that follow the cluster."""

from __future__ import annotations

import threading
from typing import TypeAlias

from dyninformer.cli.where import Wanted
from dyninformer.delivery.events import Event, EventType
from dyninformer.display.tally import Tally
from dyninformer.factory import GenericInformer
from dyninformer.waking import Flag

Rows: TypeAlias = list[list[str]]


class LiveCount:
    """A tally that an informer's events keep up to date. Its methods are for one thread."""

    def __init__(self, informer: GenericInformer, tally: Tally, fits: Wanted) -> None:
        self._tally = tally
        self._counting = threading.Lock()  # guards _tally
        self._changed = Flag()
        self._changed.set()
        self._registration = informer.informer.add_event_handler(
            on_event=self._take, filter=fits, name="count"
        )

    def wait_for_all(self) -> None:
        """Wait until what was there at the beginning has been counted."""
        self._registration.wait_for_sync()

    def wait(self, timeout: float) -> bool:
        """Wait until there is something that `rows` has not told."""
        return self._changed.wait(timeout)

    def rows(self) -> tuple[Rows, int]:
        """The groups now, and how many objects there are."""
        self._changed.clear()  # first: what changes from here on is told next time
        with self._counting:
            return self._tally.rows(), self._tally.total

    def _take(self, event: Event) -> None:
        """On the handler's thread."""
        with self._counting:
            if event.type is EventType.ADDED:
                self._tally.add(event.object)
            elif event.type is EventType.DELETED:
                self._tally.remove(event.object)
            elif event.type is EventType.UPDATED and event.old is not None:
                self._tally.remove(event.old)
                self._tally.add(event.object)
        self._changed.set()
