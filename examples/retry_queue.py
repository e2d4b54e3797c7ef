"""Work on keys that is tried again when it fails, over the events of an informer: a controller.

Handlers are told once and never again, so work that may fail is done on keys, as in client-go.
``events(coalesce=True)`` merges what happened to a key while nobody looked, and ``take`` waits
for the next one no longer than until a key that failed is due again. What to do is decided
from the cache when a key's turn comes, not from the event that gave it one.

The work here waits for certificates to be ready, and fails as long as they are not.

    python examples/retry_queue.py                          # until Ctrl-C
    python examples/retry_queue.py --namespace prod --seconds 60
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from dyninformer import JSONPath, open_informer

READY = JSONPath("{.status.conditions[?(@.type=='Ready')].status}")
FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0


class Retries:
    """Keys that failed, each with the moment of its next turn: later and later."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._failures: Counter[str] = Counter()

    @property
    def next(self) -> float:
        """When the first is due."""
        return min(self._due.values(), default=float("inf"))

    def take(self) -> str | None:
        """The first key, if it is due."""
        if self.next > time.monotonic():
            return None
        key = min(self._due, key=self._due.__getitem__)
        del self._due[key]
        return key

    def failed(self, key: str) -> float:
        """Give the key another turn; says after how many seconds."""
        self._failures[key] += 1
        delay = min(FIRST_DELAY * 2.0 ** (self._failures[key] - 1), LONGEST_DELAY)
        self._due[key] = time.monotonic() + delay
        return delay

    def done(self, key: str) -> None:
        """The next failure of this key is its first."""
        self._due.pop(key, None)
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


def main() -> None:
    """Work until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--namespace", help="one namespace instead of all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to work")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds

    retries = Retries()
    with (
        open_informer("certificates.v1.cert-manager.io", namespace=arguments.namespace) as certs,
        certs.informer.events(coalesce=True) as events,
    ):
        while (now := time.monotonic()) < until and not events.closed:
            key = retries.take()
            if key is None:
                event = events.take(timeout=max(0.0, min(retries.next, until) - now))
                if event is None:
                    continue
                key = event.key
            try:
                reconcile(key, certs.lister.get(key, default=None))
            except NotReadyError as error:
                delay = retries.failed(key)
                print(f"{key}: {error}; again in {delay:g} s", flush=True)
            else:
                retries.done(key)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
