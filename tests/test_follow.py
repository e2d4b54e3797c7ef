"""Informers come and go with what they are of: what a pattern means, when to look, what follows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dyninformer.delivery.handlers import OnEvent
from dyninformer.discovery import ResolvedResource
from dyninformer.errors import OptionsConflictError, StoppedError, UnreachableError
from dyninformer.follow import (
    AT_ONCE,
    CROWDED,
    CROWDED_FAILING,
    PERIOD,
    QUIET_PERIOD,
    SETTLING,
    Follower,
    LookSchedule,
    follow,
    matching,
    planned,
)
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource as GVR
from dyninformer.threads import Bell
from dyninformer.watching.status import InformerState, InformerStatus

CERTIFICATES = "certificates.v1.cert-manager.io"
ISSUERS = "issuers.v1.cert-manager.io"
PATTERN = "*.cert-manager.io"


def until(condition: Callable[[], object]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def served(
    text: str, *, namespaced: bool = True, verbs: str = "get list watch"
) -> ResolvedResource:
    """A resource by its full spelling."""
    gvr = GVR.parse(text)
    kind = gvr.resource.capitalize()
    return ResolvedResource(gvr, kind, namespaced, gvr.resource, verbs=tuple(verbs.split()))


def things(count: int) -> list[ResolvedResource]:
    """So many resources of a group."""
    return [served(f"thing{number:02}s.v1.ex.io") for number in range(count)]


class StandInRegistration:
    """A handler's; its backlog is what the test says."""

    def __init__(self, on_event: OnEvent, bell: Bell) -> None:
        self.bell = bell
        self.on_event = on_event
        self.backlog = 0
        self.removed = False

    def has_synced(self) -> bool:
        """Whether it has handled everything."""
        return not self.backlog

    def remove(self) -> None:
        """Nothing is told any more."""
        self.removed = True
        self.bell.ring()


class StandInInformer:
    """Syncs, fails and loses its objects when the test says so."""

    def __init__(self, gvr: GVR) -> None:
        self.bell = Bell()
        self.reflectors = self
        self.gvr = gvr
        self.registrations: dict[str, StandInRegistration] = {}
        self.started = self.synced = self.stopped = False
        self.fails: BaseException | None = None
        self.objects = 0
        self.state = InformerState.LISTING
        self.looked = 0  # how often it was asked whether it has synced

    def add_event_handler(self, *, on_event: OnEvent, name: str) -> StandInRegistration:
        """As the real one."""
        if self.stopped:
            raise StoppedError("this informer has stopped")
        found = self.registrations[name] = StandInRegistration(on_event, self.bell)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        """Whoever waits hears of it."""
        super().__setattr__(name, value)
        if name in {"synced", "stopped"}:
            self.bell.ring()

    def start(self) -> None:
        """As the real one."""
        if self.stopped:
            raise StoppedError("this informer has stopped")
        if self.fails is not None:
            raise self.fails
        self.started = True

    def has_synced(self) -> bool:
        """As the test says."""
        self.looked += 1
        return self.synced

    def is_stopped(self) -> bool:
        """Somebody removed it."""
        return self.stopped

    def status(self) -> InformerStatus:
        """As the test says."""
        state = InformerState.STOPPED if self.stopped else self.state
        return InformerStatus(state=state, synced=self.synced, objects=self.objects)

    def listeners(self) -> list[StandInRegistration]:
        """Handlers that are told of events."""
        return [each for each in self.registrations.values() if not each.removed]


@dataclass
class Generic:
    """What is borrowed."""

    informer: StandInInformer


