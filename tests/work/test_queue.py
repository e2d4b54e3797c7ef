"""A work queue on threads: over informers, with workers, and with loops of a user's own."""

from __future__ import annotations

import gc
import logging
import math
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dyninformer import (
    DynamicSharedInformerFactory,
    Event,
    RateLimited,
    ShardMembership,
    SharedIndexInformer,
    StoppedError,
    WorkItem,
    WorkQueue,
)
from dyninformer.metrics import PrometheusMetrics
from dyninformer.testing import ApiServer
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until
from tests.interrupts import storm
from tests.test_forks import in_child

SOON = RateLimited(first=0.001, longest=0.005, jitter=0, per_second=None)


def taken(queue: WorkQueue, timeout: float | None = 0.0) -> WorkItem:
    """The next item, which there is."""
    item = queue.take(timeout)
    assert item is not None
    return item


class Running:
    """A queue that is run on a thread of the test's."""

    def __init__(self, queue: WorkQueue, reconcile: Callable[[str], Any]) -> None:
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(queue, reconcile))
        self._thread.start()

    def _run(self, queue: WorkQueue, reconcile: Callable[[str], Any]) -> None:
        queue.run(reconcile)
        self.ended.set()

    def join(self) -> None:
        """It has ended."""
        self._thread.join(PATIENCE)
        assert self.ended.is_set()


@pytest.fixture
def queue() -> Iterator[WorkQueue]:
    """A queue of no informer, whose retries come soon."""
    with WorkQueue(workers=4, retry=SOON) as found:
        yield found


def workers() -> list[threading.Thread]:
    """The threads of queues."""
    return [each for each in threading.enumerate() if each.name.startswith("dyninformer work ")]


# -- one key ------------------------------------------------------------------------------


def test_a_key_is_never_worked_on_twice_at_a_time_and_a_change_meanwhile_brings_it_again(
    queue: WorkQueue,
) -> None:
    """By any of the workers."""
    begun, go_on = threading.Event(), threading.Event()
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    calls: list[str] = []
    lock = threading.Lock()

    def reconcile(key: str) -> None:
        with lock:
            inside[key] += 1
            most[key] = max(most[key], inside[key])
            calls.append(key)
        begun.set()
        go_on.wait(PATIENCE)
        with lock:
            inside[key] -= 1

    queue.start(reconcile)
    queue.add("a")
    assert begun.wait(PATIENCE)
    for _ in range(10):
        queue.add("a")
    queue.add("b")  # another worker takes this one
    until(lambda: "b" in calls, PATIENCE)
    go_on.set()
    until(lambda: calls.count("a") == 2 and not inside["a"], PATIENCE)
    assert queue.close(timeout=PATIENCE)
    assert most == {"a": 1, "b": 1}
    assert calls.count("a") == 2


def test_nothing_is_lost_or_done_twice_at_a_time_by_many_threads(queue: WorkQueue) -> None:
    """The last change of each key is worked on after it was made."""
    wanted = [0] * 20
    seen = [0] * 20
    inside: set[str] = set()
    overlaps: list[str] = []

    def reconcile(key: str) -> float | None:
        if key in inside:
            overlaps.append(key)
        inside.add(key)
        at = int(key)
        found = wanted[at]
        if found % 7 == 3 and queue.retries(key) == 0:
            inside.discard(key)
            raise ValueError("not yet")
        seen[at] = found
        inside.discard(key)
        return 0.0001 if found % 5 == 1 and found != wanted[at] else None

    logging.getLogger("dyninformer.work").setLevel(logging.CRITICAL)
    try:
        queue.start(reconcile)

        def produce(part: int) -> None:
            for number in range(1, 200):
                for at in range(part, 20, 4):
                    wanted[at] = number
                    queue.add(str(at))

        producers = [threading.Thread(target=produce, args=(part,)) for part in range(4)]
        for each in producers:
            each.start()
        for each in producers:
            each.join()
        until(lambda: seen == wanted, PATIENCE)
    finally:
        logging.getLogger("dyninformer.work").setLevel(logging.NOTSET)
    assert not overlaps


