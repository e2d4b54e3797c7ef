"""Resyncs: each handler at its own period, from the store alone."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from dyninformer.delivery.resync import JITTER, Timers, jittered
from tests.delivery.room import LONG, Held, Notes, Room, until

both = pytest.mark.parametrize("coalesce", [False, True])


@both
def test_a_resync_tells_all_that_is_held_as_sync(room: Room, coalesce: bool) -> None:
    """To on_update too, with two equal objects of the handler's own."""
    pairs: list[tuple[object, object]] = []
    notes = Notes()
    registration = room.dispatcher.add(
        notes, on_update=lambda old, new: pairs.append((old, new)), resync=60, coalesce=coalesce
    )
    room.sync("a", "b", x=1)
    notes.heard("ADDED a x=1", "ADDED b x=1")
    until(lambda: not registration.backlog)
    room.timers.go_on(60 * (1 + JITTER))
    notes.heard("ADDED a x=1", "ADDED b x=1", "SYNC a x=1", "SYNC b x=1")
    until(lambda: len(pairs) == 2)
    assert pairs[0][0] == pairs[0][1]
    assert pairs[0][0] is not pairs[0][1]
    assert notes.events[2].changes() == []


def test_each_handler_has_its_own_period() -> None:
    """S5: the informer's, unless it names another; 0 is never."""
    room = Room(resync=100)
    handlers = {period: Notes() for period in (None, 30, 0)}
    registrations = [room.dispatcher.add(each, resync=n) for n, each in handlers.items()]
    room.sync("a")
    for _ in range(300):
        until(lambda: not any(each.backlog for each in registrations))
        room.timers.go_on(1)
    until(lambda: not any(each.backlog for each in registrations))
    syncs = {period: each.lines.count("SYNC a") for period, each in handlers.items()}
    assert syncs[0] == 0
    assert syncs[None] == 2
    assert syncs[30] in {9, 10}
    room.close()


def test_a_resync_is_skipped_and_counted_while_the_last_is_unfinished(room: Room) -> None:
    """A handler that is slower than its period is not buried."""
    notes = Held()
    room.dispatcher.add(notes, resync=10, name="slow")
    room.sync("a")
    notes.let_go(1)
    until(lambda: room.dispatcher.backlog["slow"] == 0)
    room.timers.go_on(11)
    until(lambda: notes.lines == ["ADDED a", "SYNC a"])
    room.timers.go_on(55)
    assert room.metrics.counts["resyncs_skipped", "slow"] == 5
    assert room.dispatcher.backlog["slow"] == 1
    notes.let_go()
    until(lambda: room.dispatcher.backlog["slow"] == 0)
    room.timers.go_on(11)
    notes.heard("ADDED a", "SYNC a", "SYNC a")


def test_a_resync_merges_with_what_is_to_be_told_anyway(room: Room) -> None:
    """S20: a handler that wants each key once hears it once."""
    notes = Held()
    room.dispatcher.add(notes, resync=10, coalesce=True, name="mine")
    room.sync("a", "b", x=0)
    notes.let_go(2)
    until(lambda: room.dispatcher.backlog["mine"] == 0)
    room.put("gate", x=0)
    until(lambda: len(notes.events) == 3)
    room.put("a", x=1)
    room.timers.go_on(11)
    room.put("b", x=2)
    notes.let_go()
    notes.heard("ADDED a x=0", "ADDED b x=0", "ADDED gate x=0", "UPDATED a x=1", "UPDATED b x=2",
                "SYNC gate x=0")  # fmt: skip


def test_a_filter_holds_for_resyncs_too(room: Room) -> None:
    """And who hears only of changed values hears of none."""
    notes, changed = Notes(), Notes()
    room.dispatcher.add(notes, resync=10, filter=lambda obj: obj["spec"]["x"] > 0)
    registration = room.dispatcher.add(changed, when_changed=".spec.x")
    room.sync("a", x=1)
    room.put("b", x=0)
    notes.heard("ADDED a x=1")
    until(lambda: not any(room.dispatcher.backlog.values()))
    room.timers.go_on(11)
    notes.heard("ADDED a x=1", "SYNC a x=1")
    until(lambda: not registration.backlog)
    assert changed.lines == ["ADDED a x=1", "ADDED b x=0"]


@pytest.mark.parametrize("how", ["remove", "stop", "replace", "collect"])
def test_who_is_gone_is_resynced_no_more(room: Room, how: str) -> None:
    """No timer is left for it."""
    if how == "collect":
        room = Room(resync=10)
        stream = room.dispatcher.events()
        assert len(room.timers.waiting) == 1
        del stream
        room.timers.go_on(20)
    else:
        registration = room.dispatcher.add(Notes(), resync=10, name="mine")
        assert len(room.timers.waiting) == 1
        if how == "remove":
            registration.remove()
        elif how == "stop":
            room.dispatcher.stop()
        else:
            room.dispatcher.add(on_event=print, name="mine")
    assert room.timers.waiting == []


@pytest.mark.parametrize("period", [-1, 0.5, float("nan"), float("inf")])
def test_a_period_under_a_second_is_refused(room: Room, period: float) -> None:
    """S5."""
    with pytest.raises(ValueError, match="1 second and more"):
        room.dispatcher.add(on_event=print, resync=period)


def test_periods_are_jittered_by_a_tenth() -> None:
    """Never sooner than asked for."""
    delays = {jittered(10) for _ in range(100)}
    assert len(delays) > 50
    assert min(delays) >= 10
    assert max(delays) <= 11


def test_timers_share_one_thread_that_ends_with_the_last() -> None:
    """They are called when they are due, in order; the thread is named."""
    timers = Timers(object())
    called: list[tuple[str, str]] = []

    def note(name: str) -> None:
        called.append((name, threading.current_thread().name))

    later = timers.call_later(0.02, lambda: note("later"))
    sooner = timers.call_later(0.01, lambda: note("sooner"))
    cancelled = timers.call_later(3600, lambda: note("never"))
    until(lambda: len(called) == 2)
    assert time.monotonic() >= max(later.at, sooner.at)
    order = ["sooner", "later"] if sooner.at < later.at else ["later", "sooner"]  # a busy machine
    assert called == [(name, "dyninformer timers") for name in order]
    assert not timers.join(0.01)
    timers.cancel(cancelled)
    assert timers.join(LONG)
    timers.call_later(0, lambda: note("again"))
    until(lambda: len(called) == 3)
    assert timers.join(LONG)


def test_timers_set_by_many_threads_at_once_are_all_called() -> None:
    """One thread calls them, whoever started it."""
    timers = Timers(object())
    called: list[str] = []

    def set_some() -> None:
        for _ in range(50):
            timers.call_later(0, lambda: called.append(threading.current_thread().name))

    threads = [threading.Thread(target=set_some) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    until(lambda: len(called) == 400)
    assert set(called) == {"dyninformer timers"}
    assert timers.join(LONG)


def test_stopped_timers_call_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """At once, however long they had to wait; a timer that fails harms no other."""
    timers = Timers(object())
    called = threading.Event()

    def fail() -> None:
        raise ValueError("timer")

    timers.call_later(0, fail)
    timers.call_later(0, called.set)
    timers.call_later(3600, fail)
    assert called.wait(LONG)
    timers.stop()
    assert timers.join(LONG)
    timers.call_later(0, fail)
    assert timers.join(LONG)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
