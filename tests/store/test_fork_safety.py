"""A forked child reads the state at the fork, under locks that are free (S22)."""

from __future__ import annotations

import os
import threading
import time
import warnings

from dyninformer.store.fork_safety import fork_safe_lock
from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, add, held, widget


def in_child(work: object) -> int:
    """What a forked child says of the work: 0 it is true, 1 it is not, other it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads: that is it
        child = os.fork()
    if child == 0:
        code = 2
        try:
            code = 0 if work() else 1  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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
    lock = fork_safe_lock()
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
    lock = fork_safe_lock()
    with lock:
        assert in_child(lambda: lock.acquire(blocking=False)) == 0
