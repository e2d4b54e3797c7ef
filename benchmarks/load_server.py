"""A server for load: many small objects that change as fast as it is told, on raw sockets.

It speaks as much of the API as `replay_server` does, and keeps no history, so that an hour of
changes takes it no memory: informers are to be synced before the changes begin. Orders come as
lines of JSON; each is answered when it is done.
"""

from __future__ import annotations

import json
import random
import sys
import time
from contextlib import suppress

from benchmarks.replay_server import (
    FIRST_VERSION,
    Collection,
    Data,
    ReplayServer,
    _event_chunk,
    _say,
)

BATCH_SECONDS = 0.01
"""Changes of so long a time are sent at once, as they lie in the socket of a busy server."""
_PADDING = "x" * 200


def widget(number: int, version: int) -> bytes:
    """An object of half a kilobyte."""
    return (
        b'{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":'
        b'{"example.com/note":"%b"},"name":"cert-%07d","namespace":"team-%02d","resourceVersion":'
        b'"%d","uid":"7c1a4c1e-0000-4000-8000-%012d"},"spec":{"issuer":"ca-%d","n":%d}}'
        % (_PADDING.encode(), number, number % 50, version, number, number % 20, version)
    )


class Rolling(Collection):
    """Objects that change, and go to make room for others; only the present is kept."""

    def __init__(self, count: int) -> None:
        objects = [widget(number, 1 + number) for number in range(count)]
        super().__init__(objects, FIRST_VERSION, "cert-manager.io/v1", "Certificate")
        self.numbers = list(range(count))
        self.told = 0

    @property
    def version(self) -> int:
        """That of the last change."""
        return self.first + self.told

    def churn(self, count: int, replaced: float, chance: random.Random) -> None:
        """So many changes of objects by chance; this share are deletions, with a new one each."""
        with self.lock:
            chunks: Data = []
            while len(chunks) < count:
                at = chance.randrange(len(self.numbers))
                if chance.random() < replaced / 2:
                    self.told += 1
                    chunks.append(_event_chunk(b"DELETED", widget(self.numbers[at], self.version)))
                    self.numbers[at] += len(self.numbers)
                    event = b"ADDED"
                else:
                    event = b"MODIFIED"
                self.told += 1
                self.objects[at] = widget(self.numbers[at], self.version)
                chunks.append(_event_chunk(event, self.objects[at]))
            sent = b"".join(chunks)
            for sock in self.watches:
                with suppress(OSError):  # a client that is gone is seen by who reads from it
                    sock.sendall(sent)


class LoadServer(ReplayServer):
    """Answers on threads, and changes its objects for so long."""

    def __init__(self, count: int) -> None:
        super().__init__(0)
        self.certificates = self.rolling = Rolling(count)

    def run(self, rate: float, seconds: float, replaced: float) -> None:
        """So many changes in a second; fewer if those who watch do not take them as fast."""
        chance = random.Random(1)
        begin, told = time.monotonic(), 0
        while (now := time.monotonic() - begin) < seconds:
            due = int(rate * now) - told
            if due > 0:
                self.rolling.churn(due, replaced, chance)
                told += due
            time.sleep(BATCH_SECONDS)


def main() -> None:
    """Serve, and take orders."""
    server = LoadServer(int(sys.argv[1]))
    _say({"port": server.port})
    for line in sys.stdin:
        order = json.loads(line)
        before, begin = server.rolling.told, time.monotonic()
        server.run(order["rate"], order["seconds"], order.get("replaced", 0))
        seconds = time.monotonic() - begin
        told = server.rolling.told - before
        _say({"changes": told, "seconds": seconds, "version": server.rolling.version})


if __name__ == "__main__":
    main()
