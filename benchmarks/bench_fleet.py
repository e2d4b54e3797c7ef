"""What five clusters that never answer cost the forty-five that do, and what a fleet takes.

Run as ``python -m benchmarks.bench_fleet``. A round starts a fleet of the 45 alone, and one of
these and 5 black holes, which take a connection and say nothing; in turn, and with the black holes
first or last. The servers are in the same process, so that the figures have their work in them,
too. What counts is the ratio of the medians: from `start` until 45 have synced. The bar is 1.1.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
from contextlib import ExitStack
from typing import Any

from dyninformer import Fleet
from dyninformer.testing import ApiServer
from dyninformer.testing.client import dynamic_client

SERVERS, HOLES, OBJECTS = 45, 5, 100
PATIENCE = 60.0


def black_hole(stack: ExitStack) -> Any:
    """A client of a cluster that never says a word."""
    listening = stack.enter_context(socket.socket())
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    return dynamic_client(f"http://127.0.0.1:{listening.getsockname()[1]}", "token", None)


def config_map(number: int) -> dict[str, Any]:
    """One of the objects."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"settings-{number}"},
        "data": {f"key-{at}": f"value {at} of {number}" for at in range(20)},
    }


def measured(clients: dict[str, Any], enough: int, resource: str) -> tuple[float, float, int]:
    """Seconds, and seconds of CPU, until so many have synced; and how many threads there are."""
    with Fleet(clients) as fleet:
        fleet.for_resource(resource)
        cpu, wall = time.process_time(), time.perf_counter()
        fleet.sync(PATIENCE, require=enough)
        took = time.perf_counter() - wall, time.process_time() - cpu
        return *took, threading.active_count()


def main(rounds: int) -> None:
    """Print medians, and their ratios."""
    with ExitStack() as stack:
        servers = [stack.enter_context(ApiServer()) for _ in range(SERVERS)]
        for server in servers:
            for number in range(OBJECTS):
                server.create(config_map(number), namespace="default")
        there = {f"cluster-{at}": each.client() for at, each in enumerate(servers)}
        holes = {f"hole-{at}": black_hole(stack) for at in range(HOLES)}
        before = threading.active_count()
        for resource in ("v1/configmaps", "cm"):
            alone, beside = [], []
            measured(there, SERVERS, resource)  # what is imported, and made once
            for at in range(rounds):
                mixed = {**holes, **there} if at % 2 else {**there, **holes}
                alone.append(measured(there, SERVERS, resource))
                beside.append(measured(mixed, SERVERS, resource))
            print(f"{resource}: {SERVERS} clusters of {OBJECTS} objects, {rounds} rounds")
            for what, runs in (("alone", alone), (f"and {HOLES} black holes", beside)):
                wall, cpu, threads = (statistics.median(each) for each in zip(*runs, strict=True))
                print(
                    f"  {what:20} {wall * 1000:7.0f} ms {cpu * 1000:7.0f} ms of CPU "
                    f"{threads - before:4.0f} threads"
                )
            for name, at in (("seconds", 0), ("CPU", 1)):
                ratio = statistics.median(each[at] for each in beside) / statistics.median(
                    each[at] for each in alone
                )
                print(f"  ratio of {name:7}     {ratio:7.3f}   (bar: 1.1)")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("rounds", nargs="?", type=int, default=15)
    main(arguments.parse_args().rounds)
