"""Whether a cache is fresh, and how it is found out: S35."""

from __future__ import annotations

import itertools
import re
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from dyninformer import InformerState, StaleCacheError, StoppedError
from dyninformer.testing.faults import Faults, HttpStatus, Refuse, WithholdBookmarks
from dyninformer.types import Object
from tests.conformance.cluster import Collection
from tests.conformance.informer.conftest import Asked, Factories, Running
from tests.conformance.informer.recorders import (
    CONFIG_MAPS,
    PATIENCE,
    WIDGETS,
    on_embedded,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.wire import until
from tests.transport.wires import Background


def test_s35_a_cache_that_waits_to_be_fresh_has_all_that_was_written_before(
    running: Running, widgets: Collection
) -> None:
    """Whatever comes first, the event or the answer to a question."""
    found = running()
    for number in range(5):
        widgets.fill(f"w{number}")
        found.informer.wait_fresh(timeout=PATIENCE)
        assert len(found.lister) == number + 1


@on_embedded
def test_s35_an_older_event_does_not_show_that_a_newer_one_has_come(
    running: Running, widgets: Collection
) -> None:
    """What comes after the call may have been written long before what is waited for."""
    begun, first, second = threading.Event(), threading.Event(), threading.Event()

    def slow(obj: Object) -> Object:
        begun.set()
        gate = first if obj["metadata"]["name"] == "first" else second
        gate.wait(PATIENCE)
        return obj

    found = running(transform=slow)
    widgets.fill("first")
    begun.wait(PATIENCE)
    widgets.fill("second")
    waiting = Background(lambda: found.informer.wait_fresh(timeout=PATIENCE))
    first.set()
    until(lambda: len(found.lister) == 1, PATIENCE)
    with suppress(AssertionError):
        until(lambda: not waiting.running, 0.3)  # it should not, and has the time to
    ended, held = not waiting.running, len(found.lister)
    second.set()
    waiting.join(PATIENCE)
    assert waiting.error is None
    assert (ended, held, len(found.lister)) == (False, 1, 2)


def test_s35_a_cache_where_nothing_happens_can_be_shown_to_be_fresh(
    running: Running, widgets: Collection, other: Collection
) -> None:
    """What happens elsewhere moves the server's version, and tells it nothing."""
    widgets.fill("a")
    found = running()
    asked = datetime.now(UTC)
    other.fill("b")
    found.informer.wait_fresh(timeout=PATIENCE)
    status = found.informer.status()
    assert status.live
    assert status.fresh_as_of is not None
    assert status.fresh_as_of >= asked
    assert len(found.lister) == 1


def test_s35_several_caches_are_asked_for_together(
    factories: Factories, widgets: Collection
) -> None:
    """Of all informers of a factory, in all their namespaces."""
    factory = factories(namespace=[widgets.namespace, "default"])
    for resource in (WIDGETS, CONFIG_MAPS, "v1/secrets"):
        factory.for_resource(resource)
    factory.sync(PATIENCE)
    widgets.fill("a")
    factory.require_fresh(0, PATIENCE)
    assert len(factory.for_resource(WIDGETS).lister) == 1
    assert all(each.live and each.fresh_as_of for each in factory.status().values())
    factory.require_fresh(60, 0)


def test_s35_a_cache_that_is_cut_off_is_stale_and_says_why(
    running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """Reads go on; it is live and fresh again when the server is."""
    widgets.fill("a")
    found = running(client=relayed)
    with relay.away():
        until(lambda: not found.informer.status().live, PATIENCE)
        with pytest.raises(
            StaleCacheError, match=r"widgets.v1.ex.io was last .* s ago: "
        ) as caught:
            found.informer.wait_fresh(timeout=0.5)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status[WIDGETS].state is not InformerState.WATCHING
        assert len(found.lister) == 1
        found.informer.wait_fresh(3600)
    found.informer.wait_fresh(timeout=PATIENCE)
    assert found.informer.status().live


def test_s35_connections_that_died_while_idle_do_not_use_up_the_timeout(
    factories: Factories, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """New ones work, so the check is made over one of those, within the default timeout."""
    widgets.fill("a")
    factory = factories(relayed)
    factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    factory.require_fresh(0, PATIENCE)  # leaves an idle connection
    relay.forget()
    factory.require_fresh(0)


@on_embedded
def test_s35_a_question_is_asked_once_for_all_that_wait(
    asked: Asked, running: Running, widgets: Collection, other: Collection
) -> None:
    """And not at all of a cache that is fresh enough."""
    widgets.fill("a")
    found = running()
    other.fill("b")
    before = len(asked())
    waits = [
        threading.Thread(target=found.informer.wait_fresh, args=(0, PATIENCE)) for _ in range(8)
    ]
    for each in waits:
        each.start()
    for each in waits:
        each.join()
    found.informer.wait_fresh(60)
    # A second round may be needed for those that came when the first had begun.
    assert 2 <= len(asked()) - before <= 4


@on_embedded
def test_s35_a_server_that_answers_no_question_is_not_fresh(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """Though its stream is open; what it says instead is told."""
    found = running()

    def told() -> bool:
        """What is said as soon as the server has answered."""
        with pytest.raises(StaleCacheError) as error:
            found.informer.wait_fresh(timeout=0.2)
        return re.search(r"cannot list widgets.v1.ex.io.*: forbidden", str(error.value)) is not None

    with faults.add(HttpStatus(403), verb="list"):
        until(told, PATIENCE)
        assert found.informer.status().live
        # What happens is heard all the same.
        stale = threading.Thread(target=found.informer.wait_fresh, args=(0, PATIENCE))
        stale.start()
        names = map("w{}".format, itertools.count())
        until(lambda: (widgets.fill(next(names)), not stale.is_alive())[1], PATIENCE)


@on_embedded
def test_s35_of_several_namespaces_the_reason_is_that_of_a_stale_one(
    faults: Faults, running: Running, widgets: Collection, other: Collection
) -> None:
    """Not of one whose question was refused, and whose stream has shown since that it is fresh."""
    found = running(namespaces=[widgets.namespace, other.namespace])
    faults.add(HttpStatus(403), verb="list", namespace=widgets.namespace)
    faults.add(HttpStatus(500), verb="list", namespace=other.namespace)
    waiting = Background(lambda: found.informer.wait_fresh(timeout=4))
    names = map("w{}".format, itertools.count())
    until(lambda: (widgets.fill(next(names)), not waiting.running)[1], PATIENCE)
    assert isinstance(waiting.error, StaleCacheError)
    assert f"cannot list widgets.v1.ex.io in namespace {other.namespace}" in str(waiting.error)
    assert "forbidden" not in str(waiting.error)


@on_embedded
def test_s35_without_bookmarks_only_what_happens_shows_it(
    faults: Faults, running: Running, widgets: Collection, other: Collection
) -> None:
    """A server that sends none leaves open whether something is missing."""
    found = running(watch_list=False)
    with faults.add(WithholdBookmarks()):
        other.fill("b")
        with pytest.raises(StaleCacheError, match="was asked"):
            found.informer.wait_fresh(timeout=1)
        widgets.fill("a")
        found.informer.wait_fresh(timeout=PATIENCE)


@on_embedded
def test_s29_however_often_it_is_waited_for_few_questions_are_asked(
    asked: Asked, running: Running, widgets: Collection, other: Collection
) -> None:
    """The stream keeps its own part of what may be asked."""
    widgets.fill("a")
    found = running()
    before = len(asked())
    for number in range(30):
        other.fill(f"w{number}")
        with suppress(StaleCacheError):
            found.informer.wait_fresh(timeout=0.02)
    assert len(asked()) - before <= 10


def test_s35_a_stopped_informer_grows_old(running: Running) -> None:
    """Reads go on (S19); waiting for it is refused at once."""
    found = running()
    assert found.informer.status().live
    found.informer.stop(5)
    assert not found.informer.status().live
    found.informer.wait_fresh(60)
    with pytest.raises(StoppedError, match="has stopped"):
        found.informer.wait_fresh()


@on_embedded
def test_s34_a_stop_ends_a_question(faults: Faults, running: Running, other: Collection) -> None:
    """And the wait for its answer, within the second."""
    found = running()
    with faults.add(WithholdBookmarks()):
        other.fill("b")
        ended = threading.Event()

        def wait() -> None:
            with pytest.raises(StoppedError):
                found.informer.wait_fresh()
            ended.set()

        threading.Thread(target=wait).start()
        until(lambda: any("questions" in each.name for each in threading.enumerate()), PATIENCE)
        found.informer.stop(5)
        assert ended.wait(PATIENCE)
    until(lambda: not any("questions" in each.name for each in threading.enumerate()), PATIENCE)


@on_embedded
def test_s35_an_informer_that_is_not_started_is_not_fresh(
    factories: Factories, faults: Faults
) -> None:
    """Nor is one that has not synced; one that was stopped by itself does not count."""
    factory = factories()
    found = factory.for_resource(WIDGETS)
    with pytest.raises(StaleCacheError, match=r"widgets.v1.ex.io was never .* not started"):
        factory.require_fresh(60, 0)
    with faults.add(Refuse()):
        factory.start()
        with pytest.raises(StaleCacheError, match=r"was never .*: cannot"):
            factory.require_fresh(60, 0.3)
    found.informer.stop(5)
    factory.require_fresh(60, 0)
