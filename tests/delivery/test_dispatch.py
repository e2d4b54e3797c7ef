"""Who is told of what, in which order, and until when."""

from __future__ import annotations

import gc
import logging
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from dyninformer.delivery import queue as queues
from dyninformer.delivery.dispatch import JITTER, Timers, jittered
from dyninformer.delivery.handlers import FirstState, Registration
from dyninformer.delivery.queue import merged
from dyninformer.errors import StoppedError
from dyninformer.store.decide import Delta, Deltas, InitialDeltas
from dyninformer.threads import Bell, spawn
from tests.delivery.harness import LONG, Harness, Notes, SlowNotes, until


def test_changes_are_heard_in_order(harness: Harness) -> None:
    """S8: each handler hears all, one at a time."""
    notes = [Notes() for _ in range(3)]
    for each in notes:
        harness.add(each)
    expected = []
    for number in range(200):
        harness.put(f"k{number % 7}", x=number)
        expected.append(f"{'ADDED' if number < 7 else 'UPDATED'} k{number % 7} x={number}")
    for each in notes:
        each.heard(*expected)


def test_the_store_has_changed_before_a_handler_hears(harness: Harness) -> None:
    """S7: a handler that reads the cache finds what it was told, or newer."""
    seen: list[bool] = []

    def look(event: Any) -> None:
        payload = harness.store.get(event.key)
        held = None if payload is None else harness.store.codec.decode(payload)["spec"]["x"]
        seen.append(held is not None and held >= event.object["spec"]["x"])

    harness.add(on_event=look)
    for number in range(300):
        harness.put("a", x=number)
    until(lambda: len(seen) == 300)
    assert all(seen)


def test_what_came_together_comes_to_a_handler_in_order_whatever_its_thread_did(
    harness: Harness,
) -> None:
    """It waited, was at work, or had to be started; it was roused once for all of it."""
    notes, together = Notes(), []
    harness.add(notes)
    publish = harness.store.on_changes

    def watched(changes: Deltas) -> None:
        publish(changes)
        together.append(len(changes))

    harness.store.on_changes = watched
    expected = []
    for run in range(3):
        keys = [f"k{run}{number}" for number in range(50)]
        harness.store.apply([("ADDED", harness.received(key, x=run)) for key in keys])
        expected += [f"ADDED {key} x={run}" for key in keys]
        notes.heard(*expected)
    assert together == [50, 50, 50]


def test_a_backlog_of_updates_holds_little_more_than_the_packed_entries(harness: Harness) -> None:
    """S21: the objects' JSON, which is at hand when they come, is not kept in a long queue."""
    begun, go_on, told = threading.Event(), threading.Event(), []

    def hold(old: dict[str, Any], new: dict[str, Any]) -> None:
        told.append((old["spec"]["text"][0], new["spec"]["text"][0]))
        begun.set()
        assert go_on.wait(LONG)

    count = 1_200
    harness.add(on_update=hold)
    harness.sync(*(f"k{number}" for number in range(count)), text="x" * 2_000)
    harness.put("k0", text="y" * 2_000)
    until(begun.is_set)
    gc.collect()
    tracemalloc.start()
    for number in range(1, count):
        harness.put(f"k{number}", text="y" * 2_000)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    go_on.set()
    until(lambda: len(told) == count)
    assert set(told) == {("x", "y")}
    assert used < 1_000 * count  # the JSON of one update is 4,000


@pytest.mark.parametrize("late", [False, True])
def test_who_hears_of_updates_alone_need_not_go_through_what_is_held(
    harness: Harness, *, late: bool
) -> None:
    """It is synced at once, without a thread, and hears of the first update."""
    told: list[tuple[Any, Any]] = []

    def note(old: dict[str, Any], new: dict[str, Any]) -> None:
        told.append((old["spec"], new["spec"]))

    if late:
        harness.sync("a", "b", x=1)
    registration = harness.add(on_update=note)
    if not late:
        harness.sync("a", "b", x=1)
    assert (registration.backlog, registration.has_synced()) == (0, True)
    harness.put("a", x=2)
    until(lambda: told == [({"x": 1}, {"x": 2})])


