"""What the embedded API server costs, beside the cost of reading what it says.

Clients run in processes of their own, so that the CPU time of this one is the server's.
Each line gives a ratio or a rate, and what it should be.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import urllib3

from dyninformer.testing import ApiServer
from dyninformer.types import Object

Client = subprocess.Popen[str]

OBJECTS = 10_000
WATCHERS = 100
WRITES = 500
OPEN_WATCHES = 1_000
ROUNDS = 5
PATH = "/apis/bench.io/v1/namespaces/default/widgets"

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.bench.io"},
    "spec": {
        "group": "bench.io",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def widget(number: int) -> Object:
    """An object of about 1.9 kB as it is sent."""
    containers = [
        {
            "name": f"c{each}",
            "image": f"registry.example/app-{number % 17}:1.{each}",
            "args": ["--verbose", f"--shard={number}", f"--of={OBJECTS}", "--colour=never"],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}},
        }
        for each in range(8)
    ]
    return {
        "apiVersion": "bench.io/v1",
        "kind": "Widget",
        "metadata": {"name": f"widget-{number:05}", "namespace": "default"},
        "spec": {"containers": containers, "replicas": number % 5},
    }


def main() -> None:
    """Run all of it."""
    allow_many_files()
    bench_start()
    with ApiServer() as server:
        server.install(CRD)
        for number in range(OBJECTS):
            server.create(widget(number))
        bench_list(server)
        bench_fan_out(server)
        bench_open_watches(server)


def bench_start() -> None:
    """From the constructor to a served request; the first TLS includes the import of trustme."""
    for tls in (False, True, True):
        begin = time.perf_counter()
        with ApiServer(tls=tls) as server:
            up = time.perf_counter() - begin
            ca = str(server.ca) if server.ca else None
            with urllib3.PoolManager(ca_certs=ca, retries=False) as pool:
                pool.request("GET", f"{server.url}/readyz")
        print(f"up, {'with' if tls else 'without'} TLS: {up * 1000:.0f} ms (less than 100)")


def bench_list(server: ApiServer) -> None:
    """CPU of a LIST in the server, beside json.loads of its bytes."""
    cold = list_cpu(server, 1)
    warm = list_cpu(server, ROUNDS)
    output, _ = start(server, "load", PATH, ROUNDS).communicate()
    size, peer = map(float, output.split())
    print(
        f"LIST of {OBJECTS:,} objects of {size / OBJECTS:.0f} bytes: the first costs "
        f"{cold * 1000 / peer:.2f}, the next {warm * 1000 / peer:.2f} times the CPU of "
        f"json.loads ({peer:.0f} ms) (at most 2)"
    )


def list_cpu(server: ApiServer, rounds: int) -> float:
    """CPU seconds of one LIST in this process."""
    begin = time.process_time()
    start(server, "list", PATH, rounds).communicate()
    return (time.process_time() - begin) / rounds


def bench_fan_out(server: ApiServer) -> None:
    """One writer, many watchers: events delivered per second."""
    events = WATCHERS * WRITES
    watch = start(server, "watch", watch_path(server), WATCHERS, events)
    wait_open(watch)
    begin, cpu = time.perf_counter(), time.process_time()
    writer = start(server, "patch", f"{PATH}/widget-00000", WRITES)
    watch.communicate()
    seconds, spent = time.perf_counter() - begin, time.process_time() - cpu
    writer.communicate()
    print(
        f"{WATCHERS} watchers of one writer: {events / seconds:,.0f} events/s in total "
        f"(20,000 or more), {events / spent:,.0f} per CPU second of the server"
    )


def bench_open_watches(server: ApiServer) -> None:
    """Many open watches: memory each, and how soon one event has reached them all."""
    before = memory()
    watch = start(server, "watch", watch_path(server), OPEN_WATCHES, OPEN_WATCHES)
    wait_open(watch)
    each = (memory() - before) / OPEN_WATCHES
    begin = time.perf_counter()
    server.patch("widgets/widget-00000", {"spec": {"replicas": 99}})
    watch.communicate()
    reached = time.perf_counter() - begin
    print(
        f"{OPEN_WATCHES:,} open watches: {each / 1024:.0f} kB each; "
        f"one event reaches them all in {reached * 1000:.0f} ms"
    )


def start(server: ApiServer, role: str, path: str, *numbers: int) -> Client:
    """A client in a process of its own."""
    program = Path(__file__).with_name("server_clients.py")
    port = server.url.rpartition(":")[2]
    arguments = [role, port, server.token, path, *map(str, numbers)]
    return subprocess.Popen(
        [sys.executable, "-S", str(program), *arguments], stdout=subprocess.PIPE, text=True
    )


def wait_open(watch: Client) -> None:
    """Return when all its watches are open."""
    assert watch.stdout is not None
    assert watch.stdout.readline() == "open\n"


def watch_path(server: ApiServer) -> str:
    """A watch from now on, until long after the end."""
    version = server.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "now-"}}
    )
    return f"{PATH}?watch=1&resourceVersion={version['metadata']['resourceVersion']}"


def memory() -> int:
    """Bytes that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def allow_many_files() -> None:
    """A thousand connections need more files than many shells allow."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))


if __name__ == "__main__":
    main()
