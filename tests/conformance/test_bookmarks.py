"""Bookmarks: lines that carry nothing but a version."""

from __future__ import annotations

from tests.conformance.cluster import Collection


def _short(widgets: Collection, **params: object) -> dict[str, object]:
    """A watch of five seconds; a real server plans its bookmark for the third."""
    return {
        "allowWatchBookmarks": "true",
        "timeoutSeconds": 5,
        "resourceVersion": widgets.version(),
        **params,
    }


def test_two_bookmarks_come_near_the_end(widgets: Collection) -> None:
    """A watch that ends soon has bookmarks before its end, at or past its last event."""
    with widgets.api.watch(widgets.path, _short(widgets)) as watch:
        created = widgets.fill("a")[0]
        events = watch.rest()
    assert events[0]["type"] == "ADDED"
    bookmarks = events[1:]
    assert len(bookmarks) in {1, 2}
    for bookmark in bookmarks:
        version = bookmark["object"]["metadata"]["resourceVersion"]
        assert int(version) >= int(created["metadata"]["resourceVersion"])


def test_a_bookmark_is_its_kind_and_version(widgets: Collection) -> None:
    """The object of a bookmark has no name, no namespace, no spec."""
    with widgets.api.watch(widgets.path, _short(widgets)) as watch:
        widgets.fill("a")
        assert watch.take(1) == [("ADDED", "a")]
        line = watch.line().decode()
    version = line.split('"resourceVersion":"')[1].split('"')[0]
    assert line == (
        '{"type":"BOOKMARK","object":{"apiVersion":"ex.io/v1","kind":"Widget",'
        f'"metadata":{{"resourceVersion":"{version}"}}}}}}'
    )


def test_a_selected_watch_has_bookmarks_without_events(widgets: Collection) -> None:
    """Writes that do not match move the version of the bookmarks."""
    with widgets.api.watch(widgets.path, _short(widgets, labelSelector="x=never")) as watch:
        created = widgets.fill("a")[0]
        events = watch.rest()
    assert {event["type"] for event in events} == {"BOOKMARK"}
    last = events[-1]["object"]["metadata"]["resourceVersion"]
    assert int(last) >= int(created["metadata"]["resourceVersion"])


def test_nobody_gets_bookmarks_unasked(widgets: Collection) -> None:
    """Without allowWatchBookmarks a stream has events alone."""
    with widgets.api.watch(widgets.path, _short(widgets, allowWatchBookmarks="false")) as watch:
        widgets.fill("a")
        assert [event["type"] for event in watch.rest()] == ["ADDED"]


def test_a_watch_can_resume_at_a_bookmark(widgets: Collection) -> None:
    """Nothing is lost or repeated from a bookmark's version on."""
    with widgets.api.watch(widgets.path, _short(widgets)) as watch:
        widgets.fill("a")
        version = watch.rest()[-1]["object"]["metadata"]["resourceVersion"]
    widgets.fill("b")
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        assert watch.take(1) == [("ADDED", "b")]
