"""A program under load: one informer with its handlers, which says how it stands when asked.

Each line that it reads is a question; it answers with one line of JSON. ``quick`` makes its
handlers quick, ``check`` waits until all they have been told is what the cache holds.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from kubernetes.client import ApiClient, Configuration

from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.delivery.events import Event

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")


class Replay:
    """A handler that keeps the version of each object that it was told of."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.held: dict[str, str] = {}
        self.heard = 0

    def on_event(self, event: Event) -> None:
        """Hear of anything, and take one's time."""
        self.heard += 1
        if event.type == "DELETED":
            del self.held[event.key]
        else:
            self.held[event.key] = event.resource_version
        if self.delay:
            time.sleep(self.delay)


class Summary(Replay):
    """One that keeps a sum over what it was told alone: memory that grows is not its own."""

    def __init__(self) -> None:
        super().__init__(0)
        self.sum = 0

    def on_event(self, event: Event) -> None:
        """Take the old state out of the sum, and the new one in."""
        self.heard += 1
        if event.old is not None:
            self.sum -= hash((event.key, event.old["metadata"]["resourceVersion"]))
        version = hash((event.key, event.resource_version))
        self.sum += -version if event.type == "DELETED" else version


class Warnings(logging.Handler):
    """Keeps what was warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """One more."""
        self.seen.append(record.getMessage())


def rss() -> float:
    """Resident memory, in MB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    """Sync, say so, and answer."""
    url, handlers, delay, options = sys.argv[1:5]  # the delay is "sum" for a handler of no memory
    warned = Warnings()
    logging.getLogger("dyninformer").addHandler(warned)
    factory = DynamicSharedInformerFactory(ApiClient(Configuration(host=url)))
    certificates = factory.for_resource(CERTIFICATES, indexers={"issuer": ".spec.issuer"})
    replays = [Summary() if delay == "sum" else Replay(float(delay)) for _ in range(int(handlers))]
    registrations = [
        certificates.informer.add_event_handler(each, name=f"handler-{at}", **json.loads(options))
        for at, each in enumerate(replays)
    ]
    factory.sync(timeout=600)

    def stands() -> dict[str, Any]:
        status = certificates.informer.status()
        return {
            "rss": rss(),
            "cpu": time.process_time(),
            "version": int(status.resource_version),
            "objects": status.objects,
            "backlog": status.backlog,
            "heard": sum(each.heard for each in replays),
            "overflows": sum(each.overflows for each in registrations),
            "threads": threading.active_count(),
            "warnings": warned.seen,
        }

    def until(condition: Callable[[], object]) -> bool:
        end = time.monotonic() + 600
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    print(json.dumps(stands()), flush=True)
    for line in sys.stdin:
        question, _, argument = line.strip().partition(" ")
        answer: dict[str, Any] = {}
        if question == "quick":
            for each in replays:
                each.delay = 0
        elif question == "check":  # the server's last version has come, and was told
            until(lambda: stands()["version"] >= int(argument))  # noqa: B023 - now
            until(lambda: not any(each.backlog for each in registrations))
            lister = certificates.lister
            held = {key: lister.get(key)["metadata"]["resourceVersion"] for key in lister.keys()}  # noqa: SIM118
            held_sum = sum(map(hash, held.items()))
            answer["equal"] = all(
                each.sum == held_sum if isinstance(each, Summary) else each.held == held
                for each in replays
            )
        print(json.dumps({**stands(), **answer}), flush=True)


if __name__ == "__main__":
    main()
