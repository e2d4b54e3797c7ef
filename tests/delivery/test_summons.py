"""Threads that are wanted, started where nobody waits with the lock."""

from __future__ import annotations

import _thread
import logging
import threading
from collections.abc import Callable

import pytest

from dyninformer.delivery import worker
from dyninformer.threads import OwnThread, spawn
from tests.delivery.room import LONG, Notes, Room, until


def test_whoever_holds_the_lock_does_not_wait_for_a_thread_to_start(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is published while no thread can start: the store goes on."""
    notes = Notes()
    room.dispatcher.add(notes)
    gate = threading.Event()

    def slow(owner: object, name: str, target: Callable[[], None]) -> OwnThread:
        assert gate.wait(LONG)
        return spawn(owner, name, target)

    monkeypatch.setattr(worker, "spawn", slow)
    room.put("a")
    room.put("b")
    assert room.store.get("b") is not None
    assert notes.events == []
    gate.set()
    notes.heard("ADDED a", "ADDED b")


@pytest.mark.parametrize("where", ["publish", "aside", "add"])
def test_work_waits_where_the_system_has_no_more_threads(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    """The next change asks again, and nothing is lost."""

    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    notes = Notes()
    if where == "add":
        room.sync("a")
        with monkeypatch.context() as patch:
            patch.setattr(worker, "spawn", refuse)
            room.dispatcher.add(notes)
    else:
        room.dispatcher.add(notes)
        with monkeypatch.context() as patch:
            if where == "publish":
                patch.setattr(_thread, "start_new_thread", refuse)
            else:
                patch.setattr(worker, "spawn", refuse)
            room.put("a")
            if where == "aside":
                until(lambda: "no thread for a handler" in caplog.text)
    assert notes.events == []
    room.put("b")
    notes.heard("ADDED a", "ADDED b")
    if where != "publish":
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "certificates.v1.cert-manager.io" in caplog.text


def test_an_interrupt_while_a_handler_is_added_leaves_nothing_of_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S23: it is not there, and can be added again."""
    room.sync("a")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    notes = Notes()
    with monkeypatch.context() as patch:
        patch.setattr(worker, "spawn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            room.dispatcher.add(notes, resync=5)
    assert room.dispatcher.backlog == {}
    assert room.timers.waiting == []
    room.put("b")
    room.dispatcher.add(notes)
    notes.heard("ADDED a", "ADDED b")
