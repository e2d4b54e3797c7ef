"""A forked child reads the state at the fork, under locks that are free (S22)."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dyninformer import (
    DynamicSharedInformerFactory,
    GroupVersionResource,
    JSONPath,
    Leader,
    ShardMembership,
    StoppedError,
)
from dyninformer.metrics import PrometheusMetrics
from dyninformer.store.store import Store
from dyninformer.testing import ApiServer
from dyninformer.threads import lock_across_forks
from tests.store.objects import WIDGETS, add, held, widget

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

LONG = 30.0  # seconds after which a test that waits has failed
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def ends_soon() -> None:
    """Have this child end with another code, should it hang."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10)


def in_child(work: Callable[[], object]) -> int:
    """What a forked child says of the work: 0 it is true, 1 it is not, other it raised or hung."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads: that is it
        child = os.fork()
    if child == 0:
        code = 2
        try:
            ends_soon()
            code = 0 if work() else 1
        except BaseException:  # noqa: BLE001 - the parent sees the code, and this
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def locks() -> Iterator[tuple[Any, str]]:
    """Each lock that an object of the package has, by the object and the attribute's name."""
    for each in gc.get_objects():
        if isinstance(each, threading.Thread):
            continue  # Python sees to those
        module = str(type(each).__module__)
        if module.startswith("dyninformer.") and not module.startswith("dyninformer.testing"):
            for name, value in getattr(each, "__dict__", {}).items():
                if isinstance(value, _LOCKS):
                    yield each, name


def free(lock: Any) -> bool:
    """Nobody holds it."""
    got: bool = lock.acquire(blocking=False)
    if got:
        lock.release()
    return got


@contextmanager
def held_elsewhere(*taken: Any) -> Iterator[None]:
    """Another thread holds these locks, but for one that a thread holds that waits for another."""
    holds, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        got = [lock for lock in taken if lock.acquire(timeout=0.05)]
        holds.set()
        let_go.wait(LONG)
        for lock in got:
            lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    assert holds.wait(LONG)
    try:
        yield
    finally:
        let_go.set()
        holder.join()


def refused(act: Callable[[], object]) -> bool:
    """It raises StoppedError."""
    try:
        act()
    except StoppedError:
        return True
    return False


