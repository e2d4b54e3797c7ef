"""Watches start where they are asked to, say what changed for their selection, and end as asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dyninformer.testing.cluster.log import Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watches import Watch
from dyninformer.testing.status import ApiError

from .stage import CONFIGMAPS, NAMESPACES, PAINTS, WIDGETS, Stage, lines, recorded, taken

_WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def _events(name: str, topic: str = "watch-selectors") -> tuple[str, list[str]]:
    """A recorded watch: its query, and its lines."""
    recording = recorded(topic, name)
    return recording["request"]["path"].partition("?")[2], recording["response"]["body"]


def _stage_at(revision: int, resource: Resource = WIDGETS) -> Stage:
    stage = Stage(resource)
    stage.caches.of(resource.collection).touch()
    stage.advance_to(revision)
    return stage


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
        stage = _stage_at(119238)
        watch = stage.watch(query)
        key = "/".join(_object(wanted[0])["metadata"][each] for each in ("namespace", "name"))
        revisions = [int(_object(line)["metadata"]["resourceVersion"]) for line in wanted]
        stage.put(key, _object(wanted[0]), at=revisions[0])
        stage.put(key, _object(wanted[1]), at=revisions[1])
        stage.delete(key, at=revisions[2])
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_a_label_selector(self) -> None:
        """ADDED when it enters; DELETED with the old content when it leaves or goes."""
        query, wanted = _events("object entering and leaving a label selector")
        stage = _stage_at(119241)
        watch = stage.watch(query)
        stage.put("ns1/tr", _object(wanted[0]), at=119242)
        stage.put("ns1/tr", _object(wanted[1], app="y"), at=119243)
        stage.put("ns1/tr", _object(wanted[2]), at=119244)
        stage.put("ns1/tr", _object(wanted[3]), at=119245)
        stage.delete("ns1/tr", at=119246)
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_an_inequality(self) -> None:
        """An object without the label is selected by ``app!=x``."""
        query, wanted = _events("same with labelSelector app!=x")
        stage = _stage_at(119247)
        watch = stage.watch(query)
        stage.put("ns1/tr", _object(wanted[0], app="x"), at=119248)
        stage.put("ns1/tr", _object(wanted[0]), at=119249)
        stage.put("ns1/tr", _object(wanted[1], app="x"), at=119250)
        stage.put("ns1/tr", _object(wanted[2], app="x"), at=119251)
        stage.put("ns1/tr", _object(wanted[2]), at=119252)
        stage.delete("ns1/tr", at=119253)
        assert lines(watch) == wanted

    def test_a_recorded_object_enters_and_leaves_a_selectable_field(self) -> None:
        """Fields have the transitions of labels."""
        query, wanted = _events(
            "watch spec.color=red, objects enter and leave", "selectable-fields"
        )
        stage = Stage(PAINTS)
        stage.caches.of(PAINTS.collection).touch()
        red, blue = _object(wanted[0]), _object(wanted[0])
        blue["spec"]["color"] = "blue"
        stage.put("ns1/a", _object(wanted[1]), at=119280)
        stage.put("ns1/b", blue, at=119290)
        stage.advance_to(119293)
        watch = stage.watch(query)
        other = _object(wanted[1])
        other["spec"]["color"] = "green"
        stage.put("ns1/b", red, at=119294)
        stage.put("ns1/a", other, at=119295)
        stage.put("ns1/b", _object(wanted[2]), at=119296)
        stage.delete("ns1/b", at=119297)
        assert lines(watch) == wanted

    def test_a_watch_by_name_hears_that_name_in_every_namespace(self) -> None:
        """And no other name."""
        stage = Stage()
        watch = stage.watch("fieldSelector=metadata.name%3Da&resourceVersion=1")
        for path in ("ns1/a", "ns1/b", "ns2/a"):
            stage.put(path)
        assert [(kind, name) for kind, name, _ in taken(watch)] == [("ADDED", "a")] * 2

    def test_a_watch_of_a_namespace_hears_of_no_other(self) -> None:
        """It goes on when the namespace has gone: that is another resource."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1", namespace="a")
        stage.put("a/x")
        stage.put("ab/x")
        stage.delete("a/x")
        assert taken(watch) == [("ADDED", "x", "2"), ("DELETED", "x", "4")]
        assert not watch.ended

    def test_an_object_outside_the_selection_that_is_deleted_is_not_heard_of(self) -> None:
        """It was never there for this watch."""
        stage = Stage()
        watch = stage.watch("labelSelector=app&resourceVersion=1")
        stage.put("ns/a")
        stage.delete("ns/a")
        assert taken(watch) == []

    def test_an_event_is_the_same_bytes_for_every_watch(self) -> None:
        """Also for watches that select it otherwise."""
        stage = Stage()
        watches = [
            stage.watch("resourceVersion=1"),
            stage.watch("resourceVersion=1"),
            stage.watch("resourceVersion=1&labelSelector=a"),
        ]
        stage.put("ns/a", labels={"a": "b"})
        (first,), (second,), (third,) = (watch.take() for watch in watches)
        assert first is second
        assert first is third

    def test_a_compaction_does_not_take_the_old_content_of_leaving_objects(self) -> None:
        """A watch from before it still hears DELETED with the content that matched."""
        stage = Stage()
        stage.caches.of(WIDGETS.collection).touch()
        stage.put("ns/a", labels={"a": "b"}, n=1)
        start = stage.log.revision
        stage.put("ns/a", labels={}, n=2)
        stage.log.compact(stage.log.revision)
        (line,) = lines(stage.watch(f"resourceVersion={start}&labelSelector=a"))
        event = json.loads(line)
        assert (event["type"], event["object"]["spec"]) == ("DELETED", {"n": 1})
        assert event["object"]["metadata"]["resourceVersion"] == str(start + 1)


