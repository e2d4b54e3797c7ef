"""Steps that are not the store's own, and walks over many."""

from __future__ import annotations

import gc

import pytest

from dyninformer.delivery.steps import ChangesWalk, Step, ViewWalk, merged
from dyninformer.store.changes import Change
from tests.delivery.room import Room


def kind(step: Change | None) -> str:
    """A step in one word."""
    if step is None:
        return "nothing"
    if step.old is None:
        return "added"
    return "deleted" if step.new is None else "updated"


ADDED = Change("k", None, b"1")
UPDATED = Change("k", b"1", b"2")
DELETED = Change("k", b"2", None, final_state_unknown=True)
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
def test_two_steps_of_a_key_come_to_one(first: Change, then: Change, together: str) -> None:
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


def test_a_walk_over_a_view_makes_its_steps_when_they_are_asked_for(room: Room) -> None:
    """The same again, each time, whatever became of the store."""
    room.put("a")
    room.put("b")
    late, resync = (ViewWalk(room.store.view(), sync=sync) for sync in (False, True))
    held = room.store.get("b")
    room.delete("b")
    assert late.step(1) == late.step(1) == Change("b", None, held, initial=True)
    assert resync.step(1) == Step("b", held, held, sync=True)
    assert (len(late), late.position("b"), late.position("c")) == (2, 1, None)


def test_a_walk_over_changes_has_them_as_they_were_told() -> None:
    """In their order."""
    changes = (DELETED, Change("l", None, b"1", initial=True))
    walk = ChangesWalk(changes)
    assert [walk.step(at) for at in range(len(walk))] == list(changes)
    assert (walk.position("l"), walk.initial) == (1, False)
