"""What it costs to read many objects at once, beside client-go's lister and the cost of JSON.

Run as ``python -m benchmarks.bench_reads [10000]``. CPU time of one thread for each object that is
returned or, by a scan, looked at: the best of several rounds. Where Go is installed, the lister and
the indexer of client-go's dynamic informer hold the same certificates of 1.9 kB. What they give is
shared: whoever wants to change an object copies it. So ours, which belong to the caller, stand
beside such copies, except those with ``shared=True`` and selections.

The second table has what decoding the same JSON takes by itself: thrown away at once, and kept,
which is the floor of `list` less unpacking. What is kept lies in memory that was not used before,
and the kernel gives that page by page.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.bench_informer import GO, HERE, OURS, Figures, table
from benchmarks.certificates import certificate
from benchmarks.shapes import SHAPES, Make
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.store.collector import made_at_once
from dyninformer.store.matching import entries_of
from dyninformer.store.store import Store

UNDER_ONE_VALUE = 1_000  # of so many objects the index has the same value
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
EACH, SCANNED, OF_BY_INDEX = 5.0, 2.0, 1.1
FEW = 10_000
AT_LEAST = 100_000
"""So many objects are read for a figure, in at least three rounds and at most thirty."""

Read = Callable[[], Any]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objects", type=int, nargs="?", default=100_000)
    parser.add_argument("--no-go", action="store_true", help="leave client-go out")
    options = parser.parse_args()
    count: int = options.objects
    theirs = {} if options.no_go else read_by_client_go(count)
    size = len(certificate(1, 1))
    print(f"\n{count:,} certificates of {size:,} bytes, CPU per object (µs)\n")
    print(table(compared(filled(count), count, theirs)))
    few = min(count, FEW)
    print(f"\n{few:,} objects of each shape, CPU per object (µs)\n")
    head = [
        "",
        "kB",
        "list()",
        "of 1,000",
        "decode",
        "and keep",
        "of 1,000",
        "pages",
        "by the kernel",
        "list(), per kB",
    ]
    shapes: dict[str, Make] = {"the same certificates": certificate, **SHAPES}
    print(table([head, *(beside_the_floor(name, make, few) for name, make in shapes.items())]))


def filled(count: int, make: Make = certificate) -> Store:
    """A store of so many objects, with an index of one value per thousand."""
    numbers = iter(range(count))
    store = Store(
        CERTIFICATES, indexers={"group": lambda _: [str(next(numbers) // UNDER_ONE_VALUE)]}
    )
    relist = store.relist()
    relist.add([store.receive(make(number, number + 1)) for number in range(count)])
    relist.swap(first=True)
    return store


def micros(work: Read, count: int) -> float:
    """The CPU microseconds of one of so many objects.

    Between the rounds there is nothing to collect, and what was read is freed.
    """
    best = float("inf")
    gc.collect()
    for _ in range(max(3, min(30, AT_LEAST // count))):
        begun = time.thread_time_ns()
        found = work()
        best = min(best, time.thread_time_ns() - begun)
        del found
    return best / count / 1000


def once(work: Read, count: int) -> float:
    """The same of the only time that this is done."""
    gc.collect()
    begun = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - begun) / count / 1000


def compared(store: Store, count: int, theirs: Figures) -> list[list[str]]:
    """A line for each way to read."""
    lister = GenericLister(store, lambda: True)
    selected = "tier=batch"
    scan = partial(entries_of, store.view())
    scan_none = micros(lambda: scan("app=shop", None), count)
    scan_third = micros(lambda: scan(selected, None), count)
    scan_field = micros(lambda: scan(None, "spec.issuerRef.name=none"), count)
    third = len(store.selected_entries(selected))
    built = once(lambda: store.selected_entries(selected), count)
    for _ in range(2):
        lister.list("app=shop")
    indexed = micros(lambda: lister.list(selected), third)
    nothing = micros(lambda: lister.list("app=shop"), 1)
    by_index = partial(lister.by_index, "group", "0")
    few = len(by_index())
    of_few = micros(by_index, few)
    store.add_indexers({"tier": ".metadata.labels.tier"})
    by_label = micros(lambda: lister.by_index("tier", "batch"), third)

    def go(name: str, times: float = 1.0) -> float | None:
        return theirs[name] * times if name in theirs else None

    everywhere = count / third
    rows: list[tuple[str, float, float | None, float | None]] = [
        ("iteration", micros(lambda: deque(lister, maxlen=0), count), None, None),
        ("list()", micros(lister.list, count), go("list_copied"), EACH),
        (f"by_index of {few:,}", of_few, go("index_copied"), EACH),
        (
            f"by_index of {few:,}, shared",
            micros(partial(by_index, shared=True), few),
            go("index_shared"),
            None,
        ),
        (f"by_index of {third:,} under a label", by_label, None, None),
        (
            f"list({selected!r}) again",
            indexed,
            go("scan_third", everywhere),
            OF_BY_INDEX * by_label,
        ),
        ("first list('app=shop'), of none: each held", scan_none, go("scan_none"), SCANNED),
        (f"first scan for {selected!r}: each held", scan_third, go("scan_third"), SCANNED),
        ("first scan for a field's value, of none: each held", scan_field, None, SCANNED),
        ("second scan, which makes an index: each held", built, None, None),
        ("list('app=shop') again: all of it", nothing, go("scan_none", count), None),
    ]
    return [
        ["", OURS, GO, "wanted", ""],
        *(
            [name, *map(shown, (ours, other, bar)), verdict(ours, bar)]
            for name, ours, other, bar in rows
        ),
    ]


def shown(figure: float | None) -> str:
    """A cell of a table."""
    return "" if figure is None else f"{figure:,.2f}"


def verdict(ours: float, bar: float | None) -> str:
    """Whether the bar is met, where there is one."""
    return "" if bar is None else "met" if ours <= bar else "**missed**"


def beside_the_floor(name: str, make: Make, count: int) -> list[str]:
    """What lists of objects of a shape cost, and what decoding their JSON does."""
    store = filled(count, make)
    lister = GenericLister(store, lambda: True)
    plain = store.codec.plain_all([entry for _, entry in store.view().items()])
    some = plain[:UNDER_ONE_VALUE]
    decode = msgspec.json.Decoder().decode

    def kept(texts: list[bytes]) -> Any:
        return made_at_once(lambda: [*map(decode, texts)])

    size = sum(map(len, plain)) / count / 1000
    listed = micros(lister.list, count)
    figures = [
        listed,
        micros(lambda: lister.by_index("group", "0"), len(some)),
        micros(lambda: deque(map(decode, plain), maxlen=0), count),
        micros(lambda: kept(plain), count),
        micros(lambda: kept(some), len(some)),
        *(each / count for each in from_the_kernel(lister.list)),
        listed / size,
    ]
    return [name, f"{size:.1f}", *map(shown, figures)]


def from_the_kernel(work: Read) -> tuple[float, float]:
    """How many pages it gives meanwhile, and the microseconds of CPU that this takes."""
    before = resource.getrusage(resource.RUSAGE_THREAD)
    found = work()
    after = resource.getrusage(resource.RUSAGE_THREAD)
    del found
    return after.ru_minflt - before.ru_minflt, 1e6 * (after.ru_stime - before.ru_stime)


def read_by_client_go(count: int) -> Figures:
    """The same reads of client-go, in microseconds; nothing where there is no Go."""
    go = shutil.which("go")
    if go is None:
        print(f"{GO} is left out: there is no Go here (https://go.dev/dl has it).")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "clientgo")
        subprocess.run([go, "build", "-o", program, "."], cwd=HERE / "clientgo", check=True)
        with subprocess.Popen(
            [program, "many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for number in range(count):
                process.stdin.write(certificate(number, number + 1) + b"\n")
            process.stdin.close()
            figures: Figures = json.loads(process.stdout.read())
        if process.returncode:
            sys.exit(f"client-go's lister ended with {process.returncode}")
    return {name: 1e6 * figure for name, figure in figures.items() if name != "phase"}


if __name__ == "__main__":
    main()
