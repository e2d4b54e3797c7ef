"""A table that follows the cluster in its place."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from dyninformer import SharedIndexInformer
from dyninformer.display.live import table as live
from dyninformer.display.live.source import Source
from dyninformer.display.live.table import LiveTable
from dyninformer.display.live.view import PAUSE_SECONDS
from dyninformer.errors import JSONPathError, JSONPathWarning, SelectorError
from dyninformer.testing import ApiServer
from tests.config_maps import write
from tests.display.live.screens import FakeScreen

DATA = {"n": ".data.n"}


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> FakeScreen:
    """What a notebook would show."""
    made = FakeScreen()
    monkeypatch.setattr(live, "screen_here", lambda: made)
    return made


def has(*texts: str) -> Callable[[str], bool]:
    """Whether a picture has them all."""
    return lambda text: all(each in text for each in texts)


def threads() -> list[threading.Thread]:
    """Those that are behind live views."""
    return [each for each in threading.enumerate() if each.name.startswith("dyninformer live")]


def shown(table: LiveTable) -> None:
    """Do what IPython does with the value of a cell."""
    table._ipython_display_()


def test_outside_of_a_notebook_it_is_the_table_of_the_moment(
    server: ApiServer, synced: SharedIndexInformer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looked at again it is another one, and nothing runs behind it."""
    table = synced.live(DATA)
    assert "there is nothing to show" in str(table)
    synced.wait_for_version(write(server, "a", n="1"), 20)
    shown(table)
    assert "default     a      1" in capsys.readouterr().out
    assert not table.running
    assert threads() == []


