"""One informer by itself: its life, its reflectors, its handlers, client-go's words for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dyninformer import (
    Event,
    GroupVersionResource,
    InformerState,
    ListOptions,
    NotSyncedWarning,
    ResourceOptions,
    SharedIndexInformer,
    StoppedError,
    UnreachableError,
)
from dyninformer.errors import ConfigError
from dyninformer.informer import Runtime
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus, Reset
from dyninformer.threads import since_boot
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until
from tests.watching.test_prober import Waits

# -- its life ---


def test_it_waits_until_it_is_started(informer: SharedIndexInformer) -> None:
    """Then it lists, and watches; stopped, it stays so."""
    assert informer.status().state is InformerState.WAITING
    assert not informer.is_started()
    informer.start()
    informer.start()
    assert informer.wait_synced(PATIENCE)
    until(lambda: informer.status().state is InformerState.WATCHING)
    assert informer.stop(5)
    assert informer.status().state is InformerState.STOPPED
    with pytest.raises(StoppedError, match="ask a running factory"):
        informer.start()


def test_a_read_before_the_first_sync_warns_once(informer: SharedIndexInformer) -> None:
    """Objects may be missing: the warning says how to wait."""
    with pytest.warns(NotSyncedWarning, match="sync"):
        assert informer.lister.list() == []
    assert informer.lister.list() == []


def test_run_returns_when_the_event_is_set(informer: SharedIndexInformer) -> None:
    """Until then it runs; afterwards the informer is stopped."""
    stop = threading.Event()
    thread = threading.Thread(target=informer.controller.run, args=(stop,))
    thread.start()
    assert informer.wait_synced(PATIENCE)
    assert informer.controller.has_synced()
    version = informer.controller.last_sync_resource_version()
    assert version == informer.last_sync_resource_version() != ""
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert informer.is_stopped()


def test_run_returns_when_the_informer_is_stopped(informer: SharedIndexInformer) -> None:
    """By whomever."""
    thread = threading.Thread(target=informer.run, args=(threading.Event(),))
    thread.start()
    assert informer.wait_synced(PATIENCE)
    informer.signal_stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_an_informer_that_stands_alone_leaves_no_thread(server: ApiServer) -> None:
    """Its own timers and CRD watch end with it."""
    before = threading.active_count()
    informer = SharedIndexInformer(
        server.client(), GroupVersionResource("ex.io", "v1", "widgets"), ResourceOptions(resync=1)
    )
    informer.add_event_handler(on_event=lambda event: None)
    informer.start()
    until(lambda: informer.status().state is InformerState.ABSENT)
    assert informer.stop(5)
    until(lambda: threading.active_count() == before)


def test_a_stop_in_a_callback_waits_for_nobody(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It would wait for itself."""
    told: list[bool] = []
    synced.add_event_handler(on_add=lambda obj: told.append(synced.stop()))
    write(server, "a")
    until(lambda: told)
    assert synced.is_stopped()


# -- failures ---


def test_a_watch_error_handler_hears_of_each_failure(
    server: ApiServer, informer: SharedIndexInformer
) -> None:
    """A refusal, and a connection that is lost."""
    errors: list[Exception] = []
    informer.set_watch_error_handler(errors.append)
    server.faults.add(HttpStatus(500, "out of order"), verb="watch", times=1)
    server.faults.add(Reset(), verb="watch", times=2, skip=1)  # once for an idle connection
    informer.start()
    assert informer.wait_synced(PATIENCE)
    assert "out of order" in str(errors[0])
    assert isinstance(errors[1], UnreachableError)
    server.faults.clear()


# -- handlers ---


