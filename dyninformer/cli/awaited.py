"""The objects that a wait is for, and which of them have met its conditions."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dyninformer.conditions import Met
from dyninformer.delivery.events import Event, EventType
from dyninformer.discovery import ResolvedResource
from dyninformer.display.forms import as_name
from dyninformer.display.text import visible
from dyninformer.factory import GenericInformer

Object: TypeAlias = dict[str, Any]
Keys: TypeAlias = list[str]
Names: TypeAlias = Iterator[str]
Lines: TypeAlias = list[str]
Conditions: TypeAlias = Sequence[Met]


@dataclass
class Awaited:
    """The objects of one resource. ``keys`` are those named; None is all that there are.

    An object that has met the conditions once counts from then on, as in kubectl. Belongs to
    one thread; only ``events`` is filled by others.
    """

    resource: ResolvedResource
    informer: GenericInformer
    keys: Keys | None
    conditions: Conditions
    met: set[str] = field(default_factory=set)

    def subscribe(self, events: queue.SimpleQueue[tuple[Awaited, Event]]) -> None:
        """Have every change put into a queue."""
        self.informer.informer.add_event_handler(
            on_event=lambda event: events.put((self, event)), name="wait"
        )

    def look(self) -> Names:
        """Take what is held now; the names of those that meet the conditions for the first time."""
        for key in self._candidates():
            yield from self._take(key, self.informer.informer.store.get_by_key(key))

    def take(self, event: Event) -> Names:
        """Take a change; the name of the object if it meets the conditions for the first time."""
        if self.keys is None or event.key in self.keys:
            gone = event.type is EventType.DELETED
            if event.recreated:  # deleted, and there is another one by now
                yield from self._take(event.key, None)
            yield from self._take(event.key, None if gone else event.object)

    @property
    def all_met(self) -> bool:
        """Every one has met them, and there is at least one, unless none is what is wanted."""
        candidates = self._candidates()
        return self.met.issuperset(candidates) and bool(candidates or self._none_wanted)

    @property
    def any_met(self) -> bool:
        """One has met them, or there is none and that is what is wanted."""
        return bool(self.met) or (self._none_wanted and not self._candidates())

    def missing(self) -> Lines:
        """Of each that has not met them, what there is instead."""
        candidates = self._candidates()
        if not candidates:
            return [f"{self.resource.group_resource}: there is no such object"]
        return [
            f"{self._name(key)}{_inside(key)}: {visible(self._lack(key))}"
            for key in candidates
            if key not in self.met
        ]

    def _take(self, key: str, obj: Object | None) -> Names:
        if key not in self.met and self._meets(obj):
            self.met.add(key)
            yield self._name(key)

    def _meets(self, obj: Object | None) -> bool:
        return all(each(obj) for each in self.conditions)

    @property
    def _none_wanted(self) -> bool:
        return self._meets(None)

    def _candidates(self) -> Keys:
        if self.keys is not None:
            return self.keys
        return sorted(self.informer.lister.keys())

    def _lack(self, key: str) -> str:
        obj = self.informer.informer.store.get_by_key(key)
        return (
            "; ".join(dict.fromkeys(each.found(obj) for each in self.conditions if not each(obj)))
            or "it meets the conditions only now"
        )

    def _name(self, key: str) -> str:
        name = {"metadata": {"name": key.rpartition("/")[2]}}
        return as_name(name, self.resource.kind, self.resource.gvr.group)


def _inside(key: str) -> str:
    namespace = key.rpartition("/")[0]
    return f" in {namespace}" if namespace else ""
