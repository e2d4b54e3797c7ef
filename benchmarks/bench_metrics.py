"""What metrics cost: in instructions per update where there are some, and where there are none.

Run as ``python -m benchmarks.bench_metrics``, or with ``--before TREE``, another tree of this
repository: that informer is counted too, without metrics. Instructions are counted with valgrind,
as bench_update does. Last, what a scrape takes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.bench_informer import HERE, python
from benchmarks.bench_update import instructions_of
from benchmarks.own_metrics import KINDS
from dyninformer.metrics import PrometheusMetrics
from dyninformer.resource import GroupVersionResource

INFORMERS = 1_000


def per_update(command: list[str], tree: Path, count: int, updates: int) -> float:
    """What an update takes, of a burst that is twice as long as another."""
    twice = instructions_of(command, tree, count, 2 * updates)
    return (twice - instructions_of(command, tree, count, updates)) / updates


def scrape() -> float:
    """CPU seconds of a scrape of so many informers, each with a handler and some counts."""
    registry, kept = CollectorRegistry(), []
    metrics = PrometheusMetrics(registry)
    for number in range(INFORMERS):
        gvr = GroupVersionResource("example.com", "v1", f"kind{number}")
        tally = metrics.begin(gvr, lambda: [("objects", 1), ("synced", 1)])
        tally.count("events", gvr, type="ADDED")
        handler = tally.begin(lambda: [("backlog", 0)], handler="on_add")
        handler.observe("handler_duration_seconds", gvr, 0.001)
        kept += [tally, handler]
    begin = time.process_time()
    generate_latest(registry)
    return time.process_time() - begin


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--objects", type=int, default=3000, help="certificates in the cache")
    arguments.add_argument("--updates", type=int, default=2000, help="updates of the shorter burst")
    arguments.add_argument("--before", type=Path, help="another tree, to compare with")
    chosen = arguments.parse_args()
    print(f"A scrape of {INFORMERS:,} informers: {scrape() * 1000:.0f} ms of CPU.")
    if not shutil.which("callgrind_control"):
        print("valgrind is not installed, so there is nothing to count with.")
        return
    here, plain = HERE.parent, python("own_informer")
    commands = {"none": (plain, here)}
    if chosen.before is not None:
        commands = {"none, the tree before": (plain, chosen.before), **commands}
    commands |= {kind: ([*python("own_metrics"), kind], here) for kind in KINDS}
    found = {
        who: per_update(command, tree, chosen.objects, chosen.updates)
        for who, (command, tree) in commands.items()
    }
    first = next(iter(found.values()))
    version = sys.version.split()[0]
    print(f"\n{chosen.updates:,} updates, {chosen.objects:,} certificates, Python {version}")
    print("\n| metrics | instructions per update | of the first |\n|---|--:|--:|")
    for who, figure in found.items():
        print(f"| {who} | {figure:,.0f} | {figure / first:.3f} |")


if __name__ == "__main__":
    main()
