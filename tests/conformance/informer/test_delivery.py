"""Who is told, in what order: S8-S11, S16, S20, S21."""

from __future__ import annotations

import asyncio
import logging
import threading
import tracemalloc
from functools import partial
from typing import Any

import pytest

from dyninformer import Event, GenericInformer, StoppedError
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.faults import Call, Faults, HttpStatus, StreamError
from tests.conformance.cluster import Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    PATIENCE,
    WIDGETS,
    Counts,
    Heard,
    on_embedded,
    replayed,
    seen,
)
from tests.conformance.shapes import widget
from tests.conformance.wire import until


class Gate:
    """Blocks a handler at its first event until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, event: Event) -> None:
        """Block."""
        self.entered.set()
        assert self._open.wait(PATIENCE)

    def open(self) -> None:
        """Let it go on."""
        self._open.set()


def gated(found: GenericInformer, widgets: Collection, **options: Any) -> tuple[Gate, Heard]:
    """A handler that is stuck in its first event, which is of an object named "gate"."""
    gate = Gate()
    heard = Heard(gate)
    found.informer.add_event_handler(heard, **options)
    widgets.fill("gate")
    assert gate.entered.wait(PATIENCE)
    return gate, heard


# -- S8: order ---


def test_s08_a_handler_hears_in_order_and_waits_for_no_other(
    running: Running, widgets: Collection
) -> None:
    """One that is stuck holds up nobody else, and hears the same afterwards."""
    found = running()
    gate, slow = gated(found, widgets)
    quick = Heard()
    found.informer.add_event_handler(quick)
    expected = [("ADDED", "gate")]
    for name in "abc":
        widgets.fill(name)
        widgets.merge(name, {"spec": {"size": 1}})
        expected += [("ADDED", name), ("UPDATED", name)]
    assert quick.wait_count(7) == expected
    assert slow.told == []
    gate.open()
    assert slow.wait_count(7) == expected


def test_s08_a_handler_is_called_one_event_at_a_time(running: Running, widgets: Collection) -> None:
    """However fast events come, no two callbacks of a handler overlap."""
    found = running()
    inside, overlaps = threading.Lock(), []

    def check(event: Event) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(event)
            return
        threading.Event().wait(0.002)
        inside.release()

    heard = Heard(check)
    found.informer.add_event_handler(heard)
    widgets.fill(*(f"w{number}" for number in range(20)))
    heard.wait_count(20)
    assert overlaps == []


@on_embedded
def test_s08_a_relist_tells_deletions_first_then_the_rest_in_list_order(
    faults: Faults, server: ApiServer, running: Running, widgets: Collection
) -> None:
    """An object that goes before one that comes: an index never has both."""
    widgets.fill("b", "d", "z")

    def change() -> None:
        server.create(widget("a"), widgets.namespace)
        server.patch("widgets.ex.io/b", {"spec": {"size": 1}}, widgets.namespace)
        server.create(widget("c"), widgets.namespace)
        server.delete("widgets.ex.io/z", widgets.namespace)
        server.delete("widgets.ex.io/d", widgets.namespace)

    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    add(StreamError(410, after_lines=4))
    add(Call(function=change), skip=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    told = heard.wait_count(8)[3:]
    assert sorted(told[:2]) == [("DELETED", "d"), ("DELETED", "z")]
    assert told[2:] == [("ADDED", "a"), ("UPDATED", "b"), ("ADDED", "c")]


# -- S9: who comes late ---


def test_s09_a_handler_added_before_the_sync_hears_the_first_state(
    factories: Factories, widgets: Collection
) -> None:
    """As ADDED with initial; it has synced when it has handled all of it."""
    widgets.fill("a", "b")
    factory = factories()
    found, heard = factory.for_resource(WIDGETS), Heard()
    registration = found.informer.add_event_handler(heard)
    assert not registration.has_synced()
    factory.start()
    assert registration.wait_for_sync(PATIENCE)
    assert heard.told == [("ADDED", "a"), ("ADDED", "b")]
    assert all(event.initial for event in heard.events)
    widgets.fill("c")
    assert not heard.wait("ADDED", "c").initial
    assert registration.has_synced()


def test_s09_a_handler_added_late_misses_nothing_and_hears_nothing_twice(
    running: Running, widgets: Collection
) -> None:
    """Handlers that come while objects are written all end with the server's state."""
    found = running()
    widgets.fill(*(f"old{number}" for number in range(10)))
    late: list[Heard] = []
    for number in range(20):
        widgets.fill(f"w{number}")
        widgets.merge(f"old{number % 10}", {"spec": {"size": number}})
        late.append(Heard())
        found.informer.add_event_handler(late[-1])
    seen(found.informer, widgets.fill("last")[0])
    held = {f"{widgets.namespace}/{o['metadata']['name']}": o for o in found.lister}
    for each in late:
        each.wait("ADDED", "last")
        assert replayed(each.events) == held