def test_what_changes_comes_to_the_screen_and_its_marks_go_by_themselves(
    server: ApiServer,
    synced: SharedIndexInformer,
    screen: FakeScreen,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when nothing else happens: the thread knows when a mark ends."""
    monkeypatch.setattr("dyninformer.display.live.rows.MARKED_SECONDS", 0.3)
    synced.wait_for_version(write(server, "a", n="1"), 20)
    table = synced.live(DATA)
    shown(table)
    screen.until(has("1 object", "live"))
    server.patch("configmaps/a", {"data": {"n": "2"}}, "default")
    assert "rgba(255" in screen.until(has("a      2"))["text/html"]
    assert "rgba(255" not in screen.until(has("a      2"))["text/html"]
    server.delete("configmaps/a", "default")
    assert "line-through" in screen.until(has("0 objects"))["text/html"]
    assert "line-through" not in screen.until(has("nothing to show"))["text/html"]
    table.stop()


def test_a_storm_of_changes_is_few_pictures(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """At most five a second, and the last of them has the last state."""
    write(server, "a", n="0")
    table = synced.live(DATA)
    shown(table)
    screen.until(has("a      0"))
    began = time.monotonic()
    for number in range(1, 300):
        server.patch("configmaps/a", {"data": {"n": str(number)}}, "default")
    pictures = 1
    while "a      299" not in screen.until(lambda _: True)["text/plain"]:
        pictures += 1
    assert pictures <= (time.monotonic() - began) / PAUSE_SECONDS + 1
    table.stop()


def test_only_what_the_selectors_choose_is_there(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """What comes to fit is new, and what does not fit any more is struck out."""
    write(server, "a", n="1")
    synced.wait_for_version(write(server, "b", n="2"), 20)
    table = synced.live(DATA, field_selector="data.n=1", sort_by="-n")
    shown(table)
    assert "b " not in screen.until(has("1 object"))["text/plain"]
    server.patch("configmaps/b", {"data": {"n": "1"}}, "default")
    screen.until(has("2 objects"))
    server.patch("configmaps/a", {"data": {"n": "3"}}, "default")
    assert "line-through" in screen.until(has("1 object,"))["text/html"]
    table.stop()


def test_columns_that_differ_in_case_alone_can_each_be_sorted_by(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """The case may be another where only one column is meant."""
    write(server, "a", n="1", m="2")
    synced.wait_for_version(write(server, "b", n="2", m="1"), 20)
    columns = {"n": ".data.n", "N": ".data.m", "O": ".data.n"}
    firsts = {
        sort_by: str(synced.live(columns, sort_by=sort_by)).split("\n")[2].split()[1]
        for sort_by in ("n", "N", "-n", "-N", "o", "-o")
    }
    assert firsts == {"n": "a", "N": "b", "-n": "b", "-N": "a", "o": "a", "-o": "b"}


def test_with_by_it_counts(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """The largest group first."""
    for name, n in ("a", "x"), ("b", "y"):
        write(server, name, n=n)
    synced.wait_for_version(write(server, "c", n="y"), 20)
    table = synced.live(by=".data.n")
    shown(table)
    text = screen.until(has("2 groups"))["text/plain"]
    assert [line.split() for line in text.splitlines()[2:]] == [["y", "2"], ["x", "1"]]
    server.delete("configmaps/c", "default")
    screen.until(has("y        1"))
    table.stop()


def test_each_path_of_by_has_a_column_in_the_order_in_which_they_are_given(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """Two that would have one heading are there in full."""
    synced.wait_for_version(write(server, "a", n="x"), 20)
    lines = str(synced.live(by=[".spec.n", ".status.n"])).splitlines()
    assert [line.split() for line in lines[1:]] == [
        [".SPEC.N", ".STATUS.N", "COUNT"],
        ["<none>", "<none>", "1"],
    ]
    lines = str(synced.live(by=[".data.n", ".metadata.name"])).splitlines()
    assert [line.split() for line in lines[1:]] == [["DATA.N", "NAME", "COUNT"], ["x", "a", "1"]]


def test_a_template_stands_above_its_values_as_it_is_written(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """A path is said in short; of several parts each would need its braces."""
    synced.wait_for_version(write(server, "a", n="1", m="2"), 20)
    text = str(synced.live(by="{.data.n}/{.data.m}"))
    assert text.split("\n")[1:] == ["{.DATA.N}/{.DATA.M}   COUNT", "1/2                   1"]


def test_it_says_that_the_server_is_away_and_that_it_is_back(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """Although no object changes."""
    table = synced.live(DATA)
    shown(table)
    screen.until(has("live"))
    server.stop()
    try:
        screen.until(has("the server is away: as of"))
    finally:
        server.start()
    screen.until(has("live"))
    table.stop()


def test_stop_leaves_the_last_picture_which_says_so(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """No thread is left, and a stopped table does not begin again."""
    table = synced.live(DATA)
    shown(table)
    table.stop()
    screen.until(has("stopped"))
    assert not table.running
    assert threads() == []
    shown(table)
    assert not table.running


def test_it_ends_with_its_informer_and_has_the_last_state(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """Also what came between the last picture and the end."""
    table = synced.live(DATA)
    shown(table)
    screen.until(has("live"))
    synced.wait_for_version(write(server, "a", n="1"), 20)
    synced.stop(5)
    screen.until(has("ended", "a      1"))
    for thread in threads():
        thread.join(20)
    assert not table.running


def test_a_table_of_the_same_name_takes_the_place_of_the_one_before(
    synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """A cell that is run again, where nothing else tells."""
    first = synced.live(DATA, name="maps")
    shown(first)
    second = synced.live(name="maps")
    shown(second)
    assert (first.running, second.running) == (False, True)
    third = synced.live(name="others")
    shown(third)
    assert second.running
    second.stop()
    third.stop()


def test_the_same_call_takes_its_own_place_where_no_kernel_tells_of_cells(
    synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """Another one does not."""
    first, other = synced.live(DATA), synced.live(by=".data.n")
    shown(first)
    shown(other)
    again = synced.live(DATA)
    assert (first.running, other.running) == (False, True)
    other.stop()
    again.stop()


def test_nobody_looks_any_more(
    server: ApiServer, synced: SharedIndexInformer, screen: FakeScreen
) -> None:
    """Where a screen can tell, the thread ends."""
    table = synced.live(DATA)
    shown(table)
    screen.until(has("live"))
    screen.looked_at = False
    write(server, "a", n="1")
    for thread in threads():
        thread.join(20)
    assert not table.running


def test_a_table_that_has_ended_holds_no_informer(
    informer: SharedIndexInformer, screen: FakeScreen
) -> None:
    """A notebook keeps what its cells returned; that must not keep caches."""
    informer.start()
    assert informer.wait_synced(20)
    table = informer.live(DATA)
    shown(table)
    table.stop()
    held = [each for each in gc.get_referrers(informer) if isinstance(each, Source)]
    assert held == []


@pytest.mark.parametrize("kind", ["live", "live_plot"])
def test_to_print_a_view_that_still_reads_does_not_end_it(
    server: ApiServer,
    synced: SharedIndexInformer,
    screen: FakeScreen,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """As it does for long, of many objects: what is printed is the table of the moment."""
    if kind == "live_plot":
        plot = pytest.importorskip("dyninformer.display.live.plot")
        monkeypatch.setattr(plot, "screen_here", lambda: screen)
        monkeypatch.setattr(plot, "_BETWEEN_SECONDS", 0.0)
    monkeypatch.setattr("dyninformer.display.live.view._FIRST_SECONDS", 0.0)
    synced.wait_for_version(write(server, "a", n="1"), 20)
    printed, everything = threading.Event(), Source.all

    def slow(source: Source) -> object:
        found = everything(source)
        if threading.current_thread().name.startswith("dyninformer live"):
            assert printed.wait(20)
        return found

    monkeypatch.setattr(Source, "all", slow)
    view: Any = synced.live(DATA) if kind == "live" else synced.live_plot(".data.n")
    shown(view)
    assert "1 object, live" in str(view)
    printed.set()
    write(server, "b", n="1")
    screen.until(has("2 objects, live"))
    assert view.running
    view.stop()


def test_a_view_that_fails_says_so_in_its_cell_and_ends(
    synced: SharedIndexInformer,
    screen: FakeScreen,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A column that is not there is known only when the columns are. It is logged as well."""
    monkeypatch.setattr("dyninformer.display.live.view._FIRST_SECONDS", 20)
    table = synced.live(DATA, sort_by="nope")
    with pytest.raises(ValueError, match="which is no column: there are namespace, name, n"):
        shown(table)
    for thread in threads():
        thread.join(20)
    assert not table.running
    assert screen.pictures.empty()
    assert "which is no column: there are" in caplog.text


def test_a_view_that_has_failed_says_no_more_that_it_reads(
    synced: SharedIndexInformer, screen: FakeScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPython shows its repr below the error."""
    monkeypatch.setattr("dyninformer.display.live.view._FIRST_SECONDS", 20)
    table = synced.live(DATA, sort_by="nope")
    with pytest.raises(ValueError, match="which is no column"):
        shown(table)
    assert str(table) == f"{synced.gvr}: stopped"
    assert screen.pictures.empty()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"columns": {"n": "{.data"}}, JSONPathError),
        ({"selector": "a=="}, None),
        ({"selector": "!!"}, SelectorError),
        ({"by": "{.x"}, JSONPathError),
        ({"by": []}, ValueError),
        ({"rows": 0}, ValueError),
        ({"rows": "many"}, TypeError),
        ({"sort_by": 3}, TypeError),
        ({"name": ""}, ValueError),
        ({"columns": [".data.n"]}, TypeError),
    ],
)
def test_what_is_wrong_is_refused_at_once(
    synced: SharedIndexInformer, wrong: dict[str, object], error: type[Exception] | None
) -> None:
    """And not by a thread that nobody looks at."""
    if error is None:
        synced.live(**wrong)  # type: ignore[arg-type]
    else:
        with pytest.raises(error):
            synced.live(**wrong)  # type: ignore[arg-type]


def test_a_path_that_no_object_can_have_warns(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """When the view is made, on the caller's thread."""
    synced.wait_for_version(write(server, "a", n="1"), 20)
    with pytest.warns(JSONPathWarning, match="did you mean .metadata.name?"):
        synced.live({"n": ".metadata.nmae"})
    with pytest.warns(JSONPathWarning, match="did you mean .metadata.uid?"):
        synced.live(by=".metadata.uidd")
