"""Watches start where they are asked to, say what changed for their selection, and end as asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watches import Watch
from dyninformer.testing.status import ApiError

from .one_collection import CONFIGMAPS, NAMESPACES, PAINTS, WIDGETS, OneCollection, lines, taken
from .recordings import recorded

_WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def _events(name: str, topic: str = "watch-selectors") -> tuple[str, list[str]]:
    """A recorded watch: its query, and its lines."""
    recording = recorded(topic, name)
    return recording["request"]["path"].partition("?")[2], recording["response"]["body"]


def _collection_at(revision: int, resource: Resource = WIDGETS) -> OneCollection:
    collection = OneCollection(resource)
    collection.caches.of(resource.collection).touch()
    collection.advance_to(revision)
    return collection


def _object(line: str, **labels: str) -> dict[str, Any]:
    """The object of a recorded line as it was written, with these labels if any are given."""
    obj: dict[str, Any] = json.loads(line)["object"]
    if labels:
        obj["metadata"]["labels"] = labels
    return obj


class TestWhatIsSaid:
    """The events of a change."""

    def test_a_recorded_life_of_an_object_gives_the_recorded_lines(self) -> None:
        """ADDED, MODIFIED, and DELETED with the last content at the delete's version."""
        query, wanted = _events("ADDED/MODIFIED/DELETED", "watch")
        collection = _collection_at(119238)
        watch = collection.watch(query)
        key = "/".join(_object(wanted[0])["metadata"][each] for each in ("namespace", "name"))
        revisions = [int(_object(line)["metadata"]["resourceVersion"]) for line in wanted]
        collection.put(key, _object(wanted[0]), at=revisions[0])
        collection.put(key, _object(wanted[1]), at=revisions[1])
        collection.delete(key, at=revisions[2])
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_a_label_selector(self) -> None:
        """ADDED when it enters; DELETED with the old content when it leaves or goes."""
        query, wanted = _events("object entering and leaving a label selector")
        collection = _collection_at(119241)
        watch = collection.watch(query)
        collection.put("ns1/tr", _object(wanted[0]), at=119242)
        collection.put("ns1/tr", _object(wanted[1], app="y"), at=119243)
        collection.put("ns1/tr", _object(wanted[2]), at=119244)
        collection.put("ns1/tr", _object(wanted[3]), at=119245)
        collection.delete("ns1/tr", at=119246)
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_an_inequality(self) -> None:
        """An object without the label is selected by ``app!=x``."""
        query, wanted = _events("same with labelSelector app!=x")
        collection = _collection_at(119247)
        watch = collection.watch(query)
        collection.put("ns1/tr", _object(wanted[0], app="x"), at=119248)
        collection.put("ns1/tr", _object(wanted[0]), at=119249)
        collection.put("ns1/tr", _object(wanted[1], app="x"), at=119250)
        collection.put("ns1/tr", _object(wanted[2], app="x"), at=119251)
        collection.put("ns1/tr", _object(wanted[2]), at=119252)
        collection.delete("ns1/tr", at=119253)
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_a_selectable_field(self) -> None:
        """Fields have the transitions of labels."""
        query, wanted = _events(
            "watch spec.color=red, objects enter and leave", "selectable-fields"
        )
        collection = OneCollection(PAINTS)
        collection.caches.of(PAINTS.collection).touch()
        red, blue = _object(wanted[0]), _object(wanted[0])
        blue["spec"]["color"] = "blue"
        collection.put("ns1/a", _object(wanted[1]), at=119280)
        collection.put("ns1/b", blue, at=119290)
        collection.advance_to(119293)
        watch = collection.watch(query)
        other = _object(wanted[1])
        other["spec"]["color"] = "green"
        collection.put("ns1/b", red, at=119294)
        collection.put("ns1/a", other, at=119295)
        collection.put("ns1/b", _object(wanted[2]), at=119296)
        collection.delete("ns1/b", at=119297)
        assert lines(watch) == wanted

    def test_a_watch_by_name_hears_that_name_in_every_namespace(self) -> None:
        """And no other name."""
        collection = OneCollection()
        watch = collection.watch("fieldSelector=metadata.name%3Da&resourceVersion=1")
        for path in ("ns1/a", "ns1/b", "ns2/a"):
            collection.put(path)
        assert [(kind, name) for kind, name, _ in taken(watch)] == [("ADDED", "a")] * 2

    def test_a_watch_of_a_namespace_hears_of_no_other(self) -> None:
        """It goes on when the namespace has gone: that is another resource."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1", namespace="a")
        collection.put("a/x")
        collection.put("ab/x")
        collection.delete("a/x")
        assert taken(watch) == [("ADDED", "x", "2"), ("DELETED", "x", "4")]
        assert not watch.ended

    def test_an_object_outside_the_selection_that_is_deleted_is_not_heard_of(self) -> None:
        """It was never there for this watch."""
        collection = OneCollection()
        watch = collection.watch("labelSelector=app&resourceVersion=1")
        collection.put("ns/a")
        collection.delete("ns/a")
        assert taken(watch) == []

    def test_an_event_is_the_same_bytes_for_every_watch(self) -> None:
        """Also for watches that select it otherwise."""
        collection = OneCollection()
        watches = [
            collection.watch("resourceVersion=1"),
            collection.watch("resourceVersion=1"),
            collection.watch("resourceVersion=1&labelSelector=a"),
        ]
        collection.put("ns/a", labels={"a": "b"})
        (first,), (second,), (third,) = (watch.take() for watch in watches)
        assert first is second
        assert first is third

    def test_a_compaction_does_not_take_the_old_content_of_leaving_objects(self) -> None:
        """A watch from before it still hears DELETED with the content that matched."""
        collection = OneCollection()
        collection.caches.of(WIDGETS.collection).touch()
        collection.put("ns/a", labels={"a": "b"}, n=1)
        start = collection.log.revision
        collection.put("ns/a", labels={}, n=2)
        collection.log.compact(collection.log.revision)
        (line,) = lines(collection.watch(f"resourceVersion={start}&labelSelector=a"))
        event = json.loads(line)
        assert (event["type"], event["object"]["spec"]) == ("DELETED", {"n": 1})
        assert event["object"]["metadata"]["resourceVersion"] == str(start + 1)


class TestWhereItStarts:
    """resourceVersion and initial events."""

    @pytest.mark.parametrize("query", ["", "resourceVersion=0", "resourceVersion="])
    def test_from_nothing_it_adds_every_object_first(self, query: str) -> None:
        """In the order of keys, with the versions they have."""
        collection = OneCollection()
        collection.put("ns/b")
        collection.put("ns/a")
        watch = collection.watch(query)
        assert taken(watch) == [("ADDED", "a", "3"), ("ADDED", "b", "2")]
        collection.put("ns/c")
        assert taken(watch) == [("ADDED", "c", "4")]

    @pytest.mark.parametrize(
        "query", ["allowWatchBookmarks=true", "allowWatchBookmarks=true&resourceVersion=0"]
    )
    def test_from_nothing_with_bookmarks_it_is_a_streaming_list_in_disguise(
        self, query: str
    ) -> None:
        """The mark comes although sendInitialEvents was not asked."""
        collection = OneCollection()
        collection.put("ns/a")
        (_, mark) = lines(collection.watch(query))
        assert json.loads(mark)["object"]["metadata"] == {
            "annotations": {"k8s.io/initial-events-end": "true"},
            "resourceVersion": "2",
        }

    def test_the_recorded_mark_comes_also_when_nothing_matches(self) -> None:
        """Byte for byte, at the version a list would have said."""
        recording = recorded(
            "watchlist", "WatchList in namespace with selector that matches nothing"
        )
        collection = _collection_at(119230)
        collection.put("ns/a")
        collection.advance_to(119235)
        watch = collection.watch(recording["request"]["path"].partition("?")[2])
        assert lines(watch) == recording["response"]["body"]

    def test_a_built_in_kinds_mark_has_the_members_of_its_empty_struct(self) -> None:
        """As the facts have it of a namespace."""
        collection = OneCollection(NAMESPACES)
        collection.advance_to(61198)
        assert lines(collection.watch(_WATCH_LIST)) == [
            (
                '{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":'
                '{"resourceVersion":"61198","annotations":{"k8s.io/initial-events-end":"true"}},'
                '"spec":{},"status":{}}}'
            )
        ]
        assert lines(OneCollection(CONFIGMAPS).watch(_WATCH_LIST)) == [
            (
                '{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":'
                '{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}'
            )
        ]

    def test_without_bookmarks_a_streaming_list_has_no_mark(self) -> None:
        """Only the objects."""
        collection = OneCollection()
        collection.put("ns/a")
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        assert taken(collection.watch(query)) == [("ADDED", "a", "2")]

    def test_a_declined_streaming_list_starts_now(self) -> None:
        """sendInitialEvents=false gives nothing of what is there."""
        collection = OneCollection()
        collection.put("ns/a")
        watch = collection.watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
        collection.put("ns/b")
        assert taken(watch) == [("ADDED", "b", "3")]

    def test_a_streaming_list_from_an_old_version_is_the_whole_state(self) -> None:
        """Never too old: its mark is at the newest version."""
        collection = OneCollection()
        collection.put("ns/a")
        collection.caches.of(WIDGETS.collection).touch()
        watch = collection.watch(f"{_WATCH_LIST}&resourceVersion=1&limit=1")
        assert taken(watch) == [("ADDED", "a", "2"), ("BOOKMARK", "", "2")]

    def test_what_is_written_while_the_initial_events_are_taken_comes_after_the_mark(self) -> None:
        """The initial events are one moment's state."""
        collection = OneCollection()
        for name in "abc":
            collection.put(f"ns/{name}")
        watch = collection.watch(_WATCH_LIST)
        first = watch.take(limit=1)
        collection.delete("ns/c")
        rest = taken(watch)
        assert len(first) == 1
        assert rest == [
            ("ADDED", "b", "3"),
            ("ADDED", "c", "4"),
            ("BOOKMARK", "", "4"),
            ("DELETED", "c", "5"),
        ]

    def test_from_a_version_it_replays_what_came_after(self) -> None:
        """And not what was there at it."""
        collection = OneCollection()
        collection.caches.of(WIDGETS.collection).touch()
        collection.put("ns/a")
        start = collection.log.revision
        collection.put("ns/b")
        collection.delete("ns/a")
        watch = collection.watch(f"resourceVersion={start}")
        assert taken(watch) == [("ADDED", "b", "3"), ("DELETED", "a", "4")]

    def test_from_before_the_cache_was_filled_it_is_too_old(self) -> None:
        """One ERROR in the recorded words, then the end; the version of the fill itself works."""
        (wanted,) = recorded("watch-errors", "watch=1&resourceVersion=1")["response"]["body"]
        collection = OneCollection()
        collection.advance_to(118967)
        collection.caches.of(WIDGETS.collection).touch()
        watch = collection.watch("resourceVersion=1")
        assert lines(watch) == [wanted]
        assert watch.ended
        assert not collection.watch("resourceVersion=118967").ended

    def test_without_a_watch_cache_only_compaction_makes_a_version_too_old(self) -> None:
        """In the words recorded of --watch-cache=false."""
        (wanted,) = recorded("no-watch-cache", "watch RV=1")["response"]["body"]
        collection = OneCollection(watch_cache=False)
        collection.put("ns/a")
        collection.put("ns/b")
        assert taken(collection.watch("resourceVersion=2")) == [("ADDED", "b", "3")]
        collection.log.compact(3)
        assert lines(collection.watch("resourceVersion=2")) == [wanted]

    def test_from_the_future_it_is_silent_until_then(self) -> None:
        """Events at or below the version asked for are never sent."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=4&allowWatchBookmarks=true")
        collection.put("ns/a")
        collection.put("ns/b")
        collection.put("ns/c")
        collection.clock.advance(60)
        assert taken(watch) == []
        collection.put("ns/d")
        assert taken(watch) == [("ADDED", "d", "5")]

    def test_a_streaming_list_from_the_future_gives_up_after_three_seconds(self) -> None:
        """The recorded 504, in the stream, then the end."""
        recording = recorded("watchlist", "WatchList future RV")
        collection = _collection_at(119238)
        watch = collection.watch(recording["request"]["path"].partition("?")[2])
        assert lines(watch) == []
        collection.clock.advance(2.9)
        assert lines(watch) == []
        assert not watch.ended
        collection.clock.advance(0.2)
        assert lines(watch) == recording["response"]["body"]
        assert watch.ended

    def test_a_streaming_list_from_the_future_begins_when_the_future_comes(self) -> None:
        """It looks again and again; nothing written meanwhile is sent twice."""
        collection = OneCollection()
        watch = collection.watch(f"{_WATCH_LIST}&resourceVersion=3")
        collection.put("ns/a")
        assert taken(watch) == []
        assert watch.deadline is not None
        assert watch.deadline <= collection.clock.now() + 0.1
        collection.put("ns/b")
        collection.clock.advance(0.1)
        assert taken(watch) == [("ADDED", "a", "2"), ("ADDED", "b", "3"), ("BOOKMARK", "", "3")]
        collection.put("ns/c")
        assert taken(watch) == [("ADDED", "c", "4")]

    @pytest.mark.parametrize("query", ["", "resourceVersion=1", _WATCH_LIST])
    def test_a_cold_cache_refuses_every_watch(self, query: str) -> None:
        """With 429, before the stream."""
        collection = OneCollection(warm_up=1.0)
        with pytest.raises(ApiError) as caught:
            collection.watch(query)
        assert (caught.value.code, caught.value.retry_after) == (429, 1)


class TestBookmarks:
    """When they come, and what they say."""

    def test_they_come_every_minute_and_twice_before_the_end(self) -> None:
        """Of the recorded form, at the cache's version, also where nothing matches."""
        collection = OneCollection()
        watch = collection.watch(
            "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=150&labelSelector=no%3Dsuch"
        )
        collection.put("ns/a")
        assert lines(watch) == []
        seen: list[tuple[float, list[str]]] = []
        opened = collection.clock.now()
        while not watch.ended:
            assert watch.deadline is not None
            collection.clock.advance(watch.deadline - collection.clock.now())
            seen.append((round(collection.clock.now() - opened, 1), lines(watch)))
        mark = (
            '{"type":"BOOKMARK","object":{"apiVersion":"ex.io/v1","kind":"Widget",'
            '"metadata":{"resourceVersion":"2"}}}'
        )
        assert [moment for moment, _ in seen] == [60.0, 120.0, 147.8, 148.9, 150.0]
        assert [found for _, found in seen] == [[mark], [mark], [mark], [mark], []]

    def test_none_comes_while_it_would_say_no_more_than_the_start(self) -> None:
        """The cache moves by its own events, and by consistent reads of anything."""
        collection = OneCollection()
        collection.put("ns/a")
        watch = collection.watch("resourceVersion=2&allowWatchBookmarks=true")
        collection.advance_to(10)
        collection.clock.advance(60)
        assert lines(watch) == []
        collection.page()
        collection.clock.advance(60)
        assert taken(watch) == [("BOOKMARK", "", "10")]

    def test_none_comes_unasked(self) -> None:
        """Only with allowWatchBookmarks."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1")
        collection.put("ns/a")
        collection.clock.advance(600)
        assert taken(watch) == [("ADDED", "a", "2")]

    def test_a_bookmark_never_overtakes_an_event(self) -> None:
        """It waits until everything up to its version has been taken."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1&allowWatchBookmarks=true")
        collection.put("ns/a")
        collection.put("ns/b")
        collection.clock.advance(60)
        assert len(watch.take(limit=1)) == 1
        assert taken(watch) == [("ADDED", "b", "3"), ("BOOKMARK", "", "3")]


