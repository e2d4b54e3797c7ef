"""Handlers and streams of all clusters, and what is of one cluster alone."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    Event,
    Fleet,
    JSONPathError,
    OptionsConflictError,
    UnknownClusterError,
    WorkQueue,
)
from dyninformer.fleet.stream import FleetEventStream
from dyninformer.fleet.turns import TURN_SECONDS
from dyninformer.metrics import GatheredMetrics
from dyninformer.testing import ApiServer
from tests.conformance.wire import until
from tests.fleet.clusters import PATIENCE, black_hole, config_map


def test_a_handler_hears_each_cluster_in_order(fleet: Fleet, eu: ApiServer, us: ApiServer) -> None:
    """One call at a time, on one thread, each with its cluster."""
    seen: list[Event] = []
    threads: set[int] = set()

    def note(event: Event) -> None:
        seen.append(event)
        threads.add(threading.get_ident())

    maps = fleet.for_resource("cm")
    registration = maps.informer.add_event_handler(on_event=note)
    fleet.sync(PATIENCE)
    for at in range(20):
        for each in (eu, us):
            each.create(config_map(f"a{at:02}"))
    until(lambda: len(seen) == 40, PATIENCE)
    for cluster in ("eu", "us"):
        names = [event.name for event in seen if event.cluster == cluster]
        assert names == [f"a{at:02}" for at in range(20)]
    assert len(threads) == 1
    assert repr(seen[0]).split()[2] in {"eu", "us"}
    assert registration.has_synced("eu")
    assert registration.wait_for_sync(PATIENCE)


def test_much_of_one_cluster_does_not_keep_another_waiting(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """A slow handler with a thousand events of one hears another before it is through them."""
    for at in range(1000):
        eu.create(config_map(f"a{at}"))
    seen: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def note(event: Event) -> None:
        begun.set()
        go_on.wait(PATIENCE)
        seen.append(event.cluster)
        threading.Event().wait(0.0005)

    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    maps.informer.add_event_handler(on_event=note)
    assert begun.wait(PATIENCE)
    us.create(config_map("b"))
    until(lambda: len(maps.lister.by_cluster("us")) == 1, PATIENCE)
    go_on.set()
    until(lambda: "us" in seen, PATIENCE)
    assert seen.count("eu") < 1000
    assert seen.index("us") < 500


@pytest.mark.parametrize("coalesce", [False, True])
def test_the_options_of_a_handler_are_those_of_each_cluster(
    fleet: Fleet, eu: ApiServer, us: ApiServer, coalesce: bool
) -> None:
    """Filters, with an event that they make; the other callbacks."""
    entered: list[Event] = []
    left: list[str] = []
    maps = fleet.for_resource("cm")
    registration = maps.informer.add_event_handler(
        on_event=entered.append,
        on_delete=lambda obj: left.append(obj["metadata"]["name"]),
        filter=lambda obj: obj["metadata"]["labels"].get("app") == "shop",
        coalesce=coalesce,
    )
    fleet.sync(PATIENCE)
    us.create(config_map("b", app="shop"))
    eu.create(config_map("a", app="mail"))
    until(lambda: len(entered) == 1, PATIENCE)
    us.patch("configmaps/b", {"metadata": {"labels": {"app": "x"}}}, "default")
    until(lambda: left == ["b"], PATIENCE)
    assert {(event.cluster, event.name) for event in entered} == {("us", "b")}
    registration.remove()
    assert registration.removed
    assert registration.backlog == registration.overflows == 0


def test_a_handler_of_the_same_name_takes_the_place_of_the_other(fleet: Fleet) -> None:
    """In every cluster; without a name, each has one of its own."""
    informer = fleet.for_resource("v1/namespaces").informer
    first = informer.add_event_handler(on_add=lambda obj: None, name="mine")
    second = informer.add_event_handler(on_add=lambda obj: None, name="mine")
    assert first.removed
    assert not second.removed
    names = [informer.add_event_handler(on_event=lambda event: None).name for _ in range(2)]
    assert names == ["on_event", "on_event-2"]
    informer.remove_event_handler(second)
    assert second.removed


def test_a_registration_of_another_informer_is_refused(fleet: Fleet) -> None:
    """It stays where it is, and can be removed there, also twice."""
    maps, namespaces = (fleet.for_resource(name).informer for name in ("cm", "v1/namespaces"))
    registration = maps.add_event_handler(on_add=lambda obj: None)
    with pytest.raises(ValueError, match="was not added to this informer of v1/namespaces"):
        namespaces.remove_event_handler(registration)
    assert not registration.removed
    maps.remove_event_handler(registration)
    maps.remove_event_handler(registration)
    assert registration.removed


def test_a_handler_that_raises_hears_the_next(
    fleet: Fleet, eu: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """S10."""
    seen: list[str] = []

    def fail(event: Event) -> None:
        seen.append(event.name)
        raise SystemExit

    fleet.for_resource("cm").informer.add_event_handler(on_event=fail)
    fleet.sync(PATIENCE)
    eu.create(config_map("a"))
    eu.create(config_map("b"))
    until(lambda: seen == ["a", "b"], PATIENCE)
    assert "failed on default/a" in caplog.text


def test_a_handler_may_remove_itself(fleet: Fleet, eu: ApiServer) -> None:
    """And hears nothing more."""
    seen: list[str] = []
    remove: list[Callable[[], None]] = []

    def once(event: Event) -> None:
        seen.append(event.name)
        remove[0]()

    informer = fleet.for_resource("cm").informer
    remove.append(informer.add_event_handler(on_event=once).remove)
    fleet.sync(PATIENCE)
    for name in ("a", "b"):
        eu.create(config_map(name))
    until(lambda: seen and len(fleet.for_resource("cm").lister) == 2, PATIENCE)
    assert seen == ["a"]


def test_a_stream_has_the_events_of_all_clusters_in_turns(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """It ends when nothing has come for its time, and may be closed."""
    for each in (eu, us):
        for name in ("a", "b"):
            each.create(config_map(name))
    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    with maps.informer.events(idle_timeout=0.1) as events:
        assert events.backlog == 4
        assert [event.cluster for event in events] == ["eu", "us", "eu", "us"]
        assert events.closed
        assert events.overflows == 0
    with maps.informer.events(initial=False, coalesce=True) as events:
        assert events.take(0) is None
        us.create(config_map("c"))
        event = events.take(PATIENCE)
        assert event is not None
        assert (event.cluster, event.name, event.object["kind"]) == ("us", "c", "ConfigMap")


def test_nothing_waits_in_a_stream_that_has_ended(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """Although its last event was taken."""
    for each in (eu, us):
        each.create(config_map("a"))
    maps = fleet.for_resource("cm")
    fleet.sync(PATIENCE)
    events = maps.informer.events()
    next(events)
    assert events.backlog == 1
    events.close()
    assert events.backlog == 0


def test_a_stream_that_is_closed_elsewhere_ends(fleet: Fleet) -> None:
    """So it does with the fleet."""
    informer = fleet.for_resource("cm").informer
    fleet.sync(PATIENCE)
    events = informer.events()
    ended = threading.Event()

    def read() -> None:
        list(events)
        ended.set()

    threading.Thread(target=read).start()
    until(lambda: events._waits, PATIENCE)
    with pytest.raises(RuntimeError, match="another thread waits"):
        next(events)
    fleet.shutdown(PATIENCE)
    assert ended.wait(PATIENCE)


def test_a_stream_that_nobody_holds_is_unsubscribed(fleet: Fleet) -> None:
    """Of every cluster."""
    informer = fleet.for_resource("cm").informer
    fleet.sync(PATIENCE)
    events = informer.events()
    gone = weakref.ref(events)
    del events
    assert gone() is None
    until(lambda: not informer.by_cluster("eu").backlogs, PATIENCE)


def test_wait_for_is_of_one_cluster(fleet: Fleet, eu: ApiServer, us: ApiServer) -> None:
    """Which need not have said yet what the resource is there."""
    us.create(config_map("a"))
    informer = fleet.for_resource("cm").informer
    fleet.start()
    found = informer.wait_for(
        "jsonpath={.kind}=ConfigMap", name="default/a", cluster="us", timeout=PATIENCE
    )
    assert found["kind"] == "ConfigMap"
    with pytest.raises(UnknownClusterError, match="no cluster 'asia'"):
        informer.wait_for("create", name="default/a", cluster="asia", timeout=PATIENCE)


def test_a_cluster_that_has_not_said_what_a_name_means_is_named_so(eu: ApiServer) -> None:
    """It is one of the fleet's all the same."""
    with black_hole() as hole, Fleet({"eu": eu.client(), "hole": hole}) as fleet:
        maps = fleet.for_resource("cm")
        with pytest.raises(UnknownClusterError, match="hole has not said yet what cm is"):
            maps.informer.wait_for("create", name="default/a", cluster="hole", timeout=0.1)
        assert not maps.informer.has_synced()
        fleet.sync(PATIENCE, require="reachable")
        assert maps.gvr.resource == "configmaps"
        assert maps.informer.status()["eu"].synced


