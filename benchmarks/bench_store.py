"""What an object costs in the store, beside a hand-written dict cache, side by side.

Run as ``python -m benchmarks.bench_store [objects]``. Each cache works in a process of its own,
on the same certificates of 1.9 kB, two of their fields indexed. Memory is what the process grew
by; the time is CPU time of the one thread that works. No network is in it.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks.bench_jsonpath import certificate
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store

OBJECTS = 100_000  # at least SOME
SOME = 20_000
CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")

Numbers = dict[str, float]
T = TypeVar("T")


class Cache(Protocol):
    """A cache under measurement."""

    def sync(self, objects: Iterator[bytes], rest: Callable[[], None]) -> None:
        """Take a whole state; call ``rest`` between two pages."""

    def update(self, data: bytes) -> None:
        """Take a MODIFIED."""

    def read(self, key: str) -> Any:
        """An object as a private dict."""

    def by_issuer(self, issuer: str) -> int:
        """How many objects an index finds."""


class StoreCache:
    """The store of this package."""

    def __init__(self) -> None:
        self.store = Store(
            CERTIFICATES,
            indexers={"issuer": ".spec.issuerRef.name", "secret": ".spec.secretName"},
        )

    def sync(self, objects: Iterator[bytes], rest: Callable[[], None]) -> None:
        """A relist."""
        relist, store = self.store.relist(), self.store
        for at, data in enumerate(objects):
            relist.add([store.receive(data)])
            if at % 500 == 0:
                rest()
        relist.swap(first=True)

    def update(self, data: bytes) -> None:
        """One event."""
        self.store.apply([("MODIFIED", self.store.receive(data))])

    def read(self, key: str) -> Any:
        """Decompressed and decoded."""
        payload = self.store.get(key)
        return None if payload is None else self.store.codec.decode(payload)

    def shared(self, key: str) -> Any:
        """The shared dict."""
        return self.store.shared(key)

    def by_issuer(self, issuer: str) -> int:
        """By the index."""
        return len(self.store.index_keys("issuer", issuer))


class DictCache:
    """What one writes by hand: json.loads, a dict, and two dicts of sets."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.issuers: dict[str, set[str]] = {}
        self.secrets: dict[str, set[str]] = {}

    def sync(self, objects: Iterator[bytes], rest: Callable[[], None]) -> None:
        """One after another."""
        for at, data in enumerate(objects):
            self.update(data)
            if at % 500 == 0:
                rest()

    def update(self, data: bytes) -> None:
        """Take it out of the indexes, and put it in."""
        obj = json.loads(data)
        metadata = obj["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        old = self.objects.get(key)
        if old is not None:
            self.issuers[old["spec"]["issuerRef"]["name"]].discard(key)
            self.secrets[old["spec"]["secretName"]].discard(key)
        self.objects[key] = obj
        self.issuers.setdefault(obj["spec"]["issuerRef"]["name"], set()).add(key)
        self.secrets.setdefault(obj["spec"]["secretName"], set()).add(key)

    def read(self, key: str) -> Any:
        """A private one: nobody else may change it."""
        return json.loads(json.dumps(self.objects[key]))

    def by_issuer(self, issuer: str) -> int:
        """By the index."""
        return len(self.issuers[issuer])


def objects(count: int, version: int) -> Iterator[bytes]:
    """Certificates of one template, in the order of a list."""
    template = certificate().decode()
    uids = random.Random(7)  # the same for all
    for at in range(count):
        name = f"shop-{at:06d}"
        yield (
            template.replace('"name":"shop-tls"', f'"name":"{name}-tls"', 1)
            .replace('"namespace":"shop"', f'"namespace":"{space(at)}"', 1)
            .replace("4f0f5a35-35b5-4b3f-9c0e-7b6cf8ad4d0e", f"{uids.getrandbits(128):032x}")
            .replace("918273645", str(version + at))
            .replace('"secretName":"shop-tls"', f'"secretName":"{name}-tls"')
            .replace("shop.example", f"{name}.example")
            .encode()
        )


def space(at: int) -> str:
    """The namespace of an object: a thousand in each, in order."""
    return f"team-{at // 1000:02d}"


class Meter:
    """Counts the thread's CPU time without that of the making of objects, and the peak."""

    def __init__(self) -> None:
        self.start = resident()
        self.peak = 0.0
        self.making = 0

    def feed(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """The objects; the time that making them takes is set aside."""
        while True:
            begun = time.thread_time_ns()
            page = [data for _, data in zip(range(500), source, strict=False)]
            self.making += time.thread_time_ns() - begun
            if not page:
                return
            yield from page

    def look(self) -> None:
        """Note the memory in use."""
        begun = time.thread_time_ns()
        self.peak = max(self.peak, resident() - self.start)
        self.making += time.thread_time_ns() - begun

    def micros(self, work: Callable[[], object], count: int) -> float:
        """The CPU microseconds of each of so many."""
        self.making = 0
        begun = time.thread_time_ns()
        work()
        return (time.thread_time_ns() - begun - self.making) / count / 1000

    def each(self, work: Callable[[T], object], items: Iterable[T]) -> float:
        """The CPU microseconds of the work on one of the `SOME` items."""

        def all_of_them() -> None:
            for item in items:
                work(item)

        return self.micros(all_of_them, SOME)


def resident() -> float:
    """The memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def measure(make: Callable[[], Cache], count: int) -> Numbers:
    """All numbers of one cache."""
    for _ in objects(1000, 1):
        pass
    gc.collect()
    meter, cache = Meter(), make()
    numbers: Numbers = {}
    first = meter.feed(objects(count, 10**7))
    numbers["sync, µs per object"] = meter.micros(lambda: cache.sync(first, meter.look), count)
    gc.collect()
    numbers["memory at rest, MB"] = resident() - meter.start
    numbers["peak while syncing, MB"] = meter.peak
    begun = time.thread_time()
    gc.collect()
    numbers["a full collection, ms"] = (time.thread_time() - begun) * 1000
    newer = meter.feed(objects(SOME, 2 * 10**7))
    numbers["update, µs"] = meter.each(cache.update, newer)
    places = random.Random(8).choices(range(SOME), k=SOME)
    keys = [f"{space(at)}/shop-{at:06d}-tls" for at in places]
    numbers["read a private dict, µs"] = meter.each(cache.read, keys)
    if isinstance(cache, StoreCache):
        store_only(cache, meter, numbers, count, keys)
    if cache.by_issuer("letsencrypt-prod") < count:
        raise SystemExit("the index does not find all")
    return numbers


def store_only(
    cache: StoreCache, meter: Meter, numbers: Numbers, count: int, keys: list[str]
) -> None:
    """What a plain dict cache has no counterpart for."""
    numbers["read a shared dict, µs"] = meter.each(cache.shared, [keys[0]] * SOME)
    meter.peak, rest = 0.0, resident()
    again = meter.feed(objects(count, 10**7))
    numbers["relist, µs per object"] = meter.micros(lambda: cache.sync(again, meter.look), count)
    numbers["more memory while relisting, MB"] = meter.peak + meter.start - rest


def in_its_own_process(make: Callable[[], Cache], count: int) -> Numbers:
    """The numbers, measured where nothing else was before."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_send, args=(there, make, count))
    process.start()
    numbers: Numbers = here.recv()
    process.join()
    return numbers


def _send(pipe: Connection, make: Callable[[], Cache], count: int) -> None:
    pipe.send(measure(make, count))


def main(count: int) -> None:
    """Print the table."""
    store, peer = in_its_own_process(StoreCache, count), in_its_own_process(DictCache, count)
    print(f"{count} objects of {len(next(objects(1, 10**7)))} bytes")
    print(f"{'':34} {'store':>8} {'dict cache':>11} {'ratio':>7}")
    for name, value in store.items():
        other = f"{peer[name]:11.2f} {value / peer[name]:7.3f}" if name in peer else ""
        print(f"{name:34} {value:8.2f} {other}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("objects", nargs="?", type=int, default=OBJECTS)
    main(arguments.parse_args().objects)
