"""Many clusters as one: S44-S47. One server stands for two of them, and a black hole for one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dyninformer import CacheSyncError, Event, Fleet, ObjectNotFoundError
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.recorders import PATIENCE, WIDGETS, Heard, replayed
from tests.conformance.wire import until
from tests.fleet.clusters import black_hole

Fleets = Callable[..., Fleet]


@pytest.fixture
def fleets(cluster: Cluster, namespace: str) -> Iterator[Fleets]:
    """Makes fleets of the server under several names, and of other clients."""
    made: list[Fleet] = []

    def make(*names: str, **others: Any) -> Fleet:
        clients = {name: cluster.server.client() for name in names}
        fleet = Fleet({**clients, **others}, namespace=namespace)
        made.append(fleet)
        return fleet

    yield make
    assert all([fleet.shutdown(10) for fleet in made])  # noqa: C419 - all of them are ended


def test_s44_one_that_is_away_delays_nobody_and_is_named(
    fleets: Fleets, widgets: Collection
) -> None:
    """In whatever order they were given, by sync and by the lister."""
    widgets.fill("a", "b")
    with black_hole() as hole:
        fleet = fleets("eu", "us", hole=hole)
        found = fleet.for_resource(WIDGETS)
        assert fleet.sync(PATIENCE, require=2).synced == ["eu", "us"]
        assert fleet.sync(PATIENCE, require="reachable").unsynced == ["hole"]
        assert len(found.lister) == 4
        with pytest.raises(CacheSyncError, match=r"1 of 3 .*\n  hole: widgets\.v1\.ex\.io: "):
            fleet.sync(timeout=0)
        assert not fleet.status()["hole"][WIDGETS].synced


def test_s45_a_handler_hears_what_each_cluster_s_cache_becomes(
    fleets: Fleets, widgets: Collection
) -> None:
    """One call at a time; a replay of what it heard of a cluster equals that cluster's cache."""
    busy = threading.Lock()

    def alone(event: Event) -> None:
        assert busy.acquire(blocking=False)
        busy.release()

    widgets.fill("a", "b", size=1)
    fleet = fleets("eu", "us")
    found = fleet.for_resource(WIDGETS)
    heard = Heard(alone)
    handler = found.informer.add_event_handler(heard)
    fleet.sync(PATIENCE)
    assert handler.wait_for_sync(PATIENCE)
    widgets.merge("a", {"spec": {"size": 2}})
    widgets.api.delete(widgets.at("b"))
    widgets.fill("c")
    heard.wait_until(lambda: heard.told.count(("ADDED", "c")) == 2, "c in both")
    for cluster in ("eu", "us"):
        events = [event for event in heard.events if event.cluster == cluster]
        lister = found.lister.by_cluster(cluster)
        assert replayed(events) == {key: lister.get(key) for key in lister.keys()}  # noqa: SIM118
        told = [(event.type.value, event.name) for event in events[2:]]
        assert told == [("UPDATED", "a"), ("DELETED", "b"), ("ADDED", "c")]


def test_s46_a_cluster_that_goes_takes_its_objects_along_or_leaves_them(
    fleets: Fleets, cluster: Cluster, widgets: Collection
) -> None:
    """What is told is a replay of what the fleet has, through all of it."""
    widgets.fill("a")
    fleet = fleets("eu", "us")
    found = fleet.for_resource(WIDGETS)
    heard = Heard()
    found.informer.add_event_handler(heard)
    fleet.sync(PATIENCE)
    heard.wait_count(2)
    assert fleet.remove("us", keep=True, timeout=PATIENCE)
    widgets.fill("b")
    heard.wait("ADDED", "b")
    assert [cluster for cluster, _ in found.lister.items()] == ["eu", "eu", "us"]
    assert len(heard.told) == 3
    fleet.add("us", cluster.server.client())
    heard.wait_count(6)
    of_us = [event for event in heard.events if event.cluster == "us"]
    assert [(event.type, event.final_state_unknown) for event in of_us] == [
        ("ADDED", False),
        ("DELETED", True),
        ("ADDED", False),
        ("ADDED", False),
    ]
    assert fleet.remove("us", timeout=PATIENCE)
    heard.wait_count(8)
    assert [event.type for event in heard.events[6:]] == ["DELETED", "DELETED"]
    assert len(found.lister) == 2


def test_s47_each_cluster_says_what_a_name_means_and_reads_name_the_cluster(
    fleets: Fleets, widgets: Collection
) -> None:
    """A name that several have is ambiguous without it."""
    widgets.fill("a")
    fleet = fleets("eu", "us")
    found = fleet.for_resource("widget")
    fleet.sync(PATIENCE)
    assert found.informer.gvrs == {"eu": WIDGETS, "us": WIDGETS}
    with pytest.raises(ValueError, match="is in the clusters eu, us"):
        found.lister.get("a")
    assert found.lister.get("a", cluster="us")["metadata"]["name"] == "a"
    with pytest.raises(ObjectNotFoundError, match="in the cache of 2 clusters"):
        found.lister.get("x")
    rows = found.lister.select({"size": ".spec.size"}, sort_by="-cluster")
    assert [row["cluster"] for row in rows] == ["us", "eu"]
    until(lambda: len(found.lister.keys()) == 2, PATIENCE)
