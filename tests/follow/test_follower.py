"""Informers come and go with what they are of."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from dyninformer.errors import UnreachableError
from dyninformer.follow import follow
from dyninformer.follow.follower import AT_ONCE
from dyninformer.follow.needs import OnEvent
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource as GVR
from dyninformer.watching.status import InformerState
from tests.follow.stage import Stage, names, served, until

CERTIFICATES = "certificates.v1.cert-manager.io"
ISSUERS = "issuers.v1.cert-manager.io"
PATTERN = "*.cert-manager.io"

handled = pytest.mark.parametrize("on_event", [print, None])


def test_what_matches_has_an_informer_that_is_started() -> None:
    """Each with the handler, and nothing else has one."""
    stage = Stage(served(CERTIFICATES), served(ISSUERS), served("pods.v1"))

    heard: list[object] = []
    with stage.following(PATTERN, on_event=heard.append) as follower:
        until(follower.has_synced)
        assert names(follower) == [CERTIFICATES, ISSUERS]
        for informer in stage.informers.values():
            assert informer.started
            (listener,) = informer.listeners()
            listener.on_event(informer.gvr)  # type: ignore[arg-type]
        assert heard == [*stage.informers]


def test_a_resource_that_comes_is_followed() -> None:
    """As soon as its CRD is announced and discovery has it."""
    stage = Stage()
    with stage.following(PATTERN) as follower:
        until(lambda: stage.looks)
        assert names(follower) == []
        stage.serve(served(CERTIFICATES))
        until(lambda: names(follower) == [CERTIFICATES])


def test_discovery_may_follow_a_crd_late() -> None:
    """It is looked at again after the news, without more of them."""
    stage = Stage()
    with stage.following(PATTERN) as follower:
        until(lambda: stage.looks)
        stage.serve()
        until(lambda: stage.looks == 2)
        stage.resources = [served(CERTIFICATES)]
        until(lambda: names(follower) == [CERTIFICATES])


def test_it_has_synced_once_the_handler_has_heard_the_first_state() -> None:
    """Not only once the informers hold it."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        (registration,) = stage.informer(CERTIFICATES).listeners()
        registration.backlog = 1
        assert not follower.has_synced()
        registration.backlog = 0
        assert follower.has_synced()


@handled
def test_one_can_wait_until_it_has_synced(on_event: OnEvent | None) -> None:
    """For discovery, for each informer, and for the handler."""
    stage = Stage()
    stage.error = UnreachableError("cannot reach https://api.test: connection refused")
    stage.sync_at_once = False
    with stage.following(PATTERN, on_event=on_event) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync, 30)
        until(lambda: follower.reason)
        assert not follower.wait_for_sync(0.01)
        stage.error = None
        stage.serve(served(CERTIFICATES), served(ISSUERS))
        until(lambda: len(names(follower)) == 2)
        stage.informer(CERTIFICATES).synced = True
        assert not follower.wait_for_sync(0.01)
        assert not waited.done()
        stage.informer(ISSUERS).synced = True
        assert waited.result(30)
        assert follower.wait_for_sync(0)


@handled
@pytest.mark.parametrize("how", ["it goes", "it is removed"])
def test_nobody_waits_for_what_is_followed_no_more(on_event: OnEvent | None, how: str) -> None:
    """The wait goes on with the others."""
    stage = Stage(served(CERTIFICATES), served(ISSUERS))
    stage.sync_at_once = False
    with stage.following(PATTERN, on_event=on_event) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync, 30)
        until(lambda: len(names(follower)) == 2)
        stage.informer(ISSUERS).synced = True
        if how == "it goes":
            stage.serve(served(ISSUERS))
        else:
            stage.resources = [served(ISSUERS)]
            stage.remove(CERTIFICATES)
        assert waited.result(30)
        assert names(follower) == [ISSUERS]


def test_a_wait_ends_with_the_follower() -> None:
    """Without having synced."""
    stage = Stage()
    stage.error = UnreachableError("cannot reach https://api.test: connection refused")
    with stage.following(PATTERN) as follower, ThreadPoolExecutor() as pool:
        waited = pool.submit(follower.wait_for_sync)
        until(lambda: follower.reason)
        follower.close()
        assert not waited.result(30)


def test_a_resource_that_goes_is_told_to_its_end() -> None:
    """The informer stays until its objects are gone, and the handler has heard of it."""
    stage = Stage(served(CERTIFICATES), served(ISSUERS))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        informer = stage.informer(CERTIFICATES)
        (registration,) = informer.listeners()
        informer.objects, registration.backlog = 3, 3
        stage.serve(served(ISSUERS))
        until(lambda: stage.looks >= 2)
        informer.objects = 0
        stage.serve(served(ISSUERS))
        until(lambda: stage.looks >= 3)
        assert names(follower) == [CERTIFICATES, ISSUERS]
        assert not registration.removed
        registration.backlog = 0
        until(lambda: names(follower) == [ISSUERS])
        until(lambda: informer.stopped)
        assert GVR.parse(CERTIFICATES) not in stage.informers