class StandInCluster:
    """The informers of a factory, discovery and the watch on CRDs in one."""

    def __init__(self, *resources: ResolvedResource, available: bool = True) -> None:
        self.lock = threading.Lock()  # guards informers and users
        self.informers: dict[GVR, StandInInformer] = {}
        self.users: dict[GVR, set[object]] = {}
        self.options: dict[GVR, ResourceOptions] = {}
        self.conflict: GVR | None = None
        self.fails: dict[GVR, BaseException] = {}
        self.resources = list(resources)
        self._kept: list[ResolvedResource] | None = None
        self.error: BaseException | None = None
        self.looks = 0
        self.available = available
        self.callbacks: list[Callable[[], None]] = []
        self.sync_at_once = True

    # -- the registry of a factory

    def borrow(self, gvr: GVR, asked: ResourceOptions, user: object) -> Generic:
        """As the real one: the same one, unless it has stopped."""
        if gvr == self.conflict:
            raise OptionsConflictError(f"{gvr} was asked for before with other options")
        with self.lock:
            found = self.informers.get(gvr)
            if found is None or found.stopped:
                found = self.informers[gvr] = StandInInformer(gvr)
                found.synced = self.sync_at_once
                found.fails = self.fails.get(gvr)
                self.options[gvr] = asked
            self.users.setdefault(gvr, set()).add(user)
            return Generic(found)

    def give_back(self, informer: StandInInformer, user: object) -> None:
        """As the real one: whatever nobody uses is stopped."""
        with self.lock:
            users = self.users[informer.gvr]
            users.discard(user)
            if not users and self.informers.get(informer.gvr) is informer:
                del self.informers[informer.gvr]
                informer.stopped = True

    # -- discovery

    def all_versions(self) -> list[ResolvedResource]:
        """What the test says, or as the real one what it said before."""
        self.looks += 1
        if self.error is not None:
            raise self.error
        if self._kept is None:
            self._kept = list(self.resources)
        return list(self._kept)

    def invalidate(self) -> None:
        """Nothing is kept any more."""
        self._kept = None

    # -- news of CRDs

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """As the real one."""
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    # -- for the test

    def remove(self, text: str) -> None:
        """Somebody removes an informer from the factory."""
        with self.lock:
            self.informers.pop(GVR.parse(text)).stopped = True

    def serve(self, *resources: ResolvedResource) -> None:
        """From now on these; the watch on CRDs says that something changed."""
        self.resources = list(resources)
        for callback in tuple(self.callbacks):
            callback()

    def informer(self, text: str) -> StandInInformer:
        """The one of a resource."""
        return self.informers[GVR.parse(text)]

    @contextmanager
    def following(self, *patterns: str, **arguments: Any) -> Iterator[Follower]:
        """A follower that leaves no thread behind."""
        arguments.setdefault("on_event", lambda event: None)
        follower = followed(self, patterns, **arguments)
        try:
            yield follower
        finally:
            follower.close()
            assert follower.wait_stopped(30) == []


def followed(cluster: Any, patterns: Sequence[str], **arguments: Any) -> Follower:
    """What `follow` makes of it; the stand-in is all that following needs."""
    return follow(cluster, cluster, cluster, patterns, owner=cluster, **arguments)


def names(follower: Follower) -> list[str]:
    """What is followed, as text."""
    return [str(each) for each in follower.resources()]


# -- the follower ------------------------------------------------------------------------

handled = pytest.mark.parametrize("on_event", [print, None])


def test_what_matches_has_an_informer_that_is_started() -> None:
    """Each with the handler, and nothing else has one."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS), served("pods.v1"))

    heard: list[object] = []
    with cluster.following(PATTERN, on_event=heard.append) as follower:
        until(follower.has_synced)
        assert names(follower) == [CERTIFICATES, ISSUERS]
        for informer in cluster.informers.values():
            assert informer.started
            (listener,) = informer.listeners()
            listener.on_event(informer.gvr)  # type: ignore[arg-type]
        assert heard == [*cluster.informers]


def test_a_resource_that_comes_is_followed() -> None:
    """As soon as its CRD is announced and discovery has it."""
    cluster = StandInCluster()
    with cluster.following(PATTERN) as follower:
        until(lambda: cluster.looks)
        assert names(follower) == []
        cluster.serve(served(CERTIFICATES))
        until(lambda: names(follower) == [CERTIFICATES])


def test_discovery_may_follow_a_crd_late() -> None:
    """It is looked at again after the news, without more of them."""
    cluster = StandInCluster()
    with cluster.following(PATTERN) as follower:
        until(lambda: cluster.looks)
        cluster.serve()
        until(lambda: cluster.looks == 2)
        cluster.resources = [served(CERTIFICATES)]
        until(lambda: names(follower) == [CERTIFICATES])


def test_it_has_synced_once_the_handler_has_heard_the_first_state() -> None:
    """Not only once the informers hold it."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        (registration,) = cluster.informer(CERTIFICATES).listeners()
        registration.backlog = 1
        assert not follower.has_synced()
        registration.backlog = 0
        assert follower.has_synced()


