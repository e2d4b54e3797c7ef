"""Informers of each kind, and what each of their handlers and streams was told, checked."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from dyninformer import (
    DynamicSharedInformerFactory,
    Event,
    EventStream,
    GroupVersionResource,
    Registration,
    SharedIndexInformer,
    aio,
)
from dyninformer.store.indexes import as_function
from dyninformer.types import Object, Objects
from tests.simulation.listening import Replay

WIDGETS: Final = GroupVersionResource("faults.example.com", "v1", "widgets")
EVEN: Final = "even=1"
MARKER: Final = "n0/marker"
PATIENCE: Final = 60.0
"""Seconds within which all is current after the faults have ended, and does end that should."""


class MeantError(Exception):
    """What a handler raises that is meant to."""


class Hearing(Replay):
    """A handler that believes what it is told, and notes what cannot be."""

    def __init__(
        self,
        name: str,
        *,
        coalesces: bool = False,
        backlog: int | None = None,
        seconds: float = 0,
        raises: bool = False,
    ) -> None:
        super().__init__(name, merges=coalesces or backlog is not None)
        self.options: dict[str, Any] = {"coalesce": coalesces, "max_backlog": backlog}
        self.objections: list[str] = []
        self.registration: Any = None
        self.stored: set[tuple[str, str]] = set()
        """Key and version of each state that was told."""
        self._seconds = seconds
        self._raises = raises

    def on_event(self, event: Event) -> None:
        """Hear it."""
        try:
            if event.initial and self.registration is not None:
                assert not self.registration.has_synced(), f"{self.name} had synced too early"
            self.hear(event)
        except AssertionError as error:
            self.objections.append(str(error))
        self.stored.add((event.key, event.resource_version))
        if self._seconds:
            time.sleep(self._seconds)
        if self._raises and self.heard % 7 == 0:
            raise MeantError

    def begin_again(self, *, went_back: bool) -> None:
        """For the next round; after a restore, versions begin where the server's are now."""
        self.stored.clear()
        self.went_back.clear()
        if went_back:
            self.versions = {key: _version(each) for key, each in dict(self.held).items()}


class Watched:
    """One informer, and those that it tells."""

    def __init__(
        self,
        name: str,
        kubeconfig: Path,
        wants: Callable[[Object], bool] = lambda _: True,
        **options: Any,
    ) -> None:
        self.name = name
        self._wants = wants
        self.hearing: list[Hearing] = []
        self._factory = DynamicSharedInformerFactory(kubeconfig=kubeconfig)
        found = self._factory.for_resource(WIDGETS, **options)
        self.informer: SharedIndexInformer
        self.informer, self.lister = found.informer, found.lister
        self._streams: list[EventStream] = []
        self._readers: list[threading.Thread] = []

    def add(self, hearing: Hearing) -> Registration:
        """Have a handler hear what happens from here on."""
        registration = self.informer.add_event_handler(hearing, **hearing.options)
        hearing.registration = registration
        self.hearing.append(hearing)
        return registration

    def stream(self) -> None:
        """Have a stream's reader hear it."""
        hearing = Hearing(f"stream of {self.name}")
        stream = self.informer.events()

        def read() -> None:
            for event in stream:
                hearing.on_event(event)

        thread = threading.Thread(target=read, name=hearing.name)
        thread.start()
        self._streams.append(stream)
        self._readers.append(thread)
        self.hearing.append(hearing)

    def wants(self, obj: Object) -> bool:
        """Whether an object belongs into its cache."""
        return self._wants(obj)

    def start(self) -> None:
        """Begin, and wait for the first state."""
        self._factory.sync(PATIENCE)

    def held(self) -> dict[str, Object]:
        """The cache, by key."""
        return by_key(self.lister.list())

    def has(self, size: int) -> bool:
        """Whether the marker is there as it was written."""
        marker = self.lister.get(MARKER, default=None)
        return marker is not None and bool(marker["spec"]["size"] == size)

    def wrong_indexes(self) -> list[str]:
        """Each index that is otherwise than computed anew."""
        wrong = []
        for name, function in self.informer.indexer.get_indexers().items():
            values: dict[str, set[str]] = {}
            for key, obj in self.held().items():
                for value in set(as_function(function)(obj)):
                    values.setdefault(value, set()).add(key)
            indexer = self.informer.indexer
            found = {
                value: set(indexer.index_keys(name, value))
                for value in indexer.list_index_func_values(name)
            }
            if found != values:
                wrong.append(f"index {name} of {self.name}")
        return wrong

    def close(self) -> bool:
        """End it; whether that took no longer than it may."""
        ended = self._factory.shutdown(10)
        for thread in self._readers:
            thread.join(10)
        return ended and not any(each.is_alive() for each in self._readers)


