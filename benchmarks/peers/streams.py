"""The bytes of a sync alone: curl reads them, and they are thrown away.

What to ask for is found out beforehand: where each page begins, and how long the stream is up to
its mark.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from benchmarks.peers.cluster import PATH
from benchmarks.peers.processes import Command, Figures
from dyninformer.testing import ControlPlane

MARK = b'"k8s.io/initial-events-end":"true"'
STREAM = {
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
    "timeoutSeconds": "120",
}
_AT_ONCE = 1 << 20


class Curl:
    """Reads what clients read of one server, without looking at it."""

    def __init__(self, server: ControlPlane, folder: Path) -> None:
        self._url = server.url + PATH
        self._headers = {
            "Authorization": f"Bearer {server.token}",
            "Accept": "application/json",
            # To one that is called curl the server sends JSON with blanks, as for people.
            "User-Agent": "benchmark",
        }
        self._pool = urllib3.PoolManager(ca_certs=str(server.ca), retries=False)
        said = [f'cacert = "{server.ca}"', "silent", "no-buffer", "http1.1", "fail"]
        said += [f'header = "{name}: {value}"' for name, value in self._headers.items()]
        self._settings, self._folder = said, folder

    def pages(self, limit: int) -> Command:
        """All pages, one after the other on one connection, to /dev/null."""
        urls, token = [], ""
        while True:
            query = {"limit": limit} | ({"continue": token} if token else {})
            urls.append(f"{self._url}?{urlencode(query)}")
            token = self._ask(urls[-1]).json()["metadata"].get("continue", "")
            if not token:
                break
        lines = [line for url in urls for line in (f'url = "{url}"', 'output = "/dev/null"')]
        return self._command("pages", lines)

    def stream(self) -> tuple[Command, int]:
        """The stream of the state, to its standard output, and how long it is up to the mark."""
        url = f"{self._url}?{urlencode(STREAM)}"
        answer = self._ask(url, preload_content=False)
        size = 0
        for line in answer:
            size += len(line)
            if MARK in line:
                break
        answer.close()
        return self._command("stream", [f'url = "{url}"']), size

    def _ask(self, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        answer = self._pool.request("GET", url, headers=self._headers, **options)
        if answer.status != 200:
            raise SystemExit(f"GET {url}: {answer.status}")
        return answer

    def _command(self, name: str, lines: list[str]) -> Command:
        file = self._folder / name
        file.write_text("\n".join([*self._settings, *lines]))
        return ["curl", "--config", str(file)]


def read_whole(command: Command, size: int | None, server_seconds: Callable[[], float]) -> Figures:
    """Run it to its end, or until it has given so many bytes."""
    server, began = server_seconds(), time.perf_counter()
    output = subprocess.DEVNULL if size is None else subprocess.PIPE
    with subprocess.Popen(command, stdout=output, bufsize=0) as process:
        if size is not None:
            assert process.stdout is not None
            while size > 0:
                size -= len(process.stdout.read(_AT_ONCE)) or _ended(command)
            process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode and size is None:
        _ended(command)
    return {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "server": server_seconds() - server,
        "memory": used.ru_maxrss * 1024,
    }


def _ended(command: Command) -> int:
    raise SystemExit(f"{' '.join(command)} ended before it should have")
