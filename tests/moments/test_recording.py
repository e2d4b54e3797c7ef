"""A recording as events, rows, and moments."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dyninformer import (
    EventType,
    GroupVersionResource,
    IncompleteRecordingWarning,
    UnknownResourceError,
    UnreadableFileError,
    open_recording,
)
from dyninformer.moments.recorded import (
    ColumnDefinition,
    RecordingLine,
    RecordingWriter,
    ResourceDefinition,
)
from dyninformer.types import Object

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
WIDGETS = ResourceDefinition("widgets.v1.ex.io", "Widget", True, "widget", ("wd",))
PODS = ResourceDefinition("pods.v1", "Pod", True, "pod")


def thing(name: str, version: int, n: int = 0, kind: str = "Widget") -> Object:
    """An object of the namespace ns."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    return {"apiVersion": "ex.io/v1", "kind": kind, "metadata": metadata, "spec": {"n": n}}


def at(second: float, type_: str, obj: Object, **more: Any) -> RecordingLine:
    """A line."""
    gvr = PODS.gvr if obj["kind"] == "Pod" else WIDGETS.gvr
    return RecordingLine(NEW_YEAR + timedelta(seconds=second), type_, gvr, object=obj, **more)


LINES = (
    at(1, "ADDED", thing("a", 1), initial=True),
    at(1, "ADDED", thing("b", 2), initial=True),
    at(3, "MODIFIED", thing("a", 3, n=1)),
    at(4, "ADDED", thing("p", 4, kind="Pod")),
    at(5, "DELETED", thing("b", 2), missed=True),
    at(6, "ADDED", thing("c", 6)),
)


