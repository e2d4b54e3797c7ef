"""The thread of a handler: started with its first work, without the lock, and then parked."""

from __future__ import annotations

import _thread
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dyninformer.delivery import worker
from dyninformer.threads import OwnThread, runs_for, spawn
from tests.delivery.harness import LONG, Harness, Notes, SlowNotes, until

both = pytest.mark.parametrize("coalesce", [False, True])


def threads() -> list[threading.Thread]:
    """Those of handlers."""
    return [thread for thread in threading.enumerate() if " handler " in thread.name]


@both
def test_s21_a_handler_has_a_thread_from_its_first_work_until_it_is_removed(
    harness: Harness, coalesce: bool
) -> None:
    """One and the same: it is parked while there is nothing to tell."""
    notes = Notes()
    registration = harness.add(notes, coalesce=coalesce)
    assert threads() == []
    seen: set[threading.Thread] = set()
    for number in range(30):
        harness.put("a", x=number)
        until(lambda: len(notes.events) == number + 1)  # noqa: B023 - asked at once
        seen.update(threads())
    assert len(seen) == 1
    registration.remove()
    until(lambda: not threads())
    assert harness.dispatcher.wait_stopped(LONG) == []


@both
def test_events_that_come_as_a_thread_is_about_to_wait_are_told(
    harness: Harness, coalesce: bool
) -> None:
    """None is left for a later event to wake it; never two at a time."""
    inside: list[int] = []
    most: list[int] = []
    keys: list[str] = []

    def look(event: Any) -> None:
        inside.append(1)
        most.append(len(inside))
        keys.append(event.key)
        inside.pop()

    harness.add(on_event=look, coalesce=coalesce)
    for number in range(1000):
        harness.put(f"k{number}")
    until(lambda: len(keys) == 1000, f"1000 events, there are {len(keys)}")
    assert keys == [f"k{number}" for number in range(1000)]
    assert max(most) == 1


def test_a_callback_runs_as_the_owner_s_code(harness: Harness) -> None:
    """So that a stop from inside of it waits for nobody."""
    answers: list[bool] = []
    harness.add(on_event=lambda event: answers.append(runs_for(harness.owner)))
    harness.put("a")
    until(lambda: answers)
    assert answers == [True]
    assert not runs_for(harness.owner)


def test_no_thread_is_left_after_a_stop(harness: Harness) -> None:
    """Neither of those that wait for work, nor of those that had just been asked for."""
    for _ in range(20):
        harness.add(Notes())
    harness.put("a")
    harness.dispatcher.stop()
    assert harness.dispatcher.wait_stopped(LONG) == []
    assert threads() == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_metrics_that_raise_cost_a_thread_and_no_event(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They must not; but the handler hears what comes next all the same."""

    def fail(*args: object, **labels: str) -> None:
        raise ValueError("metrics")

    notes = Notes()
    harness.add(notes)
    with monkeypatch.context() as patch:
        patch.setattr(harness.metrics, "count", fail)
        harness.put("a")
        until(lambda: notes.events and not threads())
    harness.put("b")
    notes.heard("ADDED a", "ADDED b")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_after_a_fork_the_child_is_told_nothing_and_waits_for_nothing(harness: Harness) -> None:
    """S22: its dispatcher is a stopped one; the parent's goes on."""
    notes = SlowNotes()
    registration = harness.add(notes)
    harness.sync("a", "b")
    stream = harness.dispatcher.events()
    assert notes.begun.wait(LONG)
    child = os.fork()
    if child == 0:
        try:
            ends = [
                registration.wait_for_sync() is False,
                list(stream) == [],
                harness.dispatcher.wait_stopped() == [],
                harness.dispatcher.stuck() == [],
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


def test_whoever_holds_the_lock_does_not_wait_for_a_thread_to_start(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is published while no thread can start: the store goes on."""
    notes = Notes()
    harness.add(notes)
    gate = threading.Event()

    def slow(owner: object, name: str, target: Callable[[], None]) -> OwnThread:
        assert gate.wait(LONG)
        return spawn(owner, name, target)

    monkeypatch.setattr(worker, "spawn", slow)
    harness.put("a")
    harness.put("b")
    assert harness.store.get("b") is not None
    assert notes.events == []
    gate.set()
    notes.heard("ADDED a", "ADDED b")


@pytest.mark.parametrize("where", ["publish", "aside", "add"])
def test_work_waits_where_the_system_has_no_more_threads(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    """The next change asks again, and nothing is lost."""

    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    notes = Notes()
    if where == "add":
        harness.sync("a")
        with monkeypatch.context() as patch:
            patch.setattr(worker, "spawn", refuse)
            harness.add(notes)
    else:
        harness.add(notes)
        with monkeypatch.context() as patch:
            if where == "publish":
                patch.setattr(_thread, "start_new_thread", refuse)
            else:
                patch.setattr(worker, "spawn", refuse)
            harness.put("a")
            if where == "aside":
                until(lambda: "no thread for a handler" in caplog.text)
    assert notes.events == []
    harness.put("b")
    notes.heard("ADDED a", "ADDED b")
    if where != "publish":
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "certificates.v1.cert-manager.io" in caplog.text


def test_an_interrupt_while_a_handler_is_added_leaves_nothing_of_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S23: it is not there, and can be added again."""
    harness.sync("a")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    notes = Notes()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "spawn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harness.add(notes, resync=5)
    assert harness.dispatcher.backlog == {}
    assert harness.timers.waiting == []
    harness.put("b")
    harness.add(notes)
    notes.heard("ADDED a", "ADDED b")


def test_s23_a_handler_whose_addition_is_interrupted_hears_nothing_more(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread may have begun to tell it: the call that was under way is the last one."""
    harness.sync("a", "b")
    notes = SlowNotes()

    def interrupted(*args: Any) -> None:
        spawn(*args)
        assert notes.begun.wait(LONG)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(worker, "spawn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harness.add(notes)
    harness.put("c")
    notes.let_go()
    harness.close()
    notes.heard("ADDED a")