def test_indexers_are_added_in_all_clusters_those_that_come_later_too(
    eu: ApiServer, us: ApiServer
) -> None:
    """S15."""
    for each in (eu, us):
        each.create(config_map("a", app="shop"))
    with Fleet({"eu": eu.client()}) as fleet:
        maps = fleet.for_resource("cm")
        fleet.sync(PATIENCE)
        maps.informer.add_indexers({"by-colour": "{.data.colour}"})
        fleet.add("us", us.client())
        fleet.sync(PATIENCE)
        assert len(maps.lister.by_index("by-colour", "shop")) == 2


def test_an_index_that_is_refused_is_asked_of_no_cluster_that_comes_later(
    fleet: Fleet, eu: ApiServer
) -> None:
    """Neither what is no path, nor one of a name that has another."""
    eu.create(config_map("a", app="shop"))
    informer = fleet.for_resource("v1/configmaps", indexers={"colour": ".data.colour"}).informer
    fleet.sync(PATIENCE)
    with pytest.raises(JSONPathError):
        informer.add_indexers({"app": ".metadata.labels[app"})
    with pytest.raises(OptionsConflictError):
        informer.add_indexers({"colour": ".metadata.name"})
    fleet.add("late", eu.client())
    fleet.sync(PATIENCE)
    late = informer.lister.by_cluster("late")
    assert [len(late.by_index("colour", each)) for each in ("shop", "a")] == [1, 0]


