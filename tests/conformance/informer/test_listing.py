"""Reading the whole state: S24, S25, S31."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from dyninformer import DynamicSharedInformerFactory
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.faults import (
    BlackHole,
    Call,
    Compact,
    EndEarly,
    Ending,
    Faults,
    HttpStatus,
    InjectLine,
    StreamError,
    Truncate,
)
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Asked, Factories, Running
from tests.conformance.informer.recorders import (
    CONFIG_MAPS,
    PATIENCE,
    WIDGETS,
    Heard,
    form,
    on_embedded,
    seen,
)
from tests.conformance.shapes import widget
from tests.conformance.wire import until

# -- S24: the streaming list ---


@on_embedded
def test_s24_the_first_request_is_a_streaming_list(asked: Asked, running: Running) -> None:
    """One request brings the state and what follows."""
    running()
    (request,) = asked()
    assert form(request) == "streaming list"
    assert request.param("resourceVersionMatch") == "NotOlderThan"
    assert request.param("allowWatchBookmarks") == "true"
    assert request.param("resourceVersion") is None


@on_embedded
def test_s24_nothing_is_shown_before_the_mark(
    faults: Faults, factories: Factories, widgets: Collection
) -> None:
    """A state that stops in the middle is not in the cache, and its stream's end throws it away."""
    widgets.fill("a", "b")
    factory = factories()
    found, heard = factory.for_resource(WIDGETS), Heard()
    found.informer.add_event_handler(heard)
    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    silence = add(BlackHole(after_lines=1))
    factory.start()
    assert silence.wait_hit()
    until(lambda: found.informer.status().last_contact)
    assert len(found.informer.store) == 0
    assert heard.told == []


@on_embedded
@pytest.mark.parametrize("code", [422, 400, 405])
def test_s24_a_refusal_is_remembered(
    faults: Faults, asked: Asked, running: Running, widgets: Collection, code: int
) -> None:
    """Who does not understand a streaming list is asked for plain ones from then on."""
    widgets.fill("a")
    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    add(HttpStatus(code))
    add(StreamError(410), skip=1)
    running()
    until(lambda: len(asked()) >= 5)
    assert [form(each) for each in asked()[:5]] == [
        "streaming list",
        "list",
        "watch",
        "list",
        "watch",
    ]


@on_embedded
@pytest.mark.parametrize("code", [403, 429, 503])
def test_s24_a_failure_is_no_refusal(
    faults: Faults, asked: Asked, running: Running, widgets: Collection, code: int
) -> None:
    """The next try is a streaming list again."""
    faults.add(HttpStatus(code), verb="watch", namespace=widgets.namespace, times=1)
    running()
    assert [form(each) for each in asked()] == ["streaming list", "streaming list"]


@on_embedded
def test_s24_the_second_cut_makes_the_next_attempt_a_list(
    faults: Faults, asked: Asked, running: Running, widgets: Collection
) -> None:
    """It is not remembered: the state after that is streamed again."""
    widgets.fill("a", "b")
    add = partial(faults.add, verb="watch", namespace=widgets.namespace)
    add(EndEarly(after_lines=1), times=2)
    add(StreamError(410, after_lines=1), skip=2, times=1)
    found = running()
    assert len(found.lister) == 2
    widgets.fill("c")
    until(lambda: len(asked()) >= 5)
    assert [form(each) for each in asked()[:5]] == [
        "streaming list",
        "streaming list",
        "list",
        "watch",
        "streaming list",
    ]


