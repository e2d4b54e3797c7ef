"""An API server in a process of its own, with many namespaces, or many CRDs, of one object each.

Run by bench_thousand: the embedded server, a real one, or with ``relay`` a proxy before either. It
prints where it is, and answers each line with what it takes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import urllib3

from benchmarks.bench_load import widgets
from benchmarks.own_thousand import taken
from dyninformer.testing import ApiServer, ControlPlane
from dyninformer.testing.faults import BlackHole
from dyninformer.types import Object
from tests.conformance.informer.relay import Relay

_AT_A_TIME = 8  # requests that make the objects


def main() -> None:
    """Serve until there are no more lines."""
    which, *rest = sys.argv[1:]
    if which == "relay":
        answer(os.getpid(), {"url": Relay(rest[0]).url})
        return
    kind, count = rest[0], int(rest[1])
    server: ApiServer | ControlPlane
    with ControlPlane() if which == "real" else ApiServer() as server:
        pid = server.pid("kube-apiserver") if isinstance(server, ControlPlane) else os.getpid()
        with asking(server) as pool, ThreadPoolExecutor(_AT_A_TIME) as threads:
            for batch in wanted(kind, count):
                assert set(threads.map(lambda each: post(pool, *each), batch)) == {201}
        said = {"url": server.url, "token": server.token, "kubeconfig": str(server.kubeconfig())}
        answer(pid, said, server)


def wanted(kind: str, count: int) -> Iterator[list[tuple[str, Object]]]:
    """Paths and the objects to post there, in batches that come after one another."""
    if kind == "crds":
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        yield [(crds, widgets(f"widgets{number}")) for number in range(count)]
        return
    names = [f"team-{number}" for number in range(count)]
    yield [
        ("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}}) for name in names
    ]
    yield [
        (
            f"/api/v1/namespaces/{name}/configmaps",
            {"kind": "ConfigMap", "metadata": {"name": "settings"}},
        )
        for name in names
    ]


@contextmanager
def asking(server: ApiServer | ControlPlane) -> Iterator[urllib3.HTTPConnectionPool]:
    """Connections to it, with its token."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    trust = {"ca_certs": str(server.ca)} if isinstance(server, ControlPlane) else {}
    with urllib3.connection_from_url(
        server.url, headers=headers, maxsize=_AT_A_TIME, **trust
    ) as pool:
        yield pool


def post(pool: urllib3.HTTPConnectionPool, path: str, obj: Object) -> int:
    """Make an object; the status of the answer."""
    group, version = path.split("/")[2:4] if path.startswith("/apis") else ("", "v1")
    kinded = {"apiVersion": f"{group}/{version}".lstrip("/"), **obj}
    return pool.request("POST", path, body=json.dumps(kinded)).status


def answer(pid: int, first: Object, server: ApiServer | ControlPlane | None = None) -> None:
    """Say where it is, and then what it takes, as often as that is asked."""
    print(json.dumps(first), flush=True)
    for line in sys.stdin:
        if line.startswith("slow") and isinstance(server, ApiServer):
            server.faults.add(BlackHole(), path=line.split()[1])
        print(json.dumps(taken(pid)), flush=True)


if __name__ == "__main__":
    main()
