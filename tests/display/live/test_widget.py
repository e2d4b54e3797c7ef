"""A table of which only the rows that are seen cross to the browser."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest

from dyninformer import SharedIndexInformer
from dyninformer.testing import ApiServer
from tests.config_maps import write

pytest.importorskip("anywidget")

from dyninformer.display.live import widget as live
from dyninformer.display.live.widget import LiveWidget

PATIENCE = 20.0
Answer = dict[str, Any]


class Tab:
    """A browser's tab: what it asks a widget for, and what it is told."""

    def __init__(self, widget: LiveWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.answers: queue.Queue[Answer] = queue.Queue()
        self.id = 0
        self.version = 0
        painter = widget._painter
        monkeypatch.setattr(painter, "_send", self.answers.put)

    def ask(self, view: str = "v", **asked: Any) -> int:
        """Ask for rows; the number of the question."""
        self.id += 1
        given = {"sort": None, "descending": False, "filter": "", "start": 0, "count": 10}
        message = {**given, **asked, "view": view, "id": self.id, "seen": self.version}
        self.widget._take(self.widget, message, [])
        return self.id

    def until(self, condition: Callable[[Answer], bool]) -> Answer:
        """The next answer of which this is true."""
        while True:
            answer = self.answers.get(timeout=PATIENCE)
            self.version = answer["version"]
            if condition(answer):
                return answer

    def answered(self, **asked: Any) -> Answer:
        """Ask, and wait for the answer."""
        number = self.ask(**asked)
        return self.until(lambda answer: answer["id"] == number)


@pytest.fixture
def tab(
    server: ApiServer, synced: SharedIndexInformer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tab]:
    """A tab with a widget of twenty config maps."""
    for number in range(20):
        last = write(server, f"m{number}", n=str(number * 7 % 20))
    synced.wait_for_version(last, PATIENCE)
    made = Tab(synced.live_widget({"n": ".data.n"}), monkeypatch)
    yield made
    made.widget.close()


def names(answer: Answer) -> list[str]:
    """The names in the rows."""
    return [cells[1] for cells, _, _ in answer["rows"]]


def threads() -> list[threading.Thread]:
    """Those that are behind live views."""
    return [each for each in threading.enumerate() if each.name.startswith("dyninformer live")]


def test_only_the_rows_that_are_asked_for_come(tab: Tab) -> None:
    """With how many there are."""
    answer = tab.answered(start=5, count=3)
    assert names(answer) == ["m5", "m6", "m7"]
    assert (answer["total"], answer["objects"], answer["start"]) == (20, 20, 5)
    assert answer["headings"] == ["namespace", "name", "n"]


def test_the_kernel_sorts_and_filters(tab: Tab) -> None:
    """By numbers as numbers, whatever their type."""
    assert names(tab.answered(sort=2, descending=True, count=2)) == ["m17", "m14"]
    answer = tab.answered(filter="M1 ")
    assert answer["total"] == 11
    assert all(name.startswith("m1") for name in names(answer))


def test_what_changes_in_what_is_seen_is_pushed(tab: Tab, server: ApiServer) -> None:
    """With the number of the question that it answers; what is not seen is not."""
    asked = tab.answered(count=2)["id"]
    server.patch("configmaps/m19", {"data": {"n": "unseen"}}, "default")
    server.patch("configmaps/m1", {"data": {"n": "seen"}}, "default")
    pushed = tab.until(lambda answer: answer["pushed"])
    assert pushed["id"] == asked
    assert ["default", "m1", "seen"] in [cells for cells, _, _ in pushed["rows"]]
    assert [changed for _, _, changed in pushed["rows"]] == [[], [2]]


def test_a_tab_that_does_not_answer_is_pushed_to_slowly(
    tab: Tab, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that was closed, or a kernel that is busy: what piles up is bounded."""
    monkeypatch.setattr(live, "_SLOWLY_SECONDS", 3600.0)
    tab.answered(count=2)
    for number in range(8):
        server.patch("configmaps/m1", {"data": {"n": f"x{number}"}}, "default")
        tab.widget._view.look()
        if number < 2:
            tab.until(lambda answer: answer["pushed"])
    tab.ask(view="other")  # whose answer comes after all that is pushed
    pushed = 0
    while (answer := tab.answers.get(timeout=PATIENCE))["view"] != "other":
        pushed += answer["pushed"]
    assert pushed <= 3


def test_two_views_of_one_widget_have_each_their_own_rows(tab: Tab) -> None:
    """A notebook may show it twice."""
    tab.ask(view="one", start=0, count=1)
    tab.ask(view="two", start=9, count=1)
    found: dict[str, list[str]] = {}
    while len(found) < 2:
        answer = tab.answers.get(timeout=PATIENCE)
        found[answer["view"]] = names(answer)
    assert found == {"one": ["m0"], "two": ["m9"]}


def test_nothing_runs_while_no_browser_shows_it(tab: Tab) -> None:
    """It begins again when one asks."""
    assert threads() == []
    tab.answered()
    assert len(threads()) == 1
    tab.widget._take(tab.widget, {"view": "v", "leave": True}, [])
    for thread in threads():
        thread.join(PATIENCE)
    assert not tab.widget.running
    assert names(tab.answered(count=1)) == ["m0"]


def test_a_tab_that_is_silent_for_long_is_forgotten(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was closed without a word, as tabs are."""
    tab.answered()
    monkeypatch.setattr(live, "_SILENT_SECONDS", 0.0)
    tab.widget._view.look()
    for thread in threads():
        thread.join(PATIENCE)
    assert not tab.widget.running


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"view": 3},
        {"view": "v", "start": -5, "count": 10**30, "sort": 99, "filter": 7, "id": "x"},
        {"view": "v", "count": True, "seen": None, "sort": "name", "start": 1e9},
    ],
)
def test_a_message_that_makes_no_sense_does_no_harm(tab: Tab, message: object) -> None:
    """What is not said counts as nothing."""
    tab.widget._take(tab.widget, message, [])
    tab.id = 100
    assert names(tab.answered(count=1)) == ["m0"]


