"""The informers that a follower holds, and how it lets go of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TypeAlias

from dyninformer.delivery.events import Event
from dyninformer.follow.needs import Informer, Informers, OnEvent, Registration
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import in_forked_child
from dyninformer.watching.status import InformerState

_IN_TROUBLE = (InformerState.BACKING_OFF, InformerState.ABSENT, InformerState.STOPPED)

ByResource: TypeAlias = "dict[GroupVersionResource, Followed]"


@dataclass(frozen=True, slots=True)
class Followed:
    """An informer that is held, and the handler that was added to it."""

    informer: Informer
    registration: Registration | None

    @property
    def reads(self) -> bool:
        """It reads its first state; one in trouble does not keep the others waiting."""
        if self.informer.has_synced():
            return False
        status = self.informer.status()
        return status.state not in _IN_TROUBLE and not status.attempts

    @property
    def has_synced(self) -> bool:
        """It holds a whole state, and the handler has heard of it."""
        return self.informer.has_synced() and (
            self.registration is None or self.registration.has_synced()
        )

    def wait_for_sync(self, timeout: float | None) -> bool:
        """Wait until it has synced; False at the timeout, or when it never will."""
        if self.registration is None:
            return self.informer.wait_synced(timeout)
        return self.registration.wait_for_sync(timeout)

    @property
    def told_its_end(self) -> bool:
        """Nothing is left of its objects, and the handler has heard so.

        They are told as DELETED by the informer, once it has proof (S33). The store is read
        first: what it lost by now is in the backlog, or handled.
        """
        if self.informer.status().objects:
            return False
        return self.registration is None or not self.registration.backlog


class Held:
    """What one follower holds, and tells its handler of. Every method: from any thread."""

    def __init__(self, informers: Informers, on_event: OnEvent | None, name: str) -> None:
        self._informers = informers
        self._on_event = on_event
        self._name = name
        self._lock = threading.RLock()  # guards _followed, and _closed's change
        self._followed: ByResource = {}
        self._closed = False
        in_forked_child(self, "_lock", _closed=True)

    def now(self) -> ByResource:
        """A copy."""
        with self._lock:
            return dict(self._followed)

    def living(self) -> ByResource:
        """The same, without what somebody else has removed: that is held no more."""
        found = self.now()
        for gvr in [gvr for gvr, each in found.items() if each.informer.is_stopped()]:
            self.drop(gvr, found.pop(gvr))
        return found

    def take(self, gvr: GroupVersionResource, options: ResourceOptions) -> None:
        """Borrow an informer, hear of its events, and start it; nothing once this is closed.

        What cannot be started is not held.
        """
        informer: Informer = self._informers.borrow(gvr, options, self).informer
        kept = False
        try:
            kept = self._keep(gvr, informer)
        finally:
            if not kept:
                self._informers.give_back(informer, self)
        if kept:
            try:
                informer.start()
            except BaseException:
                self.drop(gvr, self.now().get(gvr))
                raise

    def drop(self, gvr: GroupVersionResource, followed: Followed | None) -> None:
        """Let go of one, unless that has been done."""
        with self._lock:
            mine = self._followed.get(gvr) is followed
            if mine:
                self._followed.pop(gvr, None)
        if mine and followed is not None:
            self._let_go(followed)

    def close(self) -> None:
        """Hold nothing, for good: no handler is called after this. Waits for nobody."""
        with self._lock:
            self._closed = True
            followed, self._followed = self._followed, {}
        for each in followed.values():
            self._let_go(each)

    def _keep(self, gvr: GroupVersionResource, informer: Informer) -> bool:
        """The handler is added without the lock: that takes the informer's.

        Who is interrupted by a signal while he holds that one may have to close this. A handler
        that `close` did not find hears nothing (`_tell`), and is removed here.
        """
        registration = None
        if self._on_event is not None:
            registration = informer.add_event_handler(on_event=self._tell, name=self._name)
        with self._lock:
            kept = not self._closed
            if kept:
                self._followed[gvr] = Followed(informer, registration)
        if not kept and registration is not None:
            registration.remove()
        return kept

    def _tell(self, event: Event) -> None:
        if self._on_event is not None and not self._closed:
            self._on_event(event)

    def _let_go(self, followed: Followed) -> None:
        if followed.registration is not None:
            followed.registration.remove()
        self._informers.give_back(followed.informer, self)
