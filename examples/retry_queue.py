"""Work on keys that is tried again when it fails: a small controller.

Handlers are told once and never again, so work that may fail is done on keys, as in client-go.
A work queue has each key worked on once at a time, and tries again what raises, later and later.
What to do is decided from the cache when a key's turn comes, not from the event that gave it one.

The work here waits for certificates to be ready, and fails as long as they are not.

    python examples/retry_queue.py                          # until Ctrl-C
    python examples/retry_queue.py --namespace prod --seconds 60
"""

from __future__ import annotations

import argparse
import threading
from contextlib import suppress

from dyninformer import JSONPath, OpenInformer, RateLimited, WorkItem, open_informer

READY = JSONPath("{.status.conditions[?(@.type=='Ready')].status}")
RETRY = RateLimited(first=0.5, longest=60.0, jitter=0.0)


def reconcile(item: WorkItem, certificates: OpenInformer) -> None:
    """The work. It looks at the state as it is now; what is not there is gone."""
    certificate = certificates.lister.get(item.key, default=None)
    if certificate is None:
        print(f"{item.key}: gone", flush=True)
    elif READY.first(certificate) != "True":
        delay = item.retry()  # what raises is tried again as well, and logged
        print(f"{item.key}: not ready yet; again in {delay:g} s", flush=True)
    else:
        print(f"{item.key}: ready", flush=True)


def main() -> None:
    """Work until the time is over."""
    parser = argparse.ArgumentParser(description="Work on certificates until they are ready.")
    parser.add_argument("--namespace", help="one namespace instead of all")
    parser.add_argument("--seconds", type=float, help="how long to work")
    arguments = parser.parse_args()

    with (
        open_informer("certificates.v1.cert-manager.io", namespace=arguments.namespace) as certs,
        certs.work_queue(retry=RETRY) as queue,
    ):
        if arguments.seconds is not None:
            timer = threading.Timer(arguments.seconds, queue.close)
            timer.daemon = True
            timer.start()
        for item in queue:
            with item:
                reconcile(item, certs)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        main()
