"""`Follower`: an informer per resource that matches, as CRDs come and go."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeAlias

from dyninformer.discovery import ResolvedResource
from dyninformer.errors import DynInformerError, StoppedError
from dyninformer.follow.agenda import Agenda
from dyninformer.follow.held import ByResource, Held
from dyninformer.follow.matching import Matches, matching, planned
from dyninformer.follow.needs import CrdNews, Discovery, Informers, OnEvent
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.threads import Bell, Deadline, Flag, OwnThread, in_forked_child, runs_for, spawn
from dyninformer.types import Names
from dyninformer.watching.backoff import Backoff

_log = logging.getLogger("dyninformer")

AT_ONCE = 10  # informers that read their first state at the same time
_CHECK = 0.1  # seconds between two looks at informers that are starting or going
_LOOK = 1.0  # seconds after which who waits looks whether what it waits for is followed still

GVRs: TypeAlias = list[GroupVersionResource]


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

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     follower = factory.follow("namespaces")
    ...     print(follower.wait_for_sync(timeout=30), *follower.resources())
    True namespaces.v1
    """

    def __init__(
        self,
        informers: Informers,
        discovery: Discovery,
        crds: CrdNews,
        patterns: Sequence[str],
        *,
        owner: object,
        on_event: OnEvent | None,
        options: ResourceOptions,
    ) -> None:
        self.patterns = tuple(pattern.strip().lower() for pattern in patterns)
        self.name = f"follow-{next(_numbers)} {' '.join(self.patterns)}"
        self._discovery = discovery
        self._crds = crds
        self._owner = owner
        self._options = options
        self._held = Held(informers, on_event, self.name)
        self._wake = Flag()  # a CRD changed, or the end has come
        self._progress = Bell()  # rings when the thread has taken a step, and at the end
        self._lock = threading.RLock()  # guards _unsubscribe, and _closed's change
        self._closed = False
        # One writer, the thread; the others read.
        self._reason = ""
        self._synced = False
        self._refused: dict[GroupVersionResource, str] = {}
        self._tried: set[GroupVersionResource] = set()  # since the last look, in vain
        self._unsubscribe: Callable[[], None] = _nothing
        self._thread: OwnThread | None = None
        in_forked_child(self, "_lock", "_progress", _closed=True, _thread=None)

    def start(self) -> None:
        """Begin; `follow` does."""
        self._unsubscribe = self._crds.subscribe(self._wake.set)
        self._thread = spawn(self._owner, f"dyninformer {self.name}", self._run)

    def resources(self) -> GVRs:
        """What has an informer now, sorted."""
        return sorted(self._held.now())

    def has_synced(self) -> bool:
        """All resources that matched at the last look are held whole, and the handler knows."""
        return self._synced and all(each.has_synced for each in self._held.now().values())

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until `has_synced`; False at the timeout, or when it is closed.

        `reason` says then what it waits for. Its own handler does not wait: the events that
        it would wait for are its own.
        """
        deadline = Deadline(timeout)
        while not (self.has_synced() or self._closed or deadline.over or runs_for(self._owner)):
            left = deadline.left
            late = [each for each in self._held.living().values() if not each.has_synced]
            if late:  # it may be followed no more before it has synced
                late[0].wait_for_sync(_LOOK if left is None else min(left, _LOOK))
            else:
                self._progress.wait_for(self._has_more_to_wait_for, left)
        return self.has_synced()

    def _has_more_to_wait_for(self) -> bool:
        held = self._held.now().values()
        return self._synced or self._closed or not all(each.has_synced for each in held)

    @property
    def reason(self) -> str:
        """Why not all that match can be followed now; empty if all are."""
        return " ".join(filter(None, (self._reason, *self._refused.values())))

    def close(self) -> None:
        """End it: no event is told after this, and the informers it brought are removed.

        Waits for nobody. What other followers use stays, and what was asked for with
        ``for_resource``, before or after the follower brought it.
        """
        with self._lock:
            self._closed = True
            unsubscribe, self._unsubscribe = self._unsubscribe, _nothing
        unsubscribe()
        self._wake.set()
        self._held.close()
        self._progress.ring()

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

    # -- its thread ----------------------------------------------------------------------

    def _run(self) -> None:
        agenda = Agenda(time.monotonic())
        backoff = Backoff()
        wanted: Matches = {}
        while not self._closed:
            looks = time.monotonic() >= agenda.next
            busy = looks  # what is held is seen to, however the look ends
            try:
                if looks:
                    wanted = self._look()
                    agenda.looked(time.monotonic(), news=self._crds.available)
                    self._say("")
                busy = self._reconcile(wanted)
            except StoppedError:
                return
            except BaseException as error:  # noqa: BLE001 - the thread must go on
                backoff = backoff.failed()
                delay = backoff.delay(random.Random())  # noqa: S311 - it spreads retries
                agenda.failed(time.monotonic(), delay)
                self._failed(error)
            else:
                backoff = Backoff() if looks else backoff
            self._progress.ring()
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
        held = self._held.living()
        plan = planned(wanted, held)
        going = [gvr for gvr, other in plan.leaving.items() if not self._left(held, gvr, other)]
        names = {each.gvr for each in plan.missing}
        self._refused = {gvr: why for gvr, why in self._refused.items() if gvr in names}
        missing = [each for each in plan.missing if each.gvr not in self._tried]
        free = max(0, AT_ONCE - sum(each.reads for each in held.values()))
        for each in missing[:free]:
            self._take(each)
        waiting = len(missing) > free
        self._synced = not waiting and not self.reason
        return waiting or bool(going)

    def _left(
        self, held: ByResource, gvr: GroupVersionResource, other: GroupVersionResource | None
    ) -> bool:
        """Let go of what is no longer wanted, if the moment has come."""
        if other is None:
            over = held[gvr].told_its_end
        else:
            over = other in held and held[other].informer.has_synced()
        if over:
            self._held.drop(gvr, held[gvr])
        return over

    def _take(self, resource: ResolvedResource) -> None:
        gvr, options = resource.gvr, self._options
        if not resource.namespaced:
            options = replace(options, namespaces="")
        try:
            self._held.take(gvr, options)
        except StoppedError:
            self._tried.add(gvr)  # the factory, or this informer, ended meanwhile
        except BaseException as error:  # noqa: BLE001 - also the user's tweak
            self._tried.add(gvr)
            why = f"cannot follow {gvr}: {type(error).__name__}: {error}"
            if isinstance(error, DynInformerError):
                why = str(error)
            if self._refused.get(gvr) != why:
                _log.warning("%s: %s", self.name, why)
            self._refused = {**self._refused, gvr: why}
        else:
            self._refused = {name: why for name, why in self._refused.items() if name != gvr}

    def _failed(self, error: BaseException) -> None:
        """Say that a look failed. The thread goes on, whatever it was."""
        self._synced = False
        if isinstance(error, DynInformerError):
            self._say(str(error))
            return
        self._say(f"following failed, and is tried again: {type(error).__name__}: {error}")
        _log.error("%s: an error of dyninformer itself", self.name, exc_info=error)

    def _say(self, reason: str) -> None:
        if reason and reason != self._reason:
            _log.warning("%s: %s", self.name, reason)
        self._reason = reason


_numbers = itertools.count(1)


def _nothing() -> None:
    """There is nothing to end."""
