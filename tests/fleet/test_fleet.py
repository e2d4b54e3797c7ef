"""Many clusters as one: which there are, what each makes of a name, and what is enough to go on."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dyninformer import (
    CacheSyncError,
    ConfigError,
    Event,
    Fleet,
    GroupVersionResource,
    InformerState,
    JSONPathError,
    OptionsConflictError,
    StoppedError,
    UnauthorizedError,
    UnknownClusterError,
)
from dyninformer.fleet.members import Member
from dyninformer.metrics import GatheredMetrics
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import Refuse
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import until
from tests.fleet.clusters import PATIENCE, black_hole, config_map, kubeconfig

MAPS = GroupVersionResource("", "v1", "configmaps")


def test_each_cluster_has_an_informer_behind_one_lister(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """What is in both is in the lister, and each is to be had alone."""
    eu.create(config_map("a"))
    us.create(config_map("b"))
    maps = fleet.for_resource(MAPS)
    assert fleet.for_resource("v1/configmaps") is maps
    assert fleet.sync(PATIENCE)
    assert maps.lister.keys() == [("eu", "default/a"), ("us", "default/b")]
    assert maps.by_cluster("us").lister.keys() == ["default/b"]
    assert fleet.cluster("us").status()[MAPS].synced
    assert fleet.status()["eu"][MAPS].objects == 1


def test_reprs_say_one_cluster_and_one_object_of_one(eu: ApiServer) -> None:
    """Those of a fleet, its informers and its listers."""
    eu.create(config_map("a"))
    with Fleet({"eu": eu.client()}) as fleet:
        maps = fleet.for_resource(MAPS)
        fleet.sync(PATIENCE)
        assert repr(fleet) == "<Fleet of 1 cluster, 1 live>"
        assert repr(maps.informer) == "<FleetInformer of configmaps.v1 in 1 cluster>"
        assert repr(maps.lister) == "<FleetLister of configmaps.v1, 1 object in 1 cluster>"


def test_options_are_those_of_every_cluster(fleet: Fleet, eu: ApiServer, us: ApiServer) -> None:
    """And other ones than before are refused, with what to do."""
    for each in (eu, us):
        each.create(config_map("a", app="shop"))
        each.create(config_map("b"))
    maps = fleet.for_resource("cm", label_selector="app=shop")
    fleet.sync(PATIENCE)
    assert maps.lister.keys() == [("eu", "default/a"), ("us", "default/a")]
    assert fleet.for_resource("cm") is maps
    with pytest.raises(OptionsConflictError, match=r"fleet\.remove_resource\('cm'\)"):
        fleet.for_resource("cm", label_selector="app=mail")
    assert fleet.remove_resource("cm", PATIENCE)
    fleet.for_resource("cm", label_selector="")
    fleet.sync(PATIENCE)


@pytest.mark.parametrize("name", ["v1/configmaps", "cm"])
def test_what_was_refused_can_be_asked_for_anew(fleet: Fleet, eu: ApiServer, name: str) -> None:
    """A path with an error, say, and then the right one."""
    eu.create(config_map("a", app="shop"))
    with pytest.raises(JSONPathError):
        fleet.for_resource(name, indexers={"colour": ".data[colour"})
    maps = fleet.for_resource(name, indexers={"colour": ".data.colour"})
    fleet.sync(PATIENCE)
    assert len(maps.lister.by_index("colour", "shop")) == 1


def test_other_options_under_another_name_are_refused_each_time(fleet: Fleet) -> None:
    """The second time, too: it is no informer without a cluster."""
    fleet.for_resource("configmaps")
    fleet.sync(PATIENCE)
    for _ in range(2):
        with pytest.raises(OptionsConflictError):
            fleet.for_resource("v1/configmaps", label_selector="app=shop")
    assert fleet.for_resource("v1/configmaps").informer.clusters == ["eu", "us"]


def test_a_short_name_is_what_each_cluster_makes_of_it(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """Versions may differ."""
    eu.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    us.install(crd("ex.io", "gadgets", "Gadget", ANYTHING, name="v2"))
    gadgets = fleet.for_resource("gadgets")
    fleet.sync(PATIENCE)
    versions = {cluster: gvr.version for cluster, gvr in gadgets.informer.gvrs.items()}
    assert versions == {"eu": "v1", "us": "v2"}


def test_a_cluster_that_lacks_a_resource_waits_and_the_others_go_on(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """S33: news of the CRD end the wait."""
    eu.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    gadgets = fleet.for_resource("gadgets")
    result = fleet.sync(PATIENCE, require="reachable")
    assert result.unsynced == ["us"]
    status = fleet.status()["us"]["gadgets"]
    assert status.state is InformerState.ABSENT
    assert "gadgets" in status.reason
    us.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    until(gadgets.informer.has_synced, PATIENCE)
    assert gadgets.informer.clusters == ["eu", "us"]


def test_a_name_that_no_cluster_knows_is_an_error_of_sync(fleet: Fleet) -> None:
    """It names each, and what is close."""
    fleet.for_resource("configmapss")
    fleet.start()
    until(lambda: all(each["configmapss"].reason for each in fleet.status().values()), PATIENCE)
    with pytest.raises(CacheSyncError, match=r"(?s)eu: .*configmaps.*us: .*configmaps"):
        fleet.sync(timeout=0.1)


def test_sync_names_the_cluster_that_is_away_and_why(eu: ApiServer, us: ApiServer) -> None:
    """Once it is back it comes by itself."""
    with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
        maps = fleet.for_resource(MAPS)
        with us.faults.add(Refuse()):
            assert fleet.sync(PATIENCE, require="reachable").synced == ["eu"]
            with pytest.raises(CacheSyncError, match=r"(?s)1 of 2 .*us: .*refused") as caught:
                fleet.sync(timeout=0.1)
            assert caught.value.status["eu"][MAPS].synced
            assert not caught.value.status["us"][MAPS].synced
            assert fleet.sync(PATIENCE, require=1).synced == ["eu"]
        until(maps.informer.has_synced, PATIENCE)


def test_who_has_said_nothing_is_not_waited_for(eu: ApiServer) -> None:
    """A server that takes the connection, and no more; the error says that it has not answered."""
    with black_hole() as hole, Fleet({"eu": eu.client(), "hole": hole}) as fleet:
        fleet.for_resource(MAPS)
        fleet.for_resource("cm")
        assert fleet.sync(PATIENCE, require="reachable").synced == ["eu"]
        with pytest.raises(CacheSyncError, match=r"hole: cm: http://127.* has not answered yet"):
            fleet.sync(timeout=0.1)


def test_what_is_refused_for_good_is_not_waited_for(eu: ApiServer, us: ApiServer) -> None:
    """As by a factory: more time would not help."""
    us.access.add_user("nobody", token="nobody")
    with Fleet({"eu": eu.client(), "us": us.client(token="nobody")}) as fleet:
        fleet.for_resource(MAPS)
        with pytest.raises(CacheSyncError, match="more time would not help"):
            fleet.sync(PATIENCE)


@pytest.mark.parametrize("resource", [MAPS, "cm"], ids=["full name", "short name"])
def test_credentials_that_every_cluster_refuses_are_an_error_at_once(
    eu: ApiServer, us: ApiServer, resource: Any
) -> None:
    """If another cluster is late for another reason, the error is a CacheSyncError alone."""
    refused = {"eu": eu.client(token="wrong"), "us": us.client(token="wrong")}
    with Fleet(refused) as fleet:
        fleet.for_resource(resource)
        with pytest.raises(UnauthorizedError, match=r"(?s)eu: .*401.*us: .*401") as caught:
            fleet.sync(timeout=600)
        assert isinstance(caught.value, CacheSyncError)
        assert set(caught.value.status) == {"eu", "us"}
    us.access.add_user("nobody", token="nobody")
    with Fleet({**refused, "us": us.client(token="nobody")}) as fleet:
        fleet.for_resource(MAPS)
        with pytest.raises(CacheSyncError, match=r"(?s)eu: .*401.*us: .*forbidden") as late:
            fleet.sync(timeout=600)
        assert not isinstance(late.value, UnauthorizedError)


def test_fifty_clusters_of_which_five_are_black_holes() -> None:
    """The others sync without waiting for those, which are named."""
    with ExitStack() as stack:
        servers = {f"c{at}": stack.enter_context(ApiServer()) for at in range(45)}
        clients = {name: each.client() for name, each in servers.items()}
        holes = {f"hole{at}": stack.enter_context(black_hole()) for at in range(5)}
        fleet = stack.enter_context(Fleet({**holes, **clients}))
        namespaces = fleet.for_resource("ns")
        result = fleet.sync(PATIENCE, require=45)
        assert result.synced == list(clients)
        assert len(namespaces.lister) == 45 * 4
        with pytest.raises(CacheSyncError) as caught:
            fleet.sync(timeout=0)
        assert all(f"{name}: ns: http://" in str(caught.value) for name in holes)
        assert fleet.shutdown(PATIENCE)


# -- clusters that come and go -----------------------------------------------------------


def test_a_cluster_that_is_added_is_watched_at_once(eu: ApiServer, us: ApiServer) -> None:
    """All that was asked for, by handlers that are there."""
    us.create(config_map("b"))
    seen: list[Event] = []
    with Fleet({"eu": eu.client()}) as fleet:
        maps = fleet.for_resource("cm")
        maps.informer.add_event_handler(on_event=seen.append)
        fleet.sync(PATIENCE)
        fleet.add("us", us.client())
        fleet.sync(PATIENCE)
        until(lambda: [(event.cluster, event.name) for event in seen] == [("us", "b")], PATIENCE)
        with pytest.raises(ValueError, match="has a cluster 'us': remove it first"):
            fleet.add("us", us.client())


def test_what_a_removed_cluster_had_is_told_as_gone(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """With final_state_unknown, since nobody watches it any more."""
    us.create(config_map("b"))
    eu.create(config_map("a"))
    seen: list[Event] = []
    maps = fleet.for_resource("cm")
    maps.informer.add_event_handler(on_event=seen.append)
    fleet.sync(PATIENCE)
    assert fleet.remove("us", timeout=PATIENCE)
    assert fleet.clusters == maps.lister.clusters == ["eu"]
    gone = until(lambda: [event for event in seen if event.type == "DELETED"], PATIENCE)
    assert [(each.cluster, each.name, each.final_state_unknown) for each in gone] == [
        ("us", "b", True)
    ]
    assert fleet.remove("us") is True  # nothing any more


def test_what_a_removed_cluster_had_may_be_kept(fleet: Fleet, eu: ApiServer, us: ApiServer) -> None:
    """Nothing is told; when it comes back, what was kept is told as gone, and then what is."""
    us.create(config_map("b"))
    seen: list[Event] = []
    maps = fleet.for_resource("cm")
    registration = maps.informer.add_event_handler(on_event=seen.append)
    fleet.sync(PATIENCE)
    assert registration.wait_for_sync(PATIENCE)
    assert fleet.remove("us", keep=True)
    assert (fleet.clusters, fleet.stale) == (["eu"], ["us"])
    assert maps.lister.get("b", "default", cluster="us")["data"] == {"colour": ""}
    assert fleet.status()["us"][MAPS].standing == "closed"
    assert [each.type for each in seen] == ["ADDED"]
    us.create(config_map("c"))
    fleet.add("us", us.client())
    fleet.sync(PATIENCE)
    until(lambda: len(seen) == 4, PATIENCE)
    assert [(each.type, each.name) for each in seen][1:] == [
        ("DELETED", "b"),
        ("ADDED", "b"),
        ("ADDED", "c"),
    ]
    assert fleet.stale == []


def test_what_was_kept_can_be_let_go_of(fleet: Fleet, us: ApiServer) -> None:
    """A second remove does that."""
    us.create(config_map("b"))
    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    with maps.informer.events(initial=False) as events:
        fleet.remove("us", keep=True)
        assert len(maps.lister) == 1
        fleet.remove("us", timeout=PATIENCE)
        gone = events.take(PATIENCE)
        assert gone is not None
        assert (gone.type, gone.cluster) == ("DELETED", "us")
    assert len(maps.lister) == 0


def test_a_kubeconfig_that_changes_brings_clusters_and_takes_them(
    eu: ApiServer, us: ApiServer, tmp_path: Path
) -> None:
    """Contexts that fit come and go; one whose server is another is another cluster."""
    path = kubeconfig(tmp_path / "config", **{"eu-1": eu, "other": us})
    us.create(config_map("b"))
    with Fleet(contexts="eu-*", kubeconfig=path) as fleet:
        maps = fleet.for_resource("cm")
        fleet.sync(PATIENCE)
        assert fleet.clusters == ["eu-1"]
        kubeconfig(path, **{"eu-1": eu, "eu-2": us})
        until(lambda: fleet.clusters == ["eu-1", "eu-2"], PATIENCE)
        until(lambda: len(maps.lister) == 1, PATIENCE)
        kubeconfig(path, **{"eu-1": us})
        until(lambda: fleet.clusters == ["eu-1"], PATIENCE)
        until(lambda: maps.lister.keys() == [("eu-1", "default/b")], PATIENCE)


def test_a_kubeconfig_that_cannot_be_read_changes_nothing(
    eu: ApiServer, us: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and what comes after it counts."""
    path = kubeconfig(tmp_path / "config", eu=eu)
    with Fleet(contexts="*", kubeconfig=path) as fleet, caplog.at_level(logging.WARNING):
        fleet.start()
        path.write_text("{")
        until(lambda: "the kubeconfig has changed" in caplog.text, PATIENCE)
        assert fleet.clusters == ["eu"]
        kubeconfig(path, eu=eu, us=us)
        until(lambda: fleet.clusters == ["eu", "us"], PATIENCE)


