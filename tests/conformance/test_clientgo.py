"""client-go's dynamic informer, lister, watch and pager work, streaming lists on and off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.cluster import Cluster, Collection
from tests.conformance.compaction import forget
from tests.conformance.go_program import GoProgram
from tests.conformance.shapes import widget

pytestmark = pytest.mark.timeout(600)  # the first run on a machine compiles client-go

WIDGETS = "widgets.v1.ex.io"
Run = Callable[..., GoProgram]


@pytest.fixture(params=[True, False], ids=["streaming", "listing"])
def watch_list(request: pytest.FixtureRequest) -> bool:
    """client-go's feature WatchListClient."""
    return bool(request.param)


@pytest.fixture
def run(clientgo: Path, cluster: Cluster, tmp_path: Path) -> Run:
    """Start the program against the server."""
    kubeconfig = cluster.server.kubeconfig(tmp_path / "kubeconfig")

    def start(*args: str, watch_list: bool = True) -> GoProgram:
        return GoProgram(clientgo, kubeconfig, *args, watch_list=watch_list)

    return start


def test_an_informer_sees_the_state_then_what_follows(
    run: Run, widgets: Collection, watch_list: bool
) -> None:
    """Adds, updates and deletes arrive in order after the sync."""
    widgets.fill("a", "b")
    with run("inform", WIDGETS, widgets.namespace, watch_list=watch_list) as program:
        assert sorted(program.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        assert program.report()["type"] == "SYNCED"
        widgets.fill("c")
        widgets.merge("a", {"spec": {"size": 2}})
        widgets.api.delete(widgets.at("b"))
        assert program.take(3) == [("ADDED", "c"), ("UPDATED", "a"), ("DELETED", "b")]


def test_an_informer_asks_as_it_is_told_to(run: Run, widgets: Collection, watch_list: bool) -> None:
    """With WatchListClient the state is streamed, without it is listed."""
    widgets.fill("a")
    with run("inform", WIDGETS, widgets.namespace, watch_list=watch_list) as program:
        assert program.take(2) == [("ADDED", "a"), ("SYNCED", "")]
        program.until_asked_to_watch()
        streamed = program.asked(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        listed = [request for request in program.requests if "watch" not in request["query"]]
        assert (len(streamed), len(listed)) == ((1, 0) if watch_list else (0, 1))


def test_a_lister_reads_what_the_informer_holds(
    run: Run, widgets: Collection, watch_list: bool
) -> None:
    """Listing by label from the cache gives what the server holds."""
    widgets.fill("a", labels={"x": "y"})
    widgets.fill("b")
    with run("inform", WIDGETS, widgets.namespace, watch_list=watch_list) as program:
        assert program.take(3)[-1] == ("SYNCED", "")
        program.say("")
        assert program.report() == {"type": "LISTED", "names": ["a", "b"]}
        program.say("x=y")
        assert program.report() == {"type": "LISTED", "names": ["a"]}


def row(group: str, name: str) -> dict[str, object]:
    """A Row."""
    return {"apiVersion": f"{group}/v1", "kind": "Row", "metadata": {"name": name}}


def test_an_informer_recovers_when_its_version_is_gone(
    run: Run, cluster: Cluster, widgets: Collection, watch_list: bool
) -> None:
    """Cut off, and told 410 when it comes back, it starts over and misses nothing."""
    widgets.fill("a", "b")
    with run("inform", WIDGETS, widgets.namespace, watch_list=watch_list) as program:
        assert program.take(3)[-1] == ("SYNCED", "")
        program.until_asked_to_watch()
        before = len(program.requests)
        cluster.server.compact()
        cluster.server.restart()
        widgets.create(widget("c"))
        widgets.api.delete(widgets.at("a"))
        program.until_asked_again(before, streaming=watch_list)
        assert sorted(program.take(2)) == [("ADDED", "c"), ("DELETED", "a")]
        program.say("")
        assert program.report() == {"type": "LISTED", "names": ["b", "c"]}


def test_a_watch_gets_events_and_bookmarks(run: Run, widgets: Collection) -> None:
    """A watch of six seconds has its events, then bookmarks, then its end.

    A real server plans its only bookmark for two seconds before the end, and
    leaves it out unless the watch has had a live event by then.
    """
    version = widgets.version()
    with run("watch", WIDGETS, widgets.namespace, version) as program:
        widgets.fill("a")
        first = program.report()
        created = widgets.fill("live")[0]
        second = program.report()
        bookmarks = []
        while (report := program.report())["type"] != "END":
            bookmarks.append(report)
    assert [(each["type"], each["name"]) for each in (first, second)] == [
        ("ADDED", "a"),
        ("ADDED", "live"),
    ]
    assert {report["type"] for report in bookmarks} == {"BOOKMARK"}
    assert int(bookmarks[-1]["version"]) >= int(created["metadata"]["resourceVersion"])


def test_a_watch_from_a_forgotten_version_is_an_error_event(
    run: Run, cluster: Cluster, rows: Collection, group: str
) -> None:
    """The 410 is an event of the stream, and the stream ends."""
    version = rows.version()
    rows.api.patch(rows.at("a"), {"spec": {"x": 1}})
    forget(cluster, rows)
    with run("watch", f"rows.v1.{group}", rows.namespace, version) as program:
        assert program.report() == {"type": "ERROR", "code": 410, "reason": "Expired"}
        assert program.report() == {"type": "END"}


def test_a_pager_follows_the_tokens(run: Run, widgets: Collection) -> None:
    """Pages of two, all of one version, are together the list."""
    widgets.fill("a", "b", "c", "d", "e")
    with run("page", WIDGETS, widgets.namespace, "2") as program:
        pages = []
        for _ in range(3):
            pages.append(program.report())
            program.say("on")
        assert [page["names"] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
        assert [page["remaining"] for page in pages] == [3, 1, None]
        assert len({page["version"] for page in pages}) == 1
        assert program.report() == {"type": "LISTED", "names": ["a", "b", "c", "d", "e"]}


def test_a_pager_starts_over_when_its_token_expires(
    run: Run, cluster: Cluster, rows: Collection, group: str
) -> None:
    """A 410 between two pages makes it list everything at once."""
    with run("page", f"rows.v1.{group}", rows.namespace, "1") as program:
        assert program.report()["names"] == ["a"]
        rows.create(row(group, "d"))
        forget(cluster, rows)
        program.say("on")
        refused = program.report()
        assert refused["type"] == "REFUSED"
        assert "continue parameter is too old" in refused["message"]
        assert program.report()["names"] == ["a", "b", "c", "d"]
        program.say("on")
        assert program.report() == {"type": "LISTED", "names": ["a", "b", "c", "d"]}