@handled
def test_one_can_wait_until_it_has_synced(on_event: OnEvent | None) -> None:
    """For discovery, for each informer, and for the handler."""
    cluster = StandInCluster()
    cluster.error = UnreachableError("cannot reach https://api.test: connection refused")
    cluster.sync_at_once = False
    with cluster.following(PATTERN, on_event=on_event) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync, 30)
        until(lambda: follower.reason)
        assert not follower.wait_for_sync(0.01)
        cluster.error = None
        cluster.serve(served(CERTIFICATES), served(ISSUERS))
        until(lambda: len(names(follower)) == 2)
        cluster.informer(CERTIFICATES).synced = True
        assert not follower.wait_for_sync(0.01)
        assert not waited.done()
        cluster.informer(ISSUERS).synced = True
        assert waited.result(30)
        assert follower.wait_for_sync(0)


@handled
@pytest.mark.parametrize("how", ["it goes", "it is removed"])
def test_nobody_waits_for_what_is_followed_no_more(on_event: OnEvent | None, how: str) -> None:
    """The wait goes on with the others."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS))
    cluster.sync_at_once = False
    with cluster.following(PATTERN, on_event=on_event) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync, 30)
        until(lambda: len(names(follower)) == 2)
        cluster.informer(ISSUERS).synced = True
        if how == "it goes":
            cluster.serve(served(ISSUERS))
        else:
            cluster.resources = [served(ISSUERS)]
            cluster.remove(CERTIFICATES)
        assert waited.result(30)
        assert names(follower) == [ISSUERS]


def test_a_wait_ends_with_the_follower() -> None:
    """Without having synced."""
    cluster = StandInCluster()
    cluster.error = UnreachableError("cannot reach https://api.test: connection refused")
    with cluster.following(PATTERN) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync)
        until(lambda: follower.reason)
        follower.close()
        assert not waited.result(30)


def test_a_resource_that_goes_is_told_to_its_end() -> None:
    """The informer stays until its objects are gone, and the handler has heard of it."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        informer = cluster.informer(CERTIFICATES)
        (registration,) = informer.listeners()
        informer.objects, registration.backlog = 3, 3
        cluster.serve(served(ISSUERS))
        until(lambda: cluster.looks >= 2)
        informer.objects = 0
        cluster.serve(served(ISSUERS))
        until(lambda: cluster.looks >= 3)
        assert names(follower) == [CERTIFICATES, ISSUERS]
        assert not registration.removed
        registration.backlog = 0
        until(lambda: names(follower) == [ISSUERS])
        until(lambda: informer.stopped)
        assert GVR.parse(CERTIFICATES) not in cluster.informers


