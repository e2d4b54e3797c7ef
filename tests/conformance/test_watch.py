"""Where a watch starts, what its lines are, and how it ends."""

from __future__ import annotations

import time

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.wire import Wire


def test_a_line_is_the_type_and_the_object(widgets: Collection) -> None:
    """The object in an event is written as a GET writes it."""
    version = widgets.version()
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        widgets.fill("a", size=3)
        line = watch.line().decode()
    body = widgets.api.get(widgets.at("a")).text.rstrip("\n")
    assert line == f'{{"type":"ADDED","object":{body}}}'


def test_headers_come_before_any_event(widgets: Collection) -> None:
    """A watch with nothing to say answers at once, chunked."""
    with widgets.api.watch(widgets.path, {"resourceVersion": widgets.version()}) as watch:
        assert watch.status == 200
        assert watch.headers["Content-Type"] == "application/json"
        assert watch.headers["Transfer-Encoding"] == "chunked"
        assert watch.headers["Cache-Control"] == "no-cache, private"


def test_from_a_version_only_what_came_after(widgets: Collection) -> None:
    """An exact start replays every later event in order."""
    start = widgets.fill("a")[0]["metadata"]["resourceVersion"]
    widgets.fill("b")
    widgets.merge("a", {"spec": {"size": 1}})
    widgets.api.delete(widgets.at("b"))
    with widgets.api.watch(widgets.path, {"resourceVersion": start}) as watch:
        assert watch.take(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@pytest.mark.parametrize("params", [{}, {"resourceVersion": "0"}, {"resourceVersion": ""}])
def test_without_a_version_the_state_comes_first(
    widgets: Collection, params: dict[str, str]
) -> None:
    """Unset and 0 begin with every object as ADDED, by name, then go on live."""
    widgets.fill("b", "a")
    widgets.version()
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        widgets.fill("c")
        assert watch.take(1) == [("ADDED", "c")]


def test_a_deleted_event_is_the_last_state_at_the_deletes_version(widgets: Collection) -> None:
    """DELETED shows what was stored, with the resourceVersion of the delete."""
    created = widgets.fill("a", size=4)[0]
    version = created["metadata"]["resourceVersion"]
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        widgets.api.delete(widgets.at("a"))
        gone = watch.event()
    assert gone["type"] == "DELETED"
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(version)
    expected = {**created, "metadata": {**created["metadata"]}}
    expected["metadata"]["resourceVersion"] = gone["object"]["metadata"]["resourceVersion"]
    assert gone["object"] == expected


def test_a_write_that_changes_nothing_is_no_event(widgets: Collection) -> None:
    """A no-op patch keeps the version, and watchers hear nothing of it."""
    created = widgets.fill("a", size=4)[0]
    version = created["metadata"]["resourceVersion"]
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        assert widgets.merge("a", {"spec": {"size": 4}}).version == version
        widgets.fill("b")
        assert watch.take(1) == [("ADDED", "b")]


def test_all_watchers_see_the_same_bytes(widgets: Collection) -> None:
    """An event is one line, the same for everyone."""
    params = {"resourceVersion": widgets.version()}
    with (
        widgets.api.watch(widgets.path, params) as one,
        widgets.api.watch(widgets.path, params) as other,
    ):
        widgets.fill("a")
        assert one.line() == other.line()


def test_a_watch_of_all_namespaces_sees_each(api: Wire, widgets: Collection) -> None:
    """The collection's root watches every namespace."""
    with api.watch("/apis/ex.io/v1/widgets", {"resourceVersion": widgets.version()}) as watch:
        widgets.fill("a")
        event = watch.event()
    assert event["object"]["metadata"]["namespace"] == widgets.namespace


def test_the_limit_is_ignored(widgets: Collection) -> None:
    """A watch sends the whole state whatever the limit."""
    widgets.fill("a", "b")
    widgets.version()
    with widgets.api.watch(widgets.path, {"limit": 1}) as watch:
        assert watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_timeout_ends_the_stream_cleanly(widgets: Collection) -> None:
    """timeoutSeconds=1 is an empty stream that ends after one second."""
    started = time.monotonic()
    params = {"resourceVersion": widgets.version(), "timeoutSeconds": 1}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.rest() == []
    assert time.monotonic() - started > 0.9


def test_a_negative_timeout_ends_at_once(widgets: Collection) -> None:
    """A watch with timeoutSeconds=-1 is over before it began."""
    widgets.fill("a")
    params = {"resourceVersion": widgets.version(), "timeoutSeconds": -1}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.rest() == []


def test_a_connection_serves_on_after_a_watch_ended(widgets: Collection) -> None:
    """The stream ends with its terminating chunk, and the connection is good for more."""
    params = {"resourceVersion": widgets.version(), "timeoutSeconds": -1}
    for _ in range(3):
        with widgets.api.watch(widgets.path, params) as watch:
            assert watch.rest() == []
    assert widgets.api.get(widgets.path).status == 200


def test_a_version_from_the_future_is_silence(widgets: Collection) -> None:
    """Events at or below the asked version are never sent."""
    params = {"resourceVersion": "99999999", "timeoutSeconds": 1}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.status == 200
        widgets.fill("a")
        assert watch.rest() == []


@pytest.mark.parametrize("value", ["", "no", "maybe", "True", "1"])
def test_any_value_of_watch_but_zero_and_false_means_true(widgets: Collection, value: str) -> None:
    """`watch=no` watches."""
    params = {"watch": value, "resourceVersion": widgets.version(), "timeoutSeconds": -1}
    answer = widgets.api.get(widgets.path, params)
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("value", ["0", "false", "False"])
def test_zero_and_false_list(widgets: Collection, value: str) -> None:
    """`watch=false` is a list."""
    assert widgets.api.get(widgets.path, {"watch": value}).json["kind"] == "WidgetList"


def test_the_old_watch_path_watches(widgets: Collection) -> None:
    """`/apis/G/V/watch/...` is a watch without a parameter."""
    path = f"/apis/ex.io/v1/watch/namespaces/{widgets.namespace}/widgets"
    widgets.fill("a")
    widgets.version()
    with widgets.api.watch(path) as watch:
        assert watch.take(1) == [("ADDED", "a")]


def test_watch_on_one_object_is_a_get(widgets: Collection) -> None:
    """`.../NAME?watch=1` answers the object."""
    widgets.fill("a")
    assert widgets.api.get(widgets.at("a"), {"watch": "1"}).json["kind"] == "Widget"


def test_a_bad_version_is_refused_before_the_stream(widgets: Collection) -> None:
    """A watch says 500 without a reason where a list says 400."""
    answer = widgets.api.get(widgets.path, {"watch": "1", "resourceVersion": "abc"})
    assert answer.status == 500
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": (
            'resourceVersion: Invalid value: "abc": '
            'strconv.ParseUint: parsing "abc": invalid syntax'
        ),
        "code": 500,
    }


def test_a_bad_timeout_is_refused(widgets: Collection) -> None:
    """A timeout that is no number is a 400."""
    answer = widgets.api.get(widgets.path, {"watch": "1", "timeoutSeconds": "soon"})
    assert answer.status == 400
    assert answer.json["message"] == 'strconv.ParseInt: parsing "soon": invalid syntax'


def test_a_burst_is_whole_and_in_order(widgets: Collection) -> None:
    """Many objects at once arrive complete and sorted, however they are cut into chunks."""
    names = [f"n{number:03d}" for number in range(60)]
    widgets.fill(*names, note="x" * 300)
    widgets.version()
    with widgets.api.watch(widgets.path) as watch:
        assert watch.take(60) == [("ADDED", name) for name in names]
