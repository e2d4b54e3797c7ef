"""A million objects in one process: what a sync, reads of each kind and pauses cost.

Run as ``python -m benchmarks.bench_million [--objects 1000000] [--shape pods]``. The objects
come from a replay server in a process of its own, which made them before. All figures are of the
process that has them: memory over what it had when it was connected, CPU and wall time, the longest
run of the garbage collector, and for reads what more memory they took at their peak, and what of
that is there while their result is.
"""

from __future__ import annotations

import argparse
import gc
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bench_informer import replaying
from benchmarks.measuring import Handler, forget_peak, memory, quiet
from benchmarks.own_informer import Informer

MB = 1e6
AT_REST = 1_200  # seconds at most: a million pods are packed anew in eight minutes


class Pauses:
    """How long the garbage collector stops the process, at the longest."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._begun = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start":
            self._begun = time.perf_counter()
        else:
            self.longest = max(self.longest, time.perf_counter() - self._begun)


def measured(name: str, pauses: Pauses, work: Callable[[], Any]) -> Any:
    """Do it once, and print what it took."""
    gc.collect()
    forget_peak()
    pauses.longest = 0.0
    rss, wall, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak, longest = (memory("VmHWM") - rss) / MB, pauses.longest
    gc.collect()
    kept = (memory("VmRSS") - rss) / MB
    print(
        f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:,.0f} | {kept:,.0f} | {longest * 1e3:.1f} |",
        flush=True,
    )
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--shape", default="certificates")
    parser.add_argument("--whole", action="store_true", help="decode all at once, too: gigabytes")
    options = parser.parse_args()
    with replaying(options.objects, options.shape) as server:
        run(server.url, options.objects, whole=options.whole)


def run(url: str, count: int, *, whole: bool) -> None:
    """All phases."""
    import pandas  # noqa: F401, PLC0415 - it is no part of what is measured

    informer, pauses = Informer(url), Pauses()
    informer.connect()
    gc.collect()
    quiet()
    start = memory("VmRSS")
    print(
        "| | wall (s) | CPU (s) | more memory at the peak (MB) | of it still there (MB) "
        "| longest collection (ms) |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    slowest = Slowest()
    measured(f"sync of {count:,}", pauses, lambda: informer.sync(Handler()))
    measured("  what is done afterwards", pauses, partial(quiet, AT_REST))
    lister = informer.lister
    added, stood = memory("VmRSS") - start, slowest.longest
    held_bytes = lister.held.store.held_bytes
    measured("lister.keys()", pauses, lister.keys)
    issuer = "internal-ca-1"
    measured("by_index: one in twenty", pauses, lambda: lister.by_index("by-issuer", issuer))
    measured("list('tier=cron')", pauses, lambda: lister.list("tier=cron"))
    measured("for obj in lister", pauses, lambda: sum(1 for _ in lister))
    columns = {"issuer": "{.spec.issuerRef.name}", "until": "{.status.notAfter}"}
    measured("select of two columns", pauses, lambda: lister.select(columns))
    measured("to_frame of two columns", pauses, lambda: lister.to_frame(columns))
    if whole:
        measured("lister.list()", pauses, lister.list)
    print(
        f"\nheld: {added / count:,.0f} bytes each, {added / MB:,.0f} MB, "
        f"of it compressed JSON and dictionaries {held_bytes / MB:,.0f} MB; while it synced, "
        f"another thread stood still for {stood * 1e3:.0f} ms at the longest"
    )


class Slowest:
    """How long a thread that only wants to run every 5 ms did not."""

    def __init__(self) -> None:
        self.longest = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            before = time.perf_counter()
            time.sleep(0.005)
            self.longest = max(self.longest, time.perf_counter() - before)


if __name__ == "__main__":
    main()
