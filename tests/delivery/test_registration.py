"""What a user holds of a handler: whether it has synced, how far it is behind."""

from __future__ import annotations

import threading

import pytest

from dyninformer.delivery.registration import Registration
from tests.delivery.room import LONG, Held, Notes, Room, until

both = pytest.mark.parametrize("coalesce", [False, True])


@both
def test_a_handler_has_synced_when_it_has_finished_the_first_state(
    room: Room, coalesce: bool
) -> None:
    """S9: handled, not only queued; and the informer has to be synced."""
    notes = Held()
    registration = room.dispatcher.add(notes, coalesce=coalesce)
    room.relist("a", "b", first=True)
    assert notes.begun.wait(LONG)
    assert not registration.has_synced()
    room.dispatcher.synced()
    notes.let_go(1)
    until(lambda: len(notes.events) == 2)
    assert not registration.wait_for_sync(0.01)
    notes.let_go(1)
    assert registration.wait_for_sync(LONG)
    assert registration.has_synced()


@both
def test_it_is_synced_at_once_if_there_is_nothing(room: Room, coalesce: bool) -> None:
    """No event has to come for it."""
    early = room.dispatcher.add(Notes(), coalesce=coalesce)
    assert not early.has_synced()
    room.sync()
    late = room.dispatcher.add(Notes(), coalesce=coalesce)
    assert early.has_synced()
    assert late.has_synced()


@both
def test_it_is_never_unsynced_again(room: Room, coalesce: bool) -> None:
    """Neither by events, nor by removal, nor by a stop."""
    notes = Held()
    registration = room.dispatcher.add(notes, coalesce=coalesce)
    room.sync()
    room.put("a")
    assert notes.begun.wait(LONG)
    assert registration.has_synced()
    registration.remove()
    assert registration.has_synced()
    room.dispatcher.stop()
    assert registration.has_synced()
    assert registration.wait_for_sync()
    notes.let_go()


@both
def test_objects_that_are_deleted_before_they_are_told_do_not_keep_it_from_syncing(
    room: Room, coalesce: bool
) -> None:
    """client-go's test of HasSynced with deletions."""
    notes = Held()
    registration = room.dispatcher.add(notes, coalesce=coalesce)
    room.sync("a", "b", "c")
    assert notes.begun.wait(LONG)
    room.delete("b")
    room.delete("c")
    assert not registration.has_synced()
    notes.let_go()
    assert registration.wait_for_sync(LONG)
    if coalesce:
        assert notes.lines == ["ADDED a"]
    else:
        assert notes.lines[:3] == ["ADDED a", "ADDED b", "ADDED c"]


def test_events_that_are_filtered_away_or_fail_count_as_handled(room: Room) -> None:
    """What a handler does with them is its own affair."""

    def fail(event: object) -> None:
        raise ValueError

    room.sync("a", "b")
    assert room.dispatcher.add(Notes(), filter=lambda obj: False).wait_for_sync(LONG)
    assert room.dispatcher.add(on_event=fail).wait_for_sync(LONG)


@pytest.mark.parametrize("how", ["remove", "stop"])
def test_a_wait_ends_when_it_can_come_to_nothing(room: Room, how: str) -> None:
    """A removed handler, or a stopped informer, will not sync any more."""
    registration = room.dispatcher.add(Notes())
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(registration.wait_for_sync()))
    waiter.start()
    if how == "remove":
        registration.remove()
    else:
        room.dispatcher.stop()
    waiter.join(LONG)
    assert answers == [False]


def test_a_handler_that_waits_for_itself_is_told_the_truth_at_once(room: Room) -> None:
    """The events it would wait for come after the one it is in."""
    answers: list[bool] = []
    registrations: list[Registration] = []

    def wait(event: object) -> None:
        answers.append(registrations[0].wait_for_sync())

    with room.store.lock:
        registrations.append(room.dispatcher.add(on_event=wait))
        room.sync("a", "b")
    assert registrations[0].wait_for_sync(LONG)
    assert answers == [False, False]


def test_it_shows_its_name_and_backlog(room: Room) -> None:
    """As a user would print it."""
    registration = room.dispatcher.add(Notes(), name="mine")
    assert repr(registration) == "<Registration mine backlog=0>"
    registration.remove()
    assert repr(registration) == "<Registration mine removed>"
