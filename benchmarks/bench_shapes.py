"""What an object costs by its shape: certificates, Argo CD applications, pods, noise, deployments.

Run as ``python -m benchmarks.bench_shapes [--shapes pods noise]``. The bytes come from a replay
server, every cache is a fresh process, as in bench_informer. Beside the package stand, in the same
run: itself without compression; with ``--before``, as it is in another checkout; where Go is
installed, client-go's dynamic informer; and with ``--kube-rs`` kube-rs's reflector, which has no
indexes. ``CPU`` is that of the process until it has synced, ``at
rest`` that until it has nothing more to do: dictionaries trained, entries moved over to them.
Memory is all that the process grew by, keys, dictionaries and what malloc keeps included.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.bench_informer import (
    GO,
    HERE,
    MODES,
    OURS,
    STREAMED,
    Command,
    Figures,
    Server,
    commands,
    least,
    measure,
    python,
    replaying,
    table,
)
from benchmarks.peers.installed import KIND, kube_rs_program
from benchmarks.peers.processes import measured as seen_from_outside
from benchmarks.shapes import SHAPES

BEFORE, PLAIN, RUST = "before", "compress=False", "kube-rs"
HEAD = [
    "",
    "bytes",
    "RSS added, each",
    "in all (MB)",
    "CPU, each (µs)",
    "at rest (µs)",
    "of before",
    "memory, of ours",
    "CPU, of ours",
]


def main() -> None:
    """Print a table for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=[*SHAPES])
    parser.add_argument("--rounds", type=int, default=2, help="the best figure of so many counts")
    parser.add_argument("--mode", choices=MODES, default=STREAMED)
    parser.add_argument("--before", type=Path, help="another checkout, to be compared with")
    parser.add_argument("--no-go", action="store_true", help="leave client-go out")
    parser.add_argument("--kube-rs", action="store_true", help="with kube-rs, built for minutes")
    parser.add_argument("--quick", action="store_true", help="a small run that proves nothing")
    options = parser.parse_args()
    if options.quick:
        options.objects, options.rounds, options.no_go = 3_000, 1, True
    with tempfile.TemporaryDirectory() as folder:
        caches = commands(Path(folder), with_go=not options.no_go)
        ours = caches[OURS]
        started: dict[str, tuple[Command, Path]] = {OURS: (ours, HERE.parent)}
        if options.before:
            started = {BEFORE: (ours, beside(Path(folder), options.before)), **started}
        started[PLAIN] = (python("own_plain"), HERE.parent)
        if GO in caches:
            started[GO] = (caches[GO], HERE.parent)
        if options.kube_rs:
            started[RUST] = ([str(kube_rs_program()), "sync", *KIND, options.mode], Path(folder))
        for shape in options.shapes:
            figures = measured(shape, started, options)
            size = len(SHAPES[shape](options.objects // 2, options.objects // 2))
            print(f"\n{options.objects:,} {shape}, {options.mode}; the best of {options.rounds}.\n")
            print(table([HEAD, *rows(figures, size, options.objects)]), flush=True)


def beside(folder: Path, checkout: Path) -> Path:
    """A folder with the package of another checkout, and these benchmarks."""
    root = folder / "before"
    root.mkdir()
    (root / "dyninformer").symlink_to(checkout.resolve() / "dyninformer")
    (root / HERE.name).symlink_to(HERE)
    return root


def measured(
    shape: str, started: dict[str, tuple[Command, Path]], options: argparse.Namespace
) -> dict[str, Figures]:
    """The best of each figure of each cache, the rounds in turn."""
    rounds: dict[str, list[Figures]] = {}
    with replaying(options.objects, shape) as server:
        for _ in range(options.rounds):
            for who, (command, root) in started.items():
                print(f"{shape}, {who} ...", file=sys.stderr)
                count = options.objects
                if who == RUST:
                    found = reflected(server, command, options.mode, count, root)
                else:
                    found = measure(server, command, options.mode, count, 0, 0, root)
                rounds.setdefault(who, []).append(found)
    return {who: least(figures) for who, figures in rounds.items()}


def reflected(server: Server, command: Command, mode: str, count: int, folder: Path) -> Figures:
    """The figures of kube-rs, which does nothing more when it has synced."""
    server.order(watch_list=mode == STREAMED)
    config = folder / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    found = seen_from_outside(command, {"KUBECONFIG": str(config)}, lambda: 0.0, count)
    return {
        "sync.added": found["memory"],
        "sync.cpu": found["cpu"],
        "sync.cpu_synced": found["cpu"],
    }


def rows(figures: dict[str, Figures], size: int, count: int) -> list[list[str]]:
    """A line for each cache."""
    before = figures.get(BEFORE)
    return [
        [
            who,
            f"{size:,}",
            f"{each['sync.added'] / count:,.0f}",
            f"{each['sync.added'] / 1e6:,.0f}",
            f"{each['sync.cpu_synced'] / count * 1e6:.1f}",
            f"{each['sync.cpu'] / count * 1e6:.1f}",
            f"{each['sync.cpu_synced'] / before['sync.cpu_synced']:.2f}" if before else "",
            f"{each['sync.added'] / figures[OURS]['sync.added']:.2f}",
            f"{each['sync.cpu_synced'] / figures[OURS]['sync.cpu_synced']:.2f}",
        ]
        for who, each in figures.items()
    ]


if __name__ == "__main__":
    main()
