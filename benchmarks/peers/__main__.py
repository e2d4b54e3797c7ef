"""A sync from a real kube-apiserver, by this package, its peers, and curl: ``make bench-peers``.

Run as ``python -m benchmarks.peers``. Each fills a cache with the same certificates, in a process
of its own, round after round in turn; the best figure of each counts. Read the ratios.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.bench_informer import least, table
from benchmarks.peers.cluster import filled, server_seconds
from benchmarks.peers.installed import MODES, PAGED, PEERS, Peer, installed
from benchmarks.peers.processes import Figures, measured
from benchmarks.peers.streams import Curl, read_whole
from dyninformer.testing import ControlPlane
from dyninformer.testing.control_plane import find_assets

Rounds = dict[tuple[str, str], list[Figures]]

MB = 1_000_000
PAGE = 500
CURL, OURS = "curl", "dyninformer"
HEAD = [
    "", "wall (s)", "of curl", "of ours", "CPU (s)", "of curl", "of ours",
    "CPU of the server (s)", "RSS added (MB)", "of ours",
]  # fmt: skip


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"there is no peer {min(unknown)!r}; there are {', '.join(PEERS)}")
    find_assets()  # before anything is built that then has no server to ask
    peers = installed(options.peers or list(PEERS))
    with filled(options.objects) as server, tempfile.TemporaryDirectory() as folder:
        rounds = measure_all(server, peers, Path(folder), options.objects, options.rounds)
    load = os.getloadavg()[0]
    print(
        f"\n{options.objects:,} certificates; the best of {options.rounds} rounds; "
        f"{os.cpu_count()} processors, a load of {load:.1f} at the end."
    )
    best = {case: least(figures) for case, figures in rounds.items()}
    for mode in MODES:
        print(f"\n{mode}:\n")
        print(table([HEAD, *(cells(who, mode, best) for who, at in best if at == mode)]))
        print(f"\n{OURS}, its wall time of curl's, round by round: {of_curl(rounds, mode)}")


def measure_all(
    server: ControlPlane, peers: list[Peer], folder: Path, count: int, times: int
) -> Rounds:
    """Each of them in each of its modes, round after round."""
    rounds: Rounds = {}
    used = partial(server_seconds, server)
    environment = {"KUBECONFIG": str(server.kubeconfig())}
    curl = Curl(server, folder)
    pages, (stream, size) = curl.pages(PAGE), curl.stream()
    for _ in range(times):
        for mode in MODES:
            command, until = (pages, None) if mode == PAGED else (stream, size)
            rounds.setdefault((CURL, mode), []).append(read_whole(command, until, used))
            for peer in peers:
                if mode in peer.modes:
                    print(f"{peer.name}, {mode} ...", file=sys.stderr, flush=True)
                    figures = measured(peer.command(mode), environment, used, count)
                    rounds.setdefault((peer.name, mode), []).append(figures)
    return rounds


def of_curl(rounds: Rounds, mode: str) -> str:
    """How much longer than curl it took each time, and in the median."""
    pairs = zip(rounds.get((OURS, mode), []), rounds[CURL, mode], strict=False)
    ratios = [ours["wall"] / curl["wall"] for ours, curl in pairs]
    if not ratios:
        return "not measured"
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"{each}; median {median(ratios):.2f}"


def cells(who: str, mode: str, best: dict[tuple[str, str], Figures]) -> list[str]:
    """A line of the table."""
    of = best[who, mode]
    curl, ours = best[CURL, mode], best.get((OURS, mode), {})

    def ratio(figure: str, other: Figures) -> str:
        return f"{of[figure] / other[figure]:.2f}" if other.get(figure) else ""

    added = ["", ""] if who == CURL else [f"{of['memory'] / MB:,.0f}", ratio("memory", ours)]
    return [
        who,
        f"{of['wall']:.2f}", ratio("wall", curl), ratio("wall", ours),
        f"{of['cpu']:.2f}", ratio("cpu", curl), ratio("cpu", ours),
        f"{of['server']:.2f}", *added,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