def test_where_there_are_no_widgets_the_first_rows_are_html(tab: Tab) -> None:
    """A notebook that is read without its kernel still shows something."""
    data, _ = tab.widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"].count("<tr") == 1 + 15
    assert "20 objects" in data["text/plain"]
    assert threads() == []


def test_it_ends_with_its_informer(tab: Tab, synced: SharedIndexInformer) -> None:
    """And says so to who looks."""
    tab.answered()
    synced.stop(5)
    assert "ended" in tab.until(lambda answer: not answer["good"])["standing"]
    for thread in threads():
        thread.join(PATIENCE)
    assert names(tab.answered(start=18, count=1)) == ["m18"]  # it can still be scrolled


def test_what_is_looked_at_only_after_the_end_is_the_last_state(
    tab: Tab, synced: SharedIndexInformer
) -> None:
    """A notebook whose last cell closes everything is run as a whole."""
    synced.stop(5)
    answer = tab.answered(count=1)
    assert names(answer) == ["m0"]
    assert "ended" in answer["standing"]


def test_a_column_that_is_not_there_is_said_in_the_cell(
    tab: Tab, synced: SharedIndexInformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many objects there are: a browser would wait for rows in vain."""
    for few in (2000, 5):
        monkeypatch.setattr(live, "_STILL", few)
        with pytest.raises(ValueError, match="which is no column: there are namespace, name, Age"):
            synced.live_widget(sort_by="nope")._repr_mimebundle_()
    assert tab.widget._repr_mimebundle_()  # what is right is shown


def test_what_was_stopped_can_be_shown_once_more(tab: Tab) -> None:
    """By another cell: a browser that asks gets the last rows."""
    tab.answered(count=2)
    tab.widget.stop()
    data, _ = tab.widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert names(tab.answered(view="w", count=2)) == ["m0", "m1"]


def test_the_module_is_small_and_takes_texts_for_nothing_else() -> None:
    """No bundler, no CDN, and no way from a text to markup."""
    source = files("dyninformer.display.live").joinpath("widget.js").read_text("utf-8")
    assert len(source) < 20_000
    for way in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "import "):
        assert way not in source
    assert "http" not in source


def test_without_anywidget_the_extra_is_named(
    synced: SharedIndexInformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    monkeypatch.delitem(__import__("sys").modules, "dyninformer.display.live.widget")
    with pytest.raises(ImportError, match=r"pip install 'dyninformer\[widget\]'"):
        synced.live_widget()
