"""Events are one collection, whichever of their two groups they are read and written through."""

from __future__ import annotations

import pytest

from dyninformer.types import Object
from tests.conformance.wire import JSON_PATCH, Wire

SHARED = {
    "type": "Warning",
    "eventTime": "2026-01-01T00:00:00.123456Z",
    "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000001Z"},
    "action": "Pulling",
    "reason": "Slow",
    "related": {"kind": "Node", "name": "n"},
    "reportingInstance": "kubelet-1",
}


def _about(namespace: str) -> Object:
    return {"kind": "Pod", "namespace": namespace, "name": "p"}


def _core(name: str, namespace: str) -> Object:
    """An event as client-go's old recorder writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": _about(namespace),
        "reason": "R",
        "message": "told",
        "type": "Normal",
        "source": {"component": "kubelet", "host": "h"},
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-02T00:00:00Z",
    }


def _new(name: str, namespace: str) -> Object:
    """An event as the new recorder writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "regarding": _about(namespace),
        "note": "noted",
        "reportingController": "k8s.io/kubelet",
        **SHARED,
    }


def _said(event: Object) -> Object:
    return {name: value for name, value in event.items() if name != "metadata"}


@pytest.fixture
def core(namespace: str) -> str:
    """The path of events in the core group."""
    return f"/api/v1/namespaces/{namespace}/events"


@pytest.fixture
def new(namespace: str) -> str:
    """Their path in events.k8s.io."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def test_an_event_of_the_core_group_is_in_events_k8s_io(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """Under the names that its fields have there; what nobody said is said to be absent."""
    made = api.post(core, _core("e", namespace)).json
    assert _said(made) == {
        **_said(_core("e", namespace)),
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    found = api.get(f"{new}/e").json
    assert found["metadata"] == made["metadata"]
    assert _said(found) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": None,
        "regarding": _about(namespace),
        "reason": "R",
        "note": "told",
        "type": "Normal",
        "deprecatedSource": {"component": "kubelet", "host": "h"},
        "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-02T00:00:00Z",
    }


def test_an_event_of_events_k8s_io_is_in_the_core_group(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """The other way round."""
    made = api.post(new, _new("e", namespace)).json
    assert _said(made) == {
        **_said(_new("e", namespace)),
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    found = api.get(f"{core}/e").json
    assert found["metadata"] == made["metadata"]
    assert _said(found) == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": _about(namespace),
        "message": "noted",
        "reportingComponent": "k8s.io/kubelet",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        **SHARED,
    }


def test_the_bytes_of_an_event_come_in_the_order_of_its_struct(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """In either group."""
    api.post(new, _new("e", namespace))
    assert list(api.get(f"{new}/e").json) == [
        "kind", "apiVersion", "metadata", "eventTime", "series", "reportingController",
        "reportingInstance", "action", "reason", "regarding", "related", "note", "type",
        "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp",
    ]  # fmt: skip
    assert list(api.get(f"{core}/e").json) == [
        "kind", "apiVersion", "metadata", "involvedObject", "reason", "message", "source",
        "firstTimestamp", "lastTimestamp", "type", "eventTime", "series", "action", "related",
        "reportingComponent", "reportingInstance",
    ]  # fmt: skip


def test_a_watch_of_one_group_sees_what_the_other_writes(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """Each event in the words of the watch, and a delete too."""
    version = api.get(new).version
    api.post(core, _core("a", namespace))
    api.post(new, _new("b", namespace))
    api.delete(f"{new}/a")
    api.delete(f"{core}/b")
    for path, word, told in ((core, "message", 0), (new, "note", 1)):
        with api.watch(path, {"resourceVersion": version}) as watch:
            events = [watch.event() for _ in range(4)]
        seen = [(e["type"], e["object"]["apiVersion"], e["object"][word]) for e in events]
        group = ("v1", "events.k8s.io/v1")[told]
        assert seen == [
            ("ADDED", group, "told"),
            ("ADDED", group, "noted"),
            ("DELETED", group, "told"),
            ("DELETED", group, "noted"),
        ]


def test_a_selector_of_one_group_finds_what_the_other_wrote(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """Each by the names that its group has."""
    api.post(core, _core("a", namespace))
    api.post(new, _new("b", namespace))
    asked = {
        "involvedObject.name=p": core,
        "source=kubelet": core,
        "source=k8s.io/kubelet": core,
        "reportingComponent=k8s.io/kubelet": core,
        "type=Warning": core,
        "regarding.name=p": new,
        "reportingController=k8s.io/kubelet": new,
        "type=Normal": new,
    }
    found = {text: api.get(path, {"fieldSelector": text}).names for text, path in asked.items()}
    assert found == {
        "involvedObject.name=p": ["a", "b"],
        "source=kubelet": ["a"],
        "source=k8s.io/kubelet": ["b"],
        "reportingComponent=k8s.io/kubelet": ["b"],
        "type=Warning": ["b"],
        "regarding.name=p": ["a", "b"],
        "reportingController=k8s.io/kubelet": ["b"],
        "type=Normal": ["a"],
    }


def test_what_was_owned_in_the_words_of_the_other_group_is_owned_no_more(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """Nobody translates it."""
    api.post(core, _core("e", namespace))
    annotated = api.patch(f"{new}/e", {"metadata": {"annotations": {"a": "b"}}}).json
    assert [each["fieldsV1"] for each in annotated["metadata"]["managedFields"]] == [
        {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}}
    ]
    patch = [{"op": "replace", "path": "/count", "value": 4}]
    counted = api.patch(f"{core}/e", patch, JSON_PATCH).json
    assert [each["fieldsV1"] for each in counted["metadata"]["managedFields"]] == [{"f:count": {}}]
    assert api.get(f"{new}/e").json["deprecatedCount"] == 4


def test_deleting_the_collection_of_one_group_empties_both(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """There is but one."""
    api.post(core, _core("a", namespace))
    api.post(new, _new("b", namespace))
    assert api.delete(new).status == 200
    assert api.get(core).names == api.get(new).names == []


def test_an_event_is_not_taken_at_the_path_of_the_other_group(
    api: Wire, namespace: str, core: str, new: str
) -> None:
    """Its apiVersion has to agree with the path."""
    for path, event, versions in (
        (core, _new("x", namespace), ("events.k8s.io/v1", "v1")),
        (new, _core("x", namespace), ("v1", "events.k8s.io/v1")),
    ):
        answer = api.post(path, event)
        assert (answer.status, answer.json["message"]) == (
            400,
            "the API version in the data ({}) does not match the expected API version ({})".format(
                *versions
            ),
        )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"'),
        ("2026-01-01T00:00:00.12Z", 'cannot parse ".12Z" as ".000000"'),
        ("2026-01-01T00:00:00.123456789Z", 'cannot parse "789Z" as "Z07:00"'),
        ("2026-01-01T00:00:00.123456", 'cannot parse "" as "Z07:00"'),
        ("x", 'cannot parse "x" as "2006"'),
    ],
)
def test_an_event_time_has_six_digits_of_a_second(
    api: Wire, namespace: str, new: str, text: str, why: str
) -> None:
    """Python's isoformat leaves them out where they are zeros, and is refused."""
    answer = api.post(new, {**_new("e", namespace), "eventTime": text})
    assert answer.status == 400
    assert answer.json["message"].endswith(
        f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": {why}'
    )