def test_a_relist_tells_deletes_first_and_then_the_rest_in_list_order(harness: Harness) -> None:
    """S8, and S14: nothing of what did not change."""
    notes = Notes()
    harness.add(notes)
    harness.sync("b", "a", x=1)
    harness.relist("d", "a", "c", x=2)
    notes.heard(
        "ADDED b x=1", "ADDED a x=1", "DELETED b x=1", "ADDED d x=2", "UPDATED a x=2", "ADDED c x=2"
    )


def test_a_slow_handler_holds_nobody(harness: Harness) -> None:
    """Not the other handlers, not the store."""
    slow, quick = SlowNotes(), Notes()
    registration = harness.add(slow, name="slow")
    harness.add(quick)
    for number in range(50):
        harness.put("a", x=number)
    until(lambda: len(quick.events) == 50)
    assert len(slow.events) <= 1
    assert registration.backlog == 50
    assert harness.dispatcher.backlog["slow"] == 50
    slow.let_go()
    until(lambda: len(slow.events) == 50)
    assert slow.lines == quick.lines


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt()])
def test_a_handler_that_raises_gets_the_next_event(
    harness: Harness, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """S10: it is logged with the key, counted, and harms nobody."""
    heard: list[str] = []

    def bad(event: Any) -> None:
        heard.append(event.key)
        raise error

    notes = Notes()
    harness.add(on_event=bad)
    harness.add(notes)
    harness.put("prod/a")
    harness.put("prod/b")
    notes.heard("ADDED prod/a", "ADDED prod/b")
    until(lambda: harness.metrics.counts.get(("handler_errors", "bad")) == 2)
    assert heard == ["prod/a", "prod/b"]
    assert "handler bad of certificates.v1.cert-manager.io failed on prod/a" in caplog.text
    assert type(error).__name__ in caplog.text


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_late_handler_hears_what_is_held_and_then_what_follows(
    harness: Harness, coalesce: bool
) -> None:
    """S9: each object once, as initial, in the state of the moment it came."""
    harness.sync("a", "b", x=1)
    harness.put("b", x=2)
    notes = SlowNotes()
    harness.add(notes, coalesce=coalesce)
    assert notes.begun.wait(LONG)
    harness.put("a", x=3)
    harness.delete("a", x=3)
    notes.let_go()
    if coalesce:
        notes.heard("ADDED a x=1", "ADDED b x=2", "DELETED a x=3")
    else:
        notes.heard("ADDED a x=1", "ADDED b x=2", "UPDATED a x=3", "DELETED a x=3")
    assert [event.initial for event in notes.events[:3]] == [True, True, False]


def test_a_handler_added_between_two_first_lists_gets_both(harness: Harness) -> None:
    """One namespace is there, the other is not: nothing is lost, nothing comes twice."""
    harness.relist("one/a", first=True, scope="one")
    notes = Notes()
    registration = harness.add(notes)
    until(lambda: len(notes.events) == 1)
    assert not registration.has_synced()
    harness.relist("two/b", "two/c", first=True, scope="two")
    harness.dispatcher.synced()
    notes.heard("ADDED one/a", "ADDED two/b", "ADDED two/c")
    assert all(event.initial for event in notes.events)
    assert registration.wait_for_sync(LONG)


def test_late_handlers_lose_nothing_while_events_flow(harness: Harness) -> None:
    """Whenever a handler comes, what it hears leads to what the store holds."""
    harness.sync(*(f"k{number}" for number in range(50)), x=0)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            key = f"k{number % 60}"
            if number % 5:
                harness.put(key, x=number)
            else:
                harness.delete(key)

    writer = threading.Thread(target=write)
    writer.start()
    states: list[dict[str, Any]] = []
    registrations = []
    for number in range(40):
        state: dict[str, Any] = {}
        states.append(state)
        registrations.append(harness.add(on_event=Replayed(state), coalesce=bool(number % 2)))
    stop.set()
    writer.join()
    until(lambda: not any(each.backlog for each in registrations))
    held = {
        key: harness.store.codec.decode(payload) for key, payload in harness.store.view().items()
    }
    assert all(state == held for state in states)
    assert not any(count for (name, _), count in harness.metrics.counts.items() if "error" in name)


class Replayed:
    """A handler that keeps a copy of the cache, and complains if an event does not fit it."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def __call__(self, event: Any) -> None:
        """Take the step."""
        if event.type == "ADDED":
            assert event.key not in self.state
        elif event.type == "DELETED":
            del self.state[event.key]
            return
        else:
            assert self.state[event.key] == event.old
        self.state[event.key] = event.object


def test_handlers_come_and_go_from_a_hundred_threads_while_events_flow(harness: Harness) -> None:
    """client-go's own test of its listeners: nothing breaks, nobody is left."""
    harness.sync("a", "b", x=0)
    stop = threading.Event()
    failures: list[BaseException] = []

    def come_and_go(coalesce: bool) -> None:
        try:
            for _ in range(5):
                notes = Notes()
                registration = harness.add(notes, coalesce=coalesce)
                assert registration.wait_for_sync(LONG)
                assert min(notes.lines[:2]).startswith("ADDED a")
                registration.remove()
                registration.remove()
                assert registration.backlog == 0
        except (AssertionError, RuntimeError) as error:
            failures.append(error)

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            harness.put("a", x=number)

    writer = threading.Thread(target=write)
    writer.start()
    threads = [threading.Thread(target=come_and_go, args=(bool(n % 2),)) for n in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    stop.set()
    writer.join()
    assert failures == []
    assert harness.dispatcher.backlog == {}


def test_no_callback_begins_after_remove_has_returned(harness: Harness) -> None:
    """S11: the one that runs goes on, the queued ones are never told."""
    notes = SlowNotes()
    registration = harness.add(notes)
    for number in range(10):
        harness.put("a", x=number)
    assert notes.begun.wait(LONG)
    registration.remove()
    notes.let_go()
    harness.put("a", x=11)
    other = Notes()
    harness.add(other)
    until(lambda: not harness.dispatcher.stuck() or len(other.events) == 1)
    other.heard("ADDED a x=11")
    until(lambda: "SlowNotes" not in {thread.name.split()[-1] for thread in threading.enumerate()})
    assert notes.lines == ["ADDED a x=0"]


@pytest.mark.parametrize("kind", ["on_add", "on_update", "on_delete", "on_event"])
def test_no_callback_begins_after_a_removal_that_came_while_its_event_was_filtered(
    harness: Harness, kind: str
) -> None:
    """S11: the filter had begun, and is the last that runs."""
    reached, go_on = threading.Event(), threading.Event()
    called: list[Any] = []

    def admits(obj: dict[str, Any]) -> bool:
        if obj["spec"].get("x") == 2:
            reached.set()
            assert go_on.wait(LONG)
        return True

    harness.sync("a", x=1 if kind == "on_update" else 2)
    handler = SimpleNamespace(**{kind: lambda *args: called.append(args)})
    registration = harness.add(handler, filter=admits)
    if kind == "on_update":
        harness.put("a", x=2)
    elif kind == "on_delete":
        harness.delete("a", x=2)
    assert reached.wait(LONG)
    registration.remove()
    go_on.set()
    until(lambda: not harness.dispatcher.stuck())
    assert called == []


def test_no_callback_begins_after_a_removal_that_came_while_its_event_was_decoded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S11: of a handler that takes the two dicts and nothing else."""
    reached, go_on = threading.Event(), threading.Event()
    called: list[Any] = []

    decode = harness.store.codec.decode

    def slow(entry: bytes) -> dict[str, Any]:
        reached.set()
        assert go_on.wait(LONG)
        return decode(entry)

    monkeypatch.setattr(harness.store.codec, "decode", slow)
    harness.sync("a", x=1)
    registration = harness.add(on_update=lambda old, new: called.append(new))
    harness.put("a", x=2)
    assert reached.wait(LONG)
    registration.remove()
    go_on.set()
    until(lambda: not harness.dispatcher.stuck())
    assert called == []


def test_a_handler_that_removes_itself_hears_of_that_event_no_more(harness: Harness) -> None:
    """S11: one with two callbacks for an event is removed by the first."""
    heard: list[str] = []
    registrations: list[Registration] = []

    def once(obj: Any) -> None:
        heard.append("on_add")
        registrations[0].remove()

    with harness.store.lock:
        registrations.append(
            harness.add(on_add=once, on_event=lambda event: heard.append("on_event"))
        )
        harness.put("a")
    until(lambda: heard and not harness.dispatcher.stuck())
    assert heard == ["on_add"]


def test_a_handler_can_remove_itself(harness: Harness) -> None:
    """From its own callback, which is its last."""
    heard: list[str] = []
    registrations: list[Registration] = []

    def once(event: Any) -> None:
        heard.append(event.key)
        registrations[0].remove()

    with harness.store.lock:  # so that it cannot be called before it knows its registration
        registrations.append(harness.add(on_event=once))
        harness.put("a")
        harness.put("b")
    until(lambda: registrations[0].backlog == 0 and heard)
    notes = Notes()
    harness.add(notes)
    notes.heard("ADDED a", "ADDED b")
    assert heard == ["a"]


def test_the_same_name_again_replaces_the_handler(harness: Harness) -> None:
    """A notebook cell that is run twice does not hear twice."""
    harness.sync("a")
    first, second = Notes(), Notes()
    old = harness.add(first, name="cell")
    first.heard("ADDED a")
    harness.add(second, name="cell")
    harness.put("b")
    second.heard("ADDED a", "ADDED b")
    assert first.lines == ["ADDED a"]
    assert list(harness.dispatcher.backlog) == ["cell"]
    old.remove()
    harness.put("c")
    second.heard("ADDED a", "ADDED b", "ADDED c")


def test_stop_drops_and_counts_what_is_queued(harness: Harness) -> None:
    """S11: the callback that runs finishes; stuck handlers are named."""
    notes = SlowNotes()
    registration = harness.add(notes, name="slow")
    for number in range(10):
        harness.put("a", x=number)
    assert notes.begun.wait(LONG)
    harness.dispatcher.stop()
    assert harness.metrics.counts["dropped_events", "slow"] == 9
    assert harness.dispatcher.wait_stopped(0.05) == ["slow"]
    assert harness.dispatcher.stuck() == ["slow"]
    notes.let_go()
    assert harness.dispatcher.wait_stopped(LONG) == []
    assert harness.dispatcher.stuck() == []
    assert len(notes.events) == 1
    registration.remove()


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_removed_handler_that_still_runs_is_waited_for_too(
    harness: Harness, coalesce: bool
) -> None:
    """After wait_stopped nothing of the user's runs, or its name is given."""
    notes = SlowNotes()
    registration = harness.add(notes, coalesce=coalesce)
    harness.put("a")
    assert notes.begun.wait(LONG)
    registration.remove()
    harness.dispatcher.stop()
    assert harness.dispatcher.wait_stopped(0.01) == ["SlowNotes"]
    notes.let_go()
    assert harness.dispatcher.wait_stopped(LONG) == []


def test_a_thread_of_the_owner_never_waits_for_a_stop(harness: Harness) -> None:
    """S11: a handler may stop its own informer."""
    done = threading.Event()

    def stop(event: object) -> None:
        harness.dispatcher.stop()
        assert harness.dispatcher.wait_stopped() == []
        done.set()

    harness.add(on_event=stop)
    harness.put("a")
    assert done.wait(LONG)
    names: list[list[str]] = []
    spawn(harness.owner, "another", lambda: names.append(harness.dispatcher.wait_stopped())).join(
        LONG
    )
    assert names == [[]]


def test_nothing_can_be_added_to_what_has_stopped(harness: Harness) -> None:
    """S16: removing is fine."""
    registration = harness.add(Notes())
    harness.dispatcher.stop()
    harness.dispatcher.stop()
    with pytest.raises(StoppedError, match=r"certificates\.v1\.cert-manager\.io has stopped"):
        harness.add(Notes())
    with pytest.raises(StoppedError):
        harness.dispatcher.events()
    registration.remove()
    harness.put("a")
    assert registration.backlog == 0


def test_threads_come_with_work_and_are_named(harness: Harness) -> None:
    """A handler without events has no thread; with some it has one, and keeps it for a while."""

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "handler" in thread.name]

    notes = Notes()
    harness.add(notes, name="mine")
    assert threads() == []
    for number in range(20):
        harness.put("a", x=number)
        until(lambda: len(notes.events) == number + 1)  # noqa: B023 - asked at once
        assert threads() == ["dyninformer certificates.v1.cert-manager.io handler mine"]


def test_handled_events_are_counted_and_the_backlog_is_shown(harness: Harness) -> None:
    """By handler's name."""
    harness.add(Notes(), name="mine")
    for number in range(20):
        harness.put("a", x=number)
    until(lambda: harness.metrics.counts.get(("handled", "mine")) == 20)
    until(lambda: harness.metrics.gauges.get(("backlog", "mine")) == 0)


def test_a_first_state_costs_ten_handlers_no_more_memory_than_one(harness: Harness) -> None:
    """S21: it is one item of a queue, and so is what a late handler gets."""
    count = 10_000
    codec = harness.store.codec
    entries = {
        f"k{n}": codec.pack(b'{"metadata":{"name":"k%d"},"spec":{}}' % n) for n in range(count)
    }
    handlers = [SlowNotes() for _ in range(10)]
    for number, handler in enumerate(handlers):
        harness.add(handler, coalesce=bool(number % 2))
    gc.collect()
    tracemalloc.start()
    with harness.store.lock:
        harness.dispatcher.publish(InitialDeltas(entries))
    harness.dispatcher.synced()
    until(lambda: all(handler.begun.is_set() for handler in handlers))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert sum(harness.dispatcher.backlog.values()) == 10 * count
    assert used < 40 * count  # one object for each would be 10 times 56 bytes at the least
    harness.dispatcher.stop()
    for handler in handlers:
        handler.let_go()


class Failing:
    """Queues the changes of one subscriber only when it is told to."""

    def __init__(self, harness: Harness, name: str) -> None:
        subscribers = harness.dispatcher._subscribers
        self.queue = next(each.queue for each in subscribers if each.name == name)
        self.works = False
        self.refused = 0
        for method in ("_append", "_append_walk", "_append_mark"):
            setattr(self.queue, method, partial(self.act, getattr(self.queue, method)))

    def act(self, append: Callable[[Any], None], what: Any) -> None:
        """As the queue does, or not."""
        if not self.works:
            self.refused += 1
            raise MemoryError
        append(what)


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_change_that_one_handler_cannot_be_told_of_harms_nobody_else(
    harness: Harness, caplog: pytest.LogCaptureFixture, coalesce: bool
) -> None:
    """It is later told what leads from the state that it knows to the one that is held."""
    late, other = Notes(), Notes()
    harness.add(late, name="late", coalesce=coalesce)
    harness.add(other)
    harness.sync("a", "b", x=0)
    late.heard("ADDED a x=0", "ADDED b x=0")
    failing = Failing(harness, "late")
    harness.put("a", x=1)
    harness.put("c", x=1)
    harness.delete("b", x=1)
    harness.put("a", x=2)
    harness.put("d", x=2)
    harness.delete("d", x=2)
    other.heard(
        *("ADDED a x=0", "ADDED b x=0", "UPDATED a x=1", "ADDED c x=1", "DELETED b x=0"),
        *("UPDATED a x=2", "ADDED d x=2", "DELETED d x=2"),
    )
    until(lambda: "late could not be told of a change" in caplog.text)
    assert late.lines == ["ADDED a x=0", "ADDED b x=0"]
    failing.works = True
    harness.put("e", x=3)
    until(lambda: len(late.events) == 6)
    assert sorted(late.lines[2:]) == [
        "ADDED c x=1",
        "ADDED e x=3",
        "DELETED b x=0",
        "UPDATED a x=2",
    ]
    update = next(event for event in late.events if event.type == "UPDATED")
    assert update.old is not None
    assert update.old["spec"] == {"x": 0}


@pytest.mark.parametrize("coalesce", [False, True])
def test_what_could_not_be_told_at_once_is_told_without_another_change(
    harness: Harness, coalesce: bool
) -> None:
    """And before that the handler has not synced."""
    late = Notes()
    registration = harness.add(late, name="late", coalesce=coalesce)
    failing = Failing(harness, "late")
    with harness.store.lock:  # so that what is left to another thread waits
        harness.sync("a", "b", x=0)
        failing.works = True
        assert failing.refused
        assert registration.backlog == 2
        assert not registration.has_synced()
    late.heard("ADDED a x=0", "ADDED b x=0")
    assert registration.wait_for_sync(LONG)
    assert all(event.initial for event in late.events)


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_sync_that_one_handler_cannot_be_told_of_is_told_later(
    harness: Harness, coalesce: bool
) -> None:
    """The others have synced, and so has this one, at the next change at the latest."""
    late, other = SlowNotes(), Notes()
    registration = harness.add(late, name="late", coalesce=coalesce)
    others = harness.add(other)
    harness.relist("a", first=True)
    failing = Failing(harness, "late")
    harness.dispatcher.synced()
    assert failing.refused
    assert others.wait_for_sync(LONG)
    failing.works = True
    late.let_go()
    harness.put("b")
    assert registration.wait_for_sync(LONG)
    until(lambda: len(late.events) == 2)


@pytest.mark.parametrize("coalesce", [False, True])
def test_a_relist_that_one_handler_cannot_be_told_of_is_told_later(
    harness: Harness, coalesce: bool
) -> None:
    """Object by object."""
    late, other = Notes(), Notes()
    harness.add(late, name="late", coalesce=coalesce)
    harness.add(other)
    harness.sync("a", "b", x=0)
    late.heard("ADDED a x=0", "ADDED b x=0")
    failing = Failing(harness, "late")
    harness.relist("b", "c", x=1)
    other.heard("ADDED a x=0", "ADDED b x=0", "DELETED a x=0", "UPDATED b x=1", "ADDED c x=1")
    with harness.store.lock:  # what was missed is not told in between
        failing.works = True
        harness.relist("b", "c", "d", x=1)
    until(lambda: len(late.events) == 6)
    assert sorted(late.lines[2:]) == [
        "ADDED c x=1",
        "ADDED d x=1",
        "DELETED a x=0",
        "UPDATED b x=1",
    ]


def test_a_stream_that_is_dropped_while_it_is_told_harms_nobody_else(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its finalizer runs in the middle of `publish`, where the collector may run it."""
    streams = [harness.dispatcher.events(coalesce=True)]
    notes = Notes()
    harness.add(notes)
    harness.put("a")
    harness.put("b")

    def dropping(first: Delta, then: Delta) -> Delta | None:
        streams.clear()
        return merged(first, then)

    monkeypatch.setattr(queues, "merged", dropping)
    harness.store.apply([("DELETED", harness.received("a")), ("DELETED", harness.received("b"))])
    assert streams == []
    notes.heard("ADDED a", "ADDED b", "DELETED a", "DELETED b")
    until(lambda: list(harness.dispatcher.backlog) == ["Notes"])
    assert caplog.text == ""


both = pytest.mark.parametrize("coalesce", [False, True])


@both
def test_a_resync_tells_all_that_is_held_as_sync(harness: Harness, coalesce: bool) -> None:
    """To on_update too, with two equal objects of the handler's own."""
    pairs: list[tuple[object, object]] = []
    notes = Notes()
    registration = harness.add(
        notes, on_update=lambda old, new: pairs.append((old, new)), resync=60, coalesce=coalesce
    )
    harness.sync("a", "b", x=1)
    notes.heard("ADDED a x=1", "ADDED b x=1")
    until(lambda: not registration.backlog)
    harness.timers.go_on(60 * (1 + JITTER))
    notes.heard("ADDED a x=1", "ADDED b x=1", "SYNC a x=1", "SYNC b x=1")
    until(lambda: len(pairs) == 2)
    assert pairs[0][0] == pairs[0][1]
    assert pairs[0][0] is not pairs[0][1]
    assert notes.events[2].changes() == []


def test_each_handler_has_its_own_period() -> None:
    """S5: the informer's, unless it names another; 0 is never."""
    harness = Harness(resync=100)
    handlers = {period: Notes() for period in (None, 30, 0)}
    registrations = [harness.add(each, resync=n) for n, each in handlers.items()]
    harness.sync("a")
    for _ in range(300):
        until(lambda: not any(each.backlog for each in registrations))
        harness.timers.go_on(1)
    until(lambda: not any(each.backlog for each in registrations))
    syncs = {period: each.lines.count("SYNC a") for period, each in handlers.items()}
    assert syncs[0] == 0
    assert syncs[None] == 2
    assert syncs[30] in {9, 10}
    harness.close()


def test_a_resync_is_skipped_and_counted_while_the_last_is_unfinished(harness: Harness) -> None:
    """A handler that is slower than its period is not buried."""
    notes = SlowNotes()
    harness.add(notes, resync=10, name="slow")
    harness.sync("a")
    notes.let_go(1)
    until(lambda: harness.dispatcher.backlog["slow"] == 0)
    harness.timers.go_on(11)
    until(lambda: notes.lines == ["ADDED a", "SYNC a"])
    harness.timers.go_on(55)
    assert harness.metrics.counts["resyncs_skipped", "slow"] == 5
    assert harness.dispatcher.backlog["slow"] == 1
    notes.let_go()
    until(lambda: harness.dispatcher.backlog["slow"] == 0)
    harness.timers.go_on(11)
    notes.heard("ADDED a", "SYNC a", "SYNC a")


def test_a_resync_merges_with_what_is_to_be_told_anyway(harness: Harness) -> None:
    """S20: a handler that wants each key once hears it once."""
    notes = SlowNotes()
    harness.add(notes, resync=10, coalesce=True, name="mine")
    harness.sync("a", "b", x=0)
    notes.let_go(2)
    until(lambda: harness.dispatcher.backlog["mine"] == 0)
    harness.put("gate", x=0)
    until(lambda: len(notes.events) == 3)
    harness.put("a", x=1)
    harness.timers.go_on(11)
    harness.put("b", x=2)
    notes.let_go()
    notes.heard(
        "ADDED a x=0",
        "ADDED b x=0",
        "ADDED gate x=0",
        "UPDATED a x=1",
        "UPDATED b x=2",
        "SYNC gate x=0",
    )


def test_a_filter_holds_for_resyncs_too(harness: Harness) -> None:
    """And who hears only of changed values hears of none."""
    notes, changed = Notes(), Notes()
    harness.add(notes, resync=10, filter=lambda obj: obj["spec"]["x"] > 0)
    registration = harness.add(changed, when_changed=".spec.x")
    harness.sync("a", x=1)
    harness.put("b", x=0)
    notes.heard("ADDED a x=1")
    until(lambda: not any(harness.dispatcher.backlog.values()))
    harness.timers.go_on(11)
    notes.heard("ADDED a x=1", "SYNC a x=1")
    until(lambda: not registration.backlog)
    assert changed.lines == ["ADDED a x=1", "ADDED b x=0"]


@pytest.mark.parametrize("how", ["remove", "stop", "replace", "collect"])
def test_who_is_gone_is_resynced_no_more(harness: Harness, how: str) -> None:
    """No timer is left for it."""
    if how == "collect":
        harness = Harness(resync=10)
        stream = harness.dispatcher.events()
        assert len(harness.timers.waiting) == 1
        del stream
        harness.timers.go_on(20)
    else:
        registration = harness.add(Notes(), resync=10, name="mine")
        assert len(harness.timers.waiting) == 1
        if how == "remove":
            registration.remove()
        elif how == "stop":
            harness.dispatcher.stop()
        else:
            harness.add(on_event=print, name="mine")
    assert harness.timers.waiting == []


@pytest.mark.parametrize("period", [-1, 0.5, float("nan"), float("inf")])
def test_a_period_under_a_second_is_refused(harness: Harness, period: float) -> None:
    """S5."""
    with pytest.raises(ValueError, match="1 second and more"):
        harness.add(on_event=print, resync=period)


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


def test_s23_what_an_interrupt_leaves_of_a_stop_the_next_one_does(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a handler's first state is told that it never comes, in any case."""
    registrations = [harness.add(Notes()) for _ in range(3)]
    bell, rung = Bell(), Rung()
    bell.add(rung)
    registrations[-1].ring(bell)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FirstState, "end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harness.dispatcher.stop()
    assert not rung.count
    harness.dispatcher.stop()
    assert rung.count
    assert not any(each.wait_for_sync(LONG) for each in registrations)


class Rung:
    """Counts how often it was woken."""

    def __init__(self) -> None:
        self.count = 0

    def release(self) -> None:
        """Once more."""
        self.count += 1


def test_a_timer_that_no_thread_could_be_begun_for_is_not_called_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who set it was told so, and does without."""
    timers, called, over = Timers(object()), [], threading.Event()

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("dyninformer.delivery.dispatch.spawn", no_thread)
        with pytest.raises(RuntimeError):
            timers.call_later(0, lambda: called.append("failed"))
    timers.call_later(0, lambda: called.append("set"))
    timers.call_later(0.01, over.set)
    assert over.wait(LONG)
    assert called == ["set"]
