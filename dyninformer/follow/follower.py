"""`Follower`: an informer per resource that matches, as CRDs come and go."""

from __future__ import annotations

import itertools
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from dyninformer.discovery import ResolvedResource
from dyninformer.errors import DynInformerError, StoppedError
from dyninformer.follow.agenda import Agenda
from dyninformer.follow.claims import Claims
from dyninformer.follow.matching import Matches, matching, planned
from dyninformer.follow.needs import CrdNews, Discovery, Factory, Informer, OnEvent, Registration
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import OwnThread, runs_for, spawn
from dyninformer.waking import Flag
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.status import InformerState

_log = logging.getLogger("dyninformer")

AT_ONCE = 10  # informers that read their first state at the same time
_CHECK = 0.1  # seconds between two looks at informers that are starting or going
_IN_TROUBLE = (InformerState.BACKING_OFF, InformerState.ABSENT, InformerState.STOPPED)

GVRs: TypeAlias = list[GroupVersionResource]
Names: TypeAlias = list[str]
Held: TypeAlias = "Mapping[GroupVersionResource, _Followed]"


@dataclass(frozen=True, slots=True)
class _Followed:
    """An informer that a follower keeps."""

    gvr: GroupVersionResource
    informer: Informer
    registration: Registration | None


class Follower:
    """Keeps an informer for each resource that matches one of its patterns.

    A pattern is matched with ``plural.group`` (``*.cert-manager.io``; ``pods`` in the core
    group) or, if it has a slash, with ``group/version/plural`` (``cert-manager.io/v1/*``,
    ``v1/pods``). Each resource is followed in the version that the server prefers, for as
    long as that is served, then in another: its objects come again then, as ADDED with the
    other ``gvr``, and nothing is said of the old one. What cannot be listed and watched is
    left out. Cluster-scoped resources are followed whole, whatever namespaces were given.

    A resource that goes is told as DELETED, object by object; after the last one the
    informer is removed from the factory, if a follower brought it there. At most ten read
    their first state at a time. Every method may be called from any thread.
    """

    def __init__(
        self,
        factory: Factory,
        discovery: Discovery,
        crds: CrdNews,
        patterns: Sequence[str],
        *,
        owner: object,
        on_event: OnEvent | None,
        options: Mapping[str, Any],
    ) -> None:
        self.patterns = tuple(pattern.strip().lower() for pattern in patterns)
        self.name = f"follow-{next(_numbers)} {' '.join(self.patterns)}"
        self._factory = factory
        self._discovery = discovery
        self._crds = crds
        self._owner = owner
        self._on_event = on_event
        self._options = dict(options)
        self._wake = Flag()  # a CRD changed, or the end has come
        self._lock = threading.Lock()  # guards _held, _unsubscribe, and _closed's change
        self._held: dict[GroupVersionResource, _Followed] = {}
        self._closed = False
        # One writer, the thread; the others read.
        self._reason = ""
        self._synced = False
        self._refused: dict[GroupVersionResource, str] = {}
        self._tried: set[GroupVersionResource] = set()  # since the last look, in vain
        self._unsubscribe: Callable[[], None] = _nothing
        self._thread: OwnThread | None = None
        _followers.add(self)

    def start(self) -> None:
        """Begin; `follow` does."""
        self._unsubscribe = self._crds.subscribe(self._wake.set)
        self._thread = spawn(self._owner, f"dyninformer {self.name}", self._run)

    def resources(self) -> GVRs:
        """What has an informer now, sorted."""
        with self._lock:
            return sorted(self._held)

    def has_synced(self) -> bool:
        """All resources that matched at the last look have an informer that holds a whole state."""
        with self._lock:
            held = list(self._held.values())
        return self._synced and all(each.informer.has_synced() for each in held)

    @property
    def reason(self) -> str:
        """Why not all that match can be followed now; empty if all are."""
        return " ".join(filter(None, (self._reason, *self._refused.values())))

    def close(self) -> None:
        """End it: no event is told after this, and the informers it brought are removed.

        Waits for nobody. What the factory had before, or other followers use, stays.
        """
        with self._lock:
            self._closed = True
            held, self._held = self._held, {}
            unsubscribe, self._unsubscribe = self._unsubscribe, _nothing
        unsubscribe()
        self._wake.set()
        for each in held.values():
            self._let_go(each)

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After `close`: the threads that still run at the timeout, by name."""
        thread = self._thread
        if thread is None or runs_for(self._owner):
            return []
        thread.join(timeout)
        return [thread.name] if thread.is_alive() else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        patterns = ", ".join(self.patterns)
        return f"<Follower of {patterns}: {len(self.resources())} resources>"

    def after_fork(self) -> None:
        """In a child process (S22): closed, with a fresh lock; what it held can be read."""
        self._lock = threading.Lock()
        self._closed = True
        self._thread = None

    # -- its thread ----------------------------------------------------------------------

    def _run(self) -> None:
        agenda = Agenda(time.monotonic())
        backoff = Backoff()
        wanted: Matches = {}
        while not self._closed:
            if time.monotonic() >= agenda.next:
                try:
                    wanted = self._look()
                except StoppedError:
                    return
                except DynInformerError as error:
                    backoff = backoff.failed()
                    delay = backoff.delay(random.Random())  # noqa: S311 - it spreads retries
                    agenda.failed(time.monotonic(), delay)
                    self._say(str(error))
                else:
                    backoff = Backoff()
                    agenda.looked(time.monotonic(), news=self._crds.available)
                    self._say("")
            busy = self._reconcile(wanted)
            until = min(agenda.next, time.monotonic() + _CHECK) if busy else agenda.next
            if self._wake.wait(max(0.0, until - time.monotonic())):
                self._wake.clear()
                agenda.woken(time.monotonic())

    def _look(self) -> Matches:
        """What is served now."""
        self._discovery.invalidate()
        wanted = matching(self.patterns, self._discovery.all_versions())
        self._tried.clear()
        return wanted

    def _reconcile(self, wanted: Matches) -> bool:
        """One step towards what is wanted; whether more are to come without any news."""
        held = self._living()
        plan = planned(wanted, held)
        going = [gvr for gvr, other in plan.leaving.items() if not self._left(held, gvr, other)]
        names = {each.gvr for each in plan.missing}
        self._refused = {gvr: why for gvr, why in self._refused.items() if gvr in names}
        missing = [each for each in plan.missing if each.gvr not in self._tried]
        free = max(0, AT_ONCE - sum(map(_is_reading, held.values())))
        if missing and free:
            brought = self._brought_by_others()
            for each in missing[:free]:
                self._take(each, made=each.gvr not in brought)
        waiting = len(missing) > free
        self._synced = not waiting and not self.reason
        return waiting or bool(going)

    def _living(self) -> dict[GroupVersionResource, _Followed]:
        """What is held; what somebody else has removed is no more, and comes anew."""
        with self._lock:
            held = dict(self._held)
        for each in [each for each in held.values() if each.informer.is_stopped()]:
            self._drop(held.pop(each.gvr))
        return held

    def _brought_by_others(self) -> set[GroupVersionResource]:
        status = self._factory.status().items()
        return {gvr for gvr, each in status if each.state != InformerState.STOPPED}

    def _left(
        self,
        held: Held,
        gvr: GroupVersionResource,
        other: GroupVersionResource | None,
    ) -> bool:
        """Let go of what is no longer wanted, if the moment has come."""
        leaving = held[gvr]
        if other is None:
            # All its objects are told as DELETED, by the informer once it has proof (S33);
            # the store is read first: what it lost by now is in the backlog, or handled.
            told = leaving.informer.status().objects == 0 and not _backlog(leaving)
        else:
            told = other in held and held[other].informer.has_synced()
        if told:
            self._drop(leaving)
        return told

    def _take(self, resource: ResolvedResource, *, made: bool) -> None:
        gvr = resource.gvr
        options = self._options if resource.namespaced else {**self._options, "namespaces": ""}
        try:
            informer: Informer = self._factory.for_resource(gvr, **options).informer
            if made:
                _claims.make(informer)
            if self._keep(gvr, informer):
                informer.start()
        except StoppedError:
            self._tried.add(gvr)  # the factory, or this informer, ended meanwhile
        except (DynInformerError, ValueError, TypeError) as error:  # other options, most likely
            self._tried.add(gvr)
            if self._refused.get(gvr) != str(error):
                _log.warning("%s: %s", self.name, error)
            self._refused = {**self._refused, gvr: str(error)}
        else:
            self._refused = {name: why for name, why in self._refused.items() if name != gvr}

    def _keep(self, gvr: GroupVersionResource, informer: Informer) -> bool:
        """Hold it and be told of its events, unless this has been closed.

        The handler is added under the lock, so that `close` finds every one there is; to add
        one takes the informer's lock for a moment, under which nobody takes this one.
        """
        _claims.take(informer, self)
        with self._lock:
            if not self._closed:
                registration = None
                if self._on_event is not None:
                    registration = informer.add_event_handler(
                        on_event=self._on_event, name=self.name
                    )
                self._held[gvr] = _Followed(gvr, informer, registration)
                return True
        self._let_go(_Followed(gvr, informer, None))
        return False

    def _drop(self, followed: _Followed) -> None:
        with self._lock:
            mine = self._held.pop(followed.gvr, None) is followed
        if mine:
            self._let_go(followed)

    def _let_go(self, followed: _Followed) -> None:
        if followed.registration is not None:
            followed.registration.remove()
        last = _claims.let_go(followed.informer, self)
        if last and not self._factory.wait(0) and not followed.informer.is_stopped():
            self._factory.remove(followed.gvr, 0)

    def _say(self, reason: str) -> None:
        if reason and reason != self._reason:
            _log.warning("%s: %s", self.name, reason)
        self._reason = reason


_claims = Claims()
_numbers = itertools.count(1)


def _is_reading(followed: _Followed) -> bool:
    """It reads its first state; one in trouble does not keep the others waiting."""
    if followed.informer.has_synced():
        return False
    status = followed.informer.status()
    return status.state not in _IN_TROUBLE and not status.attempts


def _backlog(followed: _Followed) -> int:
    return 0 if followed.registration is None else followed.registration.backlog


def _nothing() -> None:
    """There is nothing to end."""


def _stop_in_child() -> None:
    for follower in list(_followers):
        follower.after_fork()


_followers: weakref.WeakSet[Follower] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stop_in_child)
