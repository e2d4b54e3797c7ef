"""The thread of a handler: there while there is work, and a little longer."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from dyninformer.delivery import worker
from dyninformer.threads import runs_for
from tests.delivery.room import LONG, Held, Notes, Room, until

both = pytest.mark.parametrize("coalesce", [False, True])


def threads() -> list[threading.Thread]:
    """Those of handlers."""
    return [thread for thread in threading.enumerate() if " handler " in thread.name]


@both
def test_a_thread_without_work_ends_and_another_comes_with_the_next_event(
    room: Room, monkeypatch: pytest.MonkeyPatch, coalesce: bool
) -> None:
    """Nothing is lost between the two."""
    monkeypatch.setattr(worker, "LINGER", 0.001)
    notes = Notes()
    room.dispatcher.add(notes, coalesce=coalesce)
    for number in range(30):
        room.put("a", x=number)
        until(lambda: len(notes.events) == number + 1)  # noqa: B023 - asked at once
        if number % 3 == 0:
            until(lambda: not threads())
    assert room.dispatcher.wait_stopped(LONG) == []


@both
def test_events_that_come_as_a_thread_is_about_to_end_are_told(
    room: Room, monkeypatch: pytest.MonkeyPatch, coalesce: bool
) -> None:
    """Whether it stays or another comes; never two at a time."""
    monkeypatch.setattr(worker, "LINGER", 0.0)
    inside: list[int] = []
    most: list[int] = []
    keys: list[str] = []

    def look(event: Any) -> None:
        inside.append(1)
        most.append(len(inside))
        keys.append(event.key)
        inside.pop()

    room.dispatcher.add(on_event=look, coalesce=coalesce)
    for number in range(1000):
        room.put(f"k{number}")
    until(lambda: len(keys) == 1000, f"1000 events, there are {len(keys)}")
    assert keys == [f"k{number}" for number in range(1000)]
    assert max(most) == 1


def test_a_callback_runs_as_the_owner_s_code(room: Room) -> None:
    """So that a stop from inside of it waits for nobody."""
    answers: list[bool] = []
    room.dispatcher.add(on_event=lambda event: answers.append(runs_for(room.owner)))
    room.put("a")
    until(lambda: answers)
    assert answers == [True]
    assert not runs_for(room.owner)


def test_no_thread_is_left_after_a_stop(room: Room) -> None:
    """Neither of those that wait for work, nor of those that had just been asked for."""
    for _ in range(20):
        room.dispatcher.add(Notes())
    room.put("a")
    room.dispatcher.stop()
    assert room.dispatcher.wait_stopped(LONG) == []
    assert threads() == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_metrics_that_raise_cost_a_thread_and_no_event(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They must not; but the handler hears what comes next all the same."""

    def fail(*args: object, **labels: str) -> None:
        raise ValueError("metrics")

    notes = Notes()
    room.dispatcher.add(notes)
    with monkeypatch.context() as patch:
        patch.setattr(room.metrics, "count", fail)
        room.put("a")
        until(lambda: notes.events and not threads())
    room.put("b")
    notes.heard("ADDED a", "ADDED b")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_after_a_fork_the_child_is_told_nothing_and_waits_for_nothing(room: Room) -> None:
    """S22: its dispatcher is a stopped one; the parent's goes on."""
    notes = Held()
    registration = room.dispatcher.add(notes)
    room.sync("a", "b")
    stream = room.dispatcher.events()
    assert notes.begun.wait(LONG)
    child = os.fork()
    if child == 0:
        try:
            ends = [
                registration.wait_for_sync() is False,
                list(stream) == [],
                room.dispatcher.wait_stopped() == [],
                room.dispatcher.stuck() == [],
                registration.backlog == 0,
            ]
            registration.remove()
            os._exit(0 if all(ends) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    notes.let_go()
    notes.heard("ADDED a", "ADDED b")
    assert next(stream).key == "a"
