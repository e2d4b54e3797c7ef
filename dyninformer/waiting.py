"""Waiting until an informer's cache has an object as it should be, or a version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from dyninformer.conditions import Condition, met_when
from dyninformer.delivery.stream import EventStream
from dyninformer.errors import StoppedError, WaitTimeoutError
from dyninformer.indexer import Store
from dyninformer.resource import GroupVersionResource
from dyninformer.store import versions
from dyninformer.waking import Deadline
from dyninformer.watching.status import InformerStatus

Object: TypeAlias = dict[str, Any]
WaitUntil: TypeAlias = Callable[[Callable[[], bool], float | None], bool]


class Informer(Protocol):
    """What a wait needs of an informer."""

    @property
    def gvr(self) -> GroupVersionResource:
        """The resource."""

    @property
    def store(self) -> Store:
        """The cache by key."""

    def events(
        self, *, idle_timeout: float | None = None, coalesce: bool = False, initial: bool = True
    ) -> EventStream:
        """What changes, from now on."""

    def wait_synced(self, timeout: float | None = None) -> bool:
        """Wait for the first whole state."""

    def last_sync_resource_version(self) -> str:
        """The newest version seen."""

    def is_stopped(self) -> bool:
        """For good."""

    def status(self) -> InformerStatus:
        """How it stands."""


def wait_for(
    informer: Informer,
    condition: Condition,
    *,
    name: str,
    namespace: str | None,
    timeout: float | None,
) -> Object:
    """See `SharedIndexInformer.wait_for`."""
    met = met_when(condition)
    key = f"{namespace}/{name}" if namespace else name
    deadline = Deadline(timeout)
    last: Object | None = None
    # Subscribed before the first look, so that nothing is missed in between.
    with informer.events(initial=False, coalesce=True) as stream:
        _until_synced(informer, deadline, f"waiting for {key}")
        while True:
            obj = informer.store.get_by_key(key)
            if met(obj):
                return obj if obj is not None else last or {}
            last = obj or last
            if not _another_event(key, stream, deadline):
                raise _not_met(informer, key, condition, last, met.found(obj))


def wait_for_version(
    informer: Informer, wait_until: WaitUntil, version: str, timeout: float | None
) -> None:
    """See `SharedIndexInformer.wait_for_version`; ``wait_until`` looks after each change."""

    def has_seen() -> bool:
        seen = informer.last_sync_resource_version()
        return bool(seen) and not versions.older(seen, version)

    wait_until(lambda: informer.is_stopped() or has_seen(), timeout)
    if has_seen():
        return
    if informer.is_stopped():
        raise StoppedError(f"the informer of {informer.gvr} stopped while it was waited for")
    raise WaitTimeoutError(
        f"the cache of {informer.gvr} has not seen version {version} in {timeout} s: "
        f"it is at {informer.last_sync_resource_version() or 'none yet'}. "
        f"{informer.status().reason}".rstrip(),
        None,
    )


def _until_synced(informer: Informer, deadline: Deadline, what: str) -> None:
    if informer.wait_synced(deadline.left):
        return
    if informer.is_stopped():
        raise StoppedError(f"{what}: the informer of {informer.gvr} has stopped")
    status = informer.status()
    raise WaitTimeoutError(
        f"{what}: the cache of {informer.gvr} did not sync in time. "
        f"{status.reason or f'It is {status.state}.'}",
        None,
    )


def _another_event(key: str, stream: EventStream, deadline: Deadline) -> bool:
    """Wait for the next event of a key; false when there is none in time."""
    while not deadline.over and (event := stream.take(deadline.left)) is not None:
        if event.key == key:
            return True
    return False


def _not_met(
    informer: Informer, key: str, condition: Condition, last: Object | None, found: str
) -> Exception:
    if informer.is_stopped():
        return StoppedError(f"the informer of {informer.gvr} stopped while {key} was waited for")
    wanted = condition if isinstance(condition, str) else "the condition"
    return WaitTimeoutError(f"{informer.gvr} {key}: {wanted} was not met in time; {found}", last)