class Watching(Protocol):
    """One informer, of either kind."""

    name: str
    hearing: list[Hearing]

    @property
    def informer(self) -> Any:
        """It, whose status may be asked for."""

    def wants(self, obj: Object) -> bool:
        """Whether an object belongs into its cache."""

    def start(self) -> None:
        """Begin, and wait for the first state."""

    def held(self) -> dict[str, Object]:
        """The cache, by key."""

    def has(self, size: int) -> bool:
        """Whether the marker is there as it was written."""

    def wrong_indexes(self) -> list[str]:
        """Each index that is otherwise than computed anew."""

    def close(self) -> bool:
        """End it; whether that took no longer than it may."""


class WatchedOnLoop:
    """The same in an event loop, which has a thread to itself."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self.hearing = [Hearing(f"{name}, handler"), Hearing(f"{name}, stream")]
        self._kubeconfig = kubeconfig
        self._ready = threading.Event()
        self._found: Any = None
        self._loop: Any = None
        self._stop: Any = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name=name)

    def wants(self, _: Object) -> bool:
        """All of them."""
        return True

    def start(self) -> None:
        """Begin, and wait for the first state."""
        self._thread.start()
        assert self._ready.wait(PATIENCE), f"{self.name} has not synced"

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        handler, stream = self.hearing

        async def note(event: Event) -> None:
            handler.on_event(event)

        async def read(events: Any) -> None:
            async for event in events:
                stream.on_event(event)

        async with aio.open_informer(WIDGETS, kubeconfig=self._kubeconfig) as found:
            handler.registration = found.informer.add_event_handler(on_event=note)
            reading = asyncio.create_task(read(found.events()))
            self._found = found
            self._ready.set()
            await self._stop.wait()
        await reading

    @property
    def informer(self) -> Any:
        """It, whose status may be asked for from anywhere."""
        return self._found.informer

    def held(self) -> dict[str, Object]:
        """The cache, by key."""
        return by_key(self._found.lister.list())

    def has(self, size: int) -> bool:
        """Whether the marker is there as it was written."""
        marker = self._found.lister.get(MARKER, default=None)
        return marker is not None and bool(marker["spec"]["size"] == size)

    def wrong_indexes(self) -> list[str]:
        """It has none of its own."""
        return []

    def close(self) -> bool:
        """End it; whether that took no longer than it may."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
        return not self._thread.is_alive()


class Complaints(logging.Handler):
    """What the package logs as an error, except that a handler failed, as it is meant to.

    What it warns of is kept for those who read a failure.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []
        self.last: deque[str] = deque(maxlen=40)

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MeantError):
            return
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        self.last.append(f"{moment} {record.getMessage()}")
        if record.levelno >= logging.ERROR:
            self.found.append(f"{record.getMessage()} ({error!r})")


def by_key(objects: Objects) -> dict[str, Object]:
    """Objects by namespace/name."""
    return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in objects}


def differing(held: dict[str, Object], expected: dict[str, Object]) -> list[str]:
    """The keys of which one has what the other has not."""
    keys = sorted(held.keys() | expected.keys())
    return [key for key in keys if held.get(key) != expected.get(key)]


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
