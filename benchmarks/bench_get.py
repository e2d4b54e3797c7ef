"""``dyninformer get`` beside kubectl: tables, YAML and JSON of 2,000 and of 20,000 objects.

Run as ``python -m benchmarks.bench_get``. With KUBEBUILDER_ASSETS set both ask the same real API
server in turn, and the best round of each counts. Without it, dyninformer asks the embedded
server, and there is nothing to compare it with. ``--quick`` takes 200 objects and one round.

Python has to have its modules compiled: PYTHONDONTWRITEBYTECODE, where it is set, is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import urllib3

from benchmarks.certificates import certificate
from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.transport.config import Environment, KubeconfigFiles

CRDS = Path(__file__).parents[1] / "examples" / "crd"
FORMS = ("table", "yaml", "json")
ROUNDS = 3
_OURS = "from dyninformer.cli.main import main; main()"
_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


class Cost(NamedTuple):
    """Seconds of one command."""

    wall: float
    cpu: float


def fill(config: Path, count: int, namespace: str) -> None:
    """Create so many certificates in a namespace of their own."""
    plain = Environment(KubeconfigFiles((str(config),))).plain()
    assert plain is not None
    headers = {**plain.headers, "Content-Type": "application/json"}
    pool = urllib3.PoolManager(maxsize=16, block=True, ssl_context=plain.tls)

    def post(path: str, obj: object) -> None:
        answer = pool.request("POST", plain.host + path, body=json.dumps(obj), headers=headers)
        if answer.status != 201:
            raise SystemExit(f"POST {path}: {answer.status} {answer.data[:200]!r}")

    def create(number: int) -> None:
        obj = json.loads(certificate(number, 1))
        for name in _SET_BY_SERVER:
            obj["metadata"].pop(name, None)
        obj["metadata"]["namespace"] = namespace
        post(f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates", obj)

    spaces = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    post("/api/v1/namespaces", spaces)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(create, range(count)))


def cost(command: Sequence[str], config: Path) -> Cost:
    """What a command takes whose output nobody reads."""
    environment = {**os.environ, "KUBECONFIG": str(config)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def best(costs: Sequence[Cost]) -> Cost:
    """The least of each."""
    return Cost(min(each.wall for each in costs), min(each.cpu for each in costs))


def compare(config: Path, kubectl: Path | None, count: int, namespace: str, rounds: int) -> None:
    """Print a row for each form."""
    for form in FORMS:
        asked = ["get", "certificates", "-n", namespace]
        asked += [] if form == "table" else ["-o", form]
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(cost([sys.executable, "-c", _OURS, *asked], config))
            if kubectl is not None:
                theirs.append(cost([str(kubectl), *asked], config))
        own = best(ours)
        row = f"| {count:,}, {form} | {own.wall:.2f} | {own.cpu:.2f} |"
        if theirs:
            other = best(theirs)
            row += f" {other.wall:.2f} | {other.cpu:.2f} |"
            row += f" {own.wall / other.wall:.2f} | {own.cpu / other.cpu:.2f} |"
        else:
            row += " | | | |"
        print(row, flush=True)


def main() -> None:
    """Fill a server, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 objects, one round")
    quick = parser.parse_args().quick
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        print(
            "KUBEBUILDER_ASSETS is not set: the embedded server alone, and no kubectl beside it\n"
        )
    kubectl = Path(assets) / "kubectl" if assets else None
    print("| | wall (s) | CPU (s) | kubectl's wall | kubectl's CPU | of its wall | of its CPU |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with (
        tempfile.TemporaryDirectory() as place,
        ControlPlane() if assets else ApiServer() as server,
    ):
        config = server.kubeconfig(Path(place) / "config")
        server.install(CRDS)
        for count in (200,) if quick else (2_000, 20_000):
            fill(config, count, f"of-{count}")
            compare(config, kubectl, count, f"of-{count}", 1 if quick else ROUNDS)


if __name__ == "__main__":
    main()