def test_what_raises_is_logged_with_the_key_and_tried_again_until_it_is_done(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """Its failures are forgotten then. SystemExit, too, ends no worker."""
    errors = [ValueError("one"), SystemExit(2), KeyboardInterrupt(), None]
    counts: list[int] = []

    def reconcile(key: str) -> None:
        counts.append(queue.retries(key))
        error = errors.pop(0)
        if error is not None:
            raise error

    queue.start(reconcile)
    queue.add("prod/shop")
    line = "work: the work on prod/shop failed; it is tried again in 0.00"
    until(lambda: not errors and caplog.text.count(line) == 3, PATIENCE)
    until(lambda: queue.retries("prod/shop") == 0, PATIENCE)
    assert counts == [0, 1, 2, 3]


def test_returned_seconds_bring_the_key_again_then(queue: WorkQueue) -> None:
    """That is no failure."""
    answers = [0.001, 0.002, None]
    done = threading.Event()

    def reconcile(key: str) -> float | None:
        assert queue.retries(key) == 0
        answer = answers.pop(0)
        if answer is None:
            done.set()
        return answer

    queue.start(reconcile)
    queue.add("a")
    assert done.wait(PATIENCE)


@pytest.mark.parametrize("answer", [0, 0.0, -1, -math.inf])
def test_a_returned_delay_of_zero_or_less_means_done(queue: WorkQueue, answer: float) -> None:
    """As in controller-runtime, where zero is what a reconcile without a wish returns."""
    turns: list[str] = []

    def reconcile(key: str) -> float:
        turns.append(key)
        return answer

    queue.add("a")
    queue.add("b")
    queue.start(reconcile)
    until(lambda: len(turns) >= 2, PATIENCE)
    assert queue.close(drain=True, timeout=PATIENCE)
    assert sorted(turns) == ["a", "b"]


@pytest.mark.parametrize("answer", [True, math.nan, math.inf, "1", object()])
def test_what_is_no_number_of_seconds_counts_as_a_failure(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    """The log says what to return."""
    answers = [answer, None]
    queue.start(lambda key: answers.pop(0))
    queue.add("a")
    until(lambda: not answers and queue.retries("a") == 0, PATIENCE)
    said = "return None when the work is done, or the seconds"  # it is tried again, and then said
    until(lambda: said in caplog.text, PATIENCE)


# -- adding by hand -----------------------------------------------------------------------


def test_delays_and_failures_by_hand(queue: WorkQueue) -> None:
    """As in client-go."""
    queue.add_after("later", 3600)
    assert queue.take(0) is None
    assert queue.add_rate_limited("a") == 0.001
    assert queue.add_rate_limited("a") == 0.002
    assert queue.retries("a") == 2
    with taken(queue, PATIENCE) as item:
        assert (item.key, item.retries) == ("a", 2)
    assert queue.retries("a") == 0
    queue.add_rate_limited("b")
    queue.forget("b")
    assert queue.retries("b") == 0
    assert repr(queue) == "<WorkQueue work: 0 waiting, 0 at work, 2 later>"


def test_a_worker_that_waits_wakes_for_an_earlier_delay(queue: WorkQueue) -> None:
    """It had been asleep until the later one."""
    done: list[str] = []
    queue.start(done.append)
    queue.add_after("hour", 3600)
    until(lambda: len(queue._bell._sleepers) == 4, PATIENCE)
    queue.add_after("moment", 0.01)
    until(lambda: done == ["moment"], PATIENCE)


def test_a_busy_worker_leaves_what_is_due_to_the_others() -> None:
    """The one that knew of the delay has taken another key meanwhile."""
    stuck, done = threading.Event(), threading.Event()
    with WorkQueue(workers=2) as queue:

        def reconcile(key: str) -> None:
            if key == "stuck":
                stuck.wait(PATIENCE)
            else:
                done.set()

        queue.start(reconcile)
        queue.add_after("hour", 3600)
        until(lambda: len(queue._bell._sleepers) == 2, PATIENCE)
        queue.add_after("due", 0.3)
        queue.add("stuck")
        assert done.wait(PATIENCE)
        stuck.set()


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf])
def test_a_delay_that_means_nothing_is_refused(queue: WorkQueue, delay: float) -> None:
    """At once, where it was given."""
    with pytest.raises(ValueError, match="delay is"):
        queue.add_after("a", delay)


# -- loops of one's own -------------------------------------------------------------------