def test_a_context_that_is_removed_by_name_stays_away(
    eu: ApiServer, us: ApiServer, tmp_path: Path
) -> None:
    """Whatever the next kubeconfig says."""
    path = kubeconfig(tmp_path / "config", eu=eu, us=us)
    with Fleet(contexts="*", kubeconfig=path) as fleet:
        fleet.start()
        fleet.remove("us")
        kubeconfig(path, eu=eu, us=us, more=us)
        until(lambda: fleet.clusters == ["eu", "more"], PATIENCE)


@pytest.mark.parametrize(
    ("server", "problem"), [("", "without a server"), ("https://[HOST]:6443", "no URL")]
)
def test_a_context_without_a_server_is_one_cluster_in_trouble(
    eu: ApiServer, tmp_path: Path, server: str, problem: str
) -> None:
    """The others do not care."""
    path = kubeconfig(tmp_path / "config", eu=eu, bad=server)
    with Fleet(contexts="*", kubeconfig=path, watch_kubeconfig=False) as fleet:
        fleet.for_resource("cm")
        assert fleet.sync(PATIENCE, require="reachable").synced == ["eu"]
        assert problem in fleet.status()["bad"]["cm"].reason
        with pytest.raises(ConfigError, match=f"cluster bad: .*{problem}"):
            fleet.cluster("bad")