def test_a_resource_that_comes_back_is_followed_anew() -> None:
    """By another informer, which starts from nothing."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        first = cluster.informer(CERTIFICATES)
        cluster.serve()
        until(lambda: first.stopped)
        cluster.serve(served(CERTIFICATES))
        until(lambda: names(follower) == [CERTIFICATES])
        assert cluster.informer(CERTIFICATES) is not first


def test_a_dropped_version_is_followed_in_another() -> None:
    """The old informer goes when the new one holds a whole state; nothing is told as DELETED."""
    old, new = "certificates.v1beta1.cert-manager.io", CERTIFICATES
    cluster = StandInCluster(served(old))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        informer = cluster.informer(old)
        informer.objects = 5
        cluster.sync_at_once = False
        cluster.serve(served(new))
        until(lambda: names(follower) == [new, old])
        looked = cluster.informer(new).looked
        until(lambda: cluster.informer(new).looked > looked + 3)
        assert names(follower) == [new, old]
        assert informer.listeners()
        cluster.informer(new).synced = True
        until(lambda: names(follower) == [new])
        until(lambda: not informer.listeners())
        until(lambda: informer.stopped)


def test_a_newer_version_beside_it_changes_nothing() -> None:
    """What is served is followed in the version it began with."""
    old, new = "certificates.v1beta1.cert-manager.io", CERTIFICATES
    cluster = StandInCluster(served(old))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        cluster.serve(served(new), served(old))
        until(lambda: cluster.looks >= 2)
        cluster.serve(served(new), served(old), served(ISSUERS))
        until(lambda: ISSUERS in names(follower))
        assert sorted(names(follower)) == [old, ISSUERS]


def test_at_most_ten_read_their_first_state_at_once() -> None:
    """The next begins when one of them holds its state."""
    cluster = StandInCluster(
        *(served(f"thing{number:02}s.v1.ex.io") for number in range(AT_ONCE + 3))
    )
    cluster.sync_at_once = False
    with cluster.following("*.ex.io") as follower:
        until(lambda: len(cluster.informers) == AT_ONCE)
        assert not follower.has_synced()
        cluster.serve(*cluster.resources)
        until(lambda: cluster.looks >= 2)
        assert len(cluster.informers) == AT_ONCE
        cluster.informer("thing00s.v1.ex.io").synced = True
        until(lambda: len(cluster.informers) == AT_ONCE + 1)
        for informer in list(cluster.informers.values()):
            informer.synced = True
        until(lambda: len(cluster.informers) == AT_ONCE + 3)


def test_one_in_trouble_does_not_keep_the_others_waiting() -> None:
    """Ten that are forbidden are not ten that read."""
    cluster = StandInCluster(
        *(served(f"thing{number:02}s.v1.ex.io") for number in range(AT_ONCE + 1))
    )
    cluster.sync_at_once = False
    with cluster.following("*.ex.io"):
        until(lambda: len(cluster.informers) == AT_ONCE)
        cluster.informer("thing00s.v1.ex.io").state = InformerState.BACKING_OFF
        until(lambda: len(cluster.informers) == AT_ONCE + 1)


def test_options_go_to_every_informer() -> None:
    """But a cluster-scoped resource has no namespaces."""
    cluster = StandInCluster(
        served(CERTIFICATES), served("clusterissuers.v1.cert-manager.io", namespaced=False)
    )
    options = ResourceOptions(namespaces="prod", page_size=10)
    with cluster.following(PATTERN, options=options) as follower:
        until(follower.has_synced)
    assert cluster.options == {
        GVR.parse(CERTIFICATES): options,
        GVR.parse("clusterissuers.v1.cert-manager.io"): replace(options, namespaces=""),
    }


def test_closing_ends_the_events_and_removes_what_was_brought() -> None:
    """At once, and the thread after it."""
    cluster = StandInCluster(served(CERTIFICATES))
    heard: list[object] = []
    with cluster.following(PATTERN, on_event=heard.append) as follower:
        until(follower.has_synced)
        informer = cluster.informer(CERTIFICATES)
        (listener,) = informer.listeners()
        follower.close()
        assert not informer.listeners()
        listener.on_event(informer.gvr)  # type: ignore[arg-type]
        assert heard == [], "an event that was on its way is told after the end"
        assert informer.stopped
        assert names(follower) == []
        assert not cluster.callbacks


def test_s23_what_an_interrupt_leaves_of_a_closing_the_next_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No informer is left behind that nobody would give back."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        informers = [cluster.informer(CERTIFICATES), cluster.informer(ISSUERS)]

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(cluster, "give_back", interrupted)
            with pytest.raises(KeyboardInterrupt):
                follower.close()
        follower.close()
        assert all(each.stopped and not each.listeners() for each in informers)


def test_what_somebody_else_uses_stays() -> None:
    """The follower gives it back, without its handler."""
    cluster = StandInCluster(served(CERTIFICATES))
    shared = cluster.borrow(GVR.parse(CERTIFICATES), ResourceOptions(), user="somebody").informer
    with cluster.following(PATTERN) as follower:
        until(lambda: names(follower) == [CERTIFICATES])
        assert cluster.informer(CERTIFICATES) is shared
        assert shared.listeners()
    assert not shared.stopped
    assert not shared.listeners()


def test_followers_share_an_informer_until_the_last_one_closes() -> None:
    """Whichever of them brought it."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN) as first:
        until(first.has_synced)
        with cluster.following("certificates.*") as second:
            until(second.has_synced)
            informer = cluster.informer(CERTIFICATES)
            first.close()
            assert not informer.stopped
            assert len(informer.listeners()) == 1
        assert informer.stopped


