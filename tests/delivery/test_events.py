"""What an event says: its parts, decoded when looked at, and what differs between two states."""

from __future__ import annotations

import pickle

import pytest

from dyninformer.delivery.events import Event, EventType
from dyninformer.errors import EventTypeWarning
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Delta
from tests.delivery.harness import GVR, Harness, Notes, until


def last(harness: Harness, notes: Notes, count: int) -> Event:
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


@pytest.mark.parametrize("word", ["MODIFIED", "modified", "updated", "Added", "Modified"])
def test_a_type_that_is_compared_with_a_word_it_never_is_warns(word: str) -> None:
    """On whichever side it is, and in a tuple; it is never equal, and so is the hash no matter."""
    with pytest.warns(EventTypeWarning, match=f"{word!r}.*(UPDATED|ADDED)"):
        assert word != EventType.UPDATED
    with pytest.warns(EventTypeWarning, match=word):
        assert word != EventType.UPDATED
    with pytest.warns(EventTypeWarning, match=word):
        assert EventType.ADDED not in (word, "else")


def test_a_type_is_equal_to_its_own_word_alone() -> None:
    """With one hash; other types, other words and other things are quietly something else."""
    for each in EventType:
        assert each == each.value == str(each)
        assert hash(each) == hash(each.value)
        assert {str(each.value): "found"}[each] == "found"
        assert pickle.loads(pickle.dumps(each)) is each
    others: list[object] = ["ADDED", "sync-started", EventType.SYNC, 5]
    assert all(other != EventType.UPDATED for other in others)


def test_an_event_names_its_resource_and_object(harness: Harness) -> None:
    """GVR, key, namespace, name, type and version are there without the object."""
    notes = Notes()
    harness.add(notes)
    harness.put("prod/web", x=1)
    event = last(harness, notes, 1)
    assert (event.type, event.gvr, event.key) == (EventType.ADDED, GVR, "prod/web")
    assert (event.namespace, event.name, event.resource_version) == ("prod", "web", "1")
    assert repr(event) == "<Event ADDED certificates.v1.cert-manager.io prod/web>"
    assert event.type == "ADDED"
    harness.put("prod/web\x1b[2J", x=1)
    assert repr(last(harness, notes, 2)).endswith(r" prod/web\x1b[2J>")


def test_a_cluster_scoped_object_has_no_namespace(harness: Harness) -> None:
    """Its key is its name."""
    notes = Notes()
    harness.add(notes)
    harness.put("node-1")
    event = last(harness, notes, 1)
    assert (event.key, event.namespace, event.name) == ("node-1", "", "node-1")


def test_an_update_has_both_states(harness: Harness) -> None:
    """The object is the new one; an added or deleted one has no old."""
    notes = Notes()
    harness.add(notes)
    harness.put("a", x=1)
    harness.put("a", x=2)
    harness.delete("a")
    until(lambda: len(notes.events) == 3)
    added, updated, deleted = notes.events
    assert added.old is None
    assert deleted.old is None
    assert updated.old is not None
    assert (updated.old["spec"], updated.object["spec"]) == ({"x": 1}, {"x": 2})
    assert deleted.object["spec"] == {"x": 2}


def test_what_a_handler_changes_is_its_own(harness: Harness) -> None:
    """Neither the cache nor another handler sees it; the handler goes on seeing it."""
    one, other = Notes(), Notes()
    harness.add(one)
    harness.add(other)
    harness.put("a", x=1)
    event, same = last(harness, one, 1), last(harness, other, 1)
    event.object["spec"]["x"] = "changed"
    assert event.object["spec"]["x"] == "changed"
    assert same.object["spec"]["x"] == 1
    payload = harness.store.get("a")
    assert payload is not None
    assert harness.store.codec.decode(payload)["spec"]["x"] == 1


def test_what_is_not_looked_at_is_not_decoded() -> None:
    """Key, type and version cost no decode of the object."""
    codec = CountingCodec()
    payload = codec.pack(b'{"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}')
    event = Event(GVR, codec, Delta("a", payload, payload))
    assert (event.key, event.type, event.resource_version) == ("a", EventType.UPDATED, "7")
    assert not event.recreated
    assert codec.decoded == 0
    assert event.object is event.object
    assert codec.decoded == 1


def test_an_event_cannot_be_changed(harness: Harness) -> None:
    """It is frozen, and equal only to itself."""
    codec = Codec()
    change = Delta("a", None, b'{"metadata": {}}')
    event = Event(GVR, codec, change)
    for name in ("type", "key", "object", "old", "initial", "anything"):
        with pytest.raises(AttributeError):
            setattr(event, name, None)
    assert event != Event(GVR, codec, change)
    assert len({event, event}) == 1


def test_another_uid_under_the_key_is_recreated(harness: Harness) -> None:
    """An object that was deleted and created again between two looks."""
    notes = Notes()
    harness.add(notes)
    harness.put("a", uid="1")
    harness.put("a", uid="1", x=1)
    harness.put("a", uid="2")
    until(lambda: len(notes.events) == 3)
    assert [event.recreated for event in notes.events] == [False, False, True]


def test_a_delete_found_by_a_list_says_that_its_state_may_be_old(harness: Harness) -> None:
    """S13, as the handler sees it."""
    notes = Notes()
    harness.add(notes)
    harness.sync("a", "b")
    harness.relist("b")
    harness.delete("b")
    notes.heard("ADDED a", "ADDED b", "DELETED a", "UPDATED b", "DELETED b")
    assert [event.final_state_unknown for event in notes.events] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert [event.initial for event in notes.events] == [True, True, False, False, False]


def test_changes_lists_what_an_update_changed(harness: Harness) -> None:
    """Without the bookkeeping of every write, and whatever the handler did to its copy."""
    notes = Notes()
    harness.add(notes)
    harness.put("a", x=1, y=1)
    harness.put("a", x=2, y=1)
    event = last(harness, notes, 2)
    event.object["spec"]["y"] = 7
    assert event.changes() == [(".spec.x", 1, 2)]
    assert event.changes(ignore=[".spec.x"]) == []
    assert notes.events[0].changes() == []


def test_metadata_that_a_transform_spoiled_has_no_version() -> None:
    """What cannot be read is empty; it raises nothing."""
    event = Event(GVR, Codec(), Delta("a", None, b'{"metadata": {"resourceVersion": 5}}'))
    assert event.resource_version == ""