class TestWhereItStarts:
    """resourceVersion and initial events."""

    @pytest.mark.parametrize("query", ["", "resourceVersion=0", "resourceVersion="])
    def test_from_nothing_it_adds_every_object_first(self, query: str) -> None:
        """In the order of keys, with the versions they have."""
        stage = Stage()
        stage.put("ns/b")
        stage.put("ns/a")
        watch = stage.watch(query)
        assert taken(watch) == [("ADDED", "a", "3"), ("ADDED", "b", "2")]
        stage.put("ns/c")
        assert taken(watch) == [("ADDED", "c", "4")]

    @pytest.mark.parametrize(
        "query", ["allowWatchBookmarks=true", "allowWatchBookmarks=true&resourceVersion=0"]
    )
    def test_from_nothing_with_bookmarks_it_is_a_streaming_list_in_disguise(
        self, query: str
    ) -> None:
        """The mark comes although sendInitialEvents was not asked."""
        stage = Stage()
        stage.put("ns/a")
        (_, mark) = lines(stage.watch(query))
        assert json.loads(mark)["object"]["metadata"] == {
            "annotations": {"k8s.io/initial-events-end": "true"},
            "resourceVersion": "2",
        }

    def test_the_recorded_mark_comes_also_when_nothing_matches(self) -> None:
        """Byte for byte, at the version a list would have said."""
        recording = recorded(
            "watchlist", "WatchList in namespace with selector that matches nothing"
        )
        stage = _stage_at(119230)
        stage.put("ns/a")
        stage.advance_to(119235)
        watch = stage.watch(recording["request"]["path"].partition("?")[2])
        assert lines(watch) == recording["response"]["body"]

    def test_a_built_in_kinds_mark_has_the_members_of_its_empty_struct(self) -> None:
        """As the facts have it of a namespace."""
        stage = Stage(NAMESPACES)
        stage.advance_to(61198)
        assert lines(stage.watch(_WATCH_LIST)) == [
            (
                '{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":'
                '{"resourceVersion":"61198","annotations":{"k8s.io/initial-events-end":"true"}},'
                '"spec":{},"status":{}}}'
            )
        ]
        assert lines(Stage(CONFIGMAPS).watch(_WATCH_LIST)) == [
            (
                '{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":'
                '{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}'
            )
        ]

    def test_without_bookmarks_a_streaming_list_has_no_mark(self) -> None:
        """Only the objects."""
        stage = Stage()
        stage.put("ns/a")
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        assert taken(stage.watch(query)) == [("ADDED", "a", "2")]

    def test_a_declined_streaming_list_starts_now(self) -> None:
        """sendInitialEvents=false gives nothing of what is there."""
        stage = Stage()
        stage.put("ns/a")
        watch = stage.watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
        stage.put("ns/b")
        assert taken(watch) == [("ADDED", "b", "3")]

    def test_a_streaming_list_from_an_old_version_is_the_whole_state(self) -> None:
        """Never too old: its mark is at the newest version."""
        stage = Stage()
        stage.put("ns/a")
        stage.caches.of(WIDGETS.collection).touch()
        watch = stage.watch(f"{_WATCH_LIST}&resourceVersion=1&limit=1")
        assert taken(watch) == [("ADDED", "a", "2"), ("BOOKMARK", "", "2")]

    def test_what_is_written_while_the_initial_events_are_taken_comes_after_the_mark(self) -> None:
        """The initial events are one moment's state."""
        stage = Stage()
        for name in "abc":
            stage.put(f"ns/{name}")
        watch = stage.watch(_WATCH_LIST)
        first = watch.take(limit=1)
        stage.delete("ns/c")
        rest = taken(watch)
        assert len(first) == 1
        assert rest == [
            ("ADDED", "b", "3"), ("ADDED", "c", "4"), ("BOOKMARK", "", "4"), ("DELETED", "c", "5"),
        ]  # fmt: skip

    def test_from_a_version_it_replays_what_came_after(self) -> None:
        """And not what was there at it."""
        stage = Stage()
        stage.caches.of(WIDGETS.collection).touch()
        stage.put("ns/a")
        start = stage.log.revision
        stage.put("ns/b")
        stage.delete("ns/a")
        watch = stage.watch(f"resourceVersion={start}")
        assert taken(watch) == [("ADDED", "b", "3"), ("DELETED", "a", "4")]

    def test_from_before_the_cache_was_filled_it_is_too_old(self) -> None:
        """One ERROR in the recorded words, then the end; the version of the fill itself works."""
        (wanted,) = recorded("watch-errors", "watch=1&resourceVersion=1")["response"]["body"]
        stage = Stage()
        stage.advance_to(118967)
        stage.caches.of(WIDGETS.collection).touch()
        watch = stage.watch("resourceVersion=1")
        assert lines(watch) == [wanted]
        assert watch.ended
        assert not stage.watch("resourceVersion=118967").ended

    def test_without_a_watch_cache_only_compaction_makes_a_version_too_old(self) -> None:
        """In the words recorded of --watch-cache=false."""
        (wanted,) = recorded("no-watch-cache", "watch RV=1")["response"]["body"]
        stage = Stage(watch_cache=False)
        stage.put("ns/a")
        stage.put("ns/b")
        assert taken(stage.watch("resourceVersion=2")) == [("ADDED", "b", "3")]
        stage.log.compact(3)
        assert lines(stage.watch("resourceVersion=2")) == [wanted]

    def test_from_the_future_it_is_silent_until_then(self) -> None:
        """Events at or below the version asked for are never sent."""
        stage = Stage()
        watch = stage.watch("resourceVersion=4&allowWatchBookmarks=true")
        stage.put("ns/a")
        stage.put("ns/b")
        stage.put("ns/c")
        stage.clock.advance(60)
        assert taken(watch) == []
        stage.put("ns/d")
        assert taken(watch) == [("ADDED", "d", "5")]

    def test_a_streaming_list_from_the_future_gives_up_after_three_seconds(self) -> None:
        """The recorded 504, in the stream, then the end."""
        recording = recorded("watchlist", "WatchList future RV")
        stage = _stage_at(119238)
        watch = stage.watch(recording["request"]["path"].partition("?")[2])
        assert lines(watch) == []
        stage.clock.advance(2.9)
        assert lines(watch) == []
        assert not watch.ended
        stage.clock.advance(0.2)
        assert lines(watch) == recording["response"]["body"]
        assert watch.ended

    def test_a_streaming_list_from_the_future_begins_when_the_future_comes(self) -> None:
        """It looks again and again; nothing written meanwhile is told twice."""
        stage = Stage()
        watch = stage.watch(f"{_WATCH_LIST}&resourceVersion=3")
        stage.put("ns/a")
        assert taken(watch) == []
        assert watch.deadline is not None
        assert watch.deadline <= stage.clock.now() + 0.1
        stage.put("ns/b")
        stage.clock.advance(0.1)
        assert taken(watch) == [("ADDED", "a", "2"), ("ADDED", "b", "3"), ("BOOKMARK", "", "3")]
        stage.put("ns/c")
        assert taken(watch) == [("ADDED", "c", "4")]

    @pytest.mark.parametrize("query", ["", "resourceVersion=1", _WATCH_LIST])
    def test_a_cold_cache_refuses_every_watch(self, query: str) -> None:
        """With 429, before the stream."""
        stage = Stage(warm_up=1.0)
        with pytest.raises(ApiError) as caught:
            stage.watch(query)
        assert (caught.value.code, caught.value.retry_after) == (429, 1)


