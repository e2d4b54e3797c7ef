"""Waiting until an informer's cache has an object as it should be, or a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from dyninformer.conditions import Condition, met_when
from dyninformer.delivery.events import Event
from dyninformer.delivery.stream import EventStream
from dyninformer.errors import StoppedError, WaitTimeoutError
from dyninformer.indexer import Store
from dyninformer.options import ResourceOptions
from dyninformer.resource import GroupVersionResource
from dyninformer.store import versions
from dyninformer.threads import Deadline
from dyninformer.types import Object
from dyninformer.watching.status import InformerStatus

Written: TypeAlias = "str | Mapping[str, Any] | HasDict"


class HasDict(Protocol):
    """What the official client gives back: a ResourceInstance, or a typed model. Not for import."""

    def to_dict(self) -> Any:
        """It as a dict."""


class Versions(Protocol):
    """What is needed of an informer's reflectors."""

    def wait_until(self, condition: Callable[[], bool], timeout: float | None, /) -> bool:
        """Wait for what depends on how they stand."""

    def last_version(self, namespace: str | None = None, /) -> str:
        """The newest version that was seen of a namespace, or of all."""


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

    @property
    def options(self) -> ResourceOptions:
        """What it watches."""

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
            event = _next_event(key, stream, deadline)
            if event is None:
                raise _not_met(informer, key, condition, last, met.found(obj))
            if event.recreated and met(None):  # deleted, and there is another one by now
                return event.old or {}


def wait_for_version(
    informer: Informer,
    reflectors: Versions,
    written: Written,
    timeout: float | None,
    namespace: str | None,
) -> None:
    """See `SharedIndexInformer.wait_for_version`."""
    version, of = (written, None) if isinstance(written, str) else _version_of(written)
    where = of if namespace is None else namespace

    def has_seen() -> bool:
        seen = reflectors.last_version(where)
        return seen == version or versions.older(version, seen)

    reflectors.wait_until(lambda: informer.is_stopped() or has_seen(), timeout)
    if has_seen():
        return
    if informer.is_stopped():
        raise StoppedError(f"the informer of {informer.gvr} stopped while it was waited for")
    at = reflectors.last_version(where) or "none yet"
    advice = ""
    if where is None and len(informer.options.scopes) > 1:
        advice = (
            "It is as far as the slowest of its namespaces: pass namespace=, or what the write "
            "returned, to wait for one."
        )
    inside = f" in namespace {where}" if where else ""
    message = (
        f"the cache of {informer.gvr}{inside} has not seen version {version} in {timeout} s: "
        f"it is at {at}. {advice} {informer.status().reason}"
    )
    raise WaitTimeoutError(" ".join(message.split()), None)


def _version_of(written: object) -> tuple[str, str]:
    """The resourceVersion and the namespace of what a write returned."""
    as_dict = getattr(written, "to_dict", None)  # the official client's, of either kind
    found = as_dict() if callable(as_dict) else written
    metadata = found.get("metadata") if isinstance(found, Mapping) else None
    if isinstance(metadata, Mapping):
        # A typed model has Python's names for the fields.
        version = metadata.get("resourceVersion") or metadata.get("resource_version")
        if isinstance(version, str):
            return version, metadata.get("namespace") or ""
    raise ValueError(
        "what wait_for_version waits for is the object that a write returned, or its "
        f"resourceVersion; a {type(written).__name__} without metadata.resourceVersion is neither"
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


def _next_event(key: str, stream: EventStream, deadline: Deadline) -> Event | None:
    """Wait for the next event of a key; None when there is none in time."""
    while not deadline.over and (event := stream.take(deadline.left)) is not None:
        if event.key == key:
            return event
    return None


def _not_met(
    informer: Informer, key: str, condition: Condition, last: Object | None, found: str
) -> Exception:
    if informer.is_stopped():
        return StoppedError(f"the informer of {informer.gvr} stopped while {key} was waited for")
    wanted = condition if isinstance(condition, str) else "the condition"
    return WaitTimeoutError(f"{informer.gvr} {key}: {wanted} was not met in time; {found}", last)
