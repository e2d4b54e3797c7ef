"""Events as an iterator in the caller's own thread."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dyninformer.delivery.events import Event
from dyninformer.delivery.stream import EventStream
from tests.delivery.harness import LONG, Harness, line, lines, until
from tests.interrupts import storm

both = pytest.mark.parametrize("coalesce", [False, True])


def test_a_stream_has_what_is_held_and_then_what_follows(harness: Harness) -> None:
    """From the moment it was asked for, not from the first look."""
    harness.sync("a", x=1)
    stream = harness.dispatcher.events()
    harness.put("a", x=2)
    harness.put("b", x=1)
    events = [next(stream) for _ in range(3)]
    assert lines(events) == ["ADDED a x=1", "UPDATED a x=2", "ADDED b x=1"]
    assert [event.initial for event in events] == [True, False, False]


@both
def test_without_initial_it_has_only_what_follows(harness: Harness, coalesce: bool) -> None:
    """Asked for early or late."""
    early = harness.dispatcher.events(initial=False, coalesce=coalesce)
    harness.sync("a", "b", x=1)
    late = harness.dispatcher.events(initial=False, coalesce=coalesce)
    harness.put("a", x=2)
    assert line(next(early)) == line(next(late)) == "UPDATED a x=2"


def test_it_ends_when_nothing_comes_for_the_idle_timeout(harness: Harness) -> None:
    """Counted from the last event; 0 takes only what is there."""
    harness.sync("a", "b")
    begin = time.monotonic()
    assert lines(list(harness.dispatcher.events(idle_timeout=0.05))) == ["ADDED a", "ADDED b"]
    assert time.monotonic() - begin >= 0.05
    assert len(list(harness.dispatcher.events(idle_timeout=0))) == 2
    assert harness.dispatcher.backlog == {}
    with pytest.raises(ValueError, match="idle_timeout is -1"):
        harness.dispatcher.events(idle_timeout=-1)


@both
def test_an_event_can_be_taken_in_time_or_not_at_all(harness: Harness, coalesce: bool) -> None:
    """That none comes in time does not end the stream, and puts nothing off."""
    harness.sync("a", x=1)
    stream = harness.dispatcher.events(coalesce=coalesce, idle_timeout=0)
    taken = stream.take(LONG)
    assert taken is not None
    assert line(taken) == "ADDED a x=1"
    assert stream.take(0) is stream.take(0.01) is None
    assert not stream.closed
    harness.put("a", x=2)
    assert lines(list(stream)) == ["UPDATED a x=2"]
    assert stream.closed
    assert stream.take() is None


@both
def test_one_that_waits_to_take_an_event_gets_it(harness: Harness, coalesce: bool) -> None:
    """As soon as it comes, from whatever thread; at the end of the stream it gets none."""
    stream = harness.dispatcher.events(coalesce=coalesce)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(stream.take, LONG)
        harness.put("a", x=1)
        taken = waiting.result(LONG)
        assert taken is not None
        assert line(taken) == "ADDED a x=1"
        waiting = pool.submit(stream.take)
        harness.dispatcher.stop()
        assert waiting.result(LONG) is None


def test_events_put_off_the_idle_timeout(harness: Harness) -> None:
    """A stream of which one comes in time goes on for longer than the timeout."""
    stream = harness.dispatcher.events(idle_timeout=1.0)
    stop = threading.Event()

    def write() -> None:
        for number in range(6):
            harness.put("a", x=number)
            stop.wait(0.3)

    writer = threading.Thread(target=write)
    writer.start()
    assert len(list(stream)) == 6
    writer.join()


@both
@pytest.mark.parametrize("how", ["close", "stop"])
def test_a_wait_ends_when_the_stream_or_the_informer_does(
    harness: Harness, how: str, coalesce: bool
) -> None:
    """Closed from another thread, at once."""
    stream = harness.dispatcher.events(coalesce=coalesce)
    heard: list[Any] = []
    reader = threading.Thread(target=lambda: heard.extend(stream))
    reader.start()
    harness.put("a")
    until(lambda: stream._queue._consumer.name == "WAITING")
    if how == "close":
        stream.close()
        stream.close()
    else:
        harness.dispatcher.stop()
    reader.join(LONG)
    assert lines(heard) == ["ADDED a"]
    assert list(stream) == []
    assert "closed" in repr(stream)


def test_what_was_not_taken_when_it_ended_is_dropped_and_counted(harness: Harness) -> None:
    """S11."""
    stream = harness.dispatcher.events()
    for key in "abc":
        harness.put(key)
    next(stream)
    assert stream.backlog == 2
    harness.dispatcher.stop()
    assert harness.metrics.counts["dropped_events", "events"] == 2
    assert list(stream) == []


@both
def test_nothing_waits_in_one_that_has_ended(harness: Harness, coalesce: bool) -> None:
    """Although its last event was taken."""
    stream = harness.dispatcher.events(coalesce=coalesce)
    harness.put("a")
    next(stream)
    stream.close()
    assert stream.backlog == 0


def test_as_a_context_manager_it_closes(harness: Harness) -> None:
    """And unsubscribes."""
    with harness.dispatcher.events() as stream:
        harness.put("a")
        assert line(next(stream)) == "ADDED a"
        assert len(harness.dispatcher.backlog) == 1
    assert harness.dispatcher.backlog == {}


@pytest.mark.parametrize("how", ["watch", "relist"])
def test_a_stream_that_nobody_holds_is_unsubscribed(harness: Harness, how: str) -> None:
    """A loop that is left costs nothing from then on."""
    for _event in harness.dispatcher.events(idle_timeout=0.01):
        raise AssertionError
    stream = harness.dispatcher.events()
    harness.put("a")
    for event in stream:
        assert event.key == "a"
        break
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None
    assert sum(harness.dispatcher.backlog.values()) == 0
    if how == "watch":
        harness.put("b")
    else:
        harness.relist("b", "c")
    until(lambda: harness.dispatcher.backlog == {})


def test_streams_that_are_dropped_while_nothing_changes_are_unsubscribed(harness: Harness) -> None:
    """However many, by a thread that holds the informer's lock, and their resyncs with them."""
    harness.sync("a")
    with harness.store.lock:
        for _ in range(100):
            next(iter(harness.dispatcher.events()))
        assert threading.active_count() < 50
    until(lambda: harness.dispatcher.backlog == {})


