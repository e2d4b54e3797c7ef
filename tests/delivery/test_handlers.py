"""What a user gives to be told, and what it is told when; and what is held of a handler."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dyninformer.delivery.handlers import Handler, Registration
from dyninformer.types import Object
from tests.delivery.harness import LONG, Harness, Notes, SlowNotes, until


class Methods:
    """A handler as client-go has them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_add(self, obj: Object) -> None:
        """New."""
        self.calls.append(("add", obj["spec"]))

    def on_update(self, old: Object, new: Object) -> None:
        """Changed."""
        self.calls.append(("update", old["spec"], new["spec"]))

    def on_delete(self, obj: Object) -> None:
        """Gone."""
        self.calls.append(("delete", obj["spec"]))


def test_an_option_that_does_not_exist_is_named_with_the_likely_one() -> None:
    """For those who run no type checker."""
    with pytest.raises(TypeError, match=r"no option 'on_updated': .*did you mean on_update\?"):
        Handler(on_updated=print)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_each_type_has_its_callback(harness: Harness) -> None:
    """on_add(obj), on_update(old, new), on_delete(obj)."""
    handler = Methods()
    harness.add(handler)
    harness.put("a", x=1)
    harness.put("a", x=2)
    harness.delete("a")
    until(lambda: len(handler.calls) == 3)
    assert handler.calls == [
        ("add", {"x": 1}),
        ("update", {"x": 1}, {"x": 2}),
        ("delete", {"x": 2}),
    ]


def test_both_objects_of_an_update_are_the_handlers_own(harness: Harness) -> None:
    """Whether they were unpacked or at hand, and whoever else was given them."""
    spoiled: list[tuple[Object, Object]] = []

    def spoil(old: Object, new: Object) -> None:
        spoiled.append((dict(old["spec"]), dict(new["spec"])))
        old["spec"]["x"] = new["spec"]["x"] = "spoiled"

    for _ in range(2):
        harness.add(on_update=spoil)
    for number in range(200):
        harness.put("a", x=number)
    until(lambda: len(spoiled) == 2 * 199)
    expected = [({"x": number}, {"x": number + 1}) for number in range(199) for _ in range(2)]
    assert sorted(spoiled, key=lambda pair: pair[0]["x"]) == expected
    assert harness.store.codec.decode(harness.store.get("a") or b"")["spec"] == {"x": 199}


def test_callbacks_may_be_given_by_themselves_and_some_left_out(harness: Harness) -> None:
    """What nobody listens to is passed over."""
    gone: list[Object] = []
    registration = harness.add(on_delete=gone.append)
    harness.put("a", x=1)
    harness.put("a", x=2)
    harness.delete("a")
    until(lambda: not registration.backlog)
    assert [obj["spec"] for obj in gone] == [{"x": 2}]


def test_on_event_gets_all_besides_the_others(harness: Harness) -> None:
    """One registration may have both."""
    calls: list[str] = []
    harness.add(
        on_add=lambda obj: calls.append("add"), on_event=lambda event: calls.append(event.type)
    )
    harness.put("a")
    harness.put("a", x=2)
    until(lambda: len(calls) == 3)
    assert calls == ["add", "ADDED", "UPDATED"]


async def coroutine(obj: Object) -> None:
    """What no handler may be."""


async def generator(obj: Object) -> AsyncIterator[None]:
    """Neither."""
    yield


class Awaitable:
    """Nor that."""

    async def __call__(self, obj: Object) -> None:
        """Called as a function."""


@pytest.mark.parametrize(
    "callback", [coroutine, generator, Awaitable(), functools.partial(coroutine, {})]
)
@pytest.mark.parametrize("place", ["on_add", "on_update", "on_delete", "on_event", "filter"])
def test_a_coroutine_function_is_refused(callback: Any, place: str) -> None:
    """The error names the module that takes one."""
    callbacks: Any = {"on_event": print, place: callback}
    with pytest.raises(TypeError, match=rf"{place} is a coroutine .*dyninformer\.aio"):
        Handler(**callbacks)


def test_what_is_no_handler_is_refused_with_the_fix() -> None:
    """Nothing at all, a bare function, an object without the methods, a callback twice."""
    with pytest.raises(TypeError, match="one of on_add, on_update, on_delete and on_event"):
        Handler()
    with pytest.raises(TypeError, match="say for what: on_event="):
        Handler(print)
    with pytest.raises(TypeError, match=r"object .*none of the methods on_add"):
        Handler(object())
    with pytest.raises(TypeError, match="on_add is given twice"):
        Handler(Methods(), on_add=print)
    with pytest.raises(TypeError, match="on_add is 5: give a function"):
        Handler(on_add=5)  # type: ignore[arg-type] # what a user may do all the same
    with pytest.raises(ValueError, match="when_changed is empty"):
        Handler(on_event=print, when_changed=[])