class TestBookmarks:
    """When they come, and what they say."""

    def test_they_come_every_minute_and_twice_before_the_end(self) -> None:
        """Of the recorded form, at the cache's version, also where nothing matches."""
        stage = Stage()
        watch = stage.watch(
            "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=150&labelSelector=no%3Dsuch"
        )
        stage.put("ns/a")
        assert lines(watch) == []
        seen: list[tuple[float, list[str]]] = []
        opened = stage.clock.now()
        while not watch.ended:
            assert watch.deadline is not None
            stage.clock.advance(watch.deadline - stage.clock.now())
            seen.append((round(stage.clock.now() - opened, 1), lines(watch)))
        mark = (
            '{"type":"BOOKMARK","object":{"apiVersion":"ex.io/v1","kind":"Widget",'
            '"metadata":{"resourceVersion":"2"}}}'
        )
        assert [moment for moment, _ in seen] == [60.0, 120.0, 147.8, 148.9, 150.0]
        assert [found for _, found in seen] == [[mark], [mark], [mark], [mark], []]

    def test_none_comes_while_it_would_say_no_more_than_the_start(self) -> None:
        """The cache moves by its own events, and by consistent reads of anything."""
        stage = Stage()
        stage.put("ns/a")
        watch = stage.watch("resourceVersion=2&allowWatchBookmarks=true")
        stage.advance_to(10)
        stage.clock.advance(60)
        assert lines(watch) == []
        stage.page()
        stage.clock.advance(60)
        assert taken(watch) == [("BOOKMARK", "", "10")]

    def test_none_comes_unasked(self) -> None:
        """Only with allowWatchBookmarks."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1")
        stage.put("ns/a")
        stage.clock.advance(600)
        assert taken(watch) == [("ADDED", "a", "2")]

    def test_a_bookmark_never_overtakes_an_event(self) -> None:
        """It waits until everything up to its version has been taken."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1&allowWatchBookmarks=true")
        stage.put("ns/a")
        stage.put("ns/b")
        stage.clock.advance(60)
        assert len(watch.take(limit=1)) == 1
        assert taken(watch) == [("ADDED", "b", "3"), ("BOOKMARK", "", "3")]