@pytest.fixture(params=["night.ndjson", "night.ndjson.zst"])
def path(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording that began at the new year, plain and packed."""
    monkeypatch.setattr("dyninformer.moments.recorded.now", lambda: NEW_YEAR)
    found = tmp_path / str(request.param)
    with RecordingWriter(found, (WIDGETS, PODS), force=False) as writer:
        for line in LINES:
            writer.write(line)
            writer.flush()
        writer.close(events=len(LINES), objects=4)
    return found


def test_s40_its_events_are_versions_with_their_times(path: Path) -> None:
    """In the words of an informer; each knows what it changed."""
    recording = open_recording(path)
    found = list(recording)
    assert [(each.type, each.key) for each in found] == [
        (EventType.ADDED, "ns/a"),
        (EventType.ADDED, "ns/b"),
        (EventType.UPDATED, "ns/a"),
        (EventType.ADDED, "ns/p"),
        (EventType.DELETED, "ns/b"),
        (EventType.ADDED, "ns/c"),
    ]
    assert found[2].changes() == [(".spec.n", 0, 1)]
    assert found[2].time == NEW_YEAR + timedelta(seconds=3)
    assert (found[0].initial, found[2].initial) == (True, False)
    assert found[4].final_state_unknown
    assert found[4].object == thing("b", 2)
    assert list(map(repr, recording)) == list(map(repr, found))  # it can be read again
    assert recording.started == NEW_YEAR
    assert [str(each) for each in recording.resources] == [WIDGETS.gvr, PODS.gvr]


@pytest.mark.parametrize(
    ("time", "keys", "version"),
    [
        (0, ["ns/a", "ns/b"], "2"),
        (3, ["ns/a", "ns/b"], "3"),
        (NEW_YEAR + timedelta(seconds=5.5), ["ns/a"], "3"),
        ("2026-01-01T01:00:06+01:00", ["ns/a", "ns/c"], "6"),
        (timedelta(days=1), ["ns/a", "ns/c"], "6"),
    ],
)
def test_s40_a_moment_of_it_is_a_snapshot(
    path: Path, time: Any, keys: list[str], version: str
) -> None:
    """What was there at first always counts; the rest up to that time."""
    snapshot = open_recording(path).at(time, "widget")
    assert (snapshot.keys(), snapshot.resource_version) == (keys, version)


def test_a_moment_has_the_columns_that_were_recorded(tmp_path: Path) -> None:
    """Of a resource from the beginning, and of one that came later; one that is wrong is blank."""
    columns = (
        ColumnDefinition("N", "integer", ".spec.n"),
        ColumnDefinition("Wrong", "string", ".spec["),
        ColumnDefinition("Wide", "string", ".spec.w", 1),
    )
    defined = msgspec.structs.replace(WIDGETS, columns=columns)
    for first, later in (((defined,), ()), ((), (defined,))):
        path = tmp_path / f"columns-{len(first)}.ndjson"
        with RecordingWriter(path, first, force=False) as writer:
            for each in later:
                writer.write(RecordingLine(NEW_YEAR, "RESOURCE", resource=each))
            writer.write(LINES[0])
            writer.close(events=1, objects=1)
        snapshot = open_recording(path).at(timedelta(days=9999), "widgets")
        (row,) = snapshot.to_frame().to_dict("records")
        assert row["N"] == 0
        assert {"Wide", "Age"}.isdisjoint(row)


@pytest.mark.parametrize(
    "time",
    [
        *(math.nan, math.inf, 1e20, timedelta.max),
        *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "yesterday"),
    ],
)
def test_a_time_that_there_is_not_is_refused(path: Path, time: Any) -> None:
    """With what to give."""
    with pytest.raises(ValueError, match="give a datetime, its text in ISO 8601, or seconds"):
        open_recording(path).at(time, "widget")


def test_s40_two_moments_can_be_compared(path: Path) -> None:
    """As any two snapshots."""
    recording = open_recording(path)
    difference = recording.at(9, "wd").diff(recording.at(0, "wd"))
    assert [(each.type, each.key) for each in difference] == [
        ("ADDED", "ns/c"),
        ("REMOVED", "ns/b"),
        ("CHANGED", "ns/a"),
    ]


def test_it_is_rows_and_a_frame(path: Path) -> None:
    """A row for each event, with columns that are always the same."""
    recording = open_recording(path)
    rows = recording.rows("pods")
    assert rows == [
        {
            "time": NEW_YEAR + timedelta(seconds=4),
            "type": "ADDED",
            "resource": "pods.v1",
            "namespace": "ns",
            "name": "p",
            "resource_version": "4",
            "initial": False,
            "final_state_unknown": False,
        }
    ]
    frame = recording.to_frame()
    assert len(frame) == 6
    assert str(frame["time"].dtype) == "datetime64[ns, UTC]"


def test_the_history_of_one_object(path: Path) -> None:
    """Of all resources that have the key, or of one."""
    recording = open_recording(path)
    assert [each.resource_version for each in recording.history("ns/a", "widgets")] == ["1", "3"]
    assert recording.history("ns/a", "pods") == []


def test_a_bare_name_of_what_is_namespaced_is_refused(tmp_path: Path, path: Path) -> None:
    """As the informer refuses it; not where something recorded is in no namespace."""
    for resource in (None, "widgets", WIDGETS.parsed):
        with pytest.raises(ValueError, match=r"is namespaced: .* as history\('namespace/a'\)"):
            open_recording(path).history("a", resource)
    mixed = tmp_path / "mixed.ndjson"
    nodes = ResourceDefinition("nodes.v1", "Node", False)
    with RecordingWriter(mixed, (WIDGETS, nodes), force=False) as writer:
        writer.close(events=0, objects=0)
    assert open_recording(mixed).history("a") == []
    assert open_recording(mixed).history("a", "nodes") == []


def test_which_resource_is_meant_must_be_said(path: Path) -> None:
    """If there are several; an unknown one is refused with those that there are."""
    recording = open_recording(path)
    with pytest.raises(ValueError, match=r"several resources \(widgets.v1.ex.io, pods.v1\)"):
        recording.at(0)
    with pytest.raises(UnknownResourceError, match=r"no resource 'deploy'; it has: widgets"):
        recording.at(0, "deploy")
    nodes = GroupVersionResource("", "v1", "nodes")
    for ask in (partial(recording.at, 0), partial(recording.history, "n"), recording.to_frame):
        with pytest.raises(UnknownResourceError, match=r"no resource 'nodes.v1'; it has: widgets"):
            ask(nodes)
    for spelling in ("Widget", "widgets.ex.io", "ex.io/v1/widgets", WIDGETS.parsed):
        assert len(recording.at(0, spelling)) == 2


def test_a_recording_that_begins_without_a_resource_says_so(tmp_path: Path) -> None:
    """A wildcard may find the first one later."""
    path = tmp_path / "later.ndjson"
    with RecordingWriter(path, (), force=False) as writer:
        writer.write(RecordingLine(NEW_YEAR, "RESOURCE", resource=WIDGETS))
        writer.write(LINES[0])
        writer.close(events=1, objects=1)
    recording = open_recording(path)
    with pytest.raises(ValueError, match="begins without a resource: say which one"):
        recording.at(0)
    assert recording.at(9, WIDGETS.parsed).keys() == ["ns/a"]


def test_s40_what_breaks_off_is_given_up_to_there(path: Path) -> None:
    """With a warning that says where; what was there before that is told without one."""
    path.write_bytes(path.read_bytes()[:-40])
    recording = open_recording(path)
    with pytest.warns(IncompleteRecordingWarning, match="after 20"):
        found = list(recording)
    assert len(found) >= 5
    assert len(recording.at(0, WIDGETS.parsed)) == 2


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """With the file's name."""
    path = tmp_path / "hosts"
    path.write_bytes(b"127.0.0.1 localhost\n")
    with pytest.raises(UnreadableFileError, match="hosts is not a recording"):
        open_recording(path)
