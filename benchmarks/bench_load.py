"""What load does to a program: memory with handlers too slow for it, with many, for long.

Run as ``python -m benchmarks.bench_load``, or with the names of some of the parts: slow, handlers,
churn, restart. The informer is a process of its own, and so is the server that changes objects of
half a kilobyte (load_server.py). ``restart`` needs a real API server (KUBEBUILDER_ASSETS), which it
kills and starts: beside 200 informers, and beside 200 plain lists, which is as quick as it gets.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import urllib3

from benchmarks.bench_informer import HERE, python, table
from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.testing import ControlPlane
from dyninformer.types import Object

Answer: TypeAlias = dict[str, Any]
Lines: TypeAlias = list[list[str]]

GROUP = "load.example.com"
SAMPLED_EVERY = 1.0
_LONGEST = 120.0  # seconds that a restart may take to be over
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rate: float = 20_000
    seconds: float = 60
    keys: int = 10_000
    handlers: int = 500
    churned: int = 100_000
    churn_rate: float = 2_000
    churn_seconds: float = 600
    settled_after: float = 60
    informers: int = 200
    restarts: int = 5
    slow: float = 0.001
    most: int = 10_000


def widgets(plural: str) -> Object:
    """The CRD of one of many resources."""
    kind = plural.title()
    names = {"plural": plural, "singular": f"{plural}-one", "kind": kind}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": names, "versions": [version],
        },
    }  # fmt: skip


QUICK = Sizes(
    rate=2_000, seconds=0.5, keys=200, handlers=20, churned=1_000, churn_rate=1_000,
    churn_seconds=0.5, settled_after=0.1, informers=5, restarts=1, slow=0.005, most=100,
)  # fmt: skip


class Program:
    """A process that answers lines with lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lock = threading.Lock()
        self.first = self._answer()

    def ask(self, question: str) -> Answer:
        """What it says to that."""
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
            return self._answer()

    def _answer(self) -> Answer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended with {self._process.wait()}")
        answer: Answer = json.loads(line)
        return answer


@contextmanager
def program(module: str, *arguments: object) -> Iterator[Program]:
    """A module of this folder, until the end."""
    command = [*python(module), *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=HERE.parent) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


@contextmanager
def loaded(
    keys: int, handlers: int, delay: float | str, **options: object
) -> Iterator[tuple[Program, Program]]:
    """A server, and an informer that has synced."""
    with program("load_server", keys) as server:
        url = f"http://127.0.0.1:{server.first['port']:.0f}"
        with program("loaded_client", url, handlers, delay, json.dumps(options)) as client:
            yield server, client


def under_load(server: Program, client: Program, **order: float) -> tuple[Answer, list[Answer]]:
    """What the server did, and how the client stood each second meanwhile."""
    seen: list[Answer] = []
    with ThreadPoolExecutor(1) as aside:
        done = aside.submit(server.ask, json.dumps(order))
        begin = time.monotonic()
        while not done.done():
            seen.append({**client.ask("how"), "at": time.monotonic() - begin})
            time.sleep(min(SAMPLED_EVERY, order["seconds"] / 10))
        return done.result(), seen


def slow(sizes: Sizes) -> str:
    """A handler that is slower than the changes come."""
    lines: Lines = [
        ["", "changes/s", "RSS before (MB)", "most", "after", "longest backlog", "overflows",
         "warnings", "told what is held"]
    ]  # fmt: skip
    ways: dict[str, Answer] = {
        "coalesce=True": {"coalesce": True},
        f"max_backlog={sizes.most:,}": {"max_backlog": sizes.most},
        "without": {},
    }
    for name, options in ways.items():
        with loaded(sizes.keys, 1, sizes.slow, **options) as (server, client):
            before = client.ask("how")
            did, seen = under_load(server, client, rate=sizes.rate, seconds=sizes.seconds)
            client.ask("quick")
            after = client.ask(f"check {did['version']}")
            lines.append(
                [
                    name,
                    f"{did['changes'] / did['seconds']:,.0f}",
                    f"{before['rss']:.0f}",
                    f"{max(each['rss'] for each in seen):.0f}",
                    f"{after['rss']:.0f}",
                    f"{max(each['backlog'] for each in seen):,}",
                    f"{after['overflows']}",
                    f"{len(after['warnings'])}",
                    "yes" if after["equal"] else "NO",
                ]
            )
            for warning in after["warnings"][:1]:
                print(f"{name}: {warning}\n")
    return table(lines)


