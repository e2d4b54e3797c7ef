"""What the tests of informers share: handlers that note, metrics that count."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from dyninformer import Event, EventType, GroupVersionResource, SharedIndexInformer
from dyninformer.testing import LoggedRequest
from dyninformer.types import Object
from tests.conformance.wire import until

Told: TypeAlias = tuple[str, str]

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")
BLOBS = GroupVersionResource("loose.io", "v1", "blobs")
GLOBES = GroupVersionResource("ex.io", "v1", "globes")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NODES = GroupVersionResource("", "v1", "nodes")

PATIENCE = 60.0
"""Seconds after which a condition that a test waits for will not come true."""

on_embedded = pytest.mark.parametrize("cluster", ["embedded"], indirect=True)
"""For tests that inject faults, or look at what was asked."""
on_real = pytest.mark.parametrize(
    "cluster", [pytest.param("real", marks=pytest.mark.real)], indirect=True
)


class Heard:
    """A handler that notes every event. ``before`` runs first, on the handler's thread."""

    def __init__(self, before: Callable[[Event], object] = lambda _: None) -> None:
        self.events: list[Event] = []
        self._before = before
        self._changed = threading.Condition()

    def on_event(self, event: Event) -> None:
        """Note it."""
        self._before(event)
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    @property
    def told(self) -> list[Told]:
        """(type, name) of each event so far."""
        with self._changed:
            return [(event.type.value, event.name) for event in self.events]

    def of(self, name: str) -> list[Event]:
        """The events of one object, so far."""
        with self._changed:
            return [event for event in self.events if event.name == name]

    def wait(self, type_: str, name: str) -> Event:
        """The first event of this type and name."""
        found: Event = self.wait_until(
            lambda: next((e for e in self.events if (e.type, e.name) == (type_, name)), None),
            f"{type_} {name}",
        )
        return found

    def wait_count(self, count: int) -> list[Told]:
        """What was told, once there are so many events."""
        self.wait_until(lambda: len(self.events) >= count, f"{count} events")
        return self.told

    def wait_until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition on the events is true, and return what it said."""
        with self._changed:
            found = self._changed.wait_for(condition, PATIENCE)
            assert found, f"not heard within {PATIENCE} s: {what}; only {self.events}"
            return found


class Counts:
    """Metrics that can be asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Something happened ``amount`` times."""
        with self._lock:
            self._counts[name] += amount

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Something has this value now."""

    def __getitem__(self, name: str) -> int:
        with self._lock:
            return self._counts[name]


def replayed(events: list[Event]) -> dict[str, Object]:
    """The state that a handler knows of, by key, if it believed every event."""
    known: dict[str, Object] = {}
    for event in events:
        if event.type is EventType.DELETED:
            assert known.pop(event.key, None) is not None, f"{event} of what was not there"
        elif event.type is EventType.ADDED:
            assert event.key not in known, f"{event} of what is there"
            known[event.key] = event.object
        else:
            assert event.old == known[event.key], f"{event} has another past"
            known[event.key] = event.object
    return known


def rights_of_alice(namespace: str) -> list[Object]:
    """A Role and its RoleBinding: she may list and watch the widgets of a namespace."""
    group, name = "rbac.authorization.k8s.io", f"alice-{namespace}"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [{"apiGroups": ["ex.io"], "resources": ["widgets"], "verbs": ["list", "watch"]}],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    }
    return [role, binding]


def seen(informer: SharedIndexInformer, written: Object) -> None:
    """Wait until the cache has seen what a write returned."""
    informer.wait_for_version(written["metadata"]["resourceVersion"], PATIENCE)


def reason_of(informer: SharedIndexInformer, part: str) -> str:
    """The status' reason, once it says ``part``."""
    reason: str = until(
        lambda: part in informer.status().reason and informer.status().reason,
        PATIENCE,
        f"a reason that says {part!r}",
    )
    return reason


def form(request: LoggedRequest) -> str:
    """What kind of a request it is."""
    if request.verb == "list":
        return "list"
    return "streaming list" if request.param("sendInitialEvents") else "watch"
