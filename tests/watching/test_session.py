"""Carrying out what the protocol wants, with bytes and without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from dyninformer.store import memory
from dyninformer.store.decide import Deltas
from dyninformer.store.memory import FREED
from dyninformer.store.store import Store
from dyninformer.testing import ManualClock
from dyninformer.watching import protocol
from dyninformer.watching.reflector import SteadyClock
from dyninformer.watching.session import Session
from dyninformer.watching.states import Begin, Due, ListPage, Scope, WatchFrom
from dyninformer.watching.status import InformerState
from tests.watching.readings import WIDGETS, bookmark, line, obj

JSON = {"Content-Type": "application/json"}


class Watched:
    """A session, and how it says that it stands whenever its store changes."""

    def __init__(self) -> None:
        self.store = Store(WIDGETS, on_changes=self.note)
        self.session = Session(
            Scope(gvr=WIDGETS), self.store, clock=SteadyClock(), random=Random(1)
        )
        self.noted: list[tuple[int, bool, InformerState, str, str]] = []
        self.session.tell(Begin())
        assert self.session.accepts(200, JSON)

    def note(self, changes: Deltas) -> None:
        """The store has changed, and nobody has been told yet."""
        self.noted.append((len(changes), *self.says()))

    def says(self) -> tuple[bool, InformerState, str, str]:
        """What any thread can see."""
        status = self.session.status()
        newest = protocol.newest(self.session.state)
        return status.synced, status.state, status.resource_version, newest


@pytest.fixture
def watched() -> Watched:
    """One whose streaming list is open, with an object in it."""
    made = Watched()
    made.session.feed(line("ADDED", obj("a", "10")))
    return made


def test_s07_nobody_sees_the_first_state_before_the_store_has_it(watched: Watched) -> None:
    """Neither that it is synced, nor its version."""
    before = watched.says()
    assert (before[0], before[2]) == (False, "")
    watched.session.feed(bookmark("11", mark=True))
    assert watched.noted == [(1, *before)]
    synced, state, version, newest = watched.says()
    assert (synced, state, version, newest) == (True, InformerState.WATCHING, "11", "11")


def test_s07_nobody_sees_a_version_before_the_store_has_it(watched: Watched) -> None:
    """An event's."""
    watched.session.feed(bookmark("11", mark=True))
    before = watched.says()
    del watched.noted[:]
    watched.session.feed(line("MODIFIED", obj("a", "12", spec={"x": 1})))
    assert watched.noted == [(1, *before)]
    assert watched.says()[2:] == ("12", "12")


def page(names: list[str], continue_: str) -> bytes:
    """A page of a list."""
    items = [
        {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "7"}}
        for name in names
    ]
    metadata = {"resourceVersion": "10", "continue": continue_}
    listed = {"apiVersion": "ex.io/v1", "kind": "WidgetList", "metadata": metadata}
    return json.dumps({**listed, "items": items}).encode()


def turn_pages(
    store: Store, names_of: Callable[[int], list[str]], most: int, *, whole: bool = True
) -> Session:
    """Answer a list with these pages, each with a token of its own, for a while, or to its end."""
    clock = ManualClock()
    session = Session(Scope(gvr=WIDGETS, watch_list=False), store, clock=clock, random=Random(1))
    session.tell(Begin())
    for number in range(most):
        assert session.asked is not None
        assert isinstance(session.asked.want, ListPage)
        session.accepts(200, JSON)
        session.feed(page(names_of(number), f"token{number}" if number < most - whole else ""))
        session.end()
        clock.advance(0.001)
        if session.asked is None:
            break
    return session


def test_pages_that_go_round_in_circles_are_given_up() -> None:
    """Continue tokens that differ, and the same three pages again and again (S29)."""
    store = Store(WIDGETS)
    session = turn_pages(store, lambda number: [f"w{number % 3}", "x"], 37_000)
    status = session.status()
    assert session.asked is None
    assert "does not end" in status.reason
    assert len(store) == 0
    assert session.due is not None


def test_pages_of_one_item_each_are_a_list() -> None:
    """However many there are, none of them begins as another did (S25)."""
    store = Store(WIDGETS)
    session = turn_pages(store, lambda number: [f"w{number}"], 300)
    assert session.asked is not None
    assert isinstance(session.asked.want, WatchFrom)
    assert len(store) == 300


@pytest.mark.parametrize("whole", [True, False])
def test_a_second_list_may_begin_as_the_first_one_did(whole: bool) -> None:
    """What is remembered of pages is remembered while one list is read, to its end or not."""
    store = Store(WIDGETS)
    session = turn_pages(store, lambda number: [f"w{number}"], 100, whole=whole)
    if whole:
        session.refuse(410, JSON, b'{"kind":"Status","code":410,"reason":"Expired"}')
    else:
        session.lose("it was cut")
    for number in range(100):
        if session.asked is None:
            session.tell(Due())
        assert session.asked is not None
        session.accepts(200, JSON)
        session.feed(page([f"w{number}"], f"token{number}"))
        session.end()
    assert session.asked is not None, session.status().reason


def test_s24_what_is_deleted_before_the_mark_is_not_in_the_first_state(watched: Watched) -> None:
    """A live DELETED that comes among the initial events takes back what they brought."""
    watched.session.feed(line("ADDED", obj("b", "10")))
    watched.session.feed(line("DELETED", obj("b", "11")) + bookmark("12", mark=True))
    assert watched.store.keys() == ["ns/a"]


def test_s32_an_object_that_is_unusable_in_a_later_list_stays_as_it_was(watched: Watched) -> None:
    """Its key can be read, so that it is there, in whatever state."""
    watched.session.feed(bookmark("11", mark=True))
    expired = {"kind": "Status", "code": 410, "reason": "Expired"}
    watched.session.feed(line("ERROR", expired))
    watched.session.tell(Due())
    assert watched.session.accepts(200, JSON)
    unusable = line("ADDED", obj("a", "12", spec={"x": "TEXT"})).replace(b"TEXT", b"\xff")
    watched.session.feed(unusable + line("ADDED", obj("b", "13")) + bookmark("14", mark=True))
    assert sorted(watched.store.keys()) == ["ns/a", "ns/b"]
    held = watched.store.shared("ns/a")
    assert held is not None
    assert held["metadata"]["resourceVersion"] == "10"


def test_what_was_collected_before_a_crash_is_not_in_the_next_state(watched: Watched) -> None:
    """It may have been taken by half."""
    watched.session.crash("MemoryError")
    watched.session.tell(Due())
    assert watched.session.accepts(200, JSON)
    watched.session.feed(line("ADDED", obj("b", "12")) + bookmark("13", mark=True))
    assert watched.store.keys() == ["ns/b"]


def test_what_a_lost_stream_leaves_is_given_back_when_another_has_something(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hears looks whether it is time."""
    other, now = Watched(), [0.0]
    monkeypatch.setattr(memory, "monotonic", lambda: now[0])
    monkeypatch.setattr(FREED, "due", None)
    watched.session.lose("it was cut")
    other.session.feed(line("ADDED", obj("a", "10")))
    assert FREED.due is not None
    now[0] += memory.EVERY
    other.session.feed(line("ADDED", obj("b", "11")))
    assert FREED.due is None
