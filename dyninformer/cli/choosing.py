"""Which events a watch shows, and as what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from dyninformer.cli.event_source import Watched
from dyninformer.cli.where import Wanted
from dyninformer.delivery.events import Change, Event, EventType
from dyninformer.store.jsonpath import Projection, index_text

Object: TypeAlias = dict[str, Any]
Changes: TypeAlias = list[Change]
Texts: TypeAlias = list[str]
Paths: TypeAlias = Sequence[str]

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as it is shown, in the words of the watch protocol and of kubectl."""

    when: datetime
    type: str
    event: Event
    object: Object
    changes: Changes
    """What an update changed: path by path, or the given paths' values as text."""
    values: Texts
    """What the given paths find now."""

    @property
    def missed(self) -> bool:
        """A deletion that nobody saw happen."""
        return self.type == DELETED and self.event.final_state_unknown


class Choosing:
    """Chooses by ``--where``, ``--on`` and ``--no-initial``.

    An object that comes to fit, or no longer fits, is shown as ADDED or DELETED.
    """

    def __init__(self, fits: Wanted, paths: Paths, *, initial: bool) -> None:
        self.paths = paths
        self._fits = fits
        self._projection = Projection(paths) if paths else None
        self._initial = initial

    def seen(self, watched: Watched) -> Seen | None:
        """What is shown of an event; None if nothing is."""
        event = watched.event
        if watched.first and not self._initial:
            return None
        type_ = shown_as(event, self._fits)
        if type_ is None:
            return None
        obj, old = event.object, event.old
        values = self._texts(obj)
        changes: Changes = []
        if type_ == MODIFIED:
            changes = self._changes(old, values) if self._projection else event.changes()
            if self._projection and not changes:
                return None
        return Seen(watched.when, type_, event, obj, changes, values)

    def fits(self, event: Event) -> bool:
        """There is an object now, and it is one of those that are watched."""
        return event.type is not EventType.DELETED and self._fits(event.object)

    def _texts(self, obj: Object | None) -> Texts:
        """The paths' values, each as one text."""
        if self._projection is None or obj is None:
            return []
        return [
            ",".join(text for each in row if (text := index_text(each)) is not None)
            for row in self._projection.rows(obj)
        ]

    def _changes(self, old: Object | None, values: Texts) -> Changes:
        return [
            Change(path.strip("{}"), before or None, now or None)
            for path, before, now in zip(self.paths, self._texts(old), values, strict=True)
            if before != now
        ]


_TYPES: Final = {
    EventType.ADDED: ADDED,
    EventType.UPDATED: MODIFIED,
    EventType.DELETED: DELETED,
}


def shown_as(event: Event, fits: Wanted | None) -> str | None:
    """What an event is to those who watch only the objects that fit; None if it is nothing."""
    if fits is None:
        return _TYPES.get(event.type)
    gone = event.type is EventType.DELETED
    obj, old = event.object, event.old
    was = obj if gone else old
    now = not gone and fits(obj)
    before = was is not None and fits(was)
    if now and before:
        return MODIFIED if event.type is EventType.UPDATED else None
    if now:
        return ADDED
    return DELETED if before else None
