"""What a handler is given: decoded when it is looked at, and its own."""

from __future__ import annotations

import pytest

from dyninformer.delivery.events import Event, EventType
from dyninformer.store.changes import Change
from dyninformer.store.codec import Codec
from tests.delivery.room import GVR, Notes, Room, until


def last(room: Room, notes: Notes, count: int) -> Event:
    """The newest of so many events."""
    until(lambda: len(notes.events) >= count)
    return notes.events[-1]


class CountingCodec(Codec):
    """A codec that counts how often it is asked to decode."""

    def __init__(self) -> None:
        super().__init__()
        self.decoded = 0

    def decode(self, payload: bytes) -> dict[str, object]:
        """Count it."""
        self.decoded += 1
        return super().decode(payload)


def test_an_event_names_its_resource_and_object(room: Room) -> None:
    """GVR, key, namespace, name, type and version are there without the object."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.put("prod/web", x=1)
    event = last(room, notes, 1)
    assert (event.type, event.gvr, event.key) == (EventType.ADDED, GVR, "prod/web")
    assert (event.namespace, event.name, event.resource_version) == ("prod", "web", "1")
    assert repr(event) == "<Event ADDED certificates.v1.cert-manager.io prod/web>"
    assert event.type == "ADDED"


def test_a_cluster_scoped_object_has_no_namespace(room: Room) -> None:
    """Its key is its name."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.put("node-1")
    event = last(room, notes, 1)
    assert (event.key, event.namespace, event.name) == ("node-1", "", "node-1")


def test_an_update_has_both_states(room: Room) -> None:
    """The object is the new one; an added or deleted one has no old."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.put("a", x=1)
    room.put("a", x=2)
    room.delete("a")
    until(lambda: len(notes.events) == 3)
    added, updated, deleted = notes.events
    assert added.old is None
    assert deleted.old is None
    assert updated.old is not None
    assert (updated.old["spec"], updated.object["spec"]) == ({"x": 1}, {"x": 2})
    assert deleted.object["spec"] == {"x": 2}


def test_what_a_handler_changes_is_its_own(room: Room) -> None:
    """Neither the cache nor another handler sees it; the handler goes on seeing it."""
    one, other = Notes(), Notes()
    room.dispatcher.add(one)
    room.dispatcher.add(other)
    room.put("a", x=1)
    event, same = last(room, one, 1), last(room, other, 1)
    event.object["spec"]["x"] = "changed"
    assert event.object["spec"]["x"] == "changed"
    assert same.object["spec"]["x"] == 1
    payload = room.store.get("a")
    assert payload is not None
    assert room.store.codec.decode(payload)["spec"]["x"] == 1


def test_what_is_not_looked_at_is_not_decoded() -> None:
    """Key, type and version cost no decode of the object."""
    codec = CountingCodec()
    payload = codec.pack(b'{"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}')
    event = Event(GVR, codec, Change("a", payload, payload))
    assert (event.key, event.type, event.resource_version) == ("a", EventType.UPDATED, "7")
    assert not event.recreated
    assert codec.decoded == 0
    assert event.object is event.object
    assert codec.decoded == 1


def test_an_event_cannot_be_changed(room: Room) -> None:
    """It is frozen, and equal only to itself."""
    codec = Codec()
    change = Change("a", None, b'{"metadata": {}}')
    event = Event(GVR, codec, change)
    for name in ("type", "key", "object", "old", "initial", "anything"):
        with pytest.raises(AttributeError):
            setattr(event, name, None)
    assert event != Event(GVR, codec, change)
    assert len({event, event}) == 1


def test_another_uid_under_the_key_is_recreated(room: Room) -> None:
    """An object that was deleted and created again between two looks."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.put("a", uid="1")
    room.put("a", uid="1", x=1)
    room.put("a", uid="2")
    until(lambda: len(notes.events) == 3)
    assert [event.recreated for event in notes.events] == [False, False, True]


def test_a_delete_found_by_a_list_says_that_its_state_may_be_old(room: Room) -> None:
    """S13, as the handler sees it."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.sync("a", "b")
    room.relist("b")
    room.delete("b")
    notes.heard("ADDED a", "ADDED b", "DELETED a", "UPDATED b", "DELETED b")
    assert [event.final_state_unknown for event in notes.events] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert [event.initial for event in notes.events] == [True, True, False, False, False]


def test_changes_lists_what_an_update_changed(room: Room) -> None:
    """Without the bookkeeping of every write, and whatever the handler did to its copy."""
    notes = Notes()
    room.dispatcher.add(notes)
    room.put("a", x=1, y=1)
    room.put("a", x=2, y=1)
    event = last(room, notes, 2)
    event.object["spec"]["y"] = 7
    assert event.changes() == [(".spec.x", 1, 2)]
    assert event.changes(ignore=[".spec.x"]) == []
    assert notes.events[0].changes() == []


def test_metadata_that_a_transform_spoiled_has_no_version() -> None:
    """What cannot be read is empty; it raises nothing."""
    event = Event(GVR, Codec(), Change("a", None, b'{"metadata": {"resourceVersion": 5}}'))
    assert event.resource_version == ""
