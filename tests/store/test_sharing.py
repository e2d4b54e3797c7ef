"""Shared dicts, and a cache that the garbage collector does not walk (DESIGN 4)."""

from __future__ import annotations

import gc
import threading
from typing import Any

from dyninformer.store.store import Store
from tests.store.objects import WIDGETS, add, relist, widget


def test_threads_that_ask_at_once_share_one_dict() -> None:
    """Whoever decoded it first."""
    store = Store(WIDGETS)
    add(store, *(widget(f"w{index}", 1, text="x" * 2000) for index in range(200)))
    start = threading.Barrier(6)
    seen: list[list[Any]] = []

    def ask() -> None:
        start.wait()
        seen.append([store.shared(f"ns/w{index}") for index in range(200)])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({id(obj) for obj in same}) == 1 for same in zip(*seen, strict=True))


def test_more_objects_than_the_shared_ones_that_are_kept_are_read_all_the_same() -> None:
    """The first are decoded anew."""
    store = Store(WIDGETS)
    relist(store, *(widget(f"w{index}", index + 1) for index in range(5000)))
    first = store.shared("ns/w0")
    for index in range(5000):
        shared = store.shared(f"ns/w{index}")
        assert shared is not None
        assert shared["metadata"]["name"] == f"w{index}"
    again = store.shared("ns/w0")
    assert again == first
    assert again is not first


def test_the_garbage_collector_has_no_more_to_walk_with_more_objects() -> None:
    """Entries, keys and indexes of one, few and many keys a value are nothing it tracks."""
    store = Store(WIDGETS, indexers={"own": ".spec.own", "few": ".spec.few", "many": ".spec.many"})

    def tracked() -> int:
        gc.collect()
        return len(gc.get_objects())

    def grow(start: int) -> None:
        for index in range(start, start + 2000):
            spec = {"own": str(index), "few": f"f{index // 3}", "many": str(index % 2)}
            add(store, widget(f"w{index}", index + 1, **spec))

    grow(0)
    before = tracked()
    grow(2000)
    assert tracked() - before < 100
    assert len(store) == 4000