class Methods:
    """A handler as an object with methods."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def on_add(self, obj: dict[str, Any]) -> None:
        """It is there."""
        self.told.append(("add", obj["metadata"]["name"]))

    def on_update(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """It has changed."""
        self.told.append(("update", old["data"]["x"], new["data"]["x"]))

    def on_delete(self, obj: dict[str, Any]) -> None:
        """It is gone."""
        self.told.append(("delete", obj["data"]["x"]))


def test_a_handler_is_an_object_with_methods(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """Each event comes to the method for it."""
    handler = Methods()
    synced.add_event_handler(handler)
    write(server, "a", x="1")
    server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
    server.delete("configmaps/a", "default")
    until(lambda: len(handler.told) == 3)
    assert handler.told == [("add", "a"), ("update", "1", "2"), ("delete", "2")]


def test_only_changes_of_a_value_are_heard(server: ApiServer, synced: SharedIndexInformer) -> None:
    """Updates that leave it alone are not told; additions and deletions are."""
    told: list[tuple[str, str]] = []
    synced.add_event_handler(
        on_event=lambda e: told.append((e.type, e.object["data"]["x"])), when_changed=".data.x"
    )
    write(server, "a", x="1")
    server.patch("configmaps/a", {"data": {"y": "other"}}, "default")
    server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
    server.delete("configmaps/a", "default")
    until(lambda: len(told) == 3)
    assert told == [("ADDED", "1"), ("UPDATED", "2"), ("DELETED", "2")]


def test_a_handler_of_the_same_name_is_replaced(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """A notebook cell that is run twice has one handler."""
    first: list[Event] = []
    second: list[Event] = []
    synced.add_event_handler(on_event=first.append, name="cell")
    synced.add_event_handler(on_event=second.append, name="cell")
    write(server, "a")
    until(lambda: second)
    assert first == []


def test_a_registration_of_another_informer_is_refused(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It stays where it is, and can be removed there, also twice."""
    registration = synced.add_event_handler(on_add=lambda obj: None)
    other = SharedIndexInformer(server.client(), GroupVersionResource("", "v1", "namespaces"))
    with pytest.raises(ValueError, match=r"was not added to this informer of namespaces\.v1"):
        other.remove_event_handler(registration)
    assert not registration.removed
    synced.remove_event_handler(registration)
    synced.remove_event_handler(registration)
    assert registration.removed


