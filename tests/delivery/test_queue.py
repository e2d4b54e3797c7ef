"""What one handler is yet to be told: steps, walks over many, and what merges them (S20)."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.delivery import queue as queues
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import Handler
from dyninformer.delivery.queue import (
    BoundedQueue,
    ChangesWalk,
    CoalescingQueue,
    Consumer,
    HandlerQueue,
    Mark,
    OrderedQueue,
    Step,
    ViewWalk,
    merged,
)
from dyninformer.store.decide import Delta
from dyninformer.store.transforms import strip
from tests.delivery.harness import GVR, Harness, Notes, SlowNotes, until

BOUND = 3


@pytest.fixture
def busy(harness: Harness) -> SlowNotes:
    """A handler that merges, and that is held up by an event of another object."""
    harness.sync("a", "b", x=0)
    notes = SlowNotes()
    harness.add(notes, coalesce=True)
    notes.let_go(2)
    until(lambda: len(notes.events) == 2)
    harness.put("gate")
    until(lambda: len(notes.events) == 3)
    del notes.events[:]
    return notes


def test_updates_become_one_from_what_was_told_to_the_newest(
    harness: Harness, busy: SlowNotes
) -> None:
    """S20: in the place of the first."""
    harness.put("a", x=1)
    harness.put("b", x=1)
    harness.put("a", x=2)
    busy.let_go()
    busy.heard("UPDATED a x=2", "UPDATED b x=1")
    assert busy.events[0].old is not None
    assert busy.events[0].old["spec"] == {"x": 0}
    assert busy.events[0].changes() == [(".spec.x", 0, 2)]


def test_added_and_updated_is_added(harness: Harness, busy: SlowNotes) -> None:
    """With the newest state, and nothing before it."""
    harness.put("c", x=1)
    harness.put("c", x=2)
    busy.let_go()
    busy.heard("ADDED c x=2")
    assert busy.events[0].old is None


def test_added_and_deleted_is_nothing(harness: Harness, busy: SlowNotes) -> None:
    """What comes after has a new place."""
    harness.put("c", x=1)
    harness.put("a", x=1)
    harness.delete("c", x=1)
    harness.put("c", x=3)
    busy.let_go()
    busy.heard("UPDATED a x=1", "ADDED c x=3")


def test_updated_and_deleted_is_deleted_with_the_last_state(
    harness: Harness, busy: SlowNotes
) -> None:
    """Whoever cleans up after an object needs its last state."""
    harness.put("a", x=1)
    harness.delete("a", x=1)
    busy.let_go()
    busy.heard("DELETED a x=1")


@pytest.mark.parametrize("uid", ["uid-a", "other"])
def test_deleted_and_added_is_updated(harness: Harness, busy: SlowNotes, uid: str) -> None:
    """Recreated, if it is another object."""
    harness.delete("a")
    harness.put("a", uid=uid, x=5)
    harness.put("a", uid=uid, x=6)
    busy.let_go()
    busy.heard("UPDATED a x=6")
    assert busy.events[0].recreated == (uid == "other")
    assert busy.events[0].old is not None


@pytest.mark.parametrize("uid", ["uid-a", "other"])
def test_deleted_and_added_is_recreated_though_a_transform_took_the_uid(uid: str) -> None:
    """S17: uid and version are those that the server sent."""
    harness = Harness()
    harness.store.set_transform(strip("metadata.uid", "metadata.resourceVersion"))
    harness.sync("a", x=0)
    stream = harness.dispatcher.events(coalesce=True)
    next(stream)
    harness.delete("a")
    harness.put("a", uid=uid, x=1)
    event = next(stream)
    assert event.type == "UPDATED"
    assert event.recreated == (uid == "other")
    assert event.object["metadata"] == {"name": "a"}
    assert event.resource_version == "3"
    harness.close()


def test_what_is_being_told_is_not_merged(harness: Harness, busy: SlowNotes) -> None:
    """What changes meanwhile is told afterwards."""
    harness.put("gate", x=1)
    harness.put("gate", x=2)
    busy.let_go()
    busy.heard("UPDATED gate x=2")


def test_the_backlog_is_at_most_one_event_for_each_key(harness: Harness) -> None:
    """However far behind the handler is."""
    notes = SlowNotes()
    registration = harness.add(notes, coalesce=True)
    for number in range(500):
        harness.put(f"k{number % 5}", x=number)
    assert registration.backlog <= 6  # one is being told, perhaps
    notes.let_go()
    until(lambda: not registration.backlog)
    assert len(notes.events) <= 10
    assert sorted(line.partition("x=")[2] for line in notes.lines[-5:]) == [
        "495",
        "496",
        "497",
        "498",
        "499",
    ]


def test_an_initial_event_that_is_merged_stays_initial(harness: Harness) -> None:
    """It was there when the handler came; only newer."""
    notes = SlowNotes()
    harness.sync("a", "b", "c", x=0)
    registration = harness.add(notes, coalesce=True)
    assert notes.begun.wait(10)
    harness.put("c", x=1)
    harness.delete("b", x=0)
    harness.put("d", x=1)
    notes.let_go()
    notes.heard("ADDED a x=0", "ADDED c x=1", "ADDED d x=1")
    assert [event.initial for event in notes.events] == [True, True, False]
    assert registration.wait_for_sync(10)


bounded = partial(BoundedQueue, most=3)
keys = st.sampled_from("abcd")
writes = st.sampled_from(["put", "put", "put", "recreate", "delete"])
others = st.sampled_from(["take", "take", "advance", "resync", "relist", "mark"])
acts = st.lists(st.tuples(writes, keys) | st.tuples(others, st.just("")), max_size=40)


class Told:
    """What a consumer of a queue knows, which every step has to fit."""

    def __init__(self, harness: Harness, queue: HandlerQueue) -> None:
        self.harness = harness
        self.queue = queue
        self.state: dict[str, Any] = {}
        self.given = False

    def take(self) -> bool:
        """Hear the next step; it starts where the last one of its key led to."""
        self.advance()
        step = self.queue.head()
        if step is None:
            return False
        assert self.queue.head() is step
        self.given = True
        event = Event(GVR, self.harness.store.codec, step)
        known = self.state.get(event.key)
        if event.type == "ADDED":
            assert known is None
            self.state[event.key] = event.object
        elif event.type == "DELETED":
            assert known is not None
            del self.state[event.key]
        else:
            assert known is not None
            assert event.old == known
            if event.type == "SYNC":
                assert event.object == known
            uids = (known["metadata"]["uid"], event.object["metadata"]["uid"])
            assert event.recreated == (uids[0] != uids[1])
            self.state[event.key] = event.object
        return True

    def advance(self) -> None:
        """Finish with it; twice is as once."""
        if self.given:
            self.queue.advance()
            self.queue.advance()
            self.given = False


def write(harness: Harness, act: str, key: str, number: int) -> None:
    """One event of a watch."""
    if act == "put":
        held = harness.store.get(key)
        uid = harness.store.codec.identity(held).uid if held else ""
        harness.put(key, uid=uid, x=number)
    elif act == "recreate":
        harness.put(key, uid=f"uid-{number}", x=number)
    elif (held := harness.store.get(key)) is not None:
        harness.delete(key, uid=harness.store.codec.identity(held).uid)


@pytest.mark.parametrize("kind", [OrderedQueue, CoalescingQueue, bounded])
@given(held=st.sets(keys), acts=acts)
def test_whatever_comes_the_steps_lead_to_what_is_held(
    kind: Callable[..., HandlerQueue], held: set[str], acts: list[tuple[str, str]]
) -> None:
    """Each step of a key begins where the last one ended, and the last ends at the store.

    One that merges has at most one of each key, and the one that is being told; one with a bound
    has so many one by one beside a walk, or is merged.
    """
    harness = Harness()
    store = harness.store
    harness.relist(*sorted(held), first=True, x=0)
    queue = kind(store, Consumer.AWAKE)

    def on_changes(changes: Any) -> None:
        if len(changes) == 1:
            queue.put(changes[:1])
        else:
            queue.put_changes(ChangesWalk(changes))

    store.on_changes = on_changes
    with store.lock:
        queue.put_walk(ViewWalk(store.view(), sync=False))
    told = Told(harness, queue)
    marks: list[int] = []
    for number, (act, key) in enumerate(acts):
        if act == "mark":
            with store.lock:
                queue.mark(lambda: marks.append(1))
        elif act == "resync":
            with store.lock:
                if not queue.walking:
                    queue.put_walk(ViewWalk(store.view(), sync=True))
        elif key:
            write(harness, act, key, number)
        else:
            own = {"take": told.take, "advance": told.advance}
            own.get(act, lambda: harness.relist("b", "c", "e", x=number))()  # noqa: B023 - now
        assert queue.backlog >= told.given
        assert kind is not CoalescingQueue or queue.backlog <= 6
        assert kind is not bounded or queue.backlog <= 3 + 5
        assert kind is bounded or not queue.overflows
    while told.take():
        pass
    held_now = {key: store.codec.decode(payload) for key, payload in store.view().items()}
    assert told.state == held_now
    assert (queue.backlog, queue.walking, len(marks)) == (0, False, acts.count(("mark", "")))


def kind(step: Delta | None) -> str:
    """A step in one word."""
    if step is None:
        return "nothing"
    if step.old is None:
        return "added"
    return "deleted" if step.new is None else "updated"


ADDED = Delta("k", None, b"1")
UPDATED = Delta("k", b"1", b"2")
DELETED = Delta("k", b"2", None, final_state_unknown=True)
SYNC = Step("k", b"1", b"1", sync=True)


@pytest.mark.parametrize(
    ("first", "then", "together"),
    [
        (ADDED, UPDATED, "added"),
        (ADDED, DELETED, "nothing"),
        (UPDATED, UPDATED, "updated"),
        (UPDATED, DELETED, "deleted"),
        (DELETED, ADDED, "updated"),
        (SYNC, UPDATED, "updated"),
        (SYNC, DELETED, "deleted"),
        (UPDATED, SYNC, "updated"),
        (ADDED, SYNC, "added"),
    ],
)
def test_two_steps_of_a_key_come_to_one(first: Delta, then: Delta, together: str) -> None:
    """S20: from what was told before the first to the newest."""
    step = merged(first, then)
    assert kind(step) == together
    if step is not None:
        assert (step.old, step.new) == (first.old, then.new)
        assert not (isinstance(step, Step) and step.sync)
        assert step.final_state_unknown == (then is DELETED)


def test_a_merged_deletion_keeps_both_the_told_and_the_last_state() -> None:
    """Who filters needs the one, who cleans up the other."""
    step = merged(UPDATED, DELETED)
    assert isinstance(step, Step)
    assert (step.old, step.last, step.new) == (b"1", b"2", None)


def test_steps_are_nothing_for_the_garbage_collector() -> None:
    """A backlog of a million costs it nothing."""
    assert not gc.is_tracked(Step("k", b"1", b"2"))


def test_a_walk_over_a_view_makes_its_steps_when_they_are_asked_for(harness: Harness) -> None:
    """The same again, each time, whatever became of the store."""
    harness.put("a")
    harness.put("b")
    late, resync = (ViewWalk(harness.store.view(), sync=sync) for sync in (False, True))
    held = harness.store.get("b")
    harness.delete("b")
    assert late.step(1) == late.step(1) == Delta("b", None, held, initial=True)
    assert resync.step(1) == Step("b", held, held, sync=True)
    assert (len(late), late.position("b"), late.position("c")) == (2, 1, None)


def test_a_walk_over_changes_has_them_as_they_were_told() -> None:
    """In their order."""
    changes = (DELETED, Delta("l", None, b"1", initial=True))
    walk = ChangesWalk(changes)
    assert [walk.step(at) for at in range(len(walk))] == list(changes)
    assert (walk.position("l"), walk.initial) == (1, False)


@pytest.mark.parametrize("kind", [OrderedQueue, CoalescingQueue])
def test_what_comes_right_before_a_wait_ends_it(
    harness: Harness, kind: type[OrderedQueue | CoalescingQueue]
) -> None:
    """The consumer has found nothing, and has not said yet that it sleeps: no bell was rung."""
    harness.sync("a")
    entry = harness.store.get("a")
    queue = kind(harness.store, Consumer.AWAKE)
    assert queue.head() is None
    with harness.store.lock:
        queue.put([Delta("a", None, entry)])
    assert queue.wait(0)


# A bound on what waits (max_backlog).


@pytest.fixture
def bounded_and_busy(harness: Harness) -> SlowNotes:
    """A handler with a bound, which knows a and b, and is held up by an event of the gate."""
    harness.sync("a", "b", x=0)
    notes = SlowNotes()
    harness.add(notes, max_backlog=BOUND, name="slow")
    notes.let_go(2)
    until(lambda: len(notes.events) == 2)
    harness.put("gate")
    until(lambda: len(notes.events) == 3)
    del notes.events[:]
    return notes


def overflows(harness: Harness) -> int:
    """How many were counted."""
    return harness.metrics.counts.get(("backlogs_merged", "slow"), 0)


def test_up_to_the_bound_each_change_is_told(harness: Harness, bounded_and_busy: SlowNotes) -> None:
    """The one that is being told counts."""
    harness.put("a", x=1)
    harness.put("a", x=2)
    bounded_and_busy.let_go()
    bounded_and_busy.heard("UPDATED a x=1", "UPDATED a x=2")
    assert overflows(harness) == 0


def test_s20_one_more_and_all_that_waits_is_merged_until_it_is_told(
    harness: Harness, bounded_and_busy: SlowNotes
) -> None:
    """In the place of the first, from what was told to the newest, and one by one after that."""
    for number in range(1, 6):
        harness.put("a", x=number)
        harness.put("b", x=number)
    harness.put("c", x=1)
    harness.delete("c", x=1)
    bounded_and_busy.let_go()
    bounded_and_busy.heard("UPDATED a x=5", "UPDATED b x=5")
    assert [event.changes() for event in bounded_and_busy.events] == [[(".spec.x", 0, 5)]] * 2
    until(lambda: not harness.dispatcher.longest_backlog)
    harness.put("a", x=6)
    until(lambda: len(bounded_and_busy.events) == 3)
    assert bounded_and_busy.lines[2:] == ["UPDATED a x=6"]


def test_s20_an_overflow_is_counted_and_warned_of_once(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """Each episode counts; the log has one warning a minute, with the bound and what to do."""
    caplog.set_level(logging.WARNING)
    harness.sync("a", x=0)
    notes = SlowNotes()
    registration = harness.add(notes, max_backlog=BOUND, name="slow")
    for episode in (1, 2):
        for number in range(10):
            harness.put("a", x=number + 10 * episode)
        assert registration.overflows == episode
        until(lambda: overflows(harness) == episode)  # noqa: B023 - now
        notes.let_go(5)
        until(lambda: not registration.backlog)
    warned = [each.getMessage() for each in caplog.records if "max_backlog" in each.getMessage()]
    assert len(warned) == 1
    assert "handler slow does not keep up: more than max_backlog=3 events waited" in warned[0]
    assert harness.metrics.gauges["backlog", "slow"] <= BOUND


def test_s20_what_is_there_when_a_handler_comes_does_not_count(harness: Harness) -> None:
    """It is a walk, which holds nothing of its own; each object of it is told."""
    keys = [f"k{number}" for number in range(50)]
    harness.sync(*keys, x=0)
    notes = Notes()
    registration = harness.add(notes, max_backlog=1)
    assert registration.wait_for_sync(10)
    assert (len(notes.events), registration.overflows) == (50, 0)


def test_s20_a_relist_alone_does_not_count(harness: Harness, bounded_and_busy: SlowNotes) -> None:
    """It is what an overflow would come to: the difference."""
    harness.relist("a", "b", "c", "d", "e", x=1)
    bounded_and_busy.let_go()
    until(lambda: not harness.dispatcher.longest_backlog)
    assert overflows(harness) == 0
    assert sorted(bounded_and_busy.lines) == [
        *("ADDED c x=1", "ADDED d x=1", "ADDED e x=1", "DELETED gate"),
        *("UPDATED a x=1", "UPDATED b x=1"),
    ]


def test_s20_a_relist_merges_with_what_comes_after_it(
    harness: Harness, bounded_and_busy: SlowNotes
) -> None:
    """However many changes, and whatever order they have come in."""
    harness.put("a", x=1)
    harness.relist("a", "b", "c", "gate", x=2)
    for number in range(3, 9):
        harness.put("c", x=number)
    harness.relist("a", "b", "gate", x=10)
    bounded_and_busy.let_go()
    until(lambda: not harness.dispatcher.longest_backlog)
    assert sorted(bounded_and_busy.lines) == [
        "UPDATED a x=10",
        "UPDATED b x=10",
        "UPDATED gate x=10",
    ]
    until(lambda: overflows(harness) == 1)  # another thread counts, once the lock is free


@pytest.mark.parametrize("uid", ["uid-a", "other"])
def test_s20_what_is_deleted_and_back_is_an_update(
    harness: Harness, bounded_and_busy: SlowNotes, uid: str
) -> None:
    """Recreated, if it is another object."""
    harness.delete("a")
    harness.put("a", uid=uid, x=5)
    for number in range(5):
        harness.put("b", x=number)
    bounded_and_busy.let_go()
    bounded_and_busy.heard("UPDATED a x=5", "UPDATED b x=4")
    assert bounded_and_busy.events[0].recreated == (uid == "other")


def test_s20_a_deletion_that_was_missed_says_so(
    harness: Harness, bounded_and_busy: SlowNotes
) -> None:
    """Merged or not."""
    for number in range(5):
        harness.put("a", x=number)
    harness.relist("gate")
    bounded_and_busy.let_go()
    until(lambda: len(bounded_and_busy.events) >= 2)
    assert {each.key for each in bounded_and_busy.events if each.type == "DELETED"} == {"a", "b"}
    assert all(each.final_state_unknown for each in bounded_and_busy.events if each.key in "ab")


def test_s20_a_filter_judges_from_what_was_told_to_what_is_held(harness: Harness) -> None:
    """What entered and left meanwhile was never there; what left is a deletion of what was told."""
    gate, heard = SlowNotes(), Notes()
    harness.sync("a", "b", "c", x=0)

    def hear(event: object) -> None:
        heard.events.append(event)  # type: ignore[arg-type]
        gate.on_event(event)  # type: ignore[arg-type]

    harness.add(on_event=hear, filter=lambda obj: obj["spec"]["x"] < 10, max_backlog=BOUND)
    gate.let_go(3)
    until(lambda: len(heard.events) == 3)
    harness.put("gate", x=1)
    until(lambda: len(heard.events) == 4)
    for key, ways in {"a": (1, 2, 50), "b": (50, 60, 7), "d": (1, 2, 99)}.items():
        for number in ways:
            harness.put(key, x=number)
    gate.let_go()
    until(lambda: not harness.dispatcher.longest_backlog)
    assert heard.lines[4:] == ["DELETED a x=0", "UPDATED b x=7"]


def test_s20_when_changed_compares_what_was_told_with_what_is_held(harness: Harness) -> None:
    """A value that is back where it was has not changed."""
    harness.sync("a", "b", x=0)
    gate, heard = SlowNotes(), Notes()

    def hear(event: object) -> None:
        heard.events.append(event)  # type: ignore[arg-type]
        gate.on_event(event)  # type: ignore[arg-type]

    harness.add(on_event=hear, when_changed=".spec.x", max_backlog=BOUND)
    gate.let_go(2)
    harness.put("gate", x=1)
    until(lambda: len(heard.events) == 3)
    for key, ways in {"a": (1, 2, 0), "b": (1, 2, 3)}.items():
        for number in ways:
            harness.put(key, x=number)
    gate.let_go()
    until(lambda: not harness.dispatcher.longest_backlog)
    assert heard.lines[3:] == ["UPDATED b x=3"]


def test_s20_a_handler_that_never_came_to_its_first_state_syncs_with_the_merged_one(
    harness: Harness,
) -> None:
    """Its mark keeps its place behind what was there, and what was merged into that is initial."""
    harness.sync("a", "b", x=0)
    notes = SlowNotes()
    registration = harness.add(notes, max_backlog=BOUND)
    assert notes.begun.wait(10)
    for number in range(1, 6):
        harness.put("b", x=number)
    assert not registration.has_synced()
    notes.let_go()
    notes.heard("ADDED a x=0", "ADDED b x=5")
    assert [each.initial for each in notes.events] == [True, True]
    assert registration.wait_for_sync(10)


def test_s20_a_resync_is_skipped_while_a_walk_is_under_way_and_told_after_it() -> None:
    """As with any other handler; merged with what changed meanwhile."""
    harness = Harness(resync=30)
    harness.sync("a", x=0)
    notes = SlowNotes()
    harness.add(notes, max_backlog=BOUND)
    assert notes.begun.wait(10)
    harness.timers.go_on(40)
    notes.let_go(1)
    harness.put("gate")
    until(lambda: len(notes.events) == 2)
    harness.timers.go_on(40)
    for number in range(1, 6):
        harness.put("a", x=number)
    notes.let_go()
    until(lambda: not harness.dispatcher.longest_backlog)
    assert notes.lines == ["ADDED a x=0", "ADDED gate", "UPDATED a x=5", "SYNC gate"]
    harness.close()


def test_s20_a_stream_has_a_bound_too(harness: Harness) -> None:
    """It takes no thread: whoever reads is late."""
    harness.sync("a", x=0)
    stream = harness.dispatcher.events(max_backlog=BOUND)
    assert next(stream).initial
    for number in range(9):
        harness.put("a", x=number)
    event = next(stream)
    assert event.changes() == [(".spec.x", 0, 8)]
    assert (stream.overflows, stream.take(0)) == (1, None)


def test_s20_a_resource_has_a_bound_for_those_that_say_none() -> None:
    """0 is none; one that merges always has no need of it."""
    harness = Harness(max_backlog=BOUND)
    harness.sync("a", x=0)
    streams = [
        harness.dispatcher.events(),
        harness.dispatcher.events(max_backlog=0),
        harness.dispatcher.events(max_backlog=5),
        harness.dispatcher.events(coalesce=True),
    ]
    for number in range(1, 6):
        harness.put("a", x=number)
    assert [stream.overflows for stream in streams] == [1, 0, 0, 0]
    assert [stream.backlog for stream in streams] == [1, 6, 6, 1]
    harness.close()


def test_s20_both_ways_to_merge_are_one_too_many() -> None:
    """Which is meant?"""
    with pytest.raises(ValueError, match="coalesce merges events however few wait"):
        Handler(on_event=print, coalesce=True, max_backlog=5)
    assert Handler(on_event=print, coalesce=True, max_backlog=0).coalesce


def test_s20_a_stop_counts_what_it_leaves_untold(
    harness: Harness, bounded_and_busy: SlowNotes
) -> None:
    """Merged steps, not the changes that they came from."""
    for number in range(9):
        harness.put("a", x=number)
        harness.put("b", x=number)
    harness.dispatcher.stop()
    bounded_and_busy.let_go()
    assert harness.metrics.counts["dropped_events", "slow"] == 2


def test_s20_a_merge_that_fails_leaves_all_as_it_was(harness: Harness) -> None:
    """S7: what could not be queued is queued later, and nothing is told twice."""
    harness.sync("a", "b", x=0)
    queue = BoundedQueue(harness.store, Consumer.AWAKE, most=2)
    harness.store.on_changes = queue.put

    def fail(_: HandlerQueue) -> None:
        raise MemoryError

    queue.tell_when_behind(fail)
    harness.put("a", x=1)
    assert queue.head() is not None
    harness.put("b", x=1)
    with pytest.raises(MemoryError):
        harness.put("a", x=2)
    assert (queue.overflows, queue.backlog, queue.missed) == (0, 3, True)
    queue.tell_when_behind(str)
    with harness.store.lock:
        queue.catch_up()
    assert (queue.overflows, queue.backlog, queue.missed) == (1, 3, False)
    assert [told.key for told in taken(queue)] == ["a", "b", "a"]


def taken(queue: HandlerQueue) -> list[Delta]:
    """All that is in it."""
    found = []
    while (step := queue.head()) is not None:
        found.append(step)
        queue.advance()
    return found


six_keys = st.sampled_from("abcdef")


@given(
    acts=st.lists(st.sampled_from(["put", "put", "put", "take", "mark"]), max_size=60),
    data=st.data(),
)
def test_s20_within_the_bound_it_is_as_without_one(acts: list[str], data: st.DataObject) -> None:
    """The same steps in the same order, as long as no more than so many wait."""
    harness = Harness()
    harness.sync()
    bounded = BoundedQueue(harness.store, Consumer.AWAKE, most=BOUND)
    plain = OrderedQueue(harness.store, Consumer.AWAKE)

    def on_changes(changes: Sequence[Delta]) -> None:
        bounded.put(changes)
        plain.put(changes)

    harness.store.on_changes = on_changes
    reached: list[str] = []
    for number, act in enumerate(acts):
        if act == "put":
            if plain.backlog < BOUND:
                harness.put(data.draw(st.sampled_from("abc")), x=number)
        elif act == "take":
            assert bounded.head() is plain.head()
            bounded.advance()
            plain.advance()
        else:
            with harness.store.lock:
                bounded.mark(lambda: reached.append("bounded"))
                plain.mark(lambda: reached.append("plain"))
    assert taken(bounded) == taken(plain)
    assert (bounded.overflows, reached.count("plain")) == (0, reached.count("bounded"))


@given(changes=st.lists(six_keys, max_size=200), takes=st.integers(1, 9))
def test_s20_it_never_holds_more_than_the_bound_or_one_of_each_key(
    changes: list[str], takes: int
) -> None:
    """However slow the consumer is, and however long that lasts."""
    harness = Harness()
    harness.sync()
    queue = BoundedQueue(harness.store, Consumer.AWAKE, most=BOUND)
    harness.store.on_changes = queue.put
    for number, key in enumerate(changes):
        held = harness.store.get(key)
        if held is not None and number % 3 == 0:
            harness.delete(key)
        else:
            harness.put(key, x=number)
        if number % takes == 0:
            queue.head()
            queue.advance()
        assert queue.backlog <= max(BOUND, len("abcdef"))
    assert len(taken(queue)) <= len("abcdef")
    assert not queue.overflows or len(changes) > BOUND


def test_a_queue_without_a_bound_is_warned_of_when_much_waits(
    harness: Harness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, again at ten times as much, and anew after it has caught up."""
    monkeypatch.setattr(queues, "MANY", 4)
    caplog.set_level(logging.WARNING)
    harness.sync("a", x=0)
    notes = SlowNotes()
    registration = harness.add(notes, name="slow")

    def warned() -> list[str]:
        return [
            each.getMessage() for each in caplog.records if "does not keep up" in each.getMessage()
        ]

    for _ in range(2):
        del caplog.records[:]
        for number in range(50):
            harness.put("a", x=number)
        until(lambda: len(warned()) == 2)
        assert "handler slow does not keep up" in warned()[0]
        assert "coalesce=True" in warned()[0]
        notes.let_go(100)
        until(lambda: not registration.backlog)
    assert registration.overflows == 0


def test_an_event_stream_that_nobody_reads_is_warned_of(
    harness: Harness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what it is: it has no name."""
    monkeypatch.setattr(queues, "MANY", 4)
    harness.sync()
    stream = harness.dispatcher.events()
    for number in range(9):
        harness.put("a", x=number)
    until(lambda: "an event stream does not keep up" in caplog.text)
    stream.close()


def test_a_mark_is_reached_when_what_was_merged_before_it_comes_to_nothing(
    harness: Harness,
) -> None:
    """Whoever waits for it is not left waiting."""
    harness.sync()
    queue = BoundedQueue(harness.store, Consumer.AWAKE, most=1)
    harness.store.on_changes = queue.put
    harness.put("a", x=1)
    reached: list[Mark | None] = []
    with harness.store.lock:
        queue.mark(lambda: reached.append(None))
    harness.delete("a")
    assert (queue.head(), len(reached)) == (None, 1)
