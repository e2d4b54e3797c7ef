"""What one handler is yet to be told: steps, walks over many, and what merges them (S20)."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.delivery.events import Event
from dyninformer.delivery.queue import (
    ChangesWalk,
    CoalescingQueue,
    Consumer,
    HandlerQueue,
    OrderedQueue,
    Step,
    ViewWalk,
    merged,
)
from dyninformer.store.decide import Delta
from dyninformer.store.transforms import strip
from tests.delivery.harness import GVR, Harness, SlowNotes, until


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


@pytest.mark.parametrize("kind", [OrderedQueue, CoalescingQueue])
@given(held=st.sets(keys), acts=acts)
def test_whatever_comes_the_steps_lead_to_what_is_held(
    kind: type[HandlerQueue], held: set[str], acts: list[tuple[str, str]]
) -> None:
    """Each step of a key begins where the last one ended, and the last ends at the store."""
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
        assert kind is OrderedQueue or queue.backlog <= 6
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