def test_indexers_are_added_where_a_cluster_is_kept_as_it_was(fleet: Fleet, eu: ApiServer) -> None:
    """Its reads go on, and have the index as the others have it."""
    eu.create(config_map("a", app="shop"))
    maps = fleet.for_resource("v1/configmaps")
    fleet.sync(PATIENCE)
    fleet.remove("eu", keep=True)
    maps.informer.add_indexers({"colour": ".data.colour"})
    assert len(maps.lister.by_index("colour", "shop")) == 1
    fleet.for_resource("v1/configmaps", indexers={"name": ".metadata.name"})
    assert len(maps.lister.by_index("name", "a")) == 1


def test_a_work_queue_is_of_one_cluster(fleet: Fleet) -> None:
    """Its keys are: the error says how each has one."""
    maps = fleet.for_resource("v1/configmaps")
    with pytest.raises(TypeError, match=r"by_cluster\('eu'\)\.work_queue\(\)"):
        maps.informer.work_queue()
    for each in (maps, maps.informer):
        with pytest.raises(TypeError, match=r"of several clusters.*by_cluster"):
            WorkQueue({each: None})  # type: ignore[type-var]
    maps.by_cluster("eu").work_queue().close()


def test_handlers_of_a_fleet_are_measured(eu: ApiServer, us: ApiServer) -> None:
    """How long they take, and how far behind they are, in each cluster."""
    metrics, seen = GatheredMetrics(), threading.Event()
    wanted = {"handler_duration_seconds", "event_lag_seconds"}

    def measured() -> set[tuple[str, str]]:
        return {
            (each.name, each.labels["cluster"])
            for each in metrics.gather()
            if each.name in wanted and each.labels.get("handler") == "mine"
        }

    with Fleet({"eu": eu.client(), "us": us.client()}, metrics=metrics) as fleet:
        informer = fleet.for_resource("cm").informer
        handler = informer.add_event_handler(on_event=lambda event: seen.set(), name="mine")
        fleet.sync(PATIENCE)
        assert handler.wait_for_sync(PATIENCE)
        for each in (eu, us):
            each.create(config_map("late"))
        assert seen.wait(PATIENCE)
        expected = {(name, cluster) for name in wanted for cluster in ("eu", "us")}
        until(lambda: measured() == expected, PATIENCE)


