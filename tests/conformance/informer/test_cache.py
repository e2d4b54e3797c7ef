"""What is held, and how it changes: S6, S7, S12-S15, S17-S19, S43."""

from __future__ import annotations

import copy
import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from dyninformer import (
    DROP,
    CacheSyncError,
    Event,
    OptionsConflictError,
    UnknownIndexError,
    WaitTimeoutError,
    compound,
)
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.faults import (
    BlackHole,
    Call,
    DuplicateLines,
    Faults,
    InjectLine,
    StreamError,
)
from dyninformer.types import Object
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.compaction import forget
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    NODES,
    PATIENCE,
    WIDGETS,
    Counts,
    Heard,
    on_embedded,
    replayed,
    seen,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.shapes import CRDS, widget
from tests.conformance.wire import Wire, until


def gvr_of(collection: Collection) -> str:
    """``group/version/resource`` of a custom resource's collection."""
    _, _, group, version, _, _, plural = collection.path.split("/")
    return f"{group}/{version}/{plural}"


# -- S6: identity ---


def test_s06_an_object_created_anew_under_its_name_is_two_events_live(
    running: Running, widgets: Collection
) -> None:
    """Seen as it happens, the deletion and the creation are told one after the other."""
    widgets.fill("a")
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    assert widgets.api.delete(widgets.at("a")).status == 200
    widgets.fill("a")
    assert heard.wait_count(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


@on_embedded
def test_s06_another_uid_under_a_known_key_is_an_update_with_recreated(
    faults: Faults, server: ApiServer, running: Running, widgets: Collection
) -> None:
    """Where the deletion was missed, the new object is an update that says so."""
    (before,) = widgets.fill("a", color="red")

    def recreate() -> None:
        server.delete("widgets.ex.io/a", widgets.namespace)
        server.create(widget("a", color="blue"), widgets.namespace)

    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    add(StreamError(410, after_lines=2))
    add(Call(function=recreate), skip=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    event = heard.wait("UPDATED", "a")
    assert event.recreated
    assert event.old is not None
    assert event.old["metadata"]["uid"] == before["metadata"]["uid"]
    assert event.object["spec"]["color"] == "blue"


@on_embedded
def test_s06_a_deletion_of_another_uid_or_an_unknown_key_is_ignored(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """Neither takes anything away, and nobody hears of it."""
    (held,) = widgets.fill("a")
    line = b'{"type":"DELETED","object":{"apiVersion":"ex.io/v1","kind":"Widget","metadata":'
    line += b'{"name":"%b","namespace":"%b","uid":"other","resourceVersion":"%d"}}}'
    version = int(held["metadata"]["resourceVersion"]) + 1000
    for name in (b"a", b"unknown"):
        data = line % (name, widgets.namespace.encode(), version)
        faults.add(InjectLine(data, after_lines=2), verb="watch", namespace=widgets.namespace)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b")
    heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]
    assert f"{widgets.namespace}/a" in found.lister


def test_s06_with_a_selector_added_and_deleted_mean_entered_and_left(
    running: Running, widgets: Collection
) -> None:
    """What leaves is told as DELETED with the last state that matched."""
    widgets.create(widget("a", color="red", size=1))
    found, heard = running(field_selector="spec.color=red"), Heard()
    found.informer.add_event_handler(heard)
    widgets.merge("a", {"spec": {"size": 2}})
    widgets.merge("a", {"spec": {"color": "blue", "size": 3}})
    widgets.merge("a", {"spec": {"color": "red"}})
    assert heard.wait_count(4) == [
        ("ADDED", "a"),
        ("UPDATED", "a"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]
    left = heard.of("a")[2]
    assert (left.object["spec"]["color"], left.object["spec"]["size"]) == ("red", 2)
    assert not left.final_state_unknown


# -- S7: the store changes first ---


def test_s07_the_store_has_changed_before_a_handler_hears_of_it(
    running: Running, widgets: Collection
) -> None:
    """At each callback the cache and its indexes are as new as the event, or newer."""
    found = running(indexers={"color": "{.spec.color}"})
    behind: list[str] = []

    def compare(event: Event) -> None:
        held = found.informer.store.get_by_key(event.key)
        version = int(held["metadata"]["resourceVersion"]) if held else None
        told = int(event.resource_version)
        if event.type == "DELETED":
            late = version is not None and version <= told
        else:
            late = version is not None and version < told
            color = event.object["spec"]["color"]
            keys = found.informer.indexer.index_keys("color", color)
            late = late or (version == told and event.key not in keys)
        if late:
            behind.append(f"{event}: {version} is held")

    heard = Heard(compare)
    found.informer.add_event_handler(heard)
    for name in "abcdef":
        widgets.fill(name, color="red")
        widgets.merge(name, {"spec": {"color": "blue"}})
        widgets.api.delete(widgets.at(name))
    heard.wait_count(18)
    assert behind == []


# -- S12: what is a change ---


@on_embedded
def test_s12_the_same_version_and_content_is_no_news(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """A stream that says everything twice is heard once."""
    widgets.fill("a")
    faults.add(DuplicateLines(), verb="watch", namespace=widgets.namespace)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    widgets.merge("a", {"spec": {"note": "x"}})
    widgets.fill("b")
    heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("UPDATED", "a"), ("ADDED", "b")]


def test_s12_other_content_at_the_same_version_is_an_update(
    api: Wire, running: Running, rows: Collection
) -> None:
    """A schema that gives defaults changes objects without an event; the update is told."""
    found, heard = running(gvr_of(rows)), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    change_schema(api, rows, {"size": {"type": "integer", "default": 7}})
    event = heard.wait("UPDATED", "a")
    assert event.old is not None
    assert event.object["metadata"]["resourceVersion"] == event.old["metadata"]["resourceVersion"]
    assert event.object["size"] == 7
    assert [change.new for change in event.changes(ignore=["metadata"])] == [7]


def change_schema(api: Wire, rows: Collection, properties: Object) -> None:
    """Give the rows other properties, which may have defaults."""
    path = f"{CRDS}/rows.{rows.path.split('/')[2]}"
    versions = copy.deepcopy(api.get(path).json["spec"]["versions"])
    versions[0]["schema"]["openAPIV3Schema"]["properties"] = properties
    assert api.patch(path, {"spec": {"versions": versions}}).status == 200


# -- S13, S14: what was missed ---


def test_s13_deletions_missed_while_away_are_found_at_the_next_list(
    cluster: Cluster, running: Running, rows: Collection, relay: Relay, relayed: Any
) -> None:
    """They are told with the last known state, and that it may not be the final one."""
    found, heard = running(gvr_of(rows), client=relayed), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    with relay.away():
        rows.merge("a", {"note": "never seen"})
        rows.api.delete(rows.at("a"))
        forget(cluster, rows)
    event = heard.wait("DELETED", "a")
    assert event.final_state_unknown
    assert "note" not in event.object
    assert heard.told[3:] == [("DELETED", "a")]
    assert f"{rows.namespace}/a" not in found.lister


def test_s14_a_list_after_an_absence_tells_only_what_changed(
    cluster: Cluster, running: Running, rows: Collection, relay: Relay, relayed: Any
) -> None:
    """Unchanged objects are not told, and their entries stay the same ones."""
    found, heard = running(gvr_of(rows), client=relayed), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    kept = found.lister.get("a", rows.namespace, shared=True)
    with relay.away():
        rows.merge("b", {"note": "new"})
        group = rows.path.split("/")[2]
        rows.create({"apiVersion": f"{group}/v1", "kind": "Row", "metadata": {"name": "d"}})
        rows.api.delete(rows.at("c"))
        forget(cluster, rows)
    heard.wait("ADDED", "d")
    assert heard.told[3:] == [("DELETED", "c"), ("UPDATED", "b"), ("ADDED", "d")]
    assert not heard.wait("ADDED", "d").initial
    assert found.lister.get("a", rows.namespace, shared=True) is kept


# -- S15: indexes ---


def test_s15_an_index_can_be_added_while_objects_are_written(
    running: Running, widgets: Collection
) -> None:
    """It holds what was there, what came meanwhile, and what comes later."""
    found = running()
    stop = threading.Event()
    names = iter(f"w{number}" for number in range(10_000))

    def write() -> None:
        while not stop.is_set():
            widgets.fill(next(names), color="red")

    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: len(found.lister) >= 5)
    for number in range(5):
        found.informer.add_indexers({f"color-{number}": "{.spec.color}"})
    until(lambda: len(found.lister) >= 20)
    stop.set()
    thread.join()
    (last,) = widgets.fill("last", color="blue")
    seen(found.informer, last)
    indexer = found.informer.indexer
    for number in range(5):
        red = indexer.index_keys(f"color-{number}", "red")
        assert len(red) == len(found.lister) - 1
        assert indexer.index_keys(f"color-{number}", "blue") == [f"{widgets.namespace}/last"]


def test_s15_a_compound_index_is_looked_up_by_its_parts(
    running: Running, widgets: Collection
) -> None:
    """A tuple, with a text for each path."""
    widgets.fill("a", color="red", size=5)
    widgets.fill("b", color="red", size=6)
    found = running(indexers={"kind": compound(".spec.color", ".spec.size")})
    assert [o["metadata"]["name"] for o in found.lister.by_index("kind", ("red", "5"))] == ["a"]
    assert found.informer.indexer.index_keys("kind", ("red", "6")) == [f"{widgets.namespace}/b"]
    with pytest.raises(TypeError, match="a tuple of 2"):
        found.lister.by_index("kind", ("red",))


def test_s43_what_is_selected_again_is_found_by_an_index(
    running: Running, widgets: Collection, other: Collection
) -> None:
    """Of several namespaces; it follows what changes, and is said in the status alone."""
    spaces = [widgets.namespace, other.namespace]
    found = running(namespaces=spaces)
    for number in range(6):
        (widgets, other)[number % 2].fill(f"w{number}", color="blue" if number % 3 else "red")
    until(lambda: len(found.lister) == 6)

    def red(**options: Any) -> list[str]:
        objects = found.lister.list(field_selector="spec.color=red", **options)
        return sorted(obj["metadata"]["name"] for obj in objects)

    assert [red(), red(), red()] == [["w0", "w3"]] * 3
    assert found.informer.status().asked_indexes == ("field spec.color",)
    assert list(found.informer.indexer.get_indexers()) == ["namespace"]
    found.informer.patch("w1", spaces[1], {"spec": {"color": "red"}}, wait=True)
    found.informer.patch("w0", spaces[0], {"metadata": {"labels": {"app": "shop"}}}, wait=True)
    assert (red(), red(selector="app=shop")) == (["w0", "w1", "w3"], ["w0"])
    assert len(found.lister.by_namespace(spaces[1]).list(field_selector="spec.color=red")) == 2
    before = found.informer.snapshot()
    found.informer.delete("w3", spaces[1], wait=True)
    assert red() == ["w0", "w1"]
    assert len(before.list(field_selector={"spec.color": "red"})) == 3


@on_embedded
def test_s15_a_name_stands_for_one_function(running: Running) -> None:
    """The same again is fine, another one is a conflict, an unknown name lists the known."""
    informer = running(indexers={"color": "{.spec.color}"}).informer
    informer.add_indexers({"color": "{.spec.color}"})
    with pytest.raises(OptionsConflictError, match="color"):
        informer.add_indexers({"color": "{.spec.size}"})
    with pytest.raises(UnknownIndexError, match="color, namespace"):
        informer.indexer.by_index("colour", "red")


def test_s15_an_index_follows_objects_with_several_values(
    running: Running, widgets: Collection
) -> None:
    """Each value finds the object as long as it has it, and no longer."""
    found = running(indexers={"part": "{.spec.parts[*].name}"})
    seen(found.informer, widgets.fill("a", parts=[{"name": "x"}, {"name": "y"}])[0])
    seen(found.informer, widgets.fill("b", parts=[{"name": "y"}, {"name": "z"}])[0])
    indexer, ns = found.informer.indexer, widgets.namespace
    assert sorted(indexer.index_keys("part", "y")) == [f"{ns}/a", f"{ns}/b"]
    changed = widgets.merge("a", {"spec": {"parts": [{"name": "z"}]}}).json
    seen(found.informer, changed)
    assert indexer.index_keys("part", "x") == []
    assert indexer.index_keys("part", "y") == [f"{ns}/b"]
    assert sorted(indexer.list_index_func_values("part")) == ["y", "z"]
    widgets.api.delete(widgets.at("b"))
    until(lambda: indexer.list_index_func_values("part") == ["z"])
    widgets.api.delete(widgets.at("a"))
    until(lambda: indexer.list_index_func_values("part") == [])


# -- S17: transforms ---


def test_s17_a_transform_runs_once_per_received_object(
    running: Running, widgets: Collection
) -> None:
    """What it returns is what is held, told and indexed, for however many handlers."""
    widgets.fill("a", color="red")
    runs: Counter[tuple[str, str]] = Counter()

    def transform(obj: Object) -> Object:
        metadata = obj["metadata"]
        runs[metadata["name"], metadata["resourceVersion"]] += 1
        return {"kind": "Widget", "metadata": metadata, "shade": "dark " + obj["spec"]["color"]}

    found = running(transform=transform, indexers={"shade": "{.shade}"})
    handlers = [Heard() for _ in range(3)]
    for each in handlers:
        found.informer.add_event_handler(each)
    widgets.merge("a", {"spec": {"color": "blue"}})
    for each in handlers:
        assert each.wait("UPDATED", "a").object["shade"] == "dark blue"
    assert list(runs.values()) == [1, 1]
    assert found.informer.indexer.index_keys("shade", "dark blue") == [f"{widgets.namespace}/a"]
    assert "spec" not in found.lister.get("a", widgets.namespace)


def test_s17_an_object_that_is_dropped_is_deleted(running: Running, widgets: Collection) -> None:
    """DROP of what was held tells its held state as DELETED; of what was not, nothing."""
    widgets.fill("a", size=1)
    widgets.fill("never", size=99)

    def small(obj: Object) -> Any:
        return obj if obj["spec"]["size"] < 10 else DROP

    found, heard = running(transform=small), Heard()
    found.informer.add_event_handler(heard)
    widgets.merge("a", {"spec": {"size": 50}})
    assert heard.wait("DELETED", "a").object["spec"]["size"] == 1
    widgets.api.delete(widgets.at("a"))
    widgets.fill("b", size=2)
    heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert found.lister.keys() == [f"{widgets.namespace}/b"]


def test_s17_a_transform_that_raises_on_an_event_keeps_the_held_state(
    running: Running, widgets: Collection
) -> None:
    """It is counted and the stream goes on; the deletion needs no transform."""
    widgets.fill("a", size=1)
    counts = Counts()

    def picky(obj: Object) -> Object:
        if obj["spec"]["size"] == 13:
            raise RuntimeError("unlucky")
        return obj

    found, heard = running(transform=picky, metrics=counts), Heard()
    found.informer.add_event_handler(heard)
    widgets.merge("a", {"spec": {"size": 13}})
    seen(found.informer, widgets.fill("b", size=2)[0])
    assert found.lister.get("a", widgets.namespace)["spec"]["size"] == 1
    assert counts["transform_errors"] == 1
    widgets.api.delete(widgets.at("a"))
    assert heard.wait("DELETED", "a").object["spec"]["size"] == 1


@on_embedded
@pytest.mark.parametrize(
    ("transform", "complaint"),
    [
        pytest.param(lambda obj: None, "None", id="none"),
        pytest.param(lambda obj: obj["nothing"], "KeyError", id="raises"),
    ],
)
def test_s17_a_transform_that_fails_on_the_first_state_fails_the_sync(
    factories: Factories, widgets: Collection, transform: Any, complaint: str
) -> None:
    """The sync does not happen, and the error says what the transform did."""
    widgets.fill("a")
    factory = factories(transform=transform)
    found = factory.for_resource(WIDGETS)
    factory.start()
    until(lambda: found.informer.status().attempts)
    with pytest.raises(CacheSyncError, match=complaint):
        factory.sync(0)
    assert not len(found.informer.store)


@on_embedded
def test_s17_a_transform_cannot_change_namespace_or_name(
    running: Running, widgets: Collection
) -> None:
    """The object stays under its key, with its own name."""
    widgets.fill("a")

    def renamed(obj: Object) -> Object:
        return {**obj, "metadata": {"name": "other", "namespace": "elsewhere"}}

    found = running(transform=renamed)
    assert found.lister.keys() == [f"{widgets.namespace}/a"]
    metadata = found.lister.get("a", widgets.namespace)["metadata"]
    assert metadata == {"name": "a", "namespace": widgets.namespace}


# -- S18: index functions that fail ---


@on_embedded
def test_s18_an_index_function_that_raises_leaves_the_object_under_nothing(
    running: Running, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once and counted each time; the object is held all the same."""
    widgets.fill("a", "b")
    widgets.fill("c", note="fine")
    counts = Counts()

    def noted(obj: Object) -> list[str]:
        return [obj["spec"]["note"]]

    with caplog.at_level(logging.WARNING, "dyninformer"):
        found = running(indexers={"note": noted}, metrics=counts)
    assert found.informer.indexer.list_index_func_values("note") == ["fine"]
    assert len(found.lister) == 3
    assert counts["index_errors"] == 2
    assert len([r for r in caplog.records if "note" in r.getMessage()]) == 1


@on_embedded
@pytest.mark.parametrize("error", [SystemExit("no"), KeyboardInterrupt(), GeneratorExit()])
def test_s18_whatever_an_index_function_raises_the_informer_goes_on(
    running: Running, widgets: Collection, error: BaseException
) -> None:
    """In the first state, by an event, and while an index is added."""
    widgets.fill("a")
    counts = Counts()

    def noted(obj: Object) -> list[str]:
        if not obj["spec"].get("note"):
            raise error
        return [obj["spec"]["note"]]

    found = running(indexers={"note": noted}, metrics=counts)
    assert counts["index_errors"] == 1
    seen(found.informer, widgets.fill("b")[0])
    seen(found.informer, widgets.fill("c", note="fine")[0])
    assert counts["index_errors"] == 2

    def also_noted(obj: Object) -> list[str]:
        return noted(obj)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(found.informer.add_indexers, {"also": also_noted}).result(30)
    assert counts["index_errors"] == 4
    for name in ("note", "also"):
        assert found.informer.indexer.list_index_func_values(name) == ["fine"]
    assert len(found.lister) == 3


# -- S19: after the end ---


def test_s19_a_stopped_informer_answers_from_its_last_state(
    running: Running, widgets: Collection
) -> None:
    """What is written later does not come in."""
    widgets.fill("a", color="red")
    found = running(indexers={"color": "{.spec.color}"})
    assert found.informer.stop(5)
    widgets.fill("b", color="red")
    assert found.lister.keys() == [f"{widgets.namespace}/a"]
    assert [o["metadata"]["name"] for o in found.lister.by_index("color", "red")] == ["a"]
    assert found.informer.has_synced()


def test_s06_a_bare_name_is_of_the_one_namespace_that_is_watched(
    running: Running, widgets: Collection
) -> None:
    """For reads and for waits; a namespace that is not watched would be waited for in vain."""
    found = running()
    informer = found.informer
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(informer.wait_for, "create", name="a", timeout=PATIENCE)
        made = widgets.fill("a")[0]
        assert waiting.result() == made
    assert found.lister.get("a") == informer.wait_for("create", name="a", timeout=0) == made
    for name, namespace in (("a", "elsewhere"), ("elsewhere/a", None)):
        with pytest.raises(ValueError, match="does not watch namespace 'elsewhere'"):
            informer.wait_for("create", name=name, namespace=namespace)


@pytest.mark.parametrize("condition", ["create", "delete", "jsonpath={.spec.color}=red"])
def test_s06_a_wait_for_a_bare_name_that_no_object_can_have_is_a_mistake(
    running: Running, rows: Collection, condition: str
) -> None:
    """Where all namespaces are watched; the server is asked for the scope if nothing is held."""
    resource = f"rows.v1.{rows.path.split('/')[2]}"
    empty = running(resource, namespaces="", label_selector="no=where").informer
    held = running(resource, namespaces="").informer
    cluster = running(NODES, namespaces="", label_selector="no=where").informer
    for informer in (empty, held):
        with pytest.raises(ValueError, match=r"is namespaced: .*wait_for.*name='a', namespace="):
            informer.wait_for(condition, name="a")
    with pytest.raises(ValueError, match=r"nodes\.v1 is cluster-scoped: give the name alone, 'a'"):
        cluster.wait_for(condition, name="a", namespace="default")
    assert cluster.wait_for("delete", name="a", timeout=PATIENCE) == {}


@on_embedded
def test_s06_a_scope_that_cannot_be_learned_keeps_no_wait_from_its_timeout(
    faults: Faults, running: Running
) -> None:
    """The server answers no question for it."""
    informer = running(WIDGETS, namespaces="", label_selector="no=where").informer
    faults.add(BlackHole(), path="/api")
    with pytest.raises(WaitTimeoutError):
        informer.wait_for("create", name="a", timeout=0.2)


def test_s06_what_a_handler_believes_is_what_is_held(running: Running, widgets: Collection) -> None:
    """After many writes, every event replayed gives the cache, and the cache the server."""
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    for number in range(30):
        name = "abc"[number % 3]
        if widgets.api.get(widgets.at(name)).status == 404:
            widgets.fill(name, size=number)
        elif number % 5 == 0:
            widgets.api.delete(widgets.at(name))
        else:
            widgets.merge(name, {"spec": {"size": number}})
    seen(found.informer, widgets.fill("last")[0])
    heard.wait("ADDED", "last")
    held = {f"{o['metadata']['namespace']}/{o['metadata']['name']}": o for o in found.lister}
    assert replayed(heard.events) == held
    listed = widgets.api.get(widgets.path).json["items"]
    assert sorted(held) == sorted(f"{widgets.namespace}/{o['metadata']['name']}" for o in listed)
    assert all(o in held.values() for o in listed)