@on_embedded
def test_s24_deletions_before_the_mark_count(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """What is deleted while the state is streamed is not in it when it is swapped in."""
    widgets.fill("a", "b")
    gone = widgets.api.get(widgets.at("a")).json
    gone["metadata"]["resourceVersion"] = str(int(gone["metadata"]["resourceVersion"]) + 1)
    line = widgets.api.get(widgets.at("a")).body.strip()
    faults.add(
        InjectLine(b'{"type":"DELETED","object":' + line + b"}", after_lines=2),
        verb="watch",
        namespace=widgets.namespace,
        times=1,
    )
    assert running().lister.keys() == [f"{widgets.namespace}/b"]


@pytest.fixture
def old_server() -> Iterator[ApiServer]:
    """A server that knows no streaming lists."""
    with ApiServer(settings=ReadSettings(watch_list=False)) as server:
        yield server


def test_s24_a_server_without_streaming_lists_is_listed(old_server: ApiServer) -> None:
    """The informer syncs and watches as on any other."""
    old_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    with DynamicSharedInformerFactory(old_server.client(), namespace="default") as factory:
        found, heard = factory.for_resource(CONFIG_MAPS), Heard()
        found.informer.add_event_handler(heard)
        factory.sync(PATIENCE)
        old_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})
        heard.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]


# -- S25: the list ---


def test_s25_pages_are_joined(running: Running, widgets: Collection) -> None:
    """A list of many pages is one state, and the watch goes on from its first page."""
    names = [f"w{number:02}" for number in range(11)]
    widgets.fill(*names)
    found, heard = running(watch_list=False, page_size=3), Heard()
    found.informer.add_event_handler(heard)
    assert [key.rpartition("/")[2] for key in found.lister.keys()] == names  # noqa: SIM118 - it iterates over objects
    widgets.fill("later")
    heard.wait("ADDED", "later")
    assert len(heard.told) == 12


@on_embedded
def test_s25_pages_are_asked_for_without_a_version(
    asked: Asked, running: Running, widgets: Collection
) -> None:
    """Each page has the limit, the later ones the token, and the watch page one's version."""
    widgets.fill("a", "b", "c")
    version = widgets.version()
    running(watch_list=False, page_size=2)
    until(lambda: len(asked()) >= 3)
    first, second, watch = asked()[:3]
    assert (first.param("limit"), first.param("continue")) == ("2", None)
    assert second.param("limit") == "2"
    assert second.param("continue")
    assert first.param("resourceVersion") is second.param("resourceVersion") is None
    assert watch.param("resourceVersion") == version


@on_embedded
def test_s25_a_change_between_pages_is_not_lost(
    faults: Faults, server: ApiServer, running: Running, widgets: Collection
) -> None:
    """What was written behind page one comes with the watch."""
    widgets.fill("a", "b", "c")

    def write() -> None:
        server.patch("widgets.ex.io/a", {"spec": {"size": 5}}, widgets.namespace)
        server.delete("widgets.ex.io/c", widgets.namespace)
        server.create(widget("d"), widgets.namespace)

    faults.add(Call("after", write), verb="list", namespace=widgets.namespace, times=1)
    found = running(watch_list=False, page_size=2)
    until(lambda: f"{widgets.namespace}/d" in found.lister)
    assert {o["metadata"]["name"]: o["spec"].get("size") for o in found.lister} == {
        "a": 5,
        "b": None,
        "d": None,
    }


@on_embedded
def test_s25_a_token_that_expired_makes_it_one_list_without_limit(
    faults: Faults, asked: Asked, running: Running, widgets: Collection
) -> None:
    """A compaction behind page one costs one request more, and nothing is missing."""
    widgets.fill("a", "b", "c")
    faults.add(Compact("after"), verb="list", namespace=widgets.namespace, times=1)
    found = running(watch_list=False, page_size=2)
    assert len(found.lister) == 3
    lists = [each for each in asked() if each.verb == "list"]
    assert [(each.param("limit"), bool(each.param("continue"))) for each in lists] == [
        ("2", False),
        ("2", True),
        (None, False),
    ]