def test_clusters_are_said_as_to_a_factory(eu: ApiServer, us: ApiServer, tmp_path: Path) -> None:
    """A client, the name of a context, a kubeconfig, or what is found where nothing is said."""
    path = kubeconfig(tmp_path / "config", first=eu, second=us)
    ways: dict[str, Any] = {"a": eu.client(), "b": "second", "c": path}
    with Fleet(ways, kubeconfig=path) as fleet:
        assert fleet.hosts() == {"a": eu.url, "b": us.url, "c": eu.url}


def test_a_pattern_that_fits_nothing_is_an_error_that_names_what_there_is(
    eu: ApiServer, tmp_path: Path
) -> None:
    """A misspelled name would else be an empty fleet."""
    path = kubeconfig(tmp_path / "config", eu=eu)
    with pytest.raises(ConfigError, match=r"no context of .* fits 'us-\*'; it has: eu"):
        Fleet(contexts=["e*", "us-*"], kubeconfig=path)


def test_a_file_of_the_kubeconfig_that_is_gone_removes_no_cluster(
    eu: ApiServer, us: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first: nobody is told that its objects are gone."""
    first, second = kubeconfig(tmp_path / "a", eu=eu), kubeconfig(tmp_path / "b", us=us)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, [first, second])))
    with Fleet(contexts="*") as fleet:
        contexts = fleet._contexts
        assert contexts is not None
        second.rename(tmp_path / "aside")
        with pytest.raises(ConfigError):
            fleet._take(contexts.found())
        assert fleet.clusters == ["eu", "us"]


def test_two_that_add_one_cluster_do_not_both_have_it(eu: ApiServer, us: ApiServer) -> None:
    """The one that comes later is told; what the first has added stays, and is watched."""
    barrier, failed = threading.Barrier(2), []
    with Fleet({"eu": eu.client()}) as fleet:
        opened = Member.open

        def open_together(member: Member) -> None:
            opened(member)
            barrier.wait(PATIENCE)

        def add() -> None:
            try:
                fleet.add("us", us.client())
            except ValueError as error:
                failed.append(str(error))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Member, "open", open_together)
            threads = [threading.Thread(target=add) for _ in range(2)]
            for each in threads:
                each.start()
            for each in threads:
                each.join(PATIENCE)
        assert failed == ["the fleet has a cluster 'us'"]
        assert fleet.clusters == ["eu", "us"]
        kept = fleet._members["us"]
        fleet._part_with("us", keep=False, watched=False)  # one that looked before it was there
        assert fleet._members["us"] is kept


def test_a_second_remove_lets_go_where_the_fleet_keeps(eu: ApiServer, us: ApiServer) -> None:
    """``keep_removed`` is of the first."""
    clusters = {"eu": eu.client(), "us": us.client()}
    us.create(config_map("b"))
    with Fleet(clusters, keep_removed=True) as fleet:
        maps = fleet.for_resource("cm")
        fleet.sync(PATIENCE)
        assert fleet.remove("us", timeout=PATIENCE)
        assert (fleet.stale, len(maps.lister)) == (["us"], 1)
        assert fleet.remove("us", timeout=PATIENCE)
        assert (fleet.stale, len(maps.lister)) == ([], 0)


@pytest.mark.parametrize("keep", [True, False])
def test_the_metrics_of_a_cluster_end_when_it_is_removed(
    eu: ApiServer, us: ApiServer, *, keep: bool
) -> None:
    """S48: it is neither synced nor live, however long what was kept is read."""
    metrics = GatheredMetrics()

    def synced() -> list[str]:
        found = metrics.gather()
        return sorted(each.labels["cluster"] for each in found if each.name == "synced")

    with Fleet({"eu": eu.client(), "us": us.client()}, metrics=metrics) as fleet:
        fleet.for_resource("v1/namespaces")
        fleet.sync(PATIENCE)
        assert synced() == ["eu", "us"]
        assert fleet.remove("us", keep=keep, timeout=PATIENCE)
        assert synced() == ["eu"]
        fleet.add("us", us.client())
        fleet.sync(PATIENCE)
        assert synced() == ["eu", "us"]


# -- waits that end ----------------------------------------------------------------------


def _waiting(call: Callable[[], object]) -> Future[object]:
    """A thread that waits."""
    found: Future[object] = Future()
    begun = threading.Event()

    def run() -> None:
        begun.set()
        try:
            found.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the test's to see
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    assert begun.wait(PATIENCE)
    with pytest.raises(TimeoutError):
        found.result(0.1)  # it has no reason to end
    return found


@pytest.mark.parametrize("name", ["gadgets", "v1/pods"])
def test_waits_for_a_handler_end_when_the_cluster_goes(eu: ApiServer, name: str) -> None:
    """Of all clusters, and of that one, whether or not it had an informer."""
    with black_hole() as away, Fleet({"eu": eu.client(), "away": away}) as fleet:
        eu.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
        handler = fleet.for_resource(name).informer.add_event_handler(on_event=print)
        fleet.start()
        assert handler.wait_for_sync(PATIENCE, "eu")
        every = _waiting(handler.wait_for_sync)
        one = _waiting(lambda: handler.wait_for_sync(cluster="away"))
        fleet.remove("away", timeout=0)
        assert every.result(PATIENCE) is True
        assert one.result(PATIENCE) is False


def test_waits_for_a_follower_end_when_the_cluster_goes(eu: ApiServer) -> None:
    """The others are synced."""
    with black_hole() as away, Fleet({"eu": eu.client(), "away": away}) as fleet:
        follower = fleet.follow("namespaces")
        fleet.start()
        every = _waiting(follower.wait_for_sync)
        fleet.remove("away", timeout=0)
        assert every.result(PATIENCE) is True


def test_waits_for_a_follower_end_when_it_has_ended_in_a_cluster(eu: ApiServer) -> None:
    """It is not asked over and over meanwhile."""
    with black_hole() as away, Fleet({"eu": eu.client(), "away": away}) as fleet:
        follower = fleet.follow("namespaces")
        fleet.start()
        every = _waiting(follower.wait_for_sync)
        follower._parts["away"].close()
        assert every.result(PATIENCE) is False


def test_waits_for_an_object_end_with_the_cluster_or_the_fleet() -> None:
    """Where nothing was known yet of what the name is."""
    with black_hole() as one, black_hole() as other, Fleet({"a": one, "b": other}) as fleet:
        informer = fleet.for_resource("gadgets").informer
        fleet.start()
        waits = {
            cluster: _waiting(
                partial(informer.wait_for, "create", name="x", namespace="y", cluster=cluster)
            )
            for cluster in ("a", "b")
        }
        fleet.remove("a", timeout=0)
        with pytest.raises(UnknownClusterError):
            waits["a"].result(PATIENCE)
        fleet.shutdown(0)
        with pytest.raises(StoppedError):
            waits["b"].result(PATIENCE)


# -- the end -----------------------------------------------------------------------------


def test_after_its_end_a_fleet_still_reads(fleet: Fleet, eu: ApiServer) -> None:
    """And says that it has ended."""
    eu.create(config_map("a"))
    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    assert fleet.shutdown(PATIENCE)
    assert fleet.wait(0)
    assert maps.lister.get("a", "default", cluster="eu")
    for each in (fleet.start, lambda: fleet.for_resource("pods"), lambda: fleet.add("x", None)):
        with pytest.raises(StoppedError):
            each()


def test_nothing_of_a_fleet_is_left_after_its_end(fleet: Fleet, tmp_path: Path) -> None:
    """Threads, that is: of handlers, of clusters, of the fleet itself."""
    before = set(threading.enumerate())
    fleet.for_resource("cm").informer.add_event_handler(on_event=print)
    fleet.follow("namespaces", on_event=lambda event: None)
    fleet.sync(PATIENCE)
    assert fleet.shutdown(PATIENCE)
    until(lambda: set(threading.enumerate()) <= before, PATIENCE)


def test_a_shutdown_from_a_handler_waits_for_nothing(fleet: Fleet, eu: ApiServer) -> None:
    """S11."""
    ended = threading.Event()

    def end(event: Event) -> None:
        fleet.shutdown()
        ended.set()

    eu.create(config_map("a"))
    fleet.for_resource("cm").informer.add_event_handler(on_event=end)
    fleet.start()
    assert ended.wait(PATIENCE)


def test_a_cluster_that_is_not_there_is_named_with_those_that_are(fleet: Fleet) -> None:
    """Wherever one is named."""
    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    for call in (fleet.cluster, maps.by_cluster, maps.lister.by_cluster):
        with pytest.raises(UnknownClusterError, match="no cluster 'asia'; it has: eu, us"):
            call("asia")


def test_what_a_removed_cluster_had_is_told_to_a_follower_as_gone(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """As to handlers, which go on to hear the cluster when it is back, each time."""
    us.create(config_map("b"))
    heard: dict[str, list[str]] = {"followed": [], "handled": []}

    def note(where: str, event: Event) -> None:
        if event.cluster == "us":
            heard[where].append(event.type.name)

    informer = fleet.for_resource("v1/configmaps").informer
    informer.add_event_handler(on_event=partial(note, "handled"))
    follower = fleet.follow("configmaps", on_event=partial(note, "followed"))
    told = ["DELETED", "ADDED"]
    for count in range(1, 11):
        fleet.sync(PATIENCE)
        assert follower.wait_for_sync(PATIENCE)
        assert fleet.remove("us", timeout=PATIENCE)
        fleet.add("us", us.client())
        for each in heard.values():
            until(partial(_has, each, 1 + 2 * count), PATIENCE, heard)
    wanted = ["ADDED", *told * 10]
    assert heard == {"followed": wanted, "handled": wanted}


def _has(heard: list[str], count: int) -> bool:
    return len(heard) == count


def test_a_follower_brings_what_matches_in_every_cluster(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """And its function hears them all, one at a time, with their clusters."""
    seen: set[tuple[str, str, str]] = set()
    eu.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    follower = fleet.follow(
        "*.ex.io", on_event=lambda event: seen.add((event.cluster, event.gvr.resource, event.name))
    )
    assert follower.wait_for_sync(PATIENCE)
    assert {name: len(found) for name, found in follower.resources().items()} == {"eu": 1, "us": 0}
    us.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    until(lambda: len(follower.resources()["us"]) == 1, PATIENCE)
    gadget = {"apiVersion": "ex.io/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    us.create(gadget, namespace="default")
    until(lambda: seen == {("us", "gadgets", "g")}, PATIENCE)
    follower.close()
    assert not any(follower.reasons)
