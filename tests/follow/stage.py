"""Informers that do what a test says, and a discovery that serves what it says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dyninformer.discovery import ResolvedResource
from dyninformer.errors import OptionsConflictError, StoppedError
from dyninformer.follow import Follower, follow
from dyninformer.follow.needs import OnEvent
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource as GVR
from dyninformer.watching.status import InformerState, InformerStatus


def until(condition: Callable[[], object]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def becomes(condition: Callable[[], bool], timeout: float | None) -> bool:
    """Wait for it, or for the end of the time."""
    deadline = time.monotonic() + (30 if timeout is None else timeout)
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    return condition()


def served(
    text: str, *, namespaced: bool = True, verbs: str = "get list watch"
) -> ResolvedResource:
    """A resource by its full spelling."""
    gvr = GVR.parse(text)
    kind = gvr.resource.capitalize()
    return ResolvedResource(gvr, kind, namespaced, gvr.resource, verbs=tuple(verbs.split()))


class StandInRegistration:
    """A handler's; its backlog is what the test says."""

    def __init__(self, on_event: OnEvent) -> None:
        self.on_event = on_event
        self.backlog = 0
        self.removed = False

    def has_synced(self) -> bool:
        """Whether it has handled everything."""
        return not self.backlog

    def wait_for_sync(self, timeout: float | None = None) -> bool:
        """As the real one, but that it hears nothing of its removal."""
        return becomes(self.has_synced, timeout)

    def remove(self) -> None:
        """Nothing is told any more."""
        self.removed = True


class StandInInformer:
    """Syncs, fails and loses its objects when the test says so."""

    def __init__(self, gvr: GVR) -> None:
        self.gvr = gvr
        self.registrations: dict[str, StandInRegistration] = {}
        self.started = self.synced = self.stopped = False
        self.fails: BaseException | None = None
        self.objects = 0
        self.state = InformerState.LISTING

    def add_event_handler(self, *, on_event: OnEvent, name: str) -> StandInRegistration:
        """As the real one."""
        if self.stopped:
            raise StoppedError("this informer has stopped")
        found = self.registrations[name] = StandInRegistration(on_event)
        return found

    def start(self) -> None:
        """As the real one."""
        if self.stopped:
            raise StoppedError("this informer has stopped")
        if self.fails is not None:
            raise self.fails
        self.started = True

    def has_synced(self) -> bool:
        """As the test says."""
        return self.synced

    def wait_synced(self, timeout: float | None = None) -> bool:
        """As the real one."""
        becomes(lambda: self.synced or self.stopped, timeout)
        return self.synced

    def is_stopped(self) -> bool:
        """Somebody removed it."""
        return self.stopped

    def status(self) -> InformerStatus:
        """As the test says."""
        state = InformerState.STOPPED if self.stopped else self.state
        return InformerStatus(state=state, synced=self.synced, objects=self.objects)

    def listeners(self) -> list[StandInRegistration]:
        """Handlers that are told of events."""
        return [each for each in self.registrations.values() if not each.removed]


@dataclass
class Generic:
    """What is borrowed."""

    informer: StandInInformer


class Stage:
    """Informers, discovery and news of CRDs in one."""

    def __init__(self, *resources: ResolvedResource, available: bool = True) -> None:
        self.lock = threading.Lock()  # guards informers and users
        self.informers: dict[GVR, StandInInformer] = {}
        self.users: dict[GVR, set[object]] = {}
        self.options: dict[GVR, ResourceOptions] = {}
        self.conflict: GVR | None = None
        self.fails: dict[GVR, BaseException] = {}
        self.resources = list(resources)
        self.error: BaseException | None = None
        self.looks = 0
        self.available = available
        self.callbacks: list[Callable[[], None]] = []
        self.sync_at_once = True

    # -- the registry of a factory

    def borrow(self, gvr: GVR, asked: ResourceOptions, user: object) -> Generic:
        """As the real one: the same one, unless it has stopped."""
        if gvr == self.conflict:
            raise OptionsConflictError(f"{gvr} was asked for before with other options")
        with self.lock:
            found = self.informers.get(gvr)
            if found is None or found.stopped:
                found = self.informers[gvr] = StandInInformer(gvr)
                found.synced = self.sync_at_once
                found.fails = self.fails.get(gvr)
                self.options[gvr] = asked
            self.users.setdefault(gvr, set()).add(user)
            return Generic(found)

    def give_back(self, informer: StandInInformer, user: object) -> None:
        """As the real one: whatever nobody uses is stopped."""
        with self.lock:
            users = self.users[informer.gvr]
            users.discard(user)
            if not users and self.informers.get(informer.gvr) is informer:
                del self.informers[informer.gvr]
                informer.stopped = True

    # -- discovery

    def all_versions(self) -> list[ResolvedResource]:
        """What the test says."""
        self.looks += 1
        if self.error is not None:
            raise self.error
        return list(self.resources)

    def invalidate(self) -> None:
        """Nothing is kept."""

    # -- news of CRDs

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """As the real one."""
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    # -- for the test

    def remove(self, text: str) -> None:
        """Somebody removes an informer from the factory."""
        with self.lock:
            self.informers.pop(GVR.parse(text)).stopped = True

    def serve(self, *resources: ResolvedResource) -> None:
        """From now on these; the watch on CRDs says that something changed."""
        self.resources = list(resources)
        for callback in tuple(self.callbacks):
            callback()

    def informer(self, text: str) -> StandInInformer:
        """The one of a resource."""
        return self.informers[GVR.parse(text)]

    @contextmanager
    def following(self, *patterns: str, **arguments: Any) -> Iterator[Follower]:
        """A follower that leaves no thread behind."""
        arguments.setdefault("on_event", lambda event: None)
        follower = follow(self, self, self, patterns, owner=self, **arguments)
        try:
            yield follower
        finally:
            follower.close()
            assert follower.wait_stopped(30) == []


def names(follower: Follower) -> list[str]:
    """What is followed, as text."""
    return [str(each) for each in follower.resources()]
