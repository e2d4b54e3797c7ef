"""What a client of the informer benchmark measures of its own process, and when.

`run` takes any cache of certificates through the same phases and prints one JSON object per
phase. Memory is counted from a process that has already connected, and synced an empty
collection, so that no import and no client is in it.
"""

from __future__ import annotations

import gc
import json
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from benchmarks.certificates import PATH, SENT, place
from dyninformer.types import Object

Pair = tuple[str, str]

EMPTY = PATH.replace("certificates", "issuers")
READS = 100_000
HOT = 1_000
QUIET_SECONDS = 1.0
QUIET_SHARE = 0.03
QUIET_IN_A_ROW = 3


class Handler:
    """Reads one field of each update, and lets a thread wait for so many of them."""

    def __init__(self) -> None:
        self.latencies: list[int] = []
        self._enough = threading.Event()
        self._wanted = 0

    def expect(self, count: int) -> None:
        """Begin to count."""
        self.latencies = []
        self._wanted = count
        self._enough.clear()

    def wait(self) -> None:
        """Until all the expected have come."""
        if not self._enough.wait(600):
            raise TimeoutError(f"{len(self.latencies)} of {self._wanted} updates came")

    def on_update(self, old: Object, new: Object) -> None:
        """Take the time that the update was sent from it."""
        del old
        sent = int(new["metadata"]["annotations"][SENT])
        self.latencies.append(time.time_ns() - sent)
        if len(self.latencies) == self._wanted:
            self._enough.set()


class Cache(ABC):
    """One way to keep a copy of the certificates, with their issuer and secret as indexes."""

    @abstractmethod
    def connect(self) -> None:
        """Do all that is done once, and sync an empty collection."""

    @abstractmethod
    def sync(self, handler: Handler) -> None:
        """Copy all certificates, and follow their changes from then on."""

    @abstractmethod
    def get(self, namespace: str, name: str) -> Object:
        """An object that the caller may change."""

    @abstractmethod
    def get_shared(self, namespace: str, name: str) -> Object:
        """An object that the caller may only read."""

    @abstractmethod
    def count_of_index(self, issuer: str) -> int:
        """How many certificates have that issuer."""


def run(cache: Cache, count: int, updates: int, paced: int) -> None:
    """Go through all phases, or without updates to come, through those before them."""
    handler = Handler()
    cache.connect()
    gc.collect()
    quiet()
    forget_peak()
    rss, cpu = memory("VmRSS"), time.process_time()
    cache.sync(handler)
    synced = time.process_time() - cpu
    quiet()
    report(
        "sync",
        cpu_synced=synced,
        cpu=time.process_time() - cpu,
        rss_start=rss,
        rss=memory("VmRSS"),
        peak=memory("VmHWM"),
        indexed=cache.count_of_index("internal-ca-1"),
    )
    report("collector", pause=min(_collection() for _ in range(5)))
    if not updates:
        return
    cpu = _updates("updates", handler, updates)
    report("burst", cpu=cpu / updates, rss=memory("VmRSS"), peak=memory("VmHWM"))
    _updates("paced updates", handler, paced)
    waited = sorted(handler.latencies)
    report("latency", p50=waited[len(waited) // 2] / 1e9, p99=waited[len(waited) * 99 // 100] / 1e9)
    places = [place(number) for number in range(count)]
    random.Random(1).shuffle(places)
    report(
        "reads",
        private=_each(cache.get, places[:READS]),
        shared=_each(cache.get_shared, places[:HOT], READS // HOT),
    )


def report(phase: str, **figures: float) -> None:
    """One line for the driver: seconds and bytes."""
    print(json.dumps({"phase": phase, **figures}), flush=True)


def _updates(name: str, handler: Handler, count: int) -> float:
    """CPU seconds while so many updates are handled."""
    handler.expect(count)
    cpu = time.process_time()
    report(f"ready for {name}")
    handler.wait()
    return time.process_time() - cpu


def _collection() -> float:
    begin = time.perf_counter()
    gc.collect()
    return time.perf_counter() - begin


def _each(read: Callable[[str, str], Object], places: list[Pair], rounds: int = 1) -> float:
    """CPU seconds of one read, the first round left out if there are several."""
    if rounds > 1:
        for namespace, name in places:
            read(namespace, name)
    begin = time.thread_time()
    for _ in range(rounds):
        for namespace, name in places:
            read(namespace, name)
    return (time.thread_time() - begin) / rounds / len(places)


def quiet(most: int = 30) -> None:
    """Wait until the process has nothing more to do: what is put off counts as well."""
    still = 0
    for _ in range(most):
        cpu = time.process_time()
        time.sleep(QUIET_SECONDS)
        still = still + 1 if time.process_time() - cpu < QUIET_SHARE * QUIET_SECONDS else 0
        if still == QUIET_IN_A_ROW:  # on a busy machine, work that is put off may have to wait
            return


def memory(field: str) -> int:
    """Of this process, in bytes: VmRSS, or VmHWM for the most there was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def forget_peak() -> None:
    """Let the kernel count the peak from now on, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
