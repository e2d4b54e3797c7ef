"""Objects as a server sends them, and stores to put them in."""

from __future__ import annotations

from typing import Any

import msgspec

from dyninformer.resource import GroupVersionResource
from dyninformer.store.decide import Delta, Deltas
from dyninformer.store.store import Store

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")


def widget(name: str, version: int = 1, namespace: str = "ns", uid: str = "", **spec: Any) -> bytes:
    """A widget's JSON; its uid is made of its name unless one is given."""
    metadata = {"name": name, "resourceVersion": str(version), "uid": uid or f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return msgspec.json.encode(
        {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
    )


class Told:
    """Remembers the changes that a store tells."""

    def __init__(self) -> None:
        self.changes: list[Delta] = []

    def __call__(self, changes: Deltas) -> None:
        """Be told."""
        self.changes.extend(changes)

    def kinds(self) -> list[tuple[str, str]]:
        """Type and key of each change, in order."""
        return [(kind(change), change.key) for change in self.changes]

    def clear(self) -> None:
        """Forget what was told so far."""
        self.changes.clear()


class Counted:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, int, dict[str, str]]] = []
        self.gauges: dict[str, float] = {}

    def count(self, name: str, gvr: GroupVersionResource, amount: int = 1, **labels: str) -> None:
        """Remember it."""
        self.counts.append((name, amount, labels))

    def gauge(self, name: str, gvr: GroupVersionResource, value: float, **labels: str) -> None:
        """Remember the last value."""
        self.gauges[name] = value


def kind(change: Delta) -> str:
    """The type of a change in an informer's words."""
    if change.old is None:
        return "ADDED"
    return "DELETED" if change.new is None else "UPDATED"


def add(store: Store, *objects: bytes) -> None:
    """Let a store take objects as watch events."""
    for data in objects:
        store.apply([("ADDED", store.receive(data))])


def delete(store: Store, data: bytes) -> None:
    """Let a store take a DELETED of an object."""
    store.apply([("DELETED", store.receive(data, deleted=True))])


def relist(store: Store, *objects: bytes, scope: str = "", first: bool = False) -> None:
    """Swap in a state of these objects."""
    state = store.relist(scope)
    for data in objects:
        state.add([store.receive(data)])
    state.swap(first)


def held(store: Store, key: str) -> dict[str, Any]:
    """The object that a store holds under a key."""
    payload = store.get(key)
    assert payload is not None
    return store.codec.decode(payload)
