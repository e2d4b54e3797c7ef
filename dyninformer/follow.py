"""An informer per resource that matches a pattern, as CRDs come and go.

A follower looks at discovery when a CRD changed, and by the clock (`LookSchedule`), compares
what is served with what it follows (`matching`, `planned`), and takes the next steps on its
own thread.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeAlias

from dyninformer.checked import checked_text, wrong
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import OnEvent, Registration
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.errors import DynInformerError, StoppedError
from dyninformer.informer import SharedIndexInformer
from dyninformer.options import ResourceOptions
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.shown import Shown
from dyninformer.threads import (
    Bell,
    Bells,
    ClosedByWith,
    Deadline,
    Flag,
    OwnThread,
    Pause,
    ReentrantLock,
    Waiting,
    in_forked_child,
    runs_for,
    spawn,
    waited,
)
from dyninformer.types import Names
from dyninformer.watching.backoff import Backoff
from dyninformer.watching.crds import CrdWatch
from dyninformer.watching.status import InformerState

if TYPE_CHECKING:
    from dyninformer.factory import Registry

_logger = logging.getLogger("dyninformer")

AT_ONCE: Final = 10
"""Informers that read their first state at the same time."""
PERIOD: Final = 30.0
"""Seconds between two looks at discovery, where CRDs cannot be watched..."""
QUIET_PERIOD: Final = 300.0
"""...and where they are: API groups also come without a CRD."""
SETTLING: Final = (0.0, 1.0, 5.0)
"""Seconds after a CRD changed at which discovery is looked at: it follows in a moment, or later."""
CROWDED: Final = 0.25
"""Seconds between two looks, at least, however many CRDs change..."""
CROWDED_FAILING: Final = 1.0
"""...and after one that failed: no more than a reflector asks (S29)."""

_CHECK = 0.1  # seconds between two looks at informers that are starting or going
_IN_TROUBLE = (InformerState.BACKING_OFF, InformerState.ABSENT, InformerState.STOPPED)

AddHandler: TypeAlias = Callable[[SharedIndexInformer, OnEvent, str], Registration]
"""Adds a handler of a name, that hears all events, to an informer."""
GVRs: TypeAlias = list[GroupVersionResource]
Matches: TypeAlias = dict[str, list[ResolvedResource]]
"""By ``plural.group``, the versions that may be followed, the preferred one first."""
ByResource: TypeAlias = "dict[GroupVersionResource, FollowedInformer]"


def follow(
    registry: Registry,
    discovery: Discovery,
    crds: CrdWatch,
    patterns: Sequence[str],
    *,
    owner: object,
    on_event: OnEvent | None = None,
    options: ResourceOptions | None = None,
    add: AddHandler | None = None,
) -> Follower:
    """Begin to follow. What is wrong with the arguments is said here and now.

    ``add`` adds ``on_event`` to an informer, if a thread is not to call it.
    """
    for pattern in patterns:
        checked_text("a pattern", pattern, "text, each for itself: follow('*.cert-manager.io')")
    if on_event is not None and not callable(on_event):
        raise wrong("on_event", on_event, "a function of one Event")
    if not patterns or not all(each.strip() for each in patterns):
        raise ValueError(
            "follow needs patterns like '*.cert-manager.io', 'certificates.cert-manager.io', "
            f"or 'cert-manager.io/v1/*'; it was given {list(patterns)!r}"
        )
    if add is None and inspect.iscoroutinefunction(on_event):
        raise TypeError(
            f"on_event is a coroutine function ({on_event!r}), which nobody would await here: "
            "use dyninformer.aio"
        )
    follower = Follower(
        registry,
        discovery,
        crds,
        patterns,
        owner=owner,
        on_event=on_event,
        options=options or ResourceOptions(),
        add=add or _add_handler,
    )
    follower.start()
    return follower


class Follower(Shown, ClosedByWith):
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
        registry: Registry,
        discovery: Discovery,
        crds: CrdWatch,
        patterns: Sequence[str],
        *,
        owner: object,
        on_event: OnEvent | None,
        options: ResourceOptions,
        add: AddHandler,
    ) -> None:
        self.patterns = tuple(pattern.strip().lower() for pattern in patterns)
        self.name = f"follow-{next(_numbers)} {' '.join(self.patterns)}"
        self._discovery = discovery
        self._crds = crds
        self._owner = owner
        self._options = options
        self._followed = FollowedInformers(registry, on_event, self.name, add)
        self._wake = Flag()  # a CRD changed, or the end has come
        self._progress = Bell()  # rings when the thread has taken a step, and at the end
        self._lock = ReentrantLock()  # guards _unsubscribe, and _closed's change
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
        return sorted(self._followed.all())

    def has_synced(self) -> bool:
        """Whether all that matched at the last look is held whole, and the handler knows."""
        return self._synced and all(each.has_synced for each in self._followed.all().values())

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """Wait until `has_synced`; False at the timeout, or when it is closed.

        `reason` says then what it waits for. Its own handler does not wait: the events that
        it would wait for are its own.
        """
        return waited(self.until_synced(timeout))

    def until_synced(self, timeout: float | None) -> Waiting[bool]:
        """`wait_for_sync`, for a thread or a loop to carry out. Not for import."""
        if not runs_for(self._owner):
            yield Pause(Bells(self.bells), self._is_settled, Deadline(timeout))
        return self.has_synced()

    def _is_settled(self) -> bool:
        return self._closed or self.has_synced()

    def bells(self) -> Iterator[Bell]:
        """What rings when `has_synced` may have changed, and at the end. Not for import."""
        yield self._progress
        for each in self._followed.serving().values():
            if not each.has_synced:
                yield each.bell

    @property
    def closed(self) -> bool:
        """It has ended. Not for import."""
        return self._closed

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
        self._listen_no_more()
        self._followed.close()
        self._progress.ring()

    def leave(self) -> None:
        """Take nothing more, and let go of nothing: what it has is about to end by itself.

        That is told to its end, which `close` would cut short. Before it ends. Not for import.
        """
        self._followed.leave()
        self._listen_no_more()

    def _listen_no_more(self) -> None:
        with self._lock:
            unsubscribe, self._unsubscribe = self._unsubscribe, _nothing
        unsubscribe()
        self._wake.set()

    def wait_stopped(self, timeout: float | None = None) -> Names:
        """After `close`: the threads that still run at the timeout, by name."""
        thread, deadline = self._thread, Deadline(timeout)
        if thread is None or runs_for(self._owner):
            return []
        thread.join(deadline.left)
        return [thread.name] if thread.is_alive() else []

    def __repr__(self) -> str:
        patterns = ", ".join(self.patterns)
        return f"<Follower of {patterns}: {counted(len(self.resources()), 'resource')}>"

    # -- its thread ----------------------------------------------------------------------

    def _run(self) -> None:
        schedule = LookSchedule(time.monotonic())
        backoff = Backoff()
        wanted: Matches = {}
        while not (self._closed or self._followed.left):
            looks = time.monotonic() >= schedule.next
            busy = looks  # what is followed is seen to, however the look ends
            try:
                if looks:
                    wanted = self._look()
                    schedule.looked(time.monotonic(), news=self._crds.available)
                    self._say("")
                busy = self._reconcile(wanted)
            except StoppedError:
                return
            except BaseException as error:  # noqa: BLE001 - the thread must go on
                backoff = backoff.failed()
                delay = backoff.delay(random.Random())  # noqa: S311 - it spreads retries
                schedule.failed(time.monotonic(), delay)
                self._failed(error)
            else:
                backoff = Backoff() if looks else backoff
            self._progress.ring()
            until = min(schedule.next, time.monotonic() + _CHECK) if busy else schedule.next
            if self._wake.wait(max(0.0, until - time.monotonic())):
                self._wake.clear()
                schedule.woken(time.monotonic())

    def _look(self) -> Matches:
        """What is served now."""
        self._discovery.invalidate()
        wanted = matching(self.patterns, self._discovery.all_versions())
        self._tried.clear()
        return wanted

    def _reconcile(self, wanted: Matches) -> bool:
        """One step towards what is wanted; whether more are to come without any news."""
        followed = self._followed.serving()
        plan = planned(wanted, followed)
        going = [gvr for gvr, other in plan.leaving.items() if not self._left(followed, gvr, other)]
        names = {each.gvr for each in plan.missing}
        self._refused = {gvr: why for gvr, why in self._refused.items() if gvr in names}
        missing = [each for each in plan.missing if each.gvr not in self._tried]
        free = max(0, AT_ONCE - sum(each.reads for each in followed.values()))
        for each in missing[:free]:
            self._take(each)
        waiting = len(missing) > free
        self._synced = not waiting and not self.reason
        return waiting or bool(going)

    def _left(
        self, followed: ByResource, gvr: GroupVersionResource, other: GroupVersionResource | None
    ) -> bool:
        """Let go of what is no longer wanted, if the moment has come."""
        if other is None:
            over = followed[gvr].told_its_end
        else:
            over = other in followed and followed[other].informer.has_synced()
        if over:
            self._followed.drop(gvr, followed[gvr])
        return over

    def _take(self, resource: ResolvedResource) -> None:
        gvr, options = resource.gvr, self._options
        if not resource.namespaced:
            options = replace(options, namespaces="")
        try:
            self._followed.take(gvr, options)
        except StoppedError:
            self._tried.add(gvr)  # the factory, or this informer, ended meanwhile
        except BaseException as error:  # noqa: BLE001 - also the user's tweak
            self._tried.add(gvr)
            why = f"cannot follow {gvr}: {type(error).__name__}: {error}"
            if isinstance(error, DynInformerError):
                why = str(error)
            if self._refused.get(gvr) != why:
                _logger.warning("%s: %s", self.name, why)
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
        _logger.error("%s: an error of dyninformer itself", self.name, exc_info=error)

    def _say(self, reason: str) -> None:
        if reason and reason != self._reason:
            _logger.warning("%s: %s", self.name, reason)
        self._reason = reason


_numbers = itertools.count(1)


def _add_handler(informer: SharedIndexInformer, on_event: OnEvent, name: str) -> Registration:
    return informer.add_event_handler(on_event=on_event, name=name)


def _nothing() -> None:
    """There is nothing to end."""


# -- which resources a pattern means, and what has to change ------------------------------


def matching(patterns: Iterable[str], served: Iterable[ResolvedResource]) -> Matches:
    """What may be followed, by ``plural.group``, the preferred version first.

    >>> from dyninformer.resource import GroupVersionResource as GVR
    >>> served = [ResolvedResource(GVR("ex.io", version, "widgets"), "Widget", True, "widget",
    ...     verbs=("list", "watch")) for version in ("v2", "v1")]
    >>> [each.gvr.version for each in matching(["*.ex.io"], served)["widgets.ex.io"]]
    ['v2', 'v1']
    >>> [each.gvr.version for each in matching(["ex.io/v1/*"], served)["widgets.ex.io"]]
    ['v1']
    """
    patterns = tuple(patterns)
    found: Matches = {}
    for each in served:
        full = f"{each.gvr.group_version}/{each.gvr.resource}"
        if each.watchable and any(
            fnmatchcase(full if "/" in pattern else each.group_resource, pattern)
            for pattern in patterns
        ):
            found.setdefault(each.group_resource, []).append(each)
    return found


@dataclass(frozen=True, slots=True)
class FollowPlan:
    """What differs between what is wanted and what is followed."""

    missing: list[ResolvedResource] = field(default_factory=list)
    """To be taken, in order."""
    leaving: dict[GroupVersionResource, GroupVersionResource | None] = field(default_factory=dict)
    """To be let go of, each with the version that takes its place, None if nothing does."""


def planned(wanted: Matches, followed: Iterable[GroupVersionResource]) -> FollowPlan:
    """One version of each resource: of those that are wanted, one that is followed already."""
    had = set(followed)
    chosen: dict[str, GroupVersionResource] = {}
    plan = FollowPlan()
    for name, versions in wanted.items():
        best = next((each for each in versions if each.gvr in had), versions[0])
        chosen[name] = best.gvr
        if best.gvr not in had:
            plan.missing.append(best)
    for gvr in sorted(had):
        if chosen.get(gvr.group_resource) != gvr:
            plan.leaving[gvr] = chosen.get(gvr.group_resource)
    return plan


# -- when to look at discovery -----------------------------------------------------------


class LookSchedule:
    """When to look at discovery next. Used by one thread; ``next`` is a moment of its clock."""

    def __init__(self, now: float) -> None:
        self.next = now
        self._soonest = now
        self._settling: list[float] = []

    def woken(self, now: float) -> None:
        """A CRD changed: look soon, and again when its news may have come everywhere."""
        first = max(now, self._soonest)
        self._settling = [first + later for later in SETTLING]
        self.next = min(self.next, first)

    def looked(self, now: float, *, news: bool) -> None:
        """It was looked at; ``news`` says that CRDs are watched."""
        self._soonest = now + CROWDED
        self._settling = [moment for moment in self._settling if moment > now]
        self.next = min([now + (QUIET_PERIOD if news else PERIOD), *self._settling])

    def failed(self, now: float, delay: float) -> None:
        """It could not be looked at."""
        self._soonest = now + min(delay, CROWDED_FAILING)
        self._settling = []
        self.next = now + delay


# -- the informers that are followed ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FollowedInformer:
    """An informer that is followed, and the handler that was added to it."""

    informer: SharedIndexInformer
    registration: Registration | None

    @property
    def reads(self) -> bool:
        """Whether it reads its first state; one in trouble does not keep the others waiting."""
        if self.informer.has_synced():
            return False
        status = self.informer.status()
        return status.state not in _IN_TROUBLE and not status.attempts

    @property
    def has_synced(self) -> bool:
        """Whether it holds a whole state, and the handler has heard of it."""
        return self.informer.has_synced() and (
            self.registration is None or self.registration.has_synced()
        )

    @property
    def bell(self) -> Bell:
        """Rings when `has_synced` may have changed, and when it never will any more."""
        if self.registration is None:
            return self.informer.reflectors.bell
        return self.registration.bell

    @property
    def told_its_end(self) -> bool:
        """Whether nothing is left of its objects, and the handler has heard so.

        They are told as DELETED by the informer, once it has proof (S33). The store is read
        first: what it lost by now is in the backlog, or handled.
        """
        if self.informer.status().objects:
            return False
        return self.registration is None or not self.registration.backlog


class FollowedInformers:
    """The informers of one follower, whose events it hears. Every method: from any thread."""

    def __init__(
        self, registry: Registry, on_event: OnEvent | None, name: str, add: AddHandler
    ) -> None:
        self._registry = registry
        self._on_event = on_event
        self._name = name
        self._add = add
        self._lock = ReentrantLock()  # guards _followed, and _closed's change
        self._followed: ByResource = {}
        self._closed = False
        self.left = False
        """They end by themselves, all at once, and are let go of no more."""
        in_forked_child(self, "_lock", _closed=True)

    def all(self) -> ByResource:
        """Those that are followed now."""
        with self._lock:
            return dict(self._followed)

    def serving(self) -> ByResource:
        """The same, without those that other code has removed, which are let go."""
        found = self.all()
        stopped = [gvr for gvr, each in found.items() if each.informer.is_stopped()]
        # Only now: who leaves says so before the first is stopped.
        for gvr in () if self.left else stopped:
            self.drop(gvr, found.pop(gvr))
        return found

    def leave(self) -> None:
        """Keep what there is, and nothing more. Before any of it is stopped."""
        with self._lock:
            self.left = True

    def take(self, gvr: GroupVersionResource, options: ResourceOptions) -> None:
        """Borrow an informer, hear of its events, and start it; nothing once this is closed.

        One that cannot be started is not kept.
        """
        informer: SharedIndexInformer = self._registry.borrow(gvr, options, self).informer
        kept = False
        try:
            kept = self._keep(gvr, informer)
        finally:
            if not kept:
                self._registry.give_back(informer, self)
        if kept:
            try:
                informer.start()
            except BaseException:
                self.drop(gvr, self.all().get(gvr))
                raise

    def drop(self, gvr: GroupVersionResource, followed: FollowedInformer | None) -> None:
        """Let go of one, unless that has been done."""
        with self._lock:
            mine = self._followed.get(gvr) is followed
            if mine:
                self._followed.pop(gvr, None)
        if mine and followed is not None:
            self._let_go(followed)

    def close(self) -> None:
        """Follow nothing, for good: no handler is called after this. Waits for nobody.

        Idempotent: what an interrupt leaves of it the next call does (S23).
        """
        with self._lock:
            self._closed = True
        for gvr, each in self.all().items():
            self._let_go(each)
            self.drop(gvr, each)

    def _keep(self, gvr: GroupVersionResource, informer: SharedIndexInformer) -> bool:
        """The handler is added without the lock: that takes the informer's.

        A thread that a signal interrupts while it holds that one may have to close this. A
        handler that `close` did not find hears nothing (`_tell`), and is removed here.
        """
        registration = None
        if self._on_event is not None:
            registration = self._add(informer, self._tell, self._name)
        with self._lock:
            kept = not (self._closed or self.left)
            if kept:
                self._followed[gvr] = FollowedInformer(informer, registration)
        if not kept and registration is not None:
            registration.remove()
        return kept

    def _tell(self, event: Event) -> object:
        """What the handler returns: a coroutine, where that is awaited."""
        if self._on_event is None or self._closed:
            return None
        return self._on_event(event)

    def _let_go(self, followed: FollowedInformer) -> None:
        if followed.registration is not None:
            followed.registration.remove()
        self._registry.give_back(followed.informer, self)
