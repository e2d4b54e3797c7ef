"""A store with its dispatcher, written to as a reflector would, and handlers that write down."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from dyninformer.delivery.dispatch import Act, Dispatcher, Timer, Timers
from dyninformer.delivery.events import Event
from dyninformer.delivery.handlers import Handler, Registration
from dyninformer.metrics import COUNTERS, GAUGES
from dyninformer.resource import GroupVersionResource
from dyninformer.store.receive import Received
from dyninformer.store.store import Store

GVR = GroupVersionResource("cert-manager.io", "v1", "certificates")
LONG = 30.0  # seconds after which a test that waits has failed


def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait for a condition to hold."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.001)


class ManualTimers(Timers):
    """Timers whose time goes on when they are told to, and which then call what is due."""

    def __init__(self) -> None:
        super().__init__(owner=None)
        self.now = 0.0
        self.waiting: list[Timer] = []

    def call_later(self, delay: float, act: Act) -> Timer:
        """Note it."""
        timer = Timer(self.now + delay, act)
        self.waiting.append(timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Forget it."""
        self.waiting = [each for each in self.waiting if each is not timer]

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while due := [each for each in self.waiting if each.at <= end]:
            timer = min(due)
            self.cancel(timer)
            self.now = timer.at
            timer.act()
        self.now = end


class Counted:
    """Metrics that remember; they refuse a name that is in no table."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.gauges: dict[tuple[str, str], float] = {}

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Add."""
        assert name in COUNTERS
        key = (name, labels.get("handler", ""))
        self.counts[key] = self.counts.get(key, 0) + amount

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Set."""
        assert name in GAUGES
        self.gauges[name, labels.get("handler", "")] = value


class Harness:
    """One informer without a server: its store, its dispatcher, its clock."""

    def __init__(self, resync: float = 0.0, max_backlog: int = 0) -> None:
        self.owner = object()
        self.metrics = Counted()
        self.timers = ManualTimers()
        self.store = Store(GVR)
        self.dispatcher = Dispatcher(
            self.store,
            owner=self.owner,
            timers=self.timers,
            metrics=self.metrics,
            resync=resync,
            max_backlog=max_backlog,
        )
        self.store.on_changes = self.dispatcher.publish
        self._version = 0
        self._lock = threading.Lock()

    def add(self, handler: object = None, **options: Any) -> Registration:
        """Add a handler, as an informer does."""
        return self.dispatcher.add(Handler(handler, **options))

    def received(self, key: str, uid: str = "", **spec: Any) -> Received:
        """An object as the server would send it, in its next version."""
        namespace, _, name = key.rpartition("/")
        with self._lock:
            self._version += 1
            version = str(self._version)
        metadata = {"name": name, "uid": uid or f"uid-{key}", "resourceVersion": version}
        if namespace:
            metadata["namespace"] = namespace
        obj = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate"}
        return self.store.receive(json.dumps({**obj, "metadata": metadata, "spec": spec}).encode())

    def relist(self, *keys: str, first: bool = False, scope: str = "", **spec: Any) -> None:
        """A list has come with these objects."""
        relist = self.store.relist(scope)
        for key in keys:
            relist.add([self.received(key, **spec)])
        relist.swap(first)

    def sync(self, *keys: str, **spec: Any) -> None:
        """The first list has come with these objects, and is the whole of it."""
        self.relist(*keys, first=True, **spec)
        self.dispatcher.synced()

    def put(self, key: str, uid: str = "", **spec: Any) -> None:
        """A watch event: the object is now like this."""
        self.store.apply([("MODIFIED", self.received(key, uid, **spec))])

    def delete(self, key: str, uid: str = "", **spec: Any) -> None:
        """A watch event: the object is gone."""
        self.store.apply([("DELETED", self.received(key, uid, **spec))])

    def close(self) -> None:
        """Stop, and see that no thread is left."""
        self.dispatcher.stop()
        assert self.dispatcher.wait_stopped(LONG) == []


class Notes:
    """A handler that writes down what it hears, as ``TYPE key spec``."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        """Hear of anything."""
        self.events.append(event)

    @property
    def lines(self) -> list[str]:
        """What was heard, in order."""
        return [line(event) for event in tuple(self.events)]

    def heard(self, *lines: str) -> None:
        """Wait until so much was heard, and see that it was this."""
        until(lambda: len(self.events) >= len(lines), f"{lines}, heard {self.lines}")
        assert self.lines == list(lines)


class SlowNotes(Notes):
    """The same, but it is slow: each event needs a permit to be finished."""

    def __init__(self) -> None:
        super().__init__()
        self.permits = threading.Semaphore(0)
        self.begun = threading.Event()

    def on_event(self, event: Event) -> None:
        """Hear of anything, and wait."""
        super().on_event(event)
        self.begun.set()
        assert self.permits.acquire(timeout=LONG)

    def let_go(self, events: int = 10_000) -> None:
        """Let so many events be finished."""
        self.permits.release(events)


def line(event: Event) -> str:
    """An event in a few words."""
    spec = event.object["spec"]
    values = " ".join(f"{name}={value}" for name, value in spec.items())
    return f"{event.type} {event.key} {values}".rstrip()


def lines(events: Sequence[Event]) -> list[str]:
    """Events in a few words each."""
    return [line(event) for event in events]