def test_a_filter_turns_updates_into_entering_and_leaving(harness: Harness) -> None:
    """What enters is ADDED, what leaves is DELETED with the object that was told."""
    notes = Notes()
    harness.add(notes, filter=lambda obj: obj["spec"]["x"] > 0)
    for x in (0, 1, 2, 0, 0, 3):
        harness.put("a", x=x)
    harness.delete("a")
    harness.put("b", x=0)
    harness.delete("b")
    harness.put("end", x=1)
    notes.heard(
        "ADDED a x=1",
        "UPDATED a x=2",
        "DELETED a x=2",
        "ADDED a x=3",
        "DELETED a x=3",
        "ADDED end x=1",
    )
    assert notes.events[0].old is None
    assert notes.events[2].old is None


def test_a_filter_is_consistent_when_changes_are_merged(harness: Harness) -> None:
    """Membership goes by what the handler was told, whatever happened in between."""
    notes = SlowNotes()
    harness.sync("in", "out", "gate", x=1)
    harness.put("out", x=0)
    registration = harness.add(notes, filter=lambda obj: obj["spec"]["x"] > 0, coalesce=True)
    notes.let_go(2)
    until(lambda: len(notes.events) == 2 and registration.backlog == 0)
    harness.put("gate", x=2)
    until(lambda: len(notes.events) == 3)
    harness.put("in", x=0)
    harness.delete("in", x=0)  # it was told, so it is gone; with its last state
    harness.put("out", x=5)
    harness.delete("out", x=5)  # it was never told
    notes.let_go()
    notes.heard("ADDED in x=1", "ADDED gate x=1", "UPDATED gate x=2", "DELETED in x=0")
    until(lambda: registration.backlog == 0)
    assert len(notes.events) == 4


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit("x"), KeyboardInterrupt()])
def test_a_filter_that_raises_costs_that_event_alone(
    harness: Harness, caplog: Any, error: BaseException
) -> None:
    """It is the handler's failure as any other, whatever it raises."""
    notes = Notes()

    def picky(obj: Object) -> bool:
        if "x" not in obj["spec"]:
            raise error
        return True

    harness.add(notes, filter=picky, name="picky")
    harness.put("a")
    harness.put("b", x=1)
    notes.heard("ADDED b x=1")
    assert harness.metrics.counts["handler_errors", "picky"] == 1
    assert "picky of certificates.v1.cert-manager.io failed on a" in caplog.text


@pytest.mark.parametrize("paths", [".spec.x", [".spec.x", "{.spec.z[*]}"]])
def test_when_changed_hears_of_updates_only_where_a_value_changes(
    harness: Harness, paths: str | list[str]
) -> None:
    """Added and deleted objects are told always."""
    notes = Notes()
    harness.add(notes, when_changed=paths)
    harness.put("a", x=1, y=1)
    harness.put("a", x=1, y=2)
    harness.put("a", x=2, y=2)
    harness.put("a", y=2)
    harness.put("a", y=3)
    harness.delete("a", y=3)
    notes.heard("ADDED a x=1 y=1", "UPDATED a x=2 y=2", "UPDATED a y=2", "DELETED a y=3")


def test_when_changed_and_filter_go_together(harness: Harness) -> None:
    """Who enters or leaves is told, whether or not the value changed."""
    notes = Notes()
    harness.add(notes, filter=lambda obj: obj["spec"]["y"] > 0, when_changed=".spec.x")
    for y in (0, 1, 2, 0):
        harness.put("a", x=1, y=y)
    harness.put("a", x=2, y=1)
    harness.put("a", x=3, y=1)
    notes.heard("ADDED a x=1 y=1", "DELETED a x=1 y=2", "ADDED a x=2 y=1", "UPDATED a x=3 y=1")


def test_when_changed_and_a_resync_of_its_own_contradict_each_other(harness: Harness) -> None:
    """A resync tells of what did not change."""
    with pytest.raises(ValueError, match="give one of them"):
        harness.add(on_event=print, when_changed=".spec.x", resync=5)


