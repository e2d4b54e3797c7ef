"""What it costs to make a frame of a cache, beside pandas.json_normalize of the listed objects.

Run as ``python -m benchmarks.bench_frames [objects]``. Certificates of 1.9 kB are in a store; six
columns of each, of three types, one of them a list. CPU time of one thread and the wall's time,
the best of several rounds. The last lines are displays of ten objects and of all: they should cost
the same.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

from benchmarks.bench_reads import filled
from dyninformer.display.notebook import bundle
from dyninformer.lister import GenericLister

OBJECTS = 100_000
ROUNDS = 3
SECONDS_WANTED = 1.5  # for so many objects
COLUMNS = {
    "issuer": ".spec.issuerRef.name",
    "secret": ".spec.secretName",
    "hosts": ".spec.dnsNames[*]",
    "revision": ".status.revision",
    "expires": ".status.notAfter",
    "created": ".metadata.creationTimestamp",
}


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """The seconds that it takes: of CPU time, and of the wall's."""
    best = wall = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun, began = time.thread_time(), time.monotonic()
        found = work()
        best = min(best, time.thread_time() - begun)
        wall = min(wall, time.monotonic() - began)
        del found
    return best, wall


def normalized(lister: GenericLister) -> Any:
    """The same columns as pandas makes them of a list of dicts, with times and integers."""
    import pandas  # noqa: PLC0415 - an extra

    frame = pandas.json_normalize(lister.list())
    found = frame[
        [
            "metadata.namespace",
            "metadata.name",
            "spec.issuerRef.name",
            "spec.secretName",
            "spec.dnsNames",
            "status.revision",
            "status.notAfter",
            "metadata.creationTimestamp",
        ]
    ].copy()
    found["status.revision"] = found["status.revision"].astype("Int64")
    for name in ("status.notAfter", "metadata.creationTimestamp"):
        found[name] = pandas.to_datetime(found[name])
    return found


def main(count: int) -> None:
    """Print the table."""
    import polars  # noqa: PLC0415 - an extra

    lister = GenericLister(filled(count), lambda: True)
    few = GenericLister(filled(10), lambda: True)
    peer = seconds(lambda: normalized(lister))
    figures = {
        "pandas.json_normalize of list()": peer,
        "to_frame": seconds(lambda: lister.to_frame(COLUMNS)),
        "select": seconds(lambda: lister.select(COLUMNS)),
        "select, each row as a dict": seconds(lambda: list(lister.select(COLUMNS))),
        "polars.DataFrame of select": seconds(lambda: polars.DataFrame(lister.select(COLUMNS))),
    }
    print(f"{count:,} objects, {len(COLUMNS)} columns\n")
    print(f"{'':34} {'CPU s':>7} {'of the first':>13} {'wall s':>7} {'wanted':>7}")
    for name, (figure, wall) in figures.items():
        bar = f"{SECONDS_WANTED * count / OBJECTS:7.2f}" if name == "to_frame" else ""
        print(f"{name:34} {figure:7.2f} {figure / peer[0]:13.2f} {wall:7.2f} {bar}")
    shown = {each: seconds(lambda each=each: bundle(each))[0] * 1e6 for each in (few, lister)}  # type: ignore[misc]
    print(f"\nshown, of 10 objects: {shown[few]:.0f} µs; of all: {shown[lister]:.0f} µs")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("objects", nargs="?", type=int, default=OBJECTS)
    main(arguments.parse_args().objects)
