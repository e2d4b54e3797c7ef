"""What was: snapshots, files, recordings, histories; relations; what nobody holds: S37-S42."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dyninformer import Event, Snapshot, open_informer, open_recording
from dyninformer.moments.recorded import (
    RecordingLine,
    RecordingWriter,
    ResourceDefinition,
    now,
)
from tests.conformance import shapes
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import PATIENCE, WIDGETS, seen
from tests.conformance.wire import until


def test_s37_a_snapshot_is_the_state_of_its_version(running: Running, widgets: Collection) -> None:
    """A list at that version says the same, and the difference is what was done in between."""
    widgets.fill("a", "b", "c")
    found = running()
    before = found.snapshot()
    widgets.merge("a", {"spec": {"size": 7}})
    widgets.api.delete(widgets.at("b"))
    seen(found.informer, widgets.fill("d")[0])
    after = found.snapshot()
    listed = widgets.api.get(
        f"{widgets.path}?resourceVersion={after.resource_version}&resourceVersionMatch=Exact"
    )
    assert {each["metadata"]["name"]: each["spec"] for each in listed.json["items"]} == {
        each["metadata"]["name"]: each["spec"] for each in after
    }
    difference = after.diff(before)
    assert [(each.type, each.name) for each in difference] == [
        ("ADDED", "d"),
        ("REMOVED", "b"),
        ("CHANGED", "a"),
    ]
    assert ".spec.size" in [each.path for each in difference.changed[0].changes()]
    assert len(before) == 3


def test_s38_the_history_of_an_object_goes_on_past_its_deletion(
    running: Running, widgets: Collection
) -> None:
    """From what was there at first, with each change."""
    (first,) = widgets.fill("a", size=1)
    found = running(history=10)
    second = widgets.merge("a", {"spec": {"size": 2}}).json
    widgets.api.delete(widgets.at("a"))
    seen(found.informer, widgets.fill("later")[0])
    versions = found.history("a")
    assert [each.type for each in versions] == ["ADDED", "UPDATED", "DELETED"]
    assert [each.resource_version for each in versions[:2]] == [
        each["metadata"]["resourceVersion"] for each in (first, second)
    ]
    assert (".spec.size", 1, 2) in versions[1].changes()
    assert versions[0].initial
    times = [each.time for each in versions]
    assert None not in times
    assert times == sorted(times, key=str)


def test_s39_a_saved_snapshot_is_loaded_as_it_was(
    running: Running, widgets: Collection, tmp_path: Path
) -> None:
    """In another process it would be the same."""
    widgets.fill("a", "b")
    snapshot = running(indexers={"name": ".metadata.name"}).snapshot()
    snapshot.save(tmp_path / "widgets")
    loaded = Snapshot.load(tmp_path / "widgets")
    assert not loaded.diff(snapshot)
    assert list(loaded) == list(snapshot)
    assert loaded.resource_version == snapshot.resource_version
    assert loaded.by_index("name", "a") == [snapshot.get("a")]


def test_s40_a_recording_is_what_handlers_were_told(
    running: Running, widgets: Collection, tmp_path: Path
) -> None:
    """Its last moment is the cache."""
    widgets.fill("a", "b")
    found = running()
    path = tmp_path / "widgets.ndjson.zst"
    defined = ResourceDefinition(str(WIDGETS), "Widget", namespaced=True)
    last = threading.Event()
    with RecordingWriter(path, (defined,), force=False) as writer:

        def record(event: Event) -> None:
            type_ = {"UPDATED": "MODIFIED"}.get(event.type.value, event.type.value)
            writer.write(
                RecordingLine(now(), type_, str(event.gvr), event.initial, object=event.object)
            )
            if event.name == "last":
                last.set()

        found.informer.add_event_handler(on_event=record)
        widgets.merge("a", {"spec": {"size": 7}})
        widgets.api.delete(widgets.at("b"))
        widgets.fill("last")
        assert last.wait(PATIENCE)
        writer.close(events=5, objects=3)
    recording = open_recording(path)
    moment = recording.at(3600)
    assert not found.snapshot().diff(moment)
    assert [each.type for each in recording][-3:] == ["UPDATED", "DELETED", "ADDED"]


def test_s41_owners_and_owned_are_found(
    factories: Factories, widgets: Collection, namespace: str
) -> None:
    """Those that are cached, and with `fetch` the others."""
    (owner,) = widgets.fill("owner")
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    owned = shapes.widget("owned")
    owned["metadata"]["ownerReferences"] = [reference]
    widgets.create(owned)
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    metadata = {"name": "owned", "ownerReferences": [reference]}
    assert widgets.api.post(secrets, {"metadata": metadata}).status == 201
    factory = factories()
    factory.for_resource(WIDGETS)
    factory.sync(PATIENCE)
    assert [each["kind"] for each in factory.owned_by(owner)] == [owner["kind"]]
    fetched = factory.owned_by(owner, fetch=True)
    assert sorted(each["kind"] for each in fetched) == sorted([owner["kind"], "Secret"])
    assert [each["metadata"]["name"] for each in factory.owners(fetched[0])] == ["owner"]
    assert [each["name"] for each in factory.tree(fetched[0]).data()] == ["owner"]


def test_s42_what_nobody_holds_is_closed(cluster: Cluster, namespace: str) -> None:
    """With a warning, and without being waited for."""

    def threads() -> int:
        return sum(namespace in each.name for each in threading.enumerate())

    client = cluster.server.client()
    found = open_informer(WIDGETS, client=client, namespace=namespace)
    assert threads() == 1
    with pytest.warns(ResourceWarning, match="no references to this informer of widgets"):
        del found
    until(lambda: threads() == 0)
