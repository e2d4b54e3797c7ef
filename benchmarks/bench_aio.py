"""What informers cost an event loop: its lag beside many waits and events, and a cancellation.

Run as ``python -m benchmarks.bench_aio [waits] [events a second] [seconds]``. A server in a process
of its own replays updates of certificates of 1.9 kB. In the loop there are as many waits, each for
a condition of another one of them that is never met, a stream that takes each event, and a handler
that is awaited for each. Beside them a task sleeps for a millisecond, again and again: how much
longer it sleeps is the lag, of which the loop alone, without all that, is in the first line.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from functools import partial

from kubernetes.client import ApiClient, Configuration

from benchmarks.bench_informer import Server, replaying
from benchmarks.certificates import place
from dyninformer import Event, aio
from dyninformer.resource import GroupVersionResource
from dyninformer.types import Object

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
WAITS = 1_000
RATE = 20_000
SECONDS = 10
TICK = 0.001


async def lag(ends: asyncio.Event) -> list[float]:
    """How much longer than it should a task slept each time."""
    found = []
    while not ends.is_set():
        begun = time.perf_counter()
        await asyncio.sleep(TICK)
        found.append(time.perf_counter() - begun - TICK)
    return sorted(found)


def shown(name: str, found: list[float]) -> str:
    """A row of the table."""
    middle, late = found[len(found) // 2], found[len(found) * 99 // 100]
    return f"| {name} | {middle * 1000:.1f} | {late * 1000:.1f} | {found[-1] * 1000:.1f} |"


async def alone() -> list[float]:
    """The lag of a loop that has nothing else to do."""
    ends = asyncio.Event()
    ticking = asyncio.create_task(lag(ends))
    await asyncio.sleep(2)
    ends.set()
    return await ticking


def never(obj: Object) -> bool:
    """The condition: it reads the object, as one of a user's would."""
    return bool(obj["metadata"]["name"] == "")


class Counter:
    """What was taken, by the stream and by the handler."""

    def __init__(self) -> None:
        self.streamed = 0
        self.handled = 0

    async def read(self, certificates: aio.GenericInformer) -> None:
        """Take each event of a stream."""
        async for _event in certificates.events(initial=False):
            self.streamed += 1

    async def note(self, event: Event) -> None:
        """Be awaited for each event."""
        self.handled += not event.initial


async def measure(server: Server, waits: int, rate: int, seconds: float) -> None:
    """Print the figures of one run."""
    client = ApiClient(Configuration(host=server.url))
    counter, ends = Counter(), asyncio.Event()
    async with aio.DynamicSharedInformerFactory(client) as factory:
        certificates = await factory.for_resource(CERTIFICATES)
        await factory.sync(60)
        certificates.informer.add_event_handler(on_event=counter.note)
        tasks: list[asyncio.Task[object]] = [asyncio.create_task(counter.read(certificates))]
        before = threading.active_count()
        for number in range(waits):
            namespace, name = place(number)
            wait = certificates.informer.wait_for(never, name=name, namespace=namespace)
            tasks.append(asyncio.create_task(wait))
        ticking = asyncio.create_task(lag(ends))
        total = int(rate * seconds)
        begun, cpu = time.perf_counter(), time.process_time()
        await asyncio.to_thread(partial(server.order, updates=total, rate=rate))
        while counter.streamed < total:
            await asyncio.sleep(0.01)
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        ends.set()
        found = await ticking
        threads = threading.active_count() - before
        begun = time.perf_counter()
        last = tasks.pop()
        last.cancel()
        await asyncio.wait([last])
        one = time.perf_counter() - begun
        begun, own = time.perf_counter(), time.thread_time()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        cancelled, own = time.perf_counter() - begun, time.thread_time() - own
        while counter.handled < total:
            await asyncio.sleep(0.01)
        begun = time.perf_counter()
    ended = time.perf_counter() - begun
    print(shown(f"beside {waits:,} waits and {total / took:,.0f} events/s", found))
    print(f"\n{rate:,} were offered; as many were taken as the process had CPU for.")
    print(f"\n| | ms |\n|---|--:|\n| a wait is cancelled | {one * 1000:.1f} |")
    print(f"| {waits:,} others are, together | {cancelled * 1000:.0f} |")
    print(f"| CPU of the loop's thread for these | {own * 1000:.0f} |")
    print(f"| the factory is left | {ended * 1000:.0f} |")
    print(f"\nCPU for each event, all of it: {cpu / total * 1e6:.0f} µs.")
    print(f"Threads for the waits, the stream and the handler: {max(0, threads - 1)}.")


def main(waits: int, rate: int, seconds: float) -> None:
    """Print the tables."""
    print("| lag of the loop, ms | median | p99 | longest |\n|---|--:|--:|--:|")
    print(shown("alone", asyncio.run(alone())))
    with replaying(max(2_000, waits)) as server:
        asyncio.run(measure(server, waits, rate, seconds))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("waits", nargs="?", type=int, default=WAITS)
    arguments.add_argument("rate", nargs="?", type=int, default=RATE)
    arguments.add_argument("seconds", nargs="?", type=float, default=SECONDS)
    main(**vars(arguments.parse_args()))