def test_what_somebody_removes_comes_anew() -> None:
    """At the next look."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        first = cluster.informer(CERTIFICATES)
        cluster.remove(CERTIFICATES)
        cluster.serve(served(CERTIFICATES))
        until(lambda: cluster.informers.get(GVR.parse(CERTIFICATES)) not in (None, first))
        until(lambda: cluster.informer(CERTIFICATES).listeners())


def test_what_cannot_be_followed_is_said_and_harms_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An informer with other options is logged once, and tried again later."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS))
    cluster.conflict = GVR.parse(CERTIFICATES)
    with cluster.following(PATTERN) as follower:
        until(lambda: names(follower) == [ISSUERS])
        assert not follower.has_synced()
        assert "certificates.v1.cert-manager.io was asked for before" in follower.reason
        cluster.serve(*cluster.resources)
        until(lambda: cluster.looks >= 2)
        cluster.conflict = None
        cluster.serve(*cluster.resources)
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)
    assert caplog.text.count("was asked for before") == 1


@pytest.mark.parametrize("error", [AttributeError("no such option"), SystemExit(1)])
def test_what_cannot_be_started_is_said_and_tried_again(error: BaseException) -> None:
    """Whatever a tweak raised; it is not held meanwhile, and the others are."""
    cluster = StandInCluster(served(CERTIFICATES), served(ISSUERS))
    cluster.fails = {GVR.parse(CERTIFICATES): error}
    with cluster.following(PATTERN) as follower:
        until(lambda: names(follower) == [ISSUERS])
        until(
            lambda: (
                f"cannot follow {CERTIFICATES}: {type(error).__name__}: {error}" in follower.reason
            )
        )
        assert not cluster.users[GVR.parse(CERTIFICATES)]
        cluster.fails = {}
        cluster.serve(*cluster.resources)
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)


def test_an_error_that_nobody_expected_ends_no_follower(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, said in the reason, and tried again by itself."""
    cluster = StandInCluster(served(CERTIFICATES))
    cluster.error = SystemExit("exit")
    with cluster.following(PATTERN) as follower:
        until(lambda: "SystemExit: exit" in follower.reason)
        cluster.error = None
        until(follower.has_synced)
        assert (names(follower), follower.reason) == ([CERTIFICATES], "")
    assert "Traceback" in caplog.text


def test_while_discovery_fails_what_is_held_stays() -> None:
    """It is asked again, and ``reason`` says why."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN) as follower:
        until(follower.has_synced)
        cluster.error = UnreachableError("cannot reach https://api.test: connection refused")
        cluster.serve()
        until(lambda: "connection refused" in follower.reason)
        assert names(follower) == [CERTIFICATES]
        assert not follower.has_synced()
        cluster.error = None
        cluster.serve(served(CERTIFICATES), served(ISSUERS))
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)


def test_without_a_handler_the_informers_are_kept_all_the_same() -> None:
    """For their listers."""
    cluster = StandInCluster(served(CERTIFICATES))
    with cluster.following(PATTERN, on_event=None) as follower:
        until(follower.has_synced)
        assert not cluster.informer(CERTIFICATES).listeners()
        cluster.serve()
        until(lambda: names(follower) == [])


@pytest.mark.parametrize(
    ("patterns", "arguments", "error", "said"),
    [
        ((), {}, ValueError, "follow needs patterns like"),
        (("",), {}, ValueError, "follow needs patterns like"),
    ],
)
def test_wrong_arguments_are_said_at_once(
    patterns: tuple[str, ...], arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Not in a thread, later."""
    cluster = StandInCluster()
    with pytest.raises(error, match=said):
        followed(cluster, patterns, **arguments)
    assert not cluster.callbacks


def test_a_coroutine_function_is_refused() -> None:
    """The error says what takes one."""
    cluster = StandInCluster()

    async def on_event(event: object) -> None:
        del event

    with pytest.raises(TypeError, match=r"dyninformer\.aio"):
        followed(cluster, ["*"], on_event=on_event)


def test_closing_while_resources_come_leaves_nothing() -> None:
    """Whatever the moment: no informer with a handler, no thread."""
    for _ in range(20):
        cluster = StandInCluster(*(served(f"thing{number}s.v1.ex.io") for number in range(8)))
        seen: list[Any] = []
        with cluster.following("*.ex.io") as follower:
            until(lambda cluster=cluster: cluster.informers)  # type: ignore[misc]
            seen = list(cluster.informers.values())
            closing = threading.Thread(target=follower.close)
            closing.start()
            closing.join(30)
        seen += cluster.informers.values()
        assert not any(each.listeners() for each in seen)
        assert not cluster.informers


# -- when to look at discovery -----------------------------------------------------------


def test_the_first_look_is_now() -> None:
    """Nothing is waited for."""
    assert LookSchedule(100.0).next == 100.0


def test_without_news_of_crds_every_half_minute() -> None:
    """And with them every five minutes, for what comes without a CRD."""
    schedule = LookSchedule(100.0)
    schedule.looked(100.0, news=False)
    assert schedule.next == 100.0 + PERIOD == 130.0
    schedule.looked(130.0, news=True)
    assert schedule.next == 130.0 + QUIET_PERIOD == 430.0