class TestHowItEnds:
    """Timeouts, rebuilds, slow readers, readers that go."""

    def test_it_ends_at_its_timeout_without_a_word(self) -> None:
        """And not before."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1&timeoutSeconds=5")
        stage.clock.advance(4.9)
        assert taken(watch) == []
        assert not watch.ended
        assert watch.deadline is not None
        stage.clock.advance(watch.deadline - stage.clock.now())
        assert taken(watch) == []
        assert watch.ended

    def test_a_timeout_cuts_the_initial_events_in_the_middle(self) -> None:
        """There is no mark then."""
        stage = Stage()
        for name in "abc":
            stage.put(f"ns/{name}")
        watch = stage.watch(f"{_WATCH_LIST}&timeoutSeconds=1")
        assert len(watch.take(limit=1)) == 1
        stage.clock.advance(1)
        assert watch.take() == []
        assert watch.ended

    def test_a_negative_timeout_ends_it_at_once(self) -> None:
        """Not even the initial events come."""
        stage = Stage()
        stage.put("ns/a")
        watch = stage.watch("timeoutSeconds=-1")
        assert lines(watch) == []
        assert watch.ended

    @pytest.mark.parametrize("query", ["", "&timeoutSeconds=0"])
    def test_without_a_timeout_it_ends_between_the_servers_least_and_twice_that(
        self, query: str
    ) -> None:
        """Spread, so that not all come back at once."""
        stage = Stage(min_request_timeout=10.0)
        found = set()
        for _ in range(20):
            watch = stage.watch(f"resourceVersion=1{query}")
            assert lines(watch) == []
            assert watch.deadline is not None
            found.add(watch.deadline - stage.clock.now())
        assert all(10 <= each <= 20 for each in found)
        assert len(found) > 10

    def test_a_changed_spec_ends_it_after_a_second_in_which_it_still_hears(self) -> None:
        """The reader is woken, and told when to come back."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1")
        assert lines(watch) == []
        woken: list[str] = []
        watch.on_ready = lambda: woken.append("x")
        stage.caches.rebuild(WIDGETS.collection)
        assert woken == ["x"]
        stage.put("ns/a")
        assert taken(watch) == [("ADDED", "a", "2")]
        assert watch.deadline == stage.clock.now() + 1.0
        stage.clock.advance(1.0)
        stage.put("ns/b")
        assert taken(watch) == []
        assert watch.ended

    def test_events_of_the_last_second_are_not_lost_to_a_late_reader(self) -> None:
        """What was heard before the end is given before the end."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1")
        stage.caches.rebuild(WIDGETS.collection)
        stage.put("ns/a")
        stage.clock.advance(5.0)
        assert taken(watch) == [("ADDED", "a", "2")]
        assert watch.ended

    def test_a_watch_from_before_a_changed_spec_is_too_old(self) -> None:
        """But one from the version of the new fill works."""
        stage = Stage()
        stage.watch("resourceVersion=1")
        stage.put("ns/a")
        stage.put("ns/b")
        stage.caches.rebuild(WIDGETS.collection)
        (line,) = lines(stage.watch("resourceVersion=2"))
        assert json.loads(line)["object"]["message"] == "too old resource version: 2 (3)"
        assert not stage.watch("resourceVersion=3").ended

    def test_a_deleted_crds_watch_is_deaf_to_the_next_generation(self) -> None:
        """It hears the deletes, ends a second later, and nothing of what is created again."""
        stage = Stage()
        stage.put("ns/a")
        watch = stage.watch("")
        stage.delete("ns/a")
        stage.caches.drop(WIDGETS.collection)
        stage.put("ns/a")
        assert taken(watch) == [("ADDED", "a", "2"), ("DELETED", "a", "3")]
        stage.clock.advance(1.0)
        assert taken(watch) == []
        assert watch.ended

    def test_a_restart_ends_it_at_once_and_makes_old_versions_too_old(self) -> None:
        """Every restart costs each watcher a list."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1")
        stage.put("ns/a")
        stage.caches.reset_all()
        taken(watch)
        assert watch.ended
        stage.advance_to(5)
        (line,) = lines(stage.watch("resourceVersion=2"))
        assert json.loads(line)["object"]["message"] == "too old resource version: 2 (5)"

    def test_a_reader_that_stays_behind_is_cut_off_after_what_was_queued(self) -> None:
        """Then a clean end; resuming from its last version loses nothing."""
        stage = Stage(slow_reader_events=10, slow_reader_seconds=1.0)
        slow = stage.watch("resourceVersion=1")
        prompt = stage.watch("resourceVersion=1")
        heard = 0
        for number in range(40):
            stage.put(f"ns/o{number}")
            stage.clock.advance(0.1)
            heard += len(taken(prompt))
        stage.clock.advance(10)
        got = taken(slow)
        assert heard == 40
        assert slow.ended
        assert not prompt.ended
        assert 10 < len(got) < 40
        last = got[-1][2]
        resumed = stage.watch(f"resourceVersion={last}")
        assert len(got) + len(taken(resumed)) == 40

    def test_a_reader_behind_by_bytes_is_cut_off_too(self) -> None:
        """A few large objects weigh as much as many small ones."""
        stage = Stage(slow_reader_bytes=1000, slow_reader_seconds=0.0)
        watch = stage.watch("resourceVersion=1")
        for number in range(4):
            stage.put(f"ns/o{number}", text="x" * 600)
        assert len(taken(watch)) == 3
        assert watch.ended

    def test_a_burst_alone_does_not_make_a_reader_slow(self) -> None:
        """It has a second to catch up, each time anew."""
        stage = Stage(slow_reader_events=10, slow_reader_seconds=1.0)
        watch = stage.watch("resourceVersion=1")
        for _ in range(3):
            for number in range(20):
                stage.put(f"ns/o{number}")
            assert len(taken(watch)) == 20
            stage.clock.advance(5)
        assert not watch.ended

    def test_a_reader_is_woken_once_until_it_takes(self) -> None:
        """And not at all for what it does not select."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1&labelSelector=a")
        lines(watch)
        woken: list[str] = []
        watch.on_ready = lambda: woken.append("x")
        stage.put("ns/other")
        assert woken == []
        stage.put("ns/a", labels={"a": ""})
        stage.put("ns/b", labels={"a": ""})
        assert woken == ["x"]
        assert len(taken(watch)) == 2
        stage.put("ns/c", labels={"a": ""})
        assert woken == ["x", "x"]

    def test_a_closed_watch_leaves_nothing_behind(self) -> None:
        """Closing twice is closing once."""
        stage = Stage()
        watch = stage.watch("resourceVersion=1")
        other = stage.watch("resourceVersion=1")
        watch.close()
        watch.close()
        assert watch.ended
        assert stage.caches.of(WIDGETS.collection).listeners
        other.close()
        assert not stage.caches.of(WIDGETS.collection).listeners
        stage.put("ns/a")
        assert watch.take() == []


class _Odd:
    """A representation whose first line differs, and which ends the stream at a DELETED."""

    first_line_differs = True

    def __init__(self, stage: Stage) -> None:
        self._plain = stage.plain

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

    def _watch(self, stage: Stage, query: str) -> Watch:
        return stage.watch(query, representation=_Odd(stage))

    def test_the_first_line_is_marked_wherever_it_comes_from(self) -> None:
        """An initial event, the mark, or the first event heard."""
        stage = Stage()
        assert lines(self._watch(stage, _WATCH_LIST)) == ["first BOOKMARK 1"]
        live = self._watch(stage, "resourceVersion=1")
        stage.put("ns/a")
        stage.put("ns/b")
        assert lines(live) == ["first ADDED a", "ADDED b"]
        assert lines(self._watch(stage, "")) == ["first ADDED a", "ADDED b"]
        assert lines(self._watch(stage, "resourceVersion=1")) == ["first ADDED a", "ADDED b"]

    def test_a_line_that_is_none_ends_the_stream_in_its_place(self) -> None:
        """What came before is sent, nothing after."""
        stage = Stage()
        watch = self._watch(stage, "resourceVersion=1")
        stage.put("ns/a")
        stage.delete("ns/a")
        stage.put("ns/b")
        assert lines(watch) == ["first ADDED a"]
        assert watch.ended
