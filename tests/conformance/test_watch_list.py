"""Streaming lists: the state as events, then the mark that it is complete."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.wire import Wire

STREAMING = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}
MARK = "k8s.io/initial-events-end"


def _marked(event: dict[str, Any]) -> bool:
    annotations = event["object"]["metadata"].get("annotations", {})
    return bool(event["type"] == "BOOKMARK" and annotations == {MARK: "true"})


@pytest.mark.parametrize("version", [None, "", "0", "old"])
def test_the_state_comes_first_then_the_mark_then_what_follows(
    widgets: Collection, version: str | None
) -> None:
    """From any version that exists, a streaming list is the whole state."""
    old = widgets.fill("b")[0]["metadata"]["resourceVersion"]
    widgets.fill("a")
    widgets.version()
    params = dict(STREAMING)
    if version is not None:
        params["resourceVersion"] = old if version == "old" else version
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        assert _marked(watch.event())
        widgets.fill("c")
        assert watch.take(1) == [("ADDED", "c")]


def test_the_mark_is_a_bookmark_with_one_annotation(widgets: Collection) -> None:
    """These are the bytes of the mark."""
    with widgets.api.watch(widgets.path, STREAMING) as watch:
        line = watch.line().decode()
    version = line.split('"resourceVersion":"')[1].split('"')[0]
    assert line == (
        '{"type":"BOOKMARK","object":{"apiVersion":"ex.io/v1","kind":"Widget","metadata":'
        '{"annotations":{"k8s.io/initial-events-end":"true"},'
        f'"resourceVersion":"{version}"}}}}}}'
    )


def test_the_mark_of_a_built_in_has_an_empty_spec_and_status(api: Wire, namespace: str) -> None:
    """A built-in's mark is an empty object of its type, in struct order."""
    selector = {"labelSelector": f"kubernetes.io/metadata.name={namespace}"}
    with api.watch("/api/v1/namespaces", {**STREAMING, **selector}) as watch:
        first = watch.event()
        line = watch.line().decode()
    version = line.split('"resourceVersion":"')[1].split('"')[0]
    assert (first["object"]["kind"], first["object"]["apiVersion"]) == ("Namespace", "v1")
    assert line == (
        '{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":'
        f'{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}},'
        '"spec":{},"status":{}}}'
    )


def test_the_marks_version_is_what_a_list_would_say(widgets: Collection) -> None:
    """A watch from the mark's version goes on without a gap."""
    widgets.fill("a")
    before = int(widgets.version())
    with widgets.api.watch(widgets.path, STREAMING) as watch:
        watch.take(1)
        version = watch.event()["object"]["metadata"]["resourceVersion"]
    assert before <= int(version) <= int(widgets.version())
    widgets.fill("b")
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        assert watch.take(1) == [("ADDED", "b")]


def test_only_what_matches_comes_before_the_mark(widgets: Collection) -> None:
    """A selector applies to the state as to what follows."""
    widgets.fill("a", labels={"x": "y"})
    widgets.fill("b")
    with widgets.api.watch(widgets.path, {**STREAMING, "labelSelector": "x=y"}) as watch:
        assert watch.take(1) == [("ADDED", "a")]
        assert _marked(watch.event())


def test_without_bookmarks_there_is_no_mark(widgets: Collection) -> None:
    """The initial state comes, its end is not told."""
    widgets.fill("a")
    params = {**STREAMING, "allowWatchBookmarks": "false"}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.take(1) == [("ADDED", "a")]
        widgets.fill("b")
        assert watch.take(1) == [("ADDED", "b")]


def test_a_plain_watch_with_bookmarks_gets_the_mark_too(widgets: Collection) -> None:
    """From the beginning and with bookmarks, every watch is a streaming list in disguise."""
    widgets.fill("a")
    widgets.version()
    with widgets.api.watch(widgets.path, {"allowWatchBookmarks": "true"}) as watch:
        assert watch.take(1) == [("ADDED", "a")]
        assert _marked(watch.event())


def test_no_initial_events_means_live_from_now(widgets: Collection) -> None:
    """sendInitialEvents=false without a version skips the state."""
    widgets.fill("a")
    widgets.version()
    params = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    with widgets.api.watch(widgets.path, params) as watch:
        widgets.fill("b")
        assert watch.take(1) == [("ADDED", "b")]


def test_any_value_of_send_initial_events_but_false_is_true(widgets: Collection) -> None:
    """`sendInitialEvents=abc` is a streaming list."""
    widgets.fill("a")
    with widgets.api.watch(widgets.path, {**STREAMING, "sendInitialEvents": "abc"}) as watch:
        assert watch.take(1) == [("ADDED", "a")]
        assert _marked(watch.event())


_REQUIRES = (
    "resourceVersionMatch: Forbidden: "
    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
)
_UNSUPPORTED = 'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"'
_UNLESS = (
    "resourceVersionMatch: Forbidden: "
    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sendInitialEvents": "true"}, _REQUIRES),
        ({"sendInitialEvents": "false"}, _REQUIRES),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            f"[{_REQUIRES}, {_UNSUPPORTED}]",
        ),
        ({"resourceVersionMatch": "NotOlderThan"}, _UNLESS),
        ({"resourceVersionMatch": "Exact"}, f"[{_UNLESS}, {_UNSUPPORTED}]"),
        (
            {"continue": "abc"},
            (
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when "
                "continue is provided"
            ),
        ),
    ],
    ids=["no match", "no match, false", "exact", "match alone", "exact alone", "continue"],
)
def test_options_that_do_not_go_together_are_refused_before_the_stream(
    widgets: Collection, params: dict[str, str], message: str
) -> None:
    """The answer is a 422 about ListOptions."""
    answer = widgets.api.get(widgets.path, {"watch": "1", **params})
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert answer.json["message"] == f'ListOptions.meta.k8s.io "" is invalid: {message}'


def test_a_version_from_the_future_is_told_in_the_stream(widgets: Collection) -> None:
    """After three seconds one ERROR line with the 504 Status, and a clean end."""
    params = {**STREAMING, "resourceVersion": "99999999"}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.status == 200
        (event,) = watch.rest()
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
    assert event["object"]["message"].startswith(
        "Timeout: Too large resource version: 99999999, current: "
    )


def test_a_state_larger_than_a_chunk_is_complete_at_the_mark(widgets: Collection) -> None:
    """Every object stands before the mark, once."""
    names = [f"n{number:03d}" for number in range(50)]
    widgets.fill(*names, note="y" * 200)
    with widgets.api.watch(widgets.path, STREAMING) as watch:
        assert watch.take(50) == [("ADDED", name) for name in names]
        assert _marked(watch.event())