def test_s22_a_child_reads_what_was_held_while_another_thread_wrote() -> None:
    """Entries, views, indexes and shared objects, all in one state, without a deadlock."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})
    add(store, *(widget(f"w{index}", 1, n="1") for index in range(50)))
    stop = threading.Event()

    def write() -> None:
        version = 2
        while not stop.is_set():
            add(store, widget(f"w{version % 60}", version, n=str(version % 3)))
            version += 1

    def consistent() -> bool:
        scanned = sorted(obj["metadata"]["name"] for obj in store.view() if obj["spec"]["n"] == "1")
        found = sorted(
            store.codec.decode(held)["metadata"]["name"] for _, held in store.by_index("n", "1")
        )
        store.add_indexers({"m": ".spec.n"})
        add(store, widget("child", 1, n="1"))
        return (
            scanned == found
            and store.shared("ns/w7") is not None
            and len(found) + 1 == len(store.index_keys("m", "1"))
        )

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        assert [in_child(consistent) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        writer.join()
    assert "ns/child" not in store
    assert held(store, "ns/w7")["metadata"]["name"] == "w7"


def test_s22_a_fork_waits_for_critical_sections_to_end() -> None:
    """The child never sees half of one, and its lock is free."""
    lock = lock_across_forks()
    state = [0, 0]
    inside = threading.Event()

    def change() -> None:
        with lock:
            state[0] = 1
            inside.set()
            time.sleep(0.05)  # work that a fork could fall into
            state[1] = 1

    def whole() -> bool:
        with lock:
            return state == [1, 1]

    changer = threading.Thread(target=change)
    changer.start()
    inside.wait()
    assert in_child(whole) == 0
    changer.join()


def test_s22_a_thread_that_holds_a_lock_may_fork() -> None:
    """In the child it still holds it."""
    lock = lock_across_forks()
    with lock:
        assert in_child(lambda: lock.acquire(blocking=False)) == 0


def test_s22_whatever_lock_another_thread_holds_is_free_in_the_child() -> None:
    """Of every object there is; and all that a child may do comes to an end."""
    with (
        ApiServer() as server,
        DynamicSharedInformerFactory(
            server.client(), metrics=PrometheusMetrics(CollectorRegistry())
        ) as factory,
    ):
        found = factory.for_resource("v1/namespaces", indexers={"name": ".metadata.name"})
        factory.for_resource("v1/configmaps")
        registration = found.informer.add_event_handler(on_add=lambda obj: None, resync=60)
        follower = factory.follow("*.example.com")
        factory.sync(LONG)
        assert registration.wait_for_sync(LONG)
        stream = found.informer.events()
        next(stream)
        assert factory.client is not None
        assert factory.discovery.resolve("ns").namespaced is False
        known = list(locks())
        names = {f"{type(each).__name__}.{name}" for each, name in known}
        assert {"Registry._lock", "Timers._lock", "ExpressionCache._lock"} <= names
        # A bell is held for as long as nobody rings; a store's lock is held by whoever forks.
        ours = [(each, name) for each, name in known if name not in ("_bell", "lock")]

        def whole() -> bool:
            taken = [f"{each}.{name}" for each, name in ours if not free(getattr(each, name))]
            assert taken == []
            assert {each.state.value for each in factory.status().values()} == {"stopped"}
            assert found.lister.get("default", shared=True)["kind"] == "Namespace"
            assert len(found.lister.by_index("name", "default", shared=True)) == 1
            assert JSONPath(".a").first({"a": 1}) == 1
            assert list(stream) == []
            assert registration.has_synced()
            assert refused(lambda: factory.for_resource("v1/secrets"))
            assert refused(lambda: factory.follow("*"))
            assert refused(factory.start)
            assert refused(lambda: factory.discovery.columns(CERTIFICATES))
            assert follower.resources() == []
            follower.close()
            return factory.wait(LONG) and factory.shutdown(LONG)

        with held_elsewhere(*(getattr(each, name) for each, name in ours)):
            assert in_child(whole) == 0
        assert found.informer.add_event_handler(on_add=lambda obj: None).wait_for_sync(LONG)


def test_s22_a_fork_waits_for_no_index_function() -> None:
    """What another thread was adding is not there in the child, and can be added; here it is."""
    store = Store(WIDGETS, indexers={"n": ".spec.n"})
    add(store, *(widget(f"w{index}", 1, n=str(index)) for index in range(3)))
    inside, go_on = threading.Event(), threading.Event()

    def slow(obj: dict[str, Any]) -> list[str]:
        inside.set()
        assert go_on.wait(LONG)
        return [obj["metadata"]["name"]]

    def goes_on() -> bool:
        add(store, widget("w3", 1, n="3"))
        before = list(store.get_indexers())
        store.add_indexers({"slow": ".metadata.name"})
        return before == ["namespace", "n"] and store.index_keys("slow", "w3") == ["ns/w3"]

    adding = threading.Thread(target=lambda: store.add_indexers({"slow": slow}))
    adding.start()
    assert inside.wait(LONG)
    assert in_child(goes_on) == 0
    go_on.set()
    adding.join()
    assert store.index_keys("slow", "w1") == ["ns/w1"]
    assert store.index_keys("slow", "w3") == []


def test_s22_an_index_function_may_fork() -> None:
    """In the child, too, the index comes to be."""
    store = Store(WIDGETS)
    add(store, widget("w0"), widget("w1"))
    child: list[int] = []

    def forking(obj: dict[str, Any]) -> list[str]:
        if not child:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child.append(os.fork())
        return [obj["metadata"]["name"]]

    found: list[str] = []
    try:
        store.add_indexers({"f": forking})
        found = store.index_keys("f", "w1")
    finally:
        if child == [0]:
            os._exit(0 if found == ["ns/w1"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0
    assert found == ["ns/w1"]


@pytest.mark.usefixtures("unmeasured")
def test_s22_a_wait_that_a_signal_handler_forks_out_of_ends_in_the_child() -> None:
    """The thread that forked is the one that waits, and what it waits for is over there."""
    with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
        found = factory.for_resource("v1/namespaces")
        factory.sync(LONG)
        stream = found.informer.events(initial=False)
        child: list[int] = []

        def fork(number: int, frame: object) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child.append(os.fork())
            if child == [0]:
                ends_soon()
            else:
                server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})

        def send_signal() -> None:
            while stream._queue._consumer.name != "WAITING":
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, fork)
        sender = threading.Thread(target=send_signal)
        sender.start()
        event = None
        try:
            event = stream.take(LONG)
        finally:
            if child == [0]:
                os._exit(0 if stream.closed and event is None else 1)
            signal.signal(signal.SIGUSR1, before)
        sender.join()
        assert event is not None
        assert event.name == "x"
        assert os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1]) == 0


def test_a_child_neither_leads_nor_has_shards_and_gives_up_nothing_of_its_parents() -> None:
    """The lead and the shards are the parent's, also when the child closes what it was given."""
    with (
        ApiServer() as server,
        Leader("job", "default", client=server.client()) as leader,
        ShardMembership(server.client(), name="demo", namespace="default", shards=4) as shared,
        leader.elected(LONG) as fence,
    ):
        assert shared.wait_shared(LONG)
        before = {each["metadata"]["name"] for each in server.list("leases", "default")}

        def has_nothing() -> bool:
            holds = leader.is_leader() or fence.holds() or shared.shards
            return not holds and leader.close(1) and shared.close(1)

        assert in_child(has_nothing) == 0
        fence.check()
        assert len(shared.shards) == 4
        assert {each["metadata"]["name"] for each in server.list("leases", "default")} == before