def test_a_loop_of_one_s_own_retries_what_its_block_raises(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """And goes on; the key is done at the end of a block that does not raise."""
    for key in "ab":
        queue.add(key)
    seen = []
    for item in queue:
        with item:
            seen.append((item.key, item.retries))
            if len(seen) == 1:
                raise ValueError("not yet")
            if len(seen) == 3:
                queue.close()
    assert seen == [("a", 0), ("b", 0), ("a", 1)]
    assert "the work on a failed" in caplog.text


def test_an_item_can_be_finished_by_hand_once(queue: WorkQueue) -> None:
    """On any thread: until then the key is not given again."""
    queue.add("a")
    item = taken(queue)
    queue.add("a")
    assert queue.take(0) is None
    thread = threading.Thread(target=item.done)
    thread.start()
    thread.join()
    again = taken(queue)
    item.done()  # a second time, for a turn that is over: nothing
    assert item.retry() == 0.0
    assert queue._keys.at_work == ["a"]
    assert again.retry() == 0.001
    third = taken(queue, PATIENCE)
    third.again(3600)
    assert repr(queue) == "<WorkQueue work: 0 waiting, 0 at work, 1 later>"
    assert repr(third) == "<WorkItem 'a' of 'work'>"


def test_an_interrupt_in_a_block_gives_the_key_back_at_once(queue: WorkQueue) -> None:
    """It goes through, and is no failure of the key (S23)."""
    queue.add("a")
    with pytest.raises(KeyboardInterrupt), taken(queue):
        raise KeyboardInterrupt
    assert taken(queue).retries == 0


def test_an_item_that_is_lost_is_tried_again_with_a_word_on_it(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop without a with does not block its keys for ever."""
    queue.add("a")
    taken(queue)
    gc.collect()
    with taken(queue, PATIENCE) as item:
        assert (item.key, item.retries) == ("a", 1)
    assert "lost before it was done" in caplog.text


def test_many_threads_iterate_at_a_time(queue: WorkQueue) -> None:
    """Each key goes to one of them, and all end with the queue."""
    got: Counter[str] = Counter()
    lock = threading.Lock()

    def loop() -> None:
        for item in queue:
            with item, lock:
                got[item.key] += 1

    threads = [threading.Thread(target=loop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(500):
        queue.add(f"k{number}")
    until(lambda: len(got) == 500, PATIENCE)
    assert queue.close(timeout=PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert set(got.values()) == {1}


# -- informers ----------------------------------------------------------------------------


def test_each_event_brings_the_key_of_its_object(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """What is there, what is new, what changes, and what is gone: then the lister has nothing."""
    write(server, "there")
    until(lambda: "default/there" in synced.lister, PATIENCE)
    found: dict[str, Any] = {}

    def reconcile(key: str) -> None:
        found[key] = synced.lister.get(key, default=None)

    with synced.work_queue(workers=2) as queue:
        queue.start(reconcile)
        until(lambda: found.get("default/there"), PATIENCE)
        made = write(server, "new", x="1")
        until(lambda: found.get("default/new"), PATIENCE)
        server.patch("configmaps/new", {"data": {"x": "2"}}, "default")
        until(lambda: found["default/new"]["data"] == {"x": "2"}, PATIENCE)
        server.delete("configmaps/new", "default")
        until(lambda: found["default/new"] is None, PATIENCE)
        assert made["metadata"]["name"] == "new"
        assert queue.name == "configmaps.v1"


def test_a_resync_brings_every_key_again(server: ApiServer) -> None:
    """As in client-go, where a controller looks at all objects now and then."""
    write(server, "a")
    seen: Counter[str] = Counter()
    with DynamicSharedInformerFactory(server.client(), resync=1) as factory:
        maps = factory.for_resource(MAPS, namespaces="default")
        factory.sync(PATIENCE)
        with maps.work_queue() as queue:
            queue.start(lambda key: seen.update([key]))
            until(lambda: seen["default/a"] >= 2, PATIENCE)


def test_several_informers_with_functions_of_events(server: ApiServer) -> None:
    """One key, several or none; a text is one key; what is no key is logged with the event."""

    def owners(event: Event) -> Any:
        return event.object["metadata"].get("annotations", {}).get("owners", "").split() or None

    for name, annotated in (("one", "default"), ("two", "default kube-system"), ("none", "")):
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "annotations": {"owners": annotated}},
        }
        server.create(made, "default")
    with DynamicSharedInformerFactory(server.client()) as factory:
        spaces = factory.for_resource("v1/namespaces")
        maps = factory.for_resource(MAPS, namespaces="default")
        factory.sync(PATIENCE)
        with WorkQueue({maps.informer: owners}) as queue:
            keys: set[str] = set()
            while len(keys) < 2:
                with taken(queue, PATIENCE) as item:
                    keys.add(item.key)
            assert keys == {"default", "kube-system"}
            queue.watch(spaces)
            while len(keys) < 4:
                with taken(queue, PATIENCE) as item:
                    keys.add(item.key)
            assert keys == set(spaces.lister.keys())
        with maps.informer.work_queue(lambda event: event.name) as queue:
            assert taken(queue, PATIENCE).key in ("one", "two", "none")


def test_no_work_begins_before_every_informer_is_synced(server: ApiServer) -> None:
    """Else the work would take for gone what is not yet there."""
    write(server, "a")
    with DynamicSharedInformerFactory(server.client()) as factory:
        spaces = factory.for_resource("v1/namespaces")
        maps = factory.for_resource(MAPS, namespaces="default")
        spaces.informer.start()
        assert spaces.informer.wait_synced(PATIENCE)
        seen: list[bool] = []
        with WorkQueue({spaces: None, maps: None}) as queue:
            queue.start(lambda key: seen.append("default/a" in maps.lister))
            queue.add("by hand")
            until(lambda: queue.depth == 5, PATIENCE)
            assert queue.take(0) is None
            assert "until configmaps.v1 is synced" in repr(queue)
            factory.sync(PATIENCE)
            until(lambda: len(seen) == 6, PATIENCE)
            assert all(seen)


def test_a_queue_ends_when_the_last_of_its_informers_has_stopped(server: ApiServer) -> None:
    """So that `run` and loops end with the factory; what waits is dropped."""
    factory = DynamicSharedInformerFactory(server.client())
    spaces, maps = factory.for_resource("v1/namespaces"), factory.for_resource(MAPS)
    factory.sync(PATIENCE)
    queue = WorkQueue({spaces: None, maps: None}, workers=2)
    done: list[str] = []
    running = Running(queue, done.append)
    until(lambda: len(done) == 4, PATIENCE)
    factory.remove(MAPS)
    queue.add("still")
    until(lambda: "still" in done, PATIENCE)
    assert not queue.closed
    assert factory.shutdown(5)
    running.join()
    assert queue.closed
    assert workers() == []
    with pytest.raises(StoppedError, match="closed"):
        queue.run(done.append)
    with pytest.raises(StoppedError):
        maps.work_queue()


def test_stopping_from_the_work_waits_for_nobody(server: ApiServer) -> None:
    """Neither shutdown nor close, on a worker's thread (S11)."""
    factory = DynamicSharedInformerFactory(server.client())
    spaces = factory.for_resource("v1/namespaces")
    factory.sync(PATIENCE)
    queue = spaces.work_queue(workers=2)
    took: list[float] = []

    def reconcile(key: str) -> None:
        began = time.monotonic()
        queue.close(drain=True)
        factory.shutdown()
        took.append(time.monotonic() - began)

    queue.run(reconcile)
    assert took
    assert factory.shutdown(5)


def test_a_queue_that_nobody_holds_is_collected(synced: SharedIndexInformer) -> None:
    """A notebook cell that makes one is run again: the old one's handler goes."""
    synced.work_queue()
    gc.collect()
    with synced.work_queue():
        assert list(synced._dispatcher.backlog) == ["work_queue", "work_queue-2"]
        synced._dispatcher.synced()


# -- the end ------------------------------------------------------------------------------


def test_closing_drops_what_waits_and_waits_for_what_is_at_work(queue: WorkQueue) -> None:
    """The work under way is finished, and no other begins."""
    begun, go_on, done = threading.Event(), threading.Event(), []

    def reconcile(key: str) -> None:
        begun.set()
        go_on.wait(PATIENCE)
        done.append(key)

    queue.workers = 1
    queue.start(reconcile)
    queue.add("a")
    assert begun.wait(PATIENCE)
    queue.add("b")
    queue.add_after("c", 0.001)
    assert not queue.close(timeout=0.01)
    go_on.set()
    assert queue.close(timeout=PATIENCE)
    assert done == ["a"]
    assert workers() == []


def test_draining_works_on_what_waits_first(queue: WorkQueue) -> None:
    """What fails, or is due later, is dropped: a drain comes to an end."""
    begun, go_on, done = threading.Event(), threading.Event(), []

    def reconcile(key: str) -> None:
        begun.set()
        go_on.wait(PATIENCE)
        done.append(key)
        if key == "b":
            raise ValueError("too late")

    queue.workers = 1
    queue.start(reconcile)
    queue.add("a")
    assert begun.wait(PATIENCE)
    for key in "abc":
        queue.add(key)
    queue.add_after("d", 0.001)
    threading.Timer(0.01, go_on.set).start()
    assert queue.close(drain=True, timeout=PATIENCE)
    assert done == ["a", "b", "c", "a"]
    assert queue.close()


def test_a_drain_that_takes_too_long_is_given_up(
    queue: WorkQueue, caplog: pytest.LogCaptureFixture
) -> None:
    """False, and a log line names what is still at work."""
    go_on = threading.Event()
    queue.workers = 1
    queue.start(lambda key: go_on.wait(PATIENCE) and None)
    queue.add("a")
    until(lambda: queue._keys.at_work, PATIENCE)
    queue.add("b")
    assert not queue.close(drain=True, timeout=0.01)
    assert queue.depth == 0
    assert "still at work after 0.01 s: a" in caplog.text
    go_on.set()


def test_a_drain_that_nobody_works_on_does_not_wait() -> None:
    """There is neither a worker nor a loop."""
    queue = WorkQueue()
    queue.add("a")
    assert queue.close(drain=True)
    assert queue.depth == 0


def test_one_run_at_a_time(queue: WorkQueue) -> None:
    """A second one says so, and the first goes on."""
    done: list[str] = []
    queue.start(done.append)
    with pytest.raises(RuntimeError, match="runs already"):
        queue.run(done.append)
    queue.add("a")
    until(lambda: done == ["a"], PATIENCE)


async def _coroutine(key: str) -> None:
    pass


class _Coroutine:
    async def __call__(self, key: str) -> None:
        pass


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda queue: queue.run(None), TypeError, "reconcile is None"),
        (lambda queue: queue.run(_coroutine), TypeError, "dyninformer.aio"),
        (lambda queue: queue.run(_Coroutine()), TypeError, "dyninformer.aio"),
        (lambda queue: queue.run(lambda: None), TypeError, r"called as reconcile\(key\)"),
        (
            lambda queue: queue.start(lambda key, obj: None),
            TypeError,
            r"called as reconcile\(key\)",
        ),
        (lambda queue: queue.watch(3), TypeError, "no informer"),
        (lambda queue: WorkQueue({3: None}), TypeError, "no informer"),  # type: ignore[type-var]
        (lambda queue: WorkQueue(workers=0), ValueError, "workers is 0"),
        (lambda queue: WorkQueue(workers=True), ValueError, "workers is True"),
        (lambda queue: WorkQueue(retry=5), TypeError, "RateLimited"),  # type: ignore[arg-type]
        (lambda queue: queue.add(("a", "b")), TypeError, "no key"),
        (lambda queue: queue.add(""), ValueError, "empty"),
        (lambda queue: queue.add_after("a", "1"), TypeError, "number of seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    queue: WorkQueue, act: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    """Where it is given."""
    with pytest.raises(error, match=text):
        act(queue)


def test_an_informer_of_shards_is_refused_with_what_to_do(server: ApiServer) -> None:
    """Its shards come and go, so a handler adds the keys."""
    with ShardMembership(server.client(), name="demo", namespace="default") as membership:
        shards = membership.informer("v1/configmaps")
        with pytest.raises(TypeError, match=r"on_event=lambda event: queue\.add\(event\.key\)"):
            WorkQueue({shards: None})  # type: ignore[type-var]


# -- interrupts and forks -----------------------------------------------------------------


def test_s22_in_a_forked_child_a_queue_is_closed() -> None:
    """Whatever its threads were about to do."""
    with WorkQueue(workers=2) as queue:
        queue.start(lambda key: time.sleep(0.001))
        queue.add("a")
        with queue._lock:
            child = in_child(
                lambda: (
                    queue.closed
                    and queue.take() is None
                    and list(queue) == []
                    and queue.close(timeout=5)
                )
            )
        assert child == 0
        queue.add("b")
        until(lambda: not queue.depth, PATIENCE)


_INTERRUPTED = """
import os, signal, sys, threading, time
from dyninformer import WorkQueue
queue = WorkQueue(workers=2)
done = []
def interrupt():  # also in the moment before the main thread sleeps, when it wakes nobody
    while not queue._bell._sleepers:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    %s
except KeyboardInterrupt:
    queue.add("after")
    if "run" in sys.argv:
        deadline = time.monotonic() + 10
        while any(t.name.startswith("dyninformer work") for t in threading.enumerate()):
            assert time.monotonic() < deadline
        assert done == []
    with queue.take(5) as item:
        print("interrupted, then", item.key)
    print("closed:", queue.close(timeout=5))
"""


@pytest.mark.parametrize("wait", ["run", "loop"])
def test_s23_an_interrupt_ends_the_wait_and_not_the_queue(wait: str) -> None:
    """Of `run`, whose threads end, and of a loop."""
    line = "queue.run(done.append)" if wait == "run" else "[item for item in queue]"
    ran = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED % line, wait],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == "interrupted, then after\nclosed: True\n", ran.stderr


def test_s23_after_an_interrupt_those_who_wait_for_a_first_state_still_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They do not look again and again for what became of the item that nobody got."""
    with WorkQueue() as queue:
        monkeypatch.setattr(queue, "_holds_back", lambda: True)

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(queue._bell, "wait_for", interrupted)
            with pytest.raises(KeyboardInterrupt):
                queue.take()
        gc.collect()
        looks: list[bool] = []
        may_take = queue._may_take

        def counted(*args: Any) -> bool:
            looks.append(may_take(*args))
            return looks[-1]

        monkeypatch.setattr(queue, "_may_take", counted)
        assert queue.take(0.01) is None
        assert len(looks) < 10


_LEFT_AT_EXIT = """
import threading
from concurrent.futures import ThreadPoolExecutor
from dyninformer import WorkQueue
queue = WorkQueue()
queue.add("a")
at_work, exits = threading.Event(), threading.Event()
threading._register_atexit(exits.set)
def reconcile(key):
    at_work.set()
    exits.wait()
    print("finished", key)
def run():
    queue.run(reconcile)
    print("returned")
%s
at_work.wait()
"""


@pytest.mark.parametrize(
    "start", ["threading.Thread(target=run).start()", "ThreadPoolExecutor(1).submit(run)"]
)
def test_s11_a_run_in_another_thread_ends_with_the_interpreter(start: str) -> None:
    """The interpreter waits for this thread, which would wait for the end of the queue."""
    ran = subprocess.run(
        [sys.executable, "-c", _LEFT_AT_EXIT % start],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == "finished a\nreturned\n", ran.stderr


@pytest.mark.usefixtures("unmeasured")
def test_s23_a_storm_of_interrupts_loses_no_key() -> None:
    """A real signal, again and again, at whatever bytecode it comes."""
    queue = WorkQueue(retry=SOON)
    added, done = 0, Counter[str]()
    logging.getLogger("dyninformer.work").setLevel(logging.CRITICAL)

    def work() -> None:
        nonlocal added
        while True:
            queue.add(f"k{added}")
            added += 1
            item = queue.take(0)
            if item is not None:
                with item:
                    done[item.key] += 1
            item = None

    try:
        with storm(0.0005) as interrupted:
            for _ in range(300):
                assert interrupted(work)
    finally:
        logging.getLogger("dyninformer.work").setLevel(logging.NOTSET)
    gc.collect()
    while (left := queue.take(1)) is not None:  # those that were lost come once more
        with left:
            done[left.key] += 1
        left = None
    assert set(done) >= {f"k{number}" for number in range(added)}
    assert queue._keys.at_work == []
    assert queue.close(timeout=1)


# -- metrics ------------------------------------------------------------------------------


def test_depth_latency_and_retries_are_in_the_metrics(server: ApiServer) -> None:
    """Under client-go's names, with the resource of the first informer and the queue's name."""
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    failed: list[str] = []
    go_on = threading.Event()

    def value(name: str) -> float:
        labels = {"resource": "namespaces.v1", "queue": "spaces"}
        return registry.get_sample_value(f"dyninformer_workqueue_{name}", labels) or 0.0

    def reconcile(key: str) -> None:
        if not failed:
            failed.append(key)
            raise ValueError("not yet")
        go_on.wait(PATIENCE)

    with DynamicSharedInformerFactory(server.client(), metrics=metrics) as factory:
        spaces = factory.for_resource("v1/namespaces")
        factory.sync(PATIENCE)
        with spaces.work_queue(name="spaces") as queue:
            queue.start(reconcile)
            until(lambda: value("unfinished_work_seconds") > 0, PATIENCE)
            assert value("longest_running_processor_seconds") > 0
            assert value("depth") >= 2
            go_on.set()
            until(lambda: value("work_duration_seconds_count") == 5, PATIENCE)
            until(lambda: value("depth") == 0, PATIENCE)
            assert value("queue_duration_seconds_count") == 5
            assert value("adds_total") == 5
            assert value("retries_total") == 1
            queue.add_after("later", 3600)
        assert value("dropped_total") == 1
