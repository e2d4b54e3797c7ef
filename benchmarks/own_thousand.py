"""A program with a thousand informers, or with one of as many namespaces, or with plain lists.

Run by bench_thousand as ``own_thousand [lists|informers] KIND COUNT [FILES]``, with KUBECONFIG. It
connects, says so, and goes on with each line that it gets: begin, rest, end.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.config import new_client_from_config

from dyninformer import CacheSyncError, DynamicSharedInformerFactory, GroupVersionResource

GROUP = "load.example.com"  # as in bench_load, which imports more than a program has
_PATIENCE = 60.0
_REST = 5.0
Answer = dict[str, Any]


def main() -> None:
    """One of the two."""
    logging.disable()  # a line for each connection
    what, kind, count, *files = sys.argv[1:]
    if files:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(files[0]), most))
    run = lists if what == "lists" else informers
    run(kind, int(count))


def say(answer: Answer) -> None:
    """Say it, and wait for a line."""
    print(json.dumps(answer), flush=True)
    if not sys.stdin.readline():
        sys.exit()


def lists(kind: str, count: int) -> None:
    """One plain list each, all at once, over as many connections; several rounds."""
    client: Any = new_client_from_config()
    settings = client.configuration
    token = settings.auth_settings()["BearerToken"]["value"]
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    paths = [
        f"/apis/{GROUP}/v1/widgets{number}?limit=500"
        if kind == "crds"
        else f"/api/v1/namespaces/team-{number}/configmaps?limit=500"
        for number in range(count)
    ]
    said: Answer = {}
    while True:
        say(said)
        pool = urllib3.PoolManager(
            maxsize=count,
            retries=False,
            headers={"Authorization": token},
            ssl_context=context if settings.host.startswith("https") else None,
        )
        with ThreadPoolExecutor(count) as threads:
            begun, spent = time.monotonic(), time.process_time()
            urls = [settings.host + path for path in paths]
            asked = [threads.submit(pool.request, "GET", url) for url in urls]
            assert {each.result().status for each in asked} == {200}
            seconds = time.monotonic() - begun
            said = {"seconds": seconds, "cpu": time.process_time() - spent}
        pool.clear()


def informers(kind: str, count: int) -> None:
    """As many informers of one factory."""
    with DynamicSharedInformerFactory() as first:
        first.for_resource("v1/namespaces")
        first.sync(_PATIENCE)
    factory, me = DynamicSharedInformerFactory(), os.getpid()
    before = taken(me)
    say(before)
    begun, troubles = time.monotonic(), ""
    if kind == "crds":
        for number in range(count):
            factory.for_resource(GroupVersionResource(GROUP, "v1", f"widgets{number}"))
    else:
        spaces = [f"team-{number}" for number in range(count)]
        factory.for_resource("v1/configmaps", namespaces=spaces)
    try:
        factory.sync(_PATIENCE)
    except CacheSyncError as error:
        troubles = str(error)
    seconds, after = time.monotonic() - begun, taken(me)
    said = {"seconds": seconds, "troubles": troubles, **after, "cpu": after["cpu"] - before["cpu"]}
    say(said)
    time.sleep(_REST)
    later = taken(me)
    say({**later, "cpu": later["cpu"] - after["cpu"]})
    begun = time.monotonic()
    factory.shutdown(10)
    say({"seconds": time.monotonic() - begun})


def taken(pid: int) -> dict[str, float]:
    """Memory in MB, open files, threads, and seconds of CPU, of a process."""
    of = Path("/proc", str(pid))
    clock = of.joinpath("stat").read_text().rpartition(")")[2].split()
    return {
        "rss": int(of.joinpath("statm").read_text().split()[1]) * 4096 / 1e6,
        "files": len(os.listdir(of / "fd")),
        "threads": len(os.listdir(of / "task")),
        "cpu": (int(clock[11]) + int(clock[12])) / os.sysconf("SC_CLK_TCK"),
    }


if __name__ == "__main__":
    main()
