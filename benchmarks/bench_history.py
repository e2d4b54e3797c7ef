"""What a history takes: bytes within its limit, and time for each update.

Run as ``python -m benchmarks.bench_history``. Certificates are held, and all of them are renewed
ten times, a day's worth of changes, in a process without a history and in one with it. What the
second has more, by the kernel's count, is beside what was declared; what an update takes, beside
that of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

from benchmarks.certificates import certificate
from dyninformer.options import ALL_NAMESPACES, History
from dyninformer.resource import GroupVersionResource
from dyninformer.store.history import VersionHistory
from dyninformer.store.memory import give_back_memory
from dyninformer.store.store import Store

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
TOGETHER = 100
"""Updates that a busy stream brings at once."""


def measured(count: int, renewals: int, most_bytes: int) -> dict[str, float]:
    """One process's figures; no history without bytes."""
    store = Store(CERTIFICATES)
    options = History(versions=10, most_bytes=most_bytes or 1 << 20)
    history = VersionHistory(options, ALL_NAMESPACES)
    if most_bytes:
        store.on_changes = history.note
    relist = store.relist()
    relist.add(store.receive(certificate(number, number + 1)) for number in range(count))
    relist.swap(True)
    most, took = 0, 0.0
    for renewal in range(1, renewals + 1):
        numbers = iter(range(count))
        while some := list(islice(numbers, TOGETHER)):
            came = [certificate(each, renewal * count + each + 1, renewal) for each in some]
            began = time.process_time()
            store.apply([("MODIFIED", store.receive(each)) for each in came])
            took += time.process_time() - began
            most = max(most, history.bytes)
    give_back_memory()
    return {
        "resident": resident(),
        "most": most,
        "versions": len(history),
        "update": took / count / renewals,
    }


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--objects", type=int, default=100_000)
    arguments.add_argument("--renewals", type=int, default=10, help="of each, a day's worth")
    arguments.add_argument("--megabytes", type=int, default=64, help="the declared limit")
    arguments.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.alone is not None:
        print(json.dumps(measured(chosen.objects, chosen.renewals, chosen.alone)))
        return
    limit = chosen.megabytes << 20
    command = [sys.executable, "-m", "benchmarks.bench_history"]
    command += ["--objects", str(chosen.objects), "--renewals", str(chosen.renewals)]
    off, on = (
        json.loads(subprocess.check_output([*command, "--alone", str(each)], text=True))
        for each in (0, limit)
    )
    print(f"\n{chosen.objects:,} certificates, {chosen.renewals} renewals of each\n")
    print("| | MB | versions | us per update |\n|---|--:|--:|--:|")
    print(f"| without a history | {off['resident'] / 2**20:.0f} | | {off['update'] * 1e6:.1f} |")
    more = (on["resident"] - off["resident"]) / 2**20
    print(f"| with one: more | {more:.0f} | {on['versions']:,.0f} | {on['update'] * 1e6:.1f} |")
    print(f"| the most that was counted | {on['most'] / 2**20:.1f} | | |")
    print(f"| declared | {chosen.megabytes} | | |")


if __name__ == "__main__":
    main()
