"""How a peer in Python is measured: see processes.py."""

from __future__ import annotations

import sys
from collections.abc import Callable


def sync_when_told(connect: Callable[[], object], sync: Callable[[], int]) -> None:
    """Connect, wait for a line, fill a cache, say how many it has, stay until the input ends."""
    connect()
    print("ready", flush=True)
    sys.stdin.readline()
    print(sync(), flush=True)
    sys.stdin.read()
