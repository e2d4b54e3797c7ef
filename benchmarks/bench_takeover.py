"""How long shards are without an owner: processes on a real API server, killed, and told to end.

Needs KUBEBUILDER_ASSETS. Leases last 4 s, and are renewed every 0.5 s.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from dyninformer.testing import ControlPlane
from tests.scale.test_processes import NAMESPACE, OBJECTS, Replicas

_AT_ONCE = 0.3  # seconds; what it gave away before counts for nothing
NAMES = ("a", "b", "c", "d", "e")


def gaps(replicas: Replicas, holder: str) -> list[float]:
    """From what a replica did at its end on each of its shards to what another one did first."""
    acts: dict[int, dict[int, list[tuple[float, str]]]] = defaultdict(lambda: defaultdict(list))
    for note in replicas.notes():
        if note["what"] == "acts":
            acts[note["shard"]][note["term"]].append((note["at"], note["holder"]))
    found = []
    for terms in acts.values():
        for term, following in pairwise(sorted(terms)):
            if terms[term][0][1].startswith(f"{holder}_"):
                found.append((max(terms[term])[0], min(terms[following])[0]))
    end = max(last for last, _ in found)
    return [first - last for last, first in found if last > end - _AT_ONCE]


def main() -> None:
    """Print what was seen."""
    with ControlPlane() as server, tempfile.TemporaryDirectory() as folder:
        for number in range(OBJECTS):
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"o{number}"}}
            server.create(obj, NAMESPACE)
        replicas = Replicas(server, Path(folder))
        try:
            replicas.start(*NAMES)
            replicas.until_shared(*NAMES)
            replicas.send(signal.SIGKILL, "a")
            replicas.until_shared(*NAMES[1:])
            replicas.send(signal.SIGTERM, "b")
            replicas.until_shared(*NAMES[2:])
        finally:
            replicas.end()
        replicas.check_terms()
        for name, what in (("a", "kill -9"), ("b", "SIGTERM")):
            seen = gaps(replicas, name)
            middle = statistics.median(seen)
            print(
                f"{what}: {len(seen)} shards, unowned for {middle:.2f} s, at most {max(seen):.2f}"
            )


if __name__ == "__main__":
    main()
