"""The events of resources and wildcards, in one queue for the command's own thread."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from dyninformer.cli.connection import Target
from dyninformer.delivery.events import Event
from dyninformer.discovery import ResolvedResource
from dyninformer.display.text import visible
from dyninformer.errors import UnknownResourceError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.follow import Follower
from dyninformer.resource import GroupVersionResource

Say: TypeAlias = Callable[[str], object]
Resources: TypeAlias = list[ResolvedResource]
Words: TypeAlias = Sequence[str]
Names: TypeAlias = list[str]
GVRs: TypeAlias = list[GroupVersionResource]

WILDCARDS: Final = frozenset("*?[")
_LOOK_SECONDS: Final = 0.1
_SETTLED_SECONDS: Final = 1.0  # more resources may follow those that are being read


class Watched(NamedTuple):
    """An event, and when it was heard of."""

    when: datetime
    event: Event
    first: bool
    """It tells what was there when the command began."""


class EventSource:
    """What a watch listens to. Its methods are for one thread.

    Resources are given in any spelling, several with commas; with a wildcard among them, or a
    full name of what is not there yet, all are followed, as CRDs come and go.
    """

    def __init__(self, target: Target, factory: DynamicSharedInformerFactory, words: Words) -> None:
        self._target = target
        self._factory = factory
        self._events: queue.SimpleQueue[tuple[datetime, Event]] = queue.SimpleQueue()
        self._follower: Follower | None = None
        self._first: set[GroupVersionResource] | None = None
        self._known: set[GroupVersionResource] = set()
        self._reason = ""
        given = list(dict.fromkeys(part for word in words for part in word.split(",") if part))
        self.resources: Resources = []
        """What was named without wildcards, and is there."""
        self.patterns: Names = []
        self._absent: Names = []
        for each in given:
            if WILDCARDS.intersection(each):
                self.patterns.append(each)
                continue
            try:
                found = target.resolved(factory, each)
            except UnknownResourceError as error:
                self.patterns.append(_full_name(each, error))
                self._absent.append(str(error))
            else:
                if found not in self.resources:
                    self.resources.append(found)

    def begin(self, say: Say) -> None:
        """Start, and return when the first state is held; CommandError if that cannot be."""
        if self.patterns:
            self._follow(say)
            return
        informers = [self._target.informer(self._factory, each) for each in self.resources]
        self._target.sync(self._factory)
        self._first = {each.gvr for each in informers}
        registrations = [
            each.informer.add_event_handler(on_event=self._put, name="watch") for each in informers
        ]
        for registration in registrations:  # the first state lies ready, however long is watched
            registration.wait_for_sync(self._target.timeout)

    @property
    def followed(self) -> GVRs:
        """What is listened to now, sorted."""
        return sorted(self._known or self._first or ())

    def get(self, timeout: float) -> Watched | None:
        """The next event; None if none comes in time."""
        try:
            when, event = self._events.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return None
        first = event.initial and (self._first is None or event.gvr in self._first)
        return Watched(when, event, first)

    def look(self, say: Say) -> None:
        """Say what is followed now and was not before, and what no longer."""
        if self._follower is None:
            return
        followed = set(self._follower.resources())
        if self._first is not None:
            # What comes back comes with objects that were not there when the command began.
            self._first &= followed
        for sign, news in (("following", followed - self._known), ("gone", self._known - followed)):
            if news:
                say(f"{sign}: {', '.join(sorted(each.group_resource for each in news))}")
        self._known = followed
        if self._follower.reason != self._reason:
            self._reason = self._follower.reason
            if self._reason:
                say(visible(self._reason))

    def _follow(self, say: Say) -> None:
        target, factory = self._target, self._factory
        names = [f"{each.gvr.group_version}/{each.gvr.resource}" for each in self.resources]
        follower = factory.follow(
            *self.patterns,
            *names,
            on_event=self._put,
            namespaces=target.namespaces_in(factory),
            label_selector=target.selector or None,
            field_selector=target.field_selector or None,
        )
        until = time.monotonic() + target.timeout
        settled = math.inf
        while not follower.has_synced() and not follower.reason:
            now = time.monotonic()
            settled = min(settled, now) if _only_refused_left(factory) else math.inf
            if now >= until or now - settled >= _SETTLED_SECONDS:
                break  # what there is is shown, and the rest is tried again and again
            factory.wait(_LOOK_SECONDS)
        self._follower = follower
        self._known = set(follower.resources())
        self._first = set(self._known)
        for absence in self._absent:
            say(f"{visible(absence)} It is waited for.")
        if not self._known and not self._absent and not follower.reason:
            say(f"nothing is there yet that matches {visible(' '.join(self.patterns))}")

    def _put(self, event: Event) -> None:
        """On the informer's threads."""
        self._events.put((datetime.now().astimezone(), event))


def _full_name(word: str, error: UnknownResourceError) -> str:
    """The pattern of what may come later; the error if that is not named in full."""
    try:
        gvr = GroupVersionResource.parse(word)
    except ValueError:
        raise error from None
    return f"{gvr.group_version}/{gvr.resource}"


def _only_refused_left(factory: DynamicSharedInformerFactory) -> bool:
    """What is not read yet has failed already, and some has."""
    statuses = factory.status().values()
    left = [each for each in statuses if not each.synced]
    return bool(left) and all(each.attempts for each in left)