def test_s09_without_initial_events_a_handler_has_synced_at_once(running: Running) -> None:
    """On a synced informer that holds nothing there is nothing to wait for."""
    registration = running().informer.add_event_handler(Heard())
    assert registration.has_synced()


def test_s09_initial_events_count_as_handled_though_filtered_or_failed(
    running: Running, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that raised, and one whose filter took nothing, have synced."""
    widgets.fill("a", "b")
    informer = running().informer

    def fail(event: Event) -> None:
        raise RuntimeError(event.name)

    with caplog.at_level(logging.CRITICAL, "dyninformer"):
        failing = informer.add_event_handler(on_event=fail)
        choosy = informer.add_event_handler(Heard(), filter=lambda obj: False)
        assert failing.wait_for_sync(PATIENCE)
        assert choosy.wait_for_sync(PATIENCE)


def test_s09_a_filter_makes_updates_enter_and_leave(running: Running, widgets: Collection) -> None:
    """An update that enters is ADDED, one that leaves is DELETED with the old object."""
    heard = Heard()
    running().informer.add_event_handler(heard, filter=lambda obj: obj["spec"]["size"] > 5)
    widgets.fill("a", size=1)
    widgets.merge("a", {"spec": {"size": 6}})
    widgets.merge("a", {"spec": {"size": 7}})
    widgets.merge("a", {"spec": {"size": 2}})
    assert heard.wait_count(3) == [("ADDED", "a"), ("UPDATED", "a"), ("DELETED", "a")]
    assert heard.of("a")[2].object["spec"]["size"] == 7


# -- S10: handlers that raise ---


def test_s10_a_handler_that_raises_gets_the_next_event(
    running: Running, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """SystemExit too is logged with the key and counted; others and the stream go on."""
    counts = Counts()
    found = running(metrics=counts)

    def fail(event: Event) -> None:
        if event.name == "bad":
            raise SystemExit(3)

    failing, fine = Heard(fail), Heard()
    found.informer.add_event_handler(failing)
    found.informer.add_event_handler(fine)
    widgets.fill("bad", "good")
    failing.wait("ADDED", "good")
    fine.wait("ADDED", "good")
    assert counts["handler_errors"] == 1
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert f"{widgets.namespace}/bad" in record.getMessage()


# -- S11: removing and stopping ---


def test_s11_no_callback_begins_after_a_removal(running: Running, widgets: Collection) -> None:
    """One that runs goes on, what is queued is not told, a second removal is fine."""
    found = running()
    gate = Gate()
    heard = Heard(gate)
    registration = found.informer.add_event_handler(heard)
    widgets.fill("gate")
    assert gate.entered.wait(PATIENCE)
    seen(found.informer, widgets.fill("a")[0])
    assert registration.backlog == 2
    registration.remove()
    registration.remove()
    found.informer.remove_event_handler(registration)
    gate.open()
    heard.wait("ADDED", "gate")
    after = Heard()
    found.informer.add_event_handler(after)
    widgets.fill("b")
    after.wait("ADDED", "b")
    assert heard.told == [("ADDED", "gate")]
    assert registration.backlog == 0


def test_s11_a_handler_can_remove_itself(running: Running, widgets: Collection) -> None:
    """From its own callback, which waits for nothing."""
    found = running()
    registrations: list[Any] = []
    heard = Heard(lambda event: registrations[0].remove())
    registrations.append(found.informer.add_event_handler(heard))
    after = Heard()
    found.informer.add_event_handler(after)
    widgets.fill("a", "b")
    heard.wait("ADDED", "a")
    after.wait("ADDED", "b")
    assert heard.told == [("ADDED", "a")]


def test_s11_a_callback_can_shut_its_factory_down(
    factories: Factories, widgets: Collection
) -> None:
    """It signals and returns, though the callback itself still runs."""
    factory = factories()
    returned = threading.Event()

    def end(event: Event) -> None:
        factory.shutdown()
        returned.set()

    factory.for_resource(WIDGETS).informer.add_event_handler(on_event=end)
    factory.sync(PATIENCE)
    widgets.fill("a")
    assert returned.wait(PATIENCE)
    assert factory.wait(PATIENCE)
    assert factory.shutdown(5)


@on_embedded
def test_s11_a_shutdown_names_the_handler_that_is_stuck(
    factories: Factories, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """It returns false at its timeout; queued events are dropped and counted."""
    counts = Counts()
    factory = factories(metrics=counts)
    found = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    gate, heard = gated(found, widgets, name="snail")
    seen(found.informer, widgets.fill("a", "b")[1])
    assert not factory.shutdown(0.05)
    assert "snail" in caplog.text
    gate.open()
    assert factory.shutdown(5)
    assert heard.told == [("ADDED", "gate")]
    assert counts["dropped_events"] == 2


def test_s11_a_shutdown_ends_every_wait(factories: Factories, widgets: Collection) -> None:
    """Events, waits for objects, for versions, for syncs and for the end all return."""
    factory = factories()
    found = factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    informer = found.informer
    ended: list[object] = []

    def iterate() -> None:
        ended.append(list(informer.events()))

    def stops(act: Any) -> Any:
        def run() -> None:
            with pytest.raises(StoppedError):
                act()
            ended.append(True)

        return run

    waits = [
        iterate,
        lambda: ended.append(factory.wait()),
        stops(lambda: informer.wait_for("create", name="x", namespace=widgets.namespace)),
        stops(lambda: informer.wait_for_version("999999999999")),
    ]
    threads = [threading.Thread(target=each, daemon=True) for each in waits]
    for thread in threads:
        thread.start()
    assert factory.shutdown(5)
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ended) == len(waits)


@on_embedded
def test_s11_all_threads_are_daemons_with_names(running: Running, widgets: Collection) -> None:
    """A stack dump says what each is for, and none keeps the interpreter."""
    before = set(threading.enumerate())
    found = running()
    gate, _ = gated(found, widgets, name="mine")
    threads = [thread for thread in threading.enumerate() if thread not in before]
    gate.open()
    names = sorted(thread.name for thread in threads)
    assert all(thread.daemon for thread in threads)
    assert all(name.startswith("dyninformer ") for name in names)
    assert "dyninformer widgets.v1.ex.io handler mine" in names


@on_embedded
def test_s11_leaving_the_block_stops_everything(factories: Factories) -> None:
    """A factory is a context manager."""
    with factories() as factory:
        informer = factory.for_resource(WIDGETS).informer
        factory.sync(PATIENCE)
    assert informer.is_stopped()
    assert informer.status().state == "stopped"


# -- S16: what a stopped or started informer refuses ---


@on_embedded
def test_s16_a_stopped_informer_takes_nothing_new(running: Running) -> None:
    """Handlers, streams and indexes are StoppedErrors; removing a handler is fine."""
    informer = running().informer
    registration = informer.add_event_handler(Heard())
    informer.stop(5)
    registration.remove()
    for attempt in (
        lambda: informer.add_event_handler(Heard()),
        informer.events,
        lambda: informer.add_indexers({"color": "{.spec.color}"}),
        lambda: informer.indexer.add_indexers({"color": "{.spec.color}"}),
        lambda: informer.set_transform(dict),
        informer.start,
    ):
        with pytest.raises(StoppedError):
            attempt()


@on_embedded
def test_s16_what_must_be_set_before_the_start_is_refused_after_it(running: Running) -> None:
    """A transform and a watch error handler."""
    informer = running().informer
    with pytest.raises(RuntimeError, match="call it before"):
        informer.set_transform(dict)
    with pytest.raises(RuntimeError, match="call it before"):
        informer.set_watch_error_handler(print)


@on_embedded
def test_s16_a_coroutine_function_is_no_handler(running: Running) -> None:
    """The error names the module that is for it."""

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match=r"dyninformer\.aio"):
        running().informer.add_event_handler(on_add=on_add)


# -- S20: merging ---


def test_s20_what_is_not_told_is_merged_per_key(running: Running, widgets: Collection) -> None:
    """Each key is told once, as the step from what was told to the newest."""
    found = running()
    widgets.fill("updated", "gone", "again", size=0)
    gate = Gate()
    heard = Heard(lambda event: gate(event) if event.name == "gate" else None)
    found.informer.add_event_handler(heard, coalesce=True)
    heard.wait_count(3)
    widgets.fill("gate")
    assert gate.entered.wait(PATIENCE)
    for size in (1, 2):
        widgets.merge("updated", {"spec": {"size": size}})
    widgets.merge("gone", {"spec": {"size": 9}})
    widgets.api.delete(widgets.at("gone"))
    widgets.api.delete(widgets.at("again"))
    widgets.fill("again", size=5)
    widgets.fill("new", size=1)
    widgets.merge("new", {"spec": {"size": 2}})
    widgets.fill("never")
    widgets.api.delete(widgets.at("never"))
    seen(found.informer, widgets.fill("last")[0])
    gate.open()
    heard.wait("ADDED", "last")
    assert heard.told[4:] == [
        ("UPDATED", "updated"),
        ("DELETED", "gone"),
        ("UPDATED", "again"),
        ("ADDED", "new"),
        ("ADDED", "last"),
    ]
    updated, new = heard.of("updated")[1], heard.of("new")[0]
    assert updated.old is not None
    assert (updated.old["spec"]["size"], updated.object["spec"]["size"]) == (0, 2)
    assert not updated.recreated
    assert heard.of("again")[1].recreated
    assert new.object["spec"]["size"] == 2


# -- S21: memory and threads ---


@on_embedded
def test_s21_initial_events_of_ten_handlers_cost_no_tenfold_memory(
    running: Running, widgets: Collection
) -> None:
    """A late replay is one item that walks a frozen view, whose entries are the store's."""
    filling = "x" * 2_000
    for number in range(200):
        widgets.create(widget(f"w{number}", note=f"{number} {filling}"))
    found = running(compress=False)
    until(lambda: len(found.lister) == 200)
    gates = [Gate() for _ in range(10)]
    tracemalloc.start()
    for gate in gates:
        found.informer.add_event_handler(Heard(gate))
    for gate in gates:
        assert gate.entered.wait(PATIENCE)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for gate in gates:
        gate.open()
    # The objects are 400 kB, and ten copies of them 4 MB. What other threads do is counted, too.
    assert held < 1_000_000


@on_embedded
def test_s21_a_handler_without_work_has_no_thread(running: Running, widgets: Collection) -> None:
    """It comes with the first event, and goes with the handler."""
    found, heard = running(), Heard()
    registration = found.informer.add_event_handler(heard, name="idler")

    def alive() -> bool:
        return any(thread.name.endswith("handler idler") for thread in threading.enumerate())

    assert not alive()
    widgets.fill("a")
    heard.wait("ADDED", "a")
    assert alive()
    widgets.fill("b")
    heard.wait("ADDED", "b")
    registration.remove()
    until(lambda: not alive(), PATIENCE)


@on_embedded
def test_s10_a_watch_error_handler_that_raises_harms_nothing(
    faults: Faults, factories: Factories, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told of each failure; what it raises is logged, and the informer syncs."""
    factory = factories()
    informer = factory.for_resource(WIDGETS).informer
    told: list[Exception] = []

    def fail(error: Exception) -> None:
        told.append(error)
        raise RuntimeError("of my own")

    informer.set_watch_error_handler(fail)
    faults.add(HttpStatus(503), verb="watch", namespace=widgets.namespace, times=1)
    factory.sync(PATIENCE)
    assert "503" in str(told[0])
    assert "of my own" in caplog.text