def test_a_change_that_a_handler_makes_stays_with_it(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """Neither the cache nor another handler sees it."""
    told: list[dict[str, Any]] = []
    synced.add_event_handler(on_add=lambda obj: obj["data"].clear())
    synced.add_event_handler(on_add=told.append)
    write(server, "a", x="1")
    until(lambda: told)
    assert told[0]["data"] == {"x": "1"}
    assert synced.lister.get("a", "default")["data"] == {"x": "1"}


def test_events_end_after_an_idle_time(server: ApiServer, synced: SharedIndexInformer) -> None:
    """What is held comes first; without it, only what follows."""
    made = write(server, "a")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    assert [(e.type, e.name) for e in synced.events(idle_timeout=0.05)] == [("ADDED", "a")]
    assert list(synced.events(idle_timeout=0.05, initial=False)) == []


def test_an_informer_shows_what_it_is(synced: SharedIndexInformer) -> None:
    """Its resource, and how much it holds."""
    assert repr(synced) == "<SharedIndexInformer of configmaps.v1, 0 objects, live>"


def test_reprs_say_one_object_of_one(server: ApiServer, synced: SharedIndexInformer) -> None:
    """Those of the informer, its indexer, its lister, a view and a snapshot."""
    made = write(server, "a")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    lister = synced.lister
    for each in (synced, synced.indexer, lister, lister.snapshot(), lister.held.store.view()):
        assert "1 object" in repr(each)
        assert "1 objects" not in repr(each)


def test_a_controller_is_a_view_of_its_informer(informer: SharedIndexInformer) -> None:
    """It runs it, and asks it."""
    stop = threading.Event()
    controller = informer.controller
    assert not controller.has_synced()
    running = threading.Thread(target=controller.run, args=(stop,))
    running.start()
    until(controller.has_synced)
    assert controller.last_sync_resource_version() == informer.last_sync_resource_version() != ""
    stop.set()
    running.join(5)
    assert informer.is_stopped()


@pytest.fixture
def two_namespaces(server: ApiServer) -> Iterator[SharedIndexInformer]:
    """An informer of the config maps in two namespaces, not started."""
    options = ResourceOptions(namespaces=["default", "kube-system"])
    found = SharedIndexInformer(server.client(), MAPS, options)
    yield found
    assert found.stop(5)


def test_it_is_synced_when_every_namespace_is(
    server: ApiServer, two_namespaces: SharedIndexInformer
) -> None:
    """Until then it says of which one it has trouble, and that no version is seen."""
    with server.faults.add(HttpStatus(500, "out of order"), namespace="kube-system"):
        two_namespaces.start()
        until(lambda: "kube-system" in two_namespaces.status().reason)
        assert not two_namespaces.wait_synced(0)
        assert two_namespaces.status().state is InformerState.BACKING_OFF
        assert two_namespaces.last_sync_resource_version() == ""
    assert two_namespaces.wait_synced(PATIENCE)
    until(lambda: two_namespaces.status().state is InformerState.WATCHING)
    assert two_namespaces.status().reason == ""
    assert two_namespaces.last_sync_resource_version() != ""


def test_the_tweak_runs_once_however_many_namespaces_there_are(server: ApiServer) -> None:
    """When it starts, and not before."""
    asked: list[ListOptions] = []
    options = ResourceOptions(namespaces=["default", "kube-system"])
    informer = SharedIndexInformer(server.client(), MAPS, options, tweak_list_options=asked.append)
    assert asked == []
    informer.start()
    informer.start()
    assert len(asked) == 1
    assert informer.stop(5)


def test_a_watch_error_handler_comes_before_the_start(two_namespaces: SharedIndexInformer) -> None:
    """Later is an error that says so; after the end, too."""
    two_namespaces.start()
    with pytest.raises(RuntimeError, match=r"set_watch_error_handler: .* is started"):
        two_namespaces.set_watch_error_handler(print)
    assert two_namespaces.stop(5)
    with pytest.raises(StoppedError, match=r"set_watch_error_handler: .* has stopped"):
        two_namespaces.set_watch_error_handler(print)


@pytest.fixture
def own_server() -> Iterator[ApiServer]:
    """A server that nobody else asks."""
    with ApiServer() as server:
        yield server


def test_connecting_asks_nothing_of_the_network(own_server: ApiServer) -> None:
    """Not even for a kubeconfig's server."""
    runtime = Runtime.connect(None, kubeconfig=own_server.kubeconfig())
    runtime.close()
    assert runtime.wait_closed(5) == []
    assert own_server.requests == []


def test_no_configuration_is_an_error_that_says_where_it_looked(tmp_path: Path) -> None:
    """A kubeconfig that is not there is named."""
    with pytest.raises(ConfigError, match="nowhere"):
        Runtime.connect(None, kubeconfig=tmp_path / "nowhere")


def test_the_server_is_looked_for_however_many_questions_it_owes_answers(
    own_server: ApiServer,
) -> None:
    """They have threads of their own: a cache that is asked for does not keep one cut off."""
    runtime = Runtime.connect(own_server.client())
    answered = threading.Event()
    try:
        for number in range(100):
            runtime.questions.begin(f"question {number}", answered.wait)
        runtime.prober.add(Waits(until=since_boot() + PATIENCE))
        until(lambda: any(each.path == "/readyz" for each in own_server.requests), PATIENCE)
    finally:
        answered.set()
        runtime.close()
        assert runtime.wait_closed(PATIENCE) == []


def test_its_threads_end_with_it(own_server: ApiServer) -> None:
    """The CRD watch, its prober and the timers; again is fine."""
    runtime = Runtime.connect(own_server.client())
    before = threading.active_count()
    runtime.crds.subscribe(lambda: None)
    runtime.timers.call_later(1000, lambda: None)
    until(lambda: runtime.crds.available)
    until(lambda: threading.active_count() == before + 3)  # the kept connection's opener ends
    runtime.close()
    runtime.close()
    assert runtime.wait_closed(5) == []
    assert threading.active_count() == before


def test_what_still_runs_is_named(own_server: ApiServer) -> None:
    """A timer's act that does not come back."""
    runtime = Runtime.connect(own_server.client())
    entered, leave = threading.Event(), threading.Event()

    def act() -> None:
        entered.set()
        leave.wait(10)

    runtime.timers.call_later(0, act)
    assert entered.wait(10)
    runtime.close()
    assert runtime.wait_closed(0) == ["dyninformer timers"]
    leave.set()
    assert runtime.wait_closed(5) == []
