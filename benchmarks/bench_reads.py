"""What it costs to read many objects at once, beside walking over them one at a time.

Run as ``python -m benchmarks.bench_reads [objects]``. Certificates of 1.9 kB are in a store with an
index. CPU time of one thread, the best of several rounds. A list is kept while it is made, so its
objects are what the garbage collector walks, again and again, though none of them can be garbage
yet; the one walk that is left to do when the list is there is in a line of its own.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from benchmarks.certificates import certificate
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store

OBJECTS = 50_000
UNDER_ONE_VALUE = 1_000  # of so many objects the index has the same value
ROUNDS = 5
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")


def filled(count: int) -> Store:
    """A store of so many certificates, with an index of one value per thousand."""
    numbers = iter(range(count))
    store = Store(
        CERTIFICATES, indexers={"group": lambda _: [str(next(numbers) // UNDER_ONE_VALUE)]}
    )
    relist = store.relist()
    relist.add([store.receive(certificate(number, number + 1)) for number in range(count)])
    relist.swap(first=True)
    return store


def micros(work: Callable[[], Any], count: int) -> float:
    """The CPU microseconds of one of so many objects."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun = time.thread_time_ns()
        found = work()
        best = min(best, time.thread_time_ns() - begun)
        del found
    return best / count / 1000


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS
    lister = GenericLister(filled(count), lambda: True)
    namespace = lister.by_namespace(lister.keys()[0].partition("/")[0])
    shown = len(namespace.by_index("group", "0"))

    def unhindered() -> Any:
        gc.disable()
        try:
            return list(lister)
        finally:
            gc.enable()

    def listed_and_walked() -> Any:
        found = lister.list()
        gc.collect(0)
        return found

    walked = micros(lambda: deque(lister, maxlen=0), count)
    figures = {
        "iteration": walked,
        "list(), the collector switched off": micros(unhindered, count),
        "list()": micros(lister.list, count),
        "list(), and what is left to walk": micros(listed_and_walked, count),
        "[*lister]": micros(lambda: [*lister], count),
        f"by_index of {UNDER_ONE_VALUE:,}": micros(
            lambda: lister.by_index("group", "0"), UNDER_ONE_VALUE
        ),
        f"by_namespace().by_index of {shown} in {UNDER_ONE_VALUE:,}": micros(
            lambda: namespace.by_index("group", "0"), shown
        ),
    }
    wanted = {"list()": 2.0, f"by_index of {UNDER_ONE_VALUE:,}": 3.0}
    print(f"{count:,} objects of {len(certificate(1, 1)):,} bytes, CPU per object\n")
    print(f"{'':45} {'µs':>7} {'of iteration':>13} {'wanted':>7}")
    for name, figure in figures.items():
        bar = f"{wanted[name]:7.1f}" if name in wanted else ""
        print(f"{name:45} {figure:7.2f} {figure / walked:13.2f} {bar}")


if __name__ == "__main__":
    main()
