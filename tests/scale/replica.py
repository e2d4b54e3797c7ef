"""A replica as a process: it acts on its shards all the time, and notes when, with its fence.

Its notes are lines of JSON. Their time is the machine's uptime, which is the same for all
processes, whatever their clocks show; it is read before a fence is asked, so that what a fence
allowed was allowed then or later.

Its clocks may go fast or slow, and stand still for a while now and then: those that Python reads,
by which the package and its waits go.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dyninformer import Event, LostShardError, ShardEvent, ShardMembership

ENDED = threading.Event()


def uptime() -> float:
    """Seconds since the machine was started, to ten milliseconds."""
    return float(Path("/proc/uptime").read_text().split()[0])


STILL_EVERY = 10.0
"""True seconds from when a clock stands still to when it does again."""


def misled(clock: Callable[..., float], rate: float, still: float) -> Callable[..., float]:
    """A clock that goes ``rate`` times as fast, and now and then stands still for some seconds."""
    began = clock(time.CLOCK_BOOTTIME) if clock is time.clock_gettime else clock()

    def read(*which: int) -> float:
        passed = clock(*which) - began
        times, since = divmod(passed, STILL_EVERY)
        goes = times * (STILL_EVERY - still) + max(0.0, since - still)
        return began + rate * goes

    return read


def main(kubeconfig: str, notes: str, identity: str, options: dict[str, Any]) -> None:
    """Work until SIGTERM."""
    rate, still = options.pop("rate", 1.0), options.pop("still", 0.0)
    if (rate, still) != (1.0, 0.0):
        time.monotonic = misled(time.monotonic, rate, still)
        time.clock_gettime = misled(time.clock_gettime, rate, still)
    signal.signal(signal.SIGTERM, lambda *_: ENDED.set())
    uids: dict[int, str] = {}
    with Path(notes).open("w", buffering=1) as file:

        def note(**line: object) -> None:
            file.write(json.dumps(line) + "\n")

        def heard(event: Event) -> None:
            assert isinstance(event, ShardEvent)
            uid = event.object["metadata"]["uid"]
            note(
                what=event.type.value,
                uid=uid,
                shard=event.shard,
                term=event.fence.term,
                holder=event.fence.holder,
            )
            uids[event.shard] = uid

        membership = ShardMembership(
            None, kubeconfig=kubeconfig, name="work", identity=identity, **options
        )
        with membership:
            membership.informer("v1/configmaps", namespaces=options["namespace"]).add_event_handler(
                on_event=heard
            )
            while not ENDED.wait(0.02):
                for shard in membership.shards & uids.keys():
                    now = uptime()
                    try:
                        with membership.owned(uids[shard]) as fence:
                            fence.check()
                    except LostShardError:
                        continue
                    note(what="acts", at=now, shard=shard, term=fence.term, holder=fence.holder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