class TestHowItEnds:
    """Timeouts, rebuilds, slow readers, readers that go."""

    def test_it_ends_at_its_timeout_without_a_word(self) -> None:
        """And not before."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1&timeoutSeconds=5")
        collection.clock.advance(4.9)
        assert taken(watch) == []
        assert not watch.ended
        assert watch.deadline is not None
        collection.clock.advance(watch.deadline - collection.clock.now())
        assert taken(watch) == []
        assert watch.ended

    def test_a_timeout_cuts_the_initial_events_in_the_middle(self) -> None:
        """There is no mark then."""
        collection = OneCollection()
        for name in "abc":
            collection.put(f"ns/{name}")
        watch = collection.watch(f"{_WATCH_LIST}&timeoutSeconds=1")
        assert len(watch.take(limit=1)) == 1
        collection.clock.advance(1)
        assert watch.take() == []
        assert watch.ended

    def test_a_negative_timeout_ends_it_at_once(self) -> None:
        """Not even the initial events come."""
        collection = OneCollection()
        collection.put("ns/a")
        watch = collection.watch("timeoutSeconds=-1")
        assert lines(watch) == []
        assert watch.ended

    @pytest.mark.parametrize("query", ["", "&timeoutSeconds=0"])
    def test_without_a_timeout_it_ends_between_the_servers_least_and_twice_that(
        self, query: str
    ) -> None:
        """Spread, so that not all come back at once."""
        collection = OneCollection(min_request_timeout=10.0)
        found = set()
        for _ in range(20):
            watch = collection.watch(f"resourceVersion=1{query}")
            assert lines(watch) == []
            assert watch.deadline is not None
            found.add(watch.deadline - collection.clock.now())
        assert all(10 <= each <= 20 for each in found)
        assert len(found) > 10

    def test_a_changed_spec_ends_it_after_a_second_in_which_it_still_hears(self) -> None:
        """The reader is woken, and knows when to come back."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1")
        assert lines(watch) == []
        woken: list[str] = []
        watch.on_ready = lambda: woken.append("x")
        collection.caches.rebuild(WIDGETS.collection)
        assert woken == ["x"]
        collection.put("ns/a")
        assert taken(watch) == [("ADDED", "a", "2")]
        assert watch.deadline == collection.clock.now() + 1.0
        collection.clock.advance(1.0)
        collection.put("ns/b")
        assert taken(watch) == []
        assert watch.ended

    def test_events_of_the_last_second_are_not_lost_to_a_late_reader(self) -> None:
        """What was heard before the end is given before the end."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1")
        collection.caches.rebuild(WIDGETS.collection)
        collection.put("ns/a")
        collection.clock.advance(5.0)
        assert taken(watch) == [("ADDED", "a", "2")]
        assert watch.ended

    def test_a_watch_from_before_a_changed_spec_is_too_old(self) -> None:
        """But one from the version of the new fill works."""
        collection = OneCollection()
        collection.watch("resourceVersion=1")
        collection.put("ns/a")
        collection.put("ns/b")
        collection.caches.rebuild(WIDGETS.collection)
        (line,) = lines(collection.watch("resourceVersion=2"))
        assert json.loads(line)["object"]["message"] == "too old resource version: 2 (3)"
        assert not collection.watch("resourceVersion=3").ended

    def test_a_deleted_crds_watch_is_deaf_to_the_next_generation(self) -> None:
        """It hears the deletes, ends a second later, and nothing of what is created again."""
        collection = OneCollection()
        collection.put("ns/a")
        watch = collection.watch("")
        collection.delete("ns/a")
        collection.caches.drop(WIDGETS.collection)
        collection.put("ns/a")
        assert taken(watch) == [("ADDED", "a", "2"), ("DELETED", "a", "3")]
        collection.clock.advance(1.0)
        assert taken(watch) == []
        assert watch.ended

    def test_a_restart_ends_it_at_once_and_makes_old_versions_too_old(self) -> None:
        """Every restart costs each watcher a list."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1")
        collection.put("ns/a")
        collection.caches.reset_all()
        taken(watch)
        assert watch.ended
        collection.advance_to(5)
        (line,) = lines(collection.watch("resourceVersion=2"))
        assert json.loads(line)["object"]["message"] == "too old resource version: 2 (5)"

    def test_a_reader_that_stays_behind_is_cut_off_after_what_was_queued(self) -> None:
        """Then a clean end; resuming from its last version loses nothing."""
        collection = OneCollection(slow_reader_events=10, slow_reader_seconds=1.0)
        slow = collection.watch("resourceVersion=1")
        prompt = collection.watch("resourceVersion=1")
        heard = 0
        for number in range(40):
            collection.put(f"ns/o{number}")
            collection.clock.advance(0.1)
            heard += len(taken(prompt))
        collection.clock.advance(10)
        got = taken(slow)
        assert heard == 40
        assert slow.ended
        assert not prompt.ended
        assert 10 < len(got) < 40
        last = got[-1][2]
        resumed = collection.watch(f"resourceVersion={last}")
        assert len(got) + len(taken(resumed)) == 40

    def test_a_reader_behind_by_bytes_is_cut_off_too(self) -> None:
        """A few large objects weigh as much as many small ones."""
        collection = OneCollection(slow_reader_bytes=1000, slow_reader_seconds=0.0)
        watch = collection.watch("resourceVersion=1")
        for number in range(4):
            collection.put(f"ns/o{number}", text="x" * 600)
        assert len(taken(watch)) == 3
        assert watch.ended

    def test_a_burst_alone_does_not_make_a_reader_slow(self) -> None:
        """It has a second to catch up, each time anew."""
        collection = OneCollection(slow_reader_events=10, slow_reader_seconds=1.0)
        watch = collection.watch("resourceVersion=1")
        for _ in range(3):
            for number in range(20):
                collection.put(f"ns/o{number}")
            assert len(taken(watch)) == 20
            collection.clock.advance(5)
        assert not watch.ended

    def test_a_reader_is_woken_once_until_it_takes(self) -> None:
        """And not at all for what it does not select."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1&labelSelector=a")
        lines(watch)
        woken: list[str] = []
        watch.on_ready = lambda: woken.append("x")
        collection.put("ns/other")
        assert woken == []
        collection.put("ns/a", labels={"a": ""})
        collection.put("ns/b", labels={"a": ""})
        assert woken == ["x"]
        assert len(taken(watch)) == 2
        collection.put("ns/c", labels={"a": ""})
        assert woken == ["x", "x"]

    def test_a_closed_watch_leaves_nothing_behind(self) -> None:
        """Closing twice is closing once."""
        collection = OneCollection()
        watch = collection.watch("resourceVersion=1")
        other = collection.watch("resourceVersion=1")
        watch.close()
        watch.close()
        assert watch.ended
        assert collection.caches.of(WIDGETS.collection).listeners
        other.close()
        assert not collection.caches.of(WIDGETS.collection).listeners
        collection.put("ns/a")
        assert watch.take() == []


class _Odd:
    """A representation whose first line differs, and which ends the stream at a DELETED."""

    first_line_differs = True

    def __init__(self, collection: OneCollection) -> None:
        self._plain = collection.plain

    def item(self, version: Version, resource: Resource) -> bytes:
        return self._plain.item(version, resource)

    def single(self, version: Version, resource: Resource) -> bytes:
        return self._plain.single(version, resource)

    def list_(self, page: Any, resource: Resource) -> Any:
        return self._plain.list_(page, resource)

    def event(
        self, kind: str, version: Version, resource: Resource, *, first: bool = False
    ) -> bytes | None:
        del resource
        if kind == "DELETED":
            return None
        return f"{'first ' if first else ''}{kind} {version.key.name}\n".encode()

    def bookmark(
        self, revision: int, resource: Resource, *, initial_end: bool = False, first: bool = False
    ) -> bytes | None:
        del resource, initial_end
        return f"{'first ' if first else ''}BOOKMARK {revision}\n".encode()


class TestRepresentations:
    """What a representation may ask of a watch."""

    def _watch(self, collection: OneCollection, query: str) -> Watch:
        return collection.watch(query, representation=_Odd(collection))

    def test_the_first_line_is_marked_wherever_it_comes_from(self) -> None:
        """An initial event, the mark, or the first event heard."""
        collection = OneCollection()
        assert lines(self._watch(collection, _WATCH_LIST)) == ["first BOOKMARK 1"]
        live = self._watch(collection, "resourceVersion=1")
        collection.put("ns/a")
        collection.put("ns/b")
        assert lines(live) == ["first ADDED a", "ADDED b"]
        assert lines(self._watch(collection, "")) == ["first ADDED a", "ADDED b"]
        assert lines(self._watch(collection, "resourceVersion=1")) == ["first ADDED a", "ADDED b"]

    def test_a_line_that_is_none_ends_the_stream_in_its_place(self) -> None:
        """What came before is sent, nothing after."""
        collection = OneCollection()
        watch = self._watch(collection, "resourceVersion=1")
        collection.put("ns/a")
        collection.delete("ns/a")
        collection.put("ns/b")
        assert lines(watch) == ["first ADDED a"]
        assert watch.ended
