"""What a live copy of 100,000 certificates costs, beside what its peers cost, in one run.

Run as ``python -m benchmarks.bench_informer``. The same bytes come from a replay server in a
process of its own; every cache under test is a fresh process as well. Peers are a dict cache with
two indexes as one writes it by hand (peer_dicts.py), the same as one dict without an index
(peer_dict.py) and, where Go is installed, client-go's dynamic informer (clientgo/). Ratios are what
to look at: CPU time, not wall time, wherever it can be.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Figures = dict[str, float]
Command = list[str]
Commands = dict[str, Command]
Measured = dict[tuple[str, str], Figures]

HERE = Path(__file__).parent
OURS, DICTS, ONE_DICT, GO = "dyninformer", "dict cache", "one dict", "client-go"
PAGED, STREAMED = "paged LIST", "WatchList"
MODES = (PAGED, STREAMED)
PACE = 1000
MB = 1_000_000


class Server:
    """The replay server, and the orders it takes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{self._answer()['port']:.0f}"

    def order(self, **order: float) -> Figures:
        """Have it done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Figures:
        assert self._process.stdout is not None
        answer: Figures = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def replaying(count: int, *shape: str) -> Iterator[Server]:
    """A server with so many certificates, or objects of another shape."""
    command = [*python("replay_server"), str(count), *shape]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def python(module: str) -> Command:
    """A module of this folder as a program."""
    return [sys.executable, "-m", f"{HERE.name}.{module}"]


def measure(
    server: Server,
    command: Command,
    mode: str,
    count: int,
    updates: int,
    paced: int,
    root: Path = HERE.parent,
) -> Figures:
    """All figures of one process, which runs in the folder ``root``, named ``phase.figure``."""
    server.order(watch_list=mode == STREAMED)
    arguments = [*command, server.url, mode, *map(str, (count, updates, paced))]
    figures: Figures = {}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            report = json.loads(line)
            phase = report.pop("phase")
            figures |= {f"{phase}.{name}": value for name, value in report.items()}
            if phase == "ready for updates":
                server.order(updates=updates)
            elif phase == "ready for paced updates":
                server.order(updates=paced, rate=PACE)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    figures["sync.added"] = figures["sync.rss"] - figures["sync.rss_start"]
    figures["sync.peak_added"] = figures["sync.peak"] - figures["sync.rss_start"]
    return figures


def least(rounds: list[Figures]) -> Figures:
    """The best of several rounds, figure by figure."""
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


@dataclass(frozen=True)
class Row:
    """A line of the table: a figure of ours, and how far it may be from those of the peers."""

    name: str
    figure: str
    unit: str
    mode: str
    scale: float
    of_dicts: float | None = None
    of_one_dict: float | None = None
    of_go: float | None = None
    at_most: float | None = None

    def cells(self, measured: Measured) -> list[str]:
        """The texts of a line."""
        ours, *peers = (
            measured.get((who, self.mode), {}).get(self.figure)
            for who in (OURS, DICTS, ONE_DICT, GO)
        )
        return [
            f"{self.name} ({self.unit})",
            *("" if each is None else f"{each * self.scale:,.2f}" for each in (ours, *peers)),
            *(_ratio(ours, peer) for peer in peers),
            self._bars(),
            self._verdict(ours, peers),
        ]

    def _bars(self) -> str:
        bars = (
            (self.at_most, self.unit),
            (self.of_dicts, DICTS),
            (self.of_one_dict, ONE_DICT),
            (self.of_go, GO),
        )
        return ", ".join(f"<= {bar:g} {what}" for bar, what in bars if bar is not None)

    def _verdict(self, ours: float | None, peers: list[float | None]) -> str:
        if ours is None:
            return ""
        judged = [
            ours * self.scale <= self.at_most if self.at_most is not None else None,
            *(
                ours <= peer * bar if peer and bar else None
                for peer, bar in zip(
                    peers, (self.of_dicts, self.of_one_dict, self.of_go), strict=True
                )
            ),
        ]
        if not any(each is not None for each in judged):
            return ""
        return "missed" if False in judged else "met"


ROWS = [
    row
    for mode in MODES
    for row in (
        Row(f"sync CPU, {mode}", "sync.cpu", "s", mode, 1, of_dicts=0.2, of_go=0.1),
        Row(f"  of it until synced, {mode}", "sync.cpu_synced", "s", mode, 1),
        Row(f"RSS added at rest, {mode}", "sync.added", "MB", mode, 1 / MB, at_most=60),
        Row(f"RSS added at the peak, {mode}", "sync.peak_added", "MB", mode, 1 / MB, at_most=100),
    )
] + [
    Row(
        "CPU per update",
        "burst.cpu",
        "µs",
        STREAMED,
        1e6,
        of_dicts=1.0,
        of_one_dict=1.2,
        of_go=0.2,
    ),
    Row("p99 latency at 1,000 updates/s", "latency.p99", "ms", STREAMED, 1e3, of_dicts=2),
    Row("  its median", "latency.p50", "ms", STREAMED, 1e3),
    Row("read an object to change", "reads.private", "µs", STREAMED, 1e6, of_go=0.5),
    Row("read a shared object again", "reads.shared", "µs", STREAMED, 1e6, of_go=5),
]
HEAD = ["", OURS, DICTS, ONE_DICT, GO, f"of {DICTS}", f"of {ONE_DICT}", f"of {GO}", "wanted", ""]


def table(lines: list[list[str]]) -> str:
    """Markdown, aligned so that it reads well as text too."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "| " + " | ".join(_padded(cell, width, at) for at, (cell, width) in enumerate(pairs)) + " |"
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    rule = (
        "|" + "|".join("-" * (width + 1) + ":-"[at == 0] for at, width in enumerate(widths)) + "|"
    )
    return "\n".join((shown[0], rule, *shown[1:]))


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def _ratio(ours: float | None, other: float | None) -> str:
    return f"{ours / other:.2f}" if ours is not None and other else ""


