"""A queue of keys with retries, over the events of an informer: the heart of a controller.

Handlers are told once and never again, so work that may fail belongs in a queue of keys, as in
client-go. ``events(coalesce=True)`` merges what happened to a key while nobody looked; the
queue holds each key once, and gives one that failed back later and later. What to do is
decided from the cache when its turn comes, not from the event that put it there.

The work here waits for certificates to be ready, and fails as long as they are not.

    python examples/retry_queue.py                          # until Ctrl-C
    python examples/retry_queue.py --namespace prod --seconds 60
"""

from __future__ import annotations

import argparse
import heapq
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from dyninformer import EventStream, JSONPath, open_informer

READY = JSONPath("{.status.conditions[?(@.type=='Ready')].status}")
FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0


class RetryQueue:
    """Keys in the order in which they are due, each of them once. Any thread may call it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()  # guards the rest
        self._due: dict[str, float] = {}
        self._order: list[tuple[float, str]] = []  # with entries that _due no longer agrees with
        self._failures: Counter[str] = Counter()

    def add(self, key: str, delay: float = 0.0) -> None:
        """Have the key's turn come after so many seconds, or earlier if it would anyway."""
        due = time.monotonic() + delay
        with self._changed:
            if due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._order, (due, key))
                self._changed.notify()

    def take(self, until: float) -> str | None:
        """Wait for the next key, or None when the time is over."""
        with self._changed:
            while (now := time.monotonic()) < until:
                while self._order and self._due.get(self._order[0][1]) != self._order[0][0]:
                    heapq.heappop(self._order)
                if self._order and self._order[0][0] <= now:
                    _, key = heapq.heappop(self._order)
                    del self._due[key]
                    return key
                wake = min(until, self._order[0][0]) if self._order else until
                self._changed.wait(min(wake - now, threading.TIMEOUT_MAX))
        return None

    def retry(self, key: str) -> float:
        """Put a key back that failed; says after how many seconds."""
        with self._changed:
            self._failures[key] += 1
            delay = min(FIRST_DELAY * 2.0 ** (self._failures[key] - 1), LONGEST_DELAY)
        self.add(key, delay)
        return delay

    def forget(self, key: str) -> None:
        """The work is done: the next failure of this key is its first."""
        with self._changed:
            del self._failures[key]


class NotReadyError(Exception):
    """The certificate is not what it should be."""


def reconcile(key: str, certificate: dict[str, Any] | None) -> None:
    """The work. It looks at the state as it is now; None means that the object is gone."""
    if certificate is None:
        print(f"{key}: gone", flush=True)
    elif READY.first(certificate) != "True":
        raise NotReadyError("not ready yet")
    else:
        print(f"{key}: ready", flush=True)


def fill(queue: RetryQueue, events: EventStream) -> None:
    """Runs on a thread of its own and ends when the informer does."""
    for event in events:
        queue.add(event.key)


def main() -> None:
    """Work until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--namespace", help="one namespace instead of all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to work")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds

    queue = RetryQueue()
    with open_informer("certificates.v1.cert-manager.io", namespace=arguments.namespace) as certs:
        events = certs.informer.events(coalesce=True)
        threading.Thread(target=fill, args=(queue, events), name="fill", daemon=True).start()
        while (key := queue.take(until)) is not None:
            try:
                reconcile(key, certs.lister.get(key, default=None))
            except NotReadyError as error:
                delay = queue.retry(key)
                print(f"{key}: {error}; again in {delay:g} s", flush=True)
            else:
                queue.forget(key)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