def test_after_news_until_discovery_has_followed() -> None:
    """At once, a second and five seconds later; a server's discovery may lag."""
    schedule = LookSchedule(100.0)
    schedule.looked(100.0, news=True)
    schedule.woken(200.0)
    looks = []
    for _ in SETTLING:
        looks.append(schedule.next)
        schedule.looked(schedule.next, news=True)
    assert looks == [200.0, 201.0, 205.0]
    assert schedule.next == 205.0 + QUIET_PERIOD


def test_many_news_are_a_few_looks() -> None:
    """A storm of changes costs a look every quarter of a second, not one each."""
    schedule = LookSchedule(100.0)
    schedule.looked(100.0, news=True)
    for step in range(100):
        schedule.woken(100.0 + step / 1000)
    assert schedule.next == 100.0 + CROWDED


def test_after_a_failure_at_the_end_of_the_delay() -> None:
    """Unless there are news before."""
    schedule = LookSchedule(100.0)
    schedule.failed(100.0, 8.0)
    assert schedule.next == 108.0
    schedule.woken(104.0)
    assert schedule.next == 104.0


def test_news_after_a_failure_bring_no_look_sooner_than_a_second_later() -> None:
    """News do not say that discovery answers again."""
    schedule = LookSchedule(100.0)
    schedule.failed(100.0, 8.0)
    for step in range(100):
        schedule.woken(100.0 + step / 1000)
    assert schedule.next == 100.0 + CROWDED_FAILING
    schedule.failed(101.0, 0.8)
    schedule.woken(101.0)
    assert schedule.next == 101.8


# -- what a pattern means, and what has to change -----------------------------------------

SERVED = [
    served("pods.v1"),
    served("nodes.v1", namespaced=False),
    served("certificates.v1.cert-manager.io"),
    served("certificates.v1beta1.cert-manager.io"),
    served("challenges.v1.acme.cert-manager.io"),
    served("reviews.v1.cert-manager.io", verbs="create"),
    served("ipamblocks.v1.crd.projectcalico.org"),
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.cert-manager.io", ["certificates.cert-manager.io", "challenges.acme.cert-manager.io"]),
        ("certificates.cert-manager.io", ["certificates.cert-manager.io"]),
        ("certificates.*", ["certificates.cert-manager.io"]),
        ("ipam*.*", ["ipamblocks.crd.projectcalico.org"]),
        ("pods", ["pods"]),
        ("v1/*", ["pods", "nodes"]),
        ("cert-manager.io/v1beta1/*", ["certificates.cert-manager.io"]),
        ("c[a-e]*.*", ["certificates.cert-manager.io"]),
        ("certificates", []),
        ("reviews.*", []),
    ],
)
def test_a_pattern_means_resources(pattern: str, found: list[str]) -> None:
    """By plural and group, or by group, version and plural; only what can be watched."""
    assert list(matching([pattern], SERVED)) == found


def test_the_preferred_version_comes_first_of_those_that_match() -> None:
    """A pattern may name another."""
    both = matching(["certificates.*"], SERVED)["certificates.cert-manager.io"]
    assert [each.gvr.version for each in both] == ["v1", "v1beta1"]
    old = matching(["*/v1beta1/*"], SERVED)["certificates.cert-manager.io"]
    assert [each.gvr.version for each in old] == ["v1beta1"]


def test_a_version_that_is_held_and_served_stays() -> None:
    """Also where the server prefers another by now."""
    plan = planned(
        matching(["certificates.*"], SERVED), [GVR.parse("cert-manager.io/v1beta1/certificates")]
    )
    assert not plan.missing
    assert not plan.leaving


def test_a_version_that_is_dropped_makes_way_for_the_preferred_one() -> None:
    """The old one stays until the new one can take its place."""
    held = GVR.parse("cert-manager.io/v1alpha1/certificates")
    plan = planned(matching(["certificates.*"], SERVED), [held])
    new = GVR.parse("cert-manager.io/v1/certificates")
    assert [each.gvr for each in plan.missing] == [new]
    assert plan.leaving == {held: new}


def test_of_two_versions_that_are_held_one_leaves() -> None:
    """A version that was dropped came back before its successor was there."""
    versions = [GVR.parse(f"cert-manager.io/{each}/certificates") for each in ("v1", "v1beta1")]
    plan = planned(matching(["certificates.*"], SERVED), versions)
    assert not plan.missing
    assert plan.leaving == {versions[1]: versions[0]}


def test_what_is_served_no_more_leaves_for_good() -> None:
    """Nothing takes its place."""
    gone = GVR.parse("no.io/v1/things")
    assert planned({}, [gone]).leaving == {gone: None}