def handlers(sizes: Sizes) -> str:
    """Many handlers on one informer."""
    lines: Lines = [
        ["handlers", "RSS (MB)", "threads", "changes", "told", "CPU each (us)", "told what is held"]
    ]
    for number in (1, sizes.handlers):
        with loaded(sizes.keys // 10, number, 0) as (server, client):
            before = client.ask("check 0")
            did, _ = under_load(server, client, rate=sizes.rate / 100, seconds=sizes.seconds / 6)
            after = client.ask(f"check {did['version']}")
            told = after["heard"] - before["heard"]
            lines.append(
                [
                    f"{number}",
                    f"{after['rss']:.0f}",
                    f"{after['threads']}",
                    f"{did['changes']:,}",
                    f"{told:,}",
                    f"{(after['cpu'] - before['cpu']) / max(1, told) * 1e6:.1f}",
                    "yes" if after["equal"] else "NO",
                ]
            )
    return table(lines)


def churn(sizes: Sizes) -> str:
    """Objects that change, go and are replaced by others of new names, for long."""
    with loaded(sizes.churned, 1, "sum") as (server, client):
        synced = client.ask("how")
        did, seen = under_load(
            server, client, rate=sizes.churn_rate, seconds=sizes.churn_seconds, replaced=0.5
        )
        after = client.ask(f"check {did['version']}")
    settled = [each["rss"] for each in seen if each["at"] >= sizes.settled_after]
    minutes = [each["rss"] for each in seen[:: max(1, len(seen) // 10)]]
    print("RSS (MB), ten times on the way:", ", ".join(f"{each:.1f}" for each in minutes), "\n")
    lines: Lines = [
        ["objects", "changes/s", "RSS synced (MB)", "after a minute", "most after that",
         "at the end", "of that after a minute", "told what is held"],
        [
            f"{after['objects']:,}",
            f"{did['changes'] / did['seconds']:,.0f}",
            f"{synced['rss']:.1f}",
            f"{settled[0]:.1f}",
            f"{max(settled):.1f}",
            f"{settled[-1]:.1f}",
            f"{settled[-1] / settled[0]:.3f}",
            "yes" if after["equal"] else "NO",
        ],
    ]  # fmt: skip
    return table(lines)


# A restart of the API server.


def restart(sizes: Sizes) -> str:
    """Many informers of one factory while the API server is killed, and killed again."""
    if "KUBEBUILDER_ASSETS" not in os.environ:
        return "KUBEBUILDER_ASSETS is not set: there is no real API server to restart."
    names = [f"widgets{number}" for number in range(sizes.informers)]
    with _audited() as (server, log):
        for name in names:
            server.install(widgets(name))
        lines: Lines = [
            ["kill", "who asks", "first (s)", "half (s)", "all (s)", "requests", "most in a second"]
        ]
        plain = _Lists(server, names)
        for number in range(sizes.restarts):
            lines.append([f"{number + 1}", "plain lists", *_back(server, log, plain, len(names))])
        informers = _Informers(server, names)
        try:
            for number in range(sizes.restarts):
                lines.append(
                    [f"{number + 1}", "informers", *_back(server, log, informers, len(names))]
                )
        finally:
            informers.close()
        return table(lines)


@contextmanager
def _audited() -> Iterator[tuple[ControlPlane, Path]]:
    """An API server that writes down each request when it comes."""
    import tempfile  # noqa: PLC0415 - only here

    with tempfile.TemporaryDirectory() as folder:
        policy, log = Path(folder, "policy.json"), Path(folder, "audit.log")
        policy.write_text(json.dumps(_POLICY))
        flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
        with ControlPlane(apiserver_flags=flags) as server:
            yield server, log


class _Informers:
    """An informer of each; current is one that has heard of the server since."""

    name = "dyninformer"

    def __init__(self, server: ControlPlane, names: list[str]) -> None:
        self._factory = DynamicSharedInformerFactory(server.client())
        self._informers = [
            self._factory.for_resource(GroupVersionResource(GROUP, "v1", each)).informer
            for each in names
        ]
        self._factory.sync(timeout=300)

    def begin(self) -> None:
        """Nothing to do: they see for themselves."""

    def current(self) -> int:
        """How many are live again."""
        return sum(each.status().live for each in self._informers)

    def close(self) -> None:
        """End them."""
        self._factory.shutdown(10)


class _Lists:
    """A thread for each that asks for a plain list from the moment that the server is ready.

    A quarter of a second after a failure it asks again.
    """

    name = "plain"

    def __init__(self, server: ControlPlane, names: list[str]) -> None:
        self._pool = urllib3.PoolManager(
            maxsize=len(names), ca_certs=str(server.ca), retries=False,
            headers={"Authorization": f"Bearer {server.token}"},
        )  # fmt: skip
        self._urls = [f"{server.url}/apis/{GROUP}/v1/{each}?limit=500" for each in names]
        self._done: list[str] = []

    def begin(self) -> None:
        """Ask until each has answered."""
        self._done = []
        for url in self._urls:
            threading.Thread(target=self._ask, args=(url,), daemon=True).start()

    def _ask(self, url: str) -> None:
        while True:
            with suppress(urllib3.exceptions.HTTPError):
                if self._pool.request("GET", url, timeout=10).status == 200:
                    self._done.append(url)
                    return
            time.sleep(0.25)

    def current(self) -> int:
        """How many were answered."""
        return len(self._done)


def _back(server: ControlPlane, log: Path, who: _Informers | _Lists, whole: int) -> list[str]:
    """Kill the server and start it; how long after it is ready so many are current."""
    server.kill("kube-apiserver")
    written = log.stat().st_size
    deadline = time.monotonic() + 60
    while isinstance(who, _Informers) and who.current() and time.monotonic() < deadline:
        time.sleep(0.01)
    server.start("kube-apiserver")  # returns when it says that it is ready
    ready = time.monotonic()
    who.begin()
    many = [(0.0, who.current())]
    while many[-1][1] < whole and many[-1][0] < _LONGEST:
        time.sleep(0.02)
        many.append((time.monotonic() - ready, who.current()))
    moments = [
        next((f"{at:.1f}" for at, count in many if count >= wanted), "never")
        for wanted in (1, whole / 2, whole)
    ]
    requests, most = _asked(log, written, who.name)
    return [*moments, f"{requests}", f"{most}"]


def _asked(log: Path, since: int, who: str) -> tuple[int, int]:
    """How many requests came from a program, and the most in one second, as the server has it."""
    seconds: Counter[str] = Counter()
    with log.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            entry: Object = json.loads(line)
            agent = entry.get("userAgent", "")
            if ("urllib3" in agent) == (who == "plain") and entry["user"]["username"] == "admin":
                seconds[entry["requestReceivedTimestamp"][:19]] += 1
    return seconds.total(), max(seconds.values(), default=0)


PARTS = {"slow": slow, "handlers": handlers, "churn": churn, "restart": restart}


def main() -> None:
    """Print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless given")
    parser.add_argument("--quick", action="store_true", help="a small run, of no meaning")
    given = parser.parse_args()
    logging.getLogger("dyninformer").setLevel(logging.ERROR)  # that a server is gone, they know
    sizes = QUICK if given.quick else Sizes()
    for name in given.parts or PARTS:
        load = os.getloadavg()[0]
        begin = time.monotonic()
        found = PARTS[name](sizes)
        print(f"## {name}: {PARTS[name].__doc__}\n\n{found}\n")
        print(f"{time.monotonic() - begin:.0f} s, load {load:.1f} before.\n", flush=True)


if __name__ == "__main__":
    main()
