"""What a server sends, as bytes, and what readings make of it."""

from __future__ import annotations

import json
from typing import Any

from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from dyninformer.types import Object
from dyninformer.watching.decode import Reading, StreamReading
from dyninformer.watching.states import Batch

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")


def obj(name: str, version: str, **fields: Any) -> Object:
    """A widget."""
    metadata = {"name": name, "namespace": "ns", "resourceVersion": version}
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, **fields}


def line(type_: str, content: object) -> bytes:
    """A line of a watch, as API servers write it."""
    return json.dumps({"type": type_, "object": content}, separators=(",", ":")).encode() + b"\n"


def bookmark(version: str, *, mark: bool = False) -> bytes:
    """A bookmark, or the mark."""
    metadata: Object = {"resourceVersion": version}
    if mark:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Widget", "apiVersion": "ex.io/v1", "metadata": metadata})


def status(**fields: object) -> Object:
    """A Status."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **fields}


def stream(start: str | None, store: Store | None = None) -> StreamReading:
    """A reading of a watch."""
    store = Store(WIDGETS) if store is None else store  # an empty one is false
    return StreamReading(store, "widgets.v1.ex.io", start)


def feed(reading: Reading, data: bytes) -> list[Batch]:
    """All batches of some bytes."""
    found = list(reading.feed(data))
    assert all(isinstance(each, Batch) for each in found), found
    return [each for each in found if isinstance(each, Batch)]


def told(batch: Batch) -> list[tuple[str, str]]:
    """Types and names of a batch's events."""
    return [(type_, received.name) for type_, received in batch.events]


def refusing() -> Store:
    """A store whose transform refuses one object."""

    def transform(found: Object) -> Object:
        if found["metadata"]["name"] == "bad":
            raise ValueError("no")
        return found

    return Store(WIDGETS, transform=transform)
