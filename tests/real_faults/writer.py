"""A process that writes to an API server, and remembers what the server has acknowledged.

``python -m tests.real_faults.writer URL CA RATE SEED``, with a bearer token as the first line of
stdin. Then each line is a word: ``go``, ``pause``, which is answered when no write is under way, or
``forget``. An answer is one line of JSON: what was acknowledged since the last ``pause``.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from random import Random
from typing import Any

import urllib3

PATH = "/apis/faults.example.com/v1/namespaces/{}/widgets"
NAMESPACES = ("n0", "n1", "n2")
THREADS = 4
_PER_NAMESPACE = 30
_JSON = "application/json"
_MERGE = "application/merge-patch+json"


class Writer:
    """One thread, with names of its own, so that the last write of each is known."""

    def __init__(self, number: int, url: str, ca: str, token: str, pause: float, seed: int) -> None:
        self._names = [f"w{number}-{each}" for each in range(_PER_NAMESPACE)]
        self._chance = Random(f"{seed} {number}")
        self._pool = urllib3.PoolManager(
            ca_certs=ca, retries=False, timeout=5, headers={"authorization": f"Bearer {token}"}
        )
        self._url, self._pause = url, pause
        self._there: set[tuple[str, str]] = set()
        self.going = threading.Event()
        self.idle = threading.Event()
        self.acknowledged: list[tuple[str, str | None]] = []
        """Key, and version; None for a deletion."""
        self.count = 0
        self.unsure: set[str] = set()
        """Keys of whose last write nobody knows what became of it."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            if not self.going.is_set():
                self.idle.set()
                self.going.wait()
                self.idle.clear()
                due = time.monotonic()
            try:
                self._write()
            except urllib3.exceptions.HTTPError:
                time.sleep(0.1)
            due = max(due + self._pause, time.monotonic() - 1)  # what it owes is at most a second's
            time.sleep(max(0.0, due - time.monotonic()))

    def _write(self) -> None:
        chance = self._chance
        namespace, name = chance.choice(NAMESPACES), chance.choice(self._names)
        body: dict[str, Any] = {
            "apiVersion": "faults.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": name, "labels": {"even": str(chance.randrange(2))}},
            "spec": {"size": chance.randrange(20), "text": "x" * chance.randrange(300)},
        }
        path = PATH.format(namespace)
        if (namespace, name) not in self._there:
            answer = self._ask(namespace, name, "POST", path, body, _JSON)
        elif chance.random() < 0.75:
            answer = self._ask(namespace, name, "PATCH", f"{path}/{name}", body, _MERGE)
        else:
            answer = self._ask(namespace, name, "DELETE", f"{path}/{name}", None, _JSON)
        if answer in {201, 409}:
            self._there.add((namespace, name))
        elif answer == 404:
            self._there.discard((namespace, name))

    def _ask(self, namespace: str, name: str, method: str, path: str, body: Any, kind: str) -> int:
        key = f"{namespace}/{name}"
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                body=None if body is None else json.dumps(body).encode(),
                headers={**self._pool.headers, "content-type": kind},
            )
        except urllib3.exceptions.HTTPError:
            self.unsure.add(key)
            raise
        if answer.status in {200, 201}:
            deleted = method == "DELETE"
            version = None if deleted else json.loads(answer.data)["metadata"]["resourceVersion"]
            self.acknowledged.append((key, version))
            self.count += 1
            self.unsure.discard(key)
            if deleted:
                self._there.discard((namespace, name))
        elif answer.status >= 500:
            self.unsure.add(key)
        return answer.status


def main() -> None:
    """Write until stdin ends."""
    url, ca, rate, seed = sys.argv[1:]
    token = sys.stdin.readline().strip()
    pause = THREADS / float(rate)
    writers = [Writer(number, url, ca, token, pause, int(seed)) for number in range(THREADS)]
    for line in sys.stdin:
        match line.strip():
            case "go":
                for each in writers:
                    each.idle.clear()
                    each.going.set()
            case "pause":
                for each in writers:
                    each.going.clear()
                for each in writers:
                    each.idle.wait()
                found = {
                    "count": sum(each.count for each in writers),
                    "acknowledged": [ack for each in writers for ack in each.acknowledged],
                    "unsure": sorted(key for each in writers for key in each.unsure),
                }
                for each in writers:
                    each.acknowledged, each.count = [], 0
                print(json.dumps(found), flush=True)
            case _:  # forget: the server is another one than before
                for each in writers:
                    each.acknowledged = []
                    each.unsure.clear()


if __name__ == "__main__":
    main()