def test_a_resource_that_comes_back_is_followed_anew() -> None:
    """By another informer, which starts from nothing."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        first = stage.informer(CERTIFICATES)
        stage.serve()
        until(lambda: first.stopped)
        stage.serve(served(CERTIFICATES))
        until(lambda: names(follower) == [CERTIFICATES])
        assert stage.informer(CERTIFICATES) is not first


def test_a_dropped_version_is_followed_in_another() -> None:
    """The old informer goes when the new one holds a whole state; nothing is told as DELETED."""
    old, new = "certificates.v1beta1.cert-manager.io", CERTIFICATES
    stage = Stage(served(old))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        informer = stage.informer(old)
        informer.objects = 5
        stage.sync_at_once = False
        stage.serve(served(new))
        until(lambda: names(follower) == [new, old])
        assert informer.listeners()
        stage.informer(new).synced = True
        until(lambda: names(follower) == [new])
        assert not informer.listeners()
        until(lambda: informer.stopped)


def test_a_newer_version_beside_it_changes_nothing() -> None:
    """What is served is followed in the version it began with."""
    old, new = "certificates.v1beta1.cert-manager.io", CERTIFICATES
    stage = Stage(served(old))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        stage.serve(served(new), served(old))
        until(lambda: stage.looks >= 2)
        stage.serve(served(new), served(old), served(ISSUERS))
        until(lambda: ISSUERS in names(follower))
        assert sorted(names(follower)) == [old, ISSUERS]


def test_at_most_ten_read_their_first_state_at_once() -> None:
    """The next begins when one of them holds its state."""
    stage = Stage(*(served(f"thing{number:02}s.v1.ex.io") for number in range(AT_ONCE + 3)))
    stage.sync_at_once = False
    with stage.following("*.ex.io") as follower:
        until(lambda: len(stage.informers) == AT_ONCE)
        assert not follower.has_synced()
        stage.serve(*stage.resources)
        until(lambda: stage.looks >= 2)
        assert len(stage.informers) == AT_ONCE
        stage.informer("thing00s.v1.ex.io").synced = True
        until(lambda: len(stage.informers) == AT_ONCE + 1)
        for informer in list(stage.informers.values()):
            informer.synced = True
        until(lambda: len(stage.informers) == AT_ONCE + 3)


def test_one_in_trouble_does_not_keep_the_others_waiting() -> None:
    """Ten that are forbidden are not ten that read."""
    stage = Stage(*(served(f"thing{number:02}s.v1.ex.io") for number in range(AT_ONCE + 1)))
    stage.sync_at_once = False
    with stage.following("*.ex.io"):
        until(lambda: len(stage.informers) == AT_ONCE)
        stage.informer("thing00s.v1.ex.io").state = InformerState.BACKING_OFF
        until(lambda: len(stage.informers) == AT_ONCE + 1)


def test_options_go_to_every_informer() -> None:
    """But a cluster-scoped resource has no namespaces."""
    stage = Stage(
        served(CERTIFICATES), served("clusterissuers.v1.cert-manager.io", namespaced=False)
    )
    options = ResourceOptions(namespaces="prod", page_size=10)
    with stage.following(PATTERN, options=options) as follower:
        until(follower.has_synced)
    assert stage.options == {
        GVR.parse(CERTIFICATES): options,
        GVR.parse("clusterissuers.v1.cert-manager.io"): replace(options, namespaces=""),
    }


def test_closing_ends_the_events_and_removes_what_was_brought() -> None:
    """At once, and the thread after it."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        informer = stage.informer(CERTIFICATES)
        follower.close()
        assert not informer.listeners()
        assert informer.stopped
        assert names(follower) == []
        assert not stage.callbacks


def test_what_somebody_else_uses_stays() -> None:
    """The follower gives it back, without its handler."""
    stage = Stage(served(CERTIFICATES))
    shared = stage.borrow(GVR.parse(CERTIFICATES), ResourceOptions(), user="somebody").informer
    with stage.following(PATTERN) as follower:
        until(lambda: names(follower) == [CERTIFICATES])
        assert stage.informer(CERTIFICATES) is shared
        assert shared.listeners()
    assert not shared.stopped
    assert not shared.listeners()