def test_a_stream_hears_a_cluster_that_came_back_twice_in_order(
    fleet: Fleet, us: ApiServer
) -> None:
    """Each time behind what it had to tell the time before."""
    us.create(config_map("b"))
    informer = fleet.for_resource("v1/configmaps").informer
    fleet.sync(PATIENCE)
    with informer.events(idle_timeout=2) as events:
        for name in ("c", "d"):
            assert fleet.remove("us", timeout=PATIENCE)
            us.create(config_map(name))
            fleet.add("us", us.client())
            assert fleet.sync(PATIENCE)
        assert fleet.remove("us", timeout=PATIENCE)
        types = [event.type for event in islice(events, 2 * (1 + 2 + 3))]
    assert types == [
        each for count in (1, 2, 3) for each in ["ADDED"] * count + ["DELETED"] * count
    ]


def test_a_cluster_that_left_without_a_word_keeps_the_order_for_a_handler(eu: ApiServer) -> None:
    """It ends while what was before it is still being told; what comes after it waits for that.

    So at the end the handler knows what there is.
    """
    for name in ("a", "b"):
        eu.create(config_map(name))
    gate, heard = threading.Event(), list[str]()

    def note(event: Event) -> None:
        gate.wait(PATIENCE)
        time.sleep(2 * TURN_SECONDS)  # the others' turn comes after each event
        heard.append(f"{event.type.name} {event.name}")

    with Fleet({"eu": eu.client()}) as fleet, black_hole() as silent:
        informer = fleet.for_resource("v1/configmaps").informer
        informer.add_event_handler(on_event=note)
        fleet.sync(PATIENCE)
        fleet.remove("eu")
        fleet.add("eu", silent)
        fleet.remove("eu")
        fleet.add("eu", eu.client())
        fleet.sync(PATIENCE)
        gate.set()
        until(lambda: len(heard) == 6, PATIENCE)
    assert heard == [f"{kind} {name}" for kind in ("ADDED", "DELETED", "ADDED") for name in "ab"]


def test_a_cluster_that_left_without_a_word_keeps_the_order_for_a_stream(eu: ApiServer) -> None:
    """Also if it ends only when the next one has come."""
    eu.create(config_map("a"))
    stream = FleetEventStream(
        "configmaps", idle_timeout=0, coalesce=False, max_backlog=None, initial=True
    )
    with ExitStack() as stack:
        first, silent, last = (
            stack.enter_context(DynamicSharedInformerFactory(eu.client()))
            .for_resource("v1/configmaps")
            .informer
            for _ in range(3)
        )
        for each in (first, last):
            each.start()
            assert each.wait_synced(PATIENCE)
        stream.join("eu", first.dispatcher)
        first.reflectors.signal_stop()
        first.reflectors.wait_stopped(PATIENCE)
        first.let_go()
        stream.join("eu", silent.dispatcher)
        stream.join("eu", last.dispatcher)
        silent.let_go()
        assert [event.type for event in stream] == ["ADDED", "DELETED", "ADDED"]