def test_the_resync_of_a_dropped_stream_is_not_waited_for() -> None:
    """Its timer goes with it."""
    harness = Harness(resync=5)
    stream = harness.dispatcher.events()
    assert len(harness.timers.waiting) == 1
    del stream
    until(lambda: harness.timers.waiting == [])
    harness.close()


def test_no_thread_is_behind_a_stream(harness: Harness) -> None:
    """It is the caller's."""
    before = threading.active_count()
    stream = harness.dispatcher.events()
    for number in range(10):
        harness.put("a", x=number)
    assert [next(stream).key for _ in range(10)] == ["a"] * 10
    assert threading.active_count() == before


def test_two_threads_in_one_stream_is_an_error(harness: Harness) -> None:
    """It says what to do instead."""
    stream = harness.dispatcher.events()
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    until(lambda: stream._queue._consumer.name == "WAITING")
    with pytest.raises(RuntimeError, match="a stream of its own"):
        next(stream)
    stream.close()
    reader.join(LONG)


class Reader:
    """Reads a stream in the main thread, interrupted by Ctrl-C again and again, and goes on.

    Python looks for an interrupt where functions begin, and not where they return: one that took
    an event keeps it, so that what is lost was lost by the stream.
    """

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        self.taken: Event | None = None
        self.seen: list[str] = []

    def take(self) -> None:
        """One event, in either way."""
        if len(self.seen) % 2:
            for self.taken in self.stream:  # noqa: B020 - there is no place between the two
                break
        else:
            self.taken = self.stream.take()

    def read(self, count: int) -> int:
        """Read so many; how often it was interrupted."""
        times = 0
        with storm(0.001) as interrupted:
            while len(self.seen) < count:
                times += interrupted(self.take)
                if self.taken is not None:
                    self.seen.append(line(self.taken))
                    self.taken = None
        return times


@pytest.mark.usefixtures("unmeasured")
@both
def test_an_interrupt_ends_a_wait_and_loses_nothing(harness: Harness, coalesce: bool) -> None:
    """S23: whoever goes on reading has every event, once."""
    harness.sync(*(f"k{number}" for number in range(200)))
    reader = Reader(harness.dispatcher.events(coalesce=coalesce))

    def write() -> None:
        for number in range(200):
            harness.put(f"n{number}")
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    interrupted = reader.read(400)
    writer.join(LONG)
    expected = [f"ADDED k{n}" for n in range(200)] + [f"ADDED n{n}" for n in range(200)]
    assert reader.seen == expected
    assert interrupted > 0