@on_embedded
def test_s25_a_watch_too_old_after_pages_lists_without_limit(
    faults: Faults, asked: Asked, running: Running, widgets: Collection
) -> None:
    """Before the first event, 410 means that the list took too long."""
    widgets.fill("a", "b", "c")
    faults.add(StreamError(410), verb="watch", namespace=widgets.namespace, times=1)
    running(watch_list=False, page_size=2)
    until(lambda: len(asked()) >= 5)
    assert [(form(each), each.param("limit")) for each in asked()[:5]] == [
        ("list", "2"),
        ("list", "2"),
        ("watch", None),
        ("list", None),
        ("watch", None),
    ]


@on_embedded
@pytest.mark.parametrize("ending", [Ending.CLEAN, Ending.CLOSE, Ending.RESET])
def test_s25_a_list_that_is_cut_short_is_thrown_away(
    faults: Faults, factories: Factories, widgets: Collection, ending: Ending
) -> None:
    """None of its items is shown, though the framing of HTTP looks complete."""
    widgets.fill("a", "b", "c")
    factory = factories()
    found, heard = factory.for_resource(WIDGETS, watch_list=False), Heard()
    found.informer.add_event_handler(heard)
    cut = Truncate(ending=ending)
    with faults.add(cut, verb="list", namespace=widgets.namespace):
        factory.start()
        until(lambda: found.informer.status().attempts)
        assert (len(found.informer.store), heard.told) == (0, [])
    assert factory.wait_for_cache_sync(PATIENCE)
    assert heard.wait_count(3) == [("ADDED", name) for name in "abc"]


# -- S31: kinds and metadata ---


@pytest.mark.parametrize("watch_list", [True, False])
def test_s31_listed_objects_have_their_kind(
    cluster: Cluster, running: Running, namespace: str, watch_list: bool
) -> None:
    """However they came, objects of built-in resources are the same, key order included."""
    cluster.server.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}},
        namespace,
    )
    found = running(CONFIG_MAPS, watch_list=watch_list)
    obj = found.lister.get("a", namespace)
    assert list(obj) == ["kind", "apiVersion", "metadata", "data"]
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap")
    assert obj == cluster.admin.get(f"/api/v1/namespaces/{namespace}/configmaps/a").json


def test_s31_a_relist_by_another_way_changes_nothing(
    cluster: Cluster, running: Running, namespace: str
) -> None:
    """What was listed and then watched is told once: both look the same."""
    server = cluster.server
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, namespace)
    found, heard = running(CONFIG_MAPS, watch_list=False), Heard()
    found.informer.add_event_handler(heard)
    patched = server.patch("configmaps/a", {"data": {"x": "1"}}, namespace)
    seen(found.informer, patched)
    event = heard.wait("UPDATED", "a")
    assert [change.path for change in event.changes()] == [".data"]


@pytest.mark.parametrize("watch_list", [True, False])
def test_s31_metadata_only_holds_metadata_alone(
    running: Running, widgets: Collection, watch_list: bool
) -> None:
    """Listed and watched objects are PartialObjectMetadata, without spec."""
    widgets.fill("a", size=1)
    found, heard = running(metadata_only=True, watch_list=watch_list), Heard()
    found.informer.add_event_handler(heard)
    widgets.fill("b", size=2)
    heard.wait("ADDED", "b")
    for obj in found.lister:
        assert (obj["kind"], obj["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert "spec" not in obj
        assert obj["metadata"]["uid"]


def test_s24_has_synced_with_objects_that_come_and_go(
    factories: Factories, widgets: Collection
) -> None:
    """Objects deleted around the first sync keep neither informer nor handler from syncing."""
    widgets.fill(*(f"w{number}" for number in range(10)))
    factory = factories()
    found, heard = factory.for_resource(WIDGETS), Heard()
    registration = found.informer.add_event_handler(heard)
    factory.start()
    for number in range(10):
        widgets.api.delete(widgets.at(f"w{number}"))
    assert factory.wait_for_cache_sync(PATIENCE)
    assert registration.wait_for_sync(PATIENCE)
    until(lambda: not found.lister.keys())