def test_a_handler_is_named_for_what_it_is(harness: Harness) -> None:
    """By its type or its function; two of a name are told apart."""

    def watch_pods(event: object) -> None:
        """Hear of nothing."""

    add = harness.add
    names = [
        add(Notes()).name,
        add(Notes()).name,
        add(on_event=watch_pods).name,
        add(on_add=lambda obj: None).name,
        add(Notes(), name="mine").name,
    ]
    assert names == ["Notes", "Notes-2", "watch_pods", "on_add", "mine"]


both = pytest.mark.parametrize("coalesce", [False, True])


@both
def test_a_handler_has_synced_when_it_has_finished_the_first_state(
    harness: Harness, coalesce: bool
) -> None:
    """S9: handled, not only queued; and the informer has to be synced."""
    notes = SlowNotes()
    registration = harness.add(notes, coalesce=coalesce)
    harness.relist("a", "b", first=True)
    assert notes.begun.wait(LONG)
    assert not registration.has_synced()
    harness.dispatcher.synced()
    notes.let_go(1)
    until(lambda: len(notes.events) == 2)
    assert not registration.wait_for_sync(0.01)
    notes.let_go(1)
    assert registration.wait_for_sync(LONG)
    assert registration.has_synced()


@both
def test_it_is_synced_at_once_if_there_is_nothing(harness: Harness, coalesce: bool) -> None:
    """No event has to come for it."""
    early = harness.add(Notes(), coalesce=coalesce)
    assert not early.has_synced()
    harness.sync()
    late = harness.add(Notes(), coalesce=coalesce)
    assert early.has_synced()
    assert late.has_synced()


@both
def test_it_is_never_unsynced_again(harness: Harness, coalesce: bool) -> None:
    """Neither by events, nor by removal, nor by a stop."""
    notes = SlowNotes()
    registration = harness.add(notes, coalesce=coalesce)
    harness.sync()
    harness.put("a")
    assert notes.begun.wait(LONG)
    assert registration.has_synced()
    registration.remove()
    assert registration.has_synced()
    harness.dispatcher.stop()
    assert registration.has_synced()
    assert registration.wait_for_sync()
    notes.let_go()


@both
def test_objects_that_are_deleted_before_they_are_told_do_not_keep_it_from_syncing(
    harness: Harness, coalesce: bool
) -> None:
    """client-go's test of HasSynced with deletions."""
    notes = SlowNotes()
    registration = harness.add(notes, coalesce=coalesce)
    harness.sync("a", "b", "c")
    assert notes.begun.wait(LONG)
    harness.delete("b")
    harness.delete("c")
    assert not registration.has_synced()
    notes.let_go()
    assert registration.wait_for_sync(LONG)
    if coalesce:
        assert notes.lines == ["ADDED a"]
    else:
        assert notes.lines[:3] == ["ADDED a", "ADDED b", "ADDED c"]


def test_events_that_are_filtered_away_or_fail_count_as_handled(harness: Harness) -> None:
    """What a handler does with them is its own affair."""

    def fail(event: object) -> None:
        raise ValueError

    harness.sync("a", "b")
    assert harness.add(Notes(), filter=lambda obj: False).wait_for_sync(LONG)
    assert harness.add(on_event=fail).wait_for_sync(LONG)


@pytest.mark.parametrize("how", ["remove", "stop"])
def test_a_wait_ends_when_it_can_come_to_nothing(harness: Harness, how: str) -> None:
    """A removed handler, or a stopped informer, will not sync any more."""
    registration = harness.add(Notes())
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(registration.wait_for_sync()))
    waiter.start()
    if how == "remove":
        registration.remove()
    else:
        harness.dispatcher.stop()
    waiter.join(LONG)
    assert answers == [False]


def test_a_handler_that_waits_for_itself_is_told_the_truth_at_once(harness: Harness) -> None:
    """The events it would wait for come after the one it is in."""
    answers: list[bool] = []
    registrations: list[Registration] = []

    def wait(event: object) -> None:
        answers.append(registrations[0].wait_for_sync())

    with harness.store.lock:
        registrations.append(harness.add(on_event=wait))
        harness.sync("a", "b")
    assert registrations[0].wait_for_sync(LONG)
    assert answers == [False, False]


def test_it_shows_its_name_and_backlog(harness: Harness) -> None:
    """As a user would print it."""
    registration = harness.add(Notes(), name="mine")
    assert repr(registration) == "<Registration mine backlog=0>"
    registration.remove()
    assert repr(registration) == "<Registration mine removed>"