def test_followers_share_an_informer_until_the_last_one_closes() -> None:
    """Whichever of them brought it."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as first:
        until(first.has_synced)
        with stage.following("certificates.*") as second:
            until(second.has_synced)
            informer = stage.informer(CERTIFICATES)
            first.close()
            assert not informer.stopped
            assert len(informer.listeners()) == 1
        assert informer.stopped


def test_what_somebody_removes_comes_anew() -> None:
    """At the next look."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        first = stage.informer(CERTIFICATES)
        stage.remove(CERTIFICATES)
        stage.serve(served(CERTIFICATES))
        until(lambda: stage.informers.get(GVR.parse(CERTIFICATES)) not in (None, first))
        until(lambda: stage.informer(CERTIFICATES).listeners())


def test_what_cannot_be_followed_is_said_and_harms_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An informer with other options is logged once, and tried again later."""
    stage = Stage(served(CERTIFICATES), served(ISSUERS))
    stage.conflict = GVR.parse(CERTIFICATES)
    with stage.following(PATTERN) as follower:
        until(lambda: names(follower) == [ISSUERS])
        assert not follower.has_synced()
        assert "certificates.v1.cert-manager.io was asked for before" in follower.reason
        stage.serve(*stage.resources)
        until(lambda: stage.looks >= 2)
        stage.conflict = None
        stage.serve(*stage.resources)
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)
    assert caplog.text.count("was asked for before") == 1


@pytest.mark.parametrize("error", [AttributeError("no such option"), SystemExit(1)])
def test_what_cannot_be_started_is_said_and_tried_again(error: BaseException) -> None:
    """Whatever a tweak raised; it is not held meanwhile, and the others are."""
    stage = Stage(served(CERTIFICATES), served(ISSUERS))
    stage.fails = {GVR.parse(CERTIFICATES): error}
    with stage.following(PATTERN) as follower:
        until(lambda: names(follower) == [ISSUERS])
        until(
            lambda: (
                f"cannot follow {CERTIFICATES}: {type(error).__name__}: {error}" in follower.reason
            )
        )
        assert not stage.users[GVR.parse(CERTIFICATES)]
        stage.fails = {}
        stage.serve(*stage.resources)
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)


def test_an_error_that_nobody_expected_ends_no_follower(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, said in the reason, and tried again by itself."""
    stage = Stage(served(CERTIFICATES))
    stage.error = SystemExit("exit")
    with stage.following(PATTERN) as follower:
        until(lambda: "SystemExit: exit" in follower.reason)
        stage.error = None
        until(follower.has_synced)
        assert (names(follower), follower.reason) == ([CERTIFICATES], "")
    assert "Traceback" in caplog.text


def test_while_discovery_fails_what_is_held_stays() -> None:
    """It is asked again, and ``reason`` says why."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN) as follower:
        until(follower.has_synced)
        stage.error = UnreachableError("cannot reach https://api.test: connection refused")
        stage.serve()
        until(lambda: "connection refused" in follower.reason)
        assert names(follower) == [CERTIFICATES]
        assert not follower.has_synced()
        stage.error = None
        stage.serve(served(CERTIFICATES), served(ISSUERS))
        until(lambda: names(follower) == [CERTIFICATES, ISSUERS])
        until(lambda: not follower.reason)


def test_without_a_handler_the_informers_are_kept_all_the_same() -> None:
    """For their listers."""
    stage = Stage(served(CERTIFICATES))
    with stage.following(PATTERN, on_event=None) as follower:
        until(follower.has_synced)
        assert not stage.informer(CERTIFICATES).listeners()
        stage.serve()
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
    stage = Stage()
    with pytest.raises(error, match=said):
        follow(stage, stage, stage, patterns, owner=stage, **arguments)
    assert not stage.callbacks


def test_a_coroutine_function_is_refused() -> None:
    """The error says what takes one."""
    stage = Stage()

    async def on_event(event: object) -> None:
        del event

    with pytest.raises(TypeError, match=r"dyninformer\.aio"):
        follow(stage, stage, stage, ["*"], owner=stage, on_event=on_event)


def test_closing_while_resources_come_leaves_nothing() -> None:
    """Whatever the moment: no informer with a handler, no thread."""
    for _ in range(20):
        stage = Stage(*(served(f"thing{number}s.v1.ex.io") for number in range(8)))
        seen: list[Any] = []
        with stage.following("*.ex.io") as follower:
            until(lambda stage=stage: stage.informers)  # type: ignore[misc]
            seen = list(stage.informers.values())
            closing = threading.Thread(target=follower.close)
            closing.start()
            closing.join(30)
        seen += stage.informers.values()
        assert not any(each.listeners() for each in seen)
        assert not stage.informers