def pauses(small: Measured, large: Measured, few: int, many: int) -> list[str]:
    """How long a full garbage collection stops the process, and how that grows with the cache."""
    lines = []
    for who in (OURS, DICTS):
        before, after = (each[who, STREAMED]["collector.pause"] for each in (small, large))
        lines.append(
            f"{who}: a full garbage collection stops it for {before * 1e3:.1f} ms with {few:,} "
            f"objects, {after * 1e3:.1f} ms with {many:,}: {after / before:.1f} times"
        )
    return lines


def commands(folder: Path, *, with_go: bool) -> Commands:
    """How each cache is started."""
    found = {
        DICTS: python("peer_dicts"),
        ONE_DICT: python("peer_dict"),
        OURS: python("own_informer"),
    }
    if not with_go:
        print(f"{GO} is left out, as asked.")
    elif not (go := shutil.which("go")):
        print(f"{GO} is left out: there is no Go here (https://go.dev/dl has it).")
    else:
        program = folder / "clientgo"
        subprocess.run([go, "build", "-o", program, "."], cwd=HERE / "clientgo", check=True)
        found[GO] = [str(program)]
    return found


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--paced", type=int, default=10_000, help="updates at 1,000 a second")
    parser.add_argument("--rounds", type=int, default=3, help="the best figure of so many counts")
    parser.add_argument("--no-go", action="store_true", help="leave client-go out")
    parser.add_argument("--quick", action="store_true", help="a small run that proves nothing")
    options = parser.parse_args()
    if options.quick:
        options.objects, options.updates, options.paced, options.rounds = 5_000, 5_000, 500, 1
    with tempfile.TemporaryDirectory() as folder:
        caches = commands(Path(folder), with_go=not (options.no_go or options.quick))
        measured = measure_all(caches, options)
    few = options.objects // 10
    pythons = {who: command for who, command in caches.items() if who != GO}
    with replaying(few) as server:
        small = {
            (who, STREAMED): measure(server, command, STREAMED, few, 0, 0)
            for who, command in pythons.items()
        }
    print(f"\n{options.objects:,} certificates; the best of {options.rounds} rounds.\n")
    print(table([HEAD, *(row.cells(measured) for row in ROWS)]), end="\n\n")
    print("\n".join(pauses(small, measured, few, options.objects)))


def measure_all(caches: Commands, options: argparse.Namespace) -> Measured:
    """Each cache in each mode, round after round."""
    rounds: dict[tuple[str, str], list[Figures]] = {}
    with replaying(options.objects) as server:
        for _ in range(options.rounds):
            for mode in MODES:
                for who, command in caches.items():
                    print(f"{who}, {mode} ...", file=sys.stderr)
                    updates = (options.updates, options.paced) if mode == STREAMED else (0, 0)
                    figures = measure(server, command, mode, options.objects, *updates)
                    rounds.setdefault((who, mode), []).append(figures)
    indexed = {each["sync.indexed"] for figures in rounds.values() for each in figures}
    if len(indexed) != 1:
        raise SystemExit(f"not all caches hold the same: {indexed}")
    return {case: least(figures) for case, figures in rounds.items()}


if __name__ == "__main__":
    main()
