"""What an update costs in instructions, which no other work on the machine changes.

Run as ``python -m benchmarks.bench_update``. Seconds of so short a thing differ by more, from one
run to the next, than what there is to find. valgrind counts what the processor was told to do
instead: ours, and the peers of bench_informer, through a small burst and through one twice as long.
What the second takes more is the updates' own. Waiting for memory is not in it.

Two further rows are no bar: the dict cache if its handler got a dict to keep, and ours for a
handler of events that does not look at the old state. Below are the parts that no way of telling an
update could leave out, counted in a loop of nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bench_informer import DICTS, HERE, ONE_DICT, OURS, STREAMED, python, replaying
from benchmarks.update_parts import PARTS

MODULES = {
    OURS: "own_informer",
    DICTS: "peer_dicts",
    ONE_DICT: "peer_dict",
    "dict cache that gives copies": "peer_copies",
    "dyninformer, `on_event` without `event.old`": "own_events",
}
SETTLED = 0.5
"""Seconds without work after which nothing is left of the sync: our dictionary is trained aside."""


def instructions(module: str, count: int, updates: int) -> int:
    """What a burst of updates took, from the order on."""
    return instructions_of(python(module), HERE.parent, count, updates)


def instructions_of(program: list[str], tree: Path, count: int, updates: int) -> int:
    """The same of a program of some tree of this repository."""
    with tempfile.TemporaryDirectory() as folder, replaying(count) as server:
        server.order(watch_list=True)
        found = Path(folder, "counted")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={found}"]
        arguments = [*program, server.url, STREAMED, *map(str, (count, updates, 0))]
        with (
            Path(folder, "messages").open("w") as messages,
            subprocess.Popen(
                command + arguments,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                cwd=tree,
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                phase = json.loads(line)["phase"]
                if phase == "ready for updates":
                    _settle(process.pid)
                    _zero(process.pid)
                    server.order(updates=updates)
                elif phase == "burst":
                    process.terminate()
        return _counted(found)


def instructions_of_part(name: str, times: int) -> int:
    """What a loop over one part of an update took, start-up and all."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "counted")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={found}"]
        subprocess.run(
            [*command, *python("update_parts"), name, str(times)],
            check=True,
            capture_output=True,
            cwd=HERE.parent,
        )
        return _counted(found)


def _counted(found: Path) -> int:
    return int(re.findall(r"^totals: (\d+)", found.read_text(), re.MULTILINE)[-1])


def _settle(process: int) -> None:
    before = -1
    while (now := _processor_time(process)) != before:
        before = now
        time.sleep(SETTLED)


def _processor_time(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _zero(process: int) -> None:
    subprocess.run(
        ["callgrind_control", "--zero", str(process)], check=True, stdout=subprocess.DEVNULL
    )


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--objects", type=int, default=3000, help="certificates in the cache")
    arguments.add_argument("--updates", type=int, default=2000, help="updates of the shorter burst")
    chosen = arguments.parse_args()
    if not shutil.which("callgrind_control"):
        print("valgrind is not installed, so there is nothing to count with.")
        return
    each = {
        who: (
            instructions(module, chosen.objects, 2 * chosen.updates)
            - instructions(module, chosen.objects, chosen.updates)
        )
        / chosen.updates
        for who, module in MODULES.items()
    }
    version = sys.version.split()[0]
    print(f"\n{chosen.updates:,} updates, {chosen.objects:,} certificates, Python {version}")
    print("\n| | instructions per update | ours, of it |\n|---|--:|--:|")
    for who, figure in each.items():
        print(f"| {who} | {figure:,.0f} | {each[OURS] / figure:.2f} |")
    times = chosen.updates
    parts = {
        words: (instructions_of_part(name, 2 * times) - instructions_of_part(name, times)) / times
        for name, words in PARTS.items()
    }
    print("\n| of which | instructions | of the dict cache |\n|---|--:|--:|")
    for words, figure in (parts | {"together": sum(parts.values())}).items():
        print(f"| {words} | {figure:,.0f} | {figure / each[DICTS]:.2f} |")


if __name__ == "__main__":
    main()
