"""From bytes to answers: streams, lists, documents, refusals."""

from __future__ import annotations

import gc
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.shard import Shard
from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.types import Object
from dyninformer.watching.decode import (
    DocumentReading,
    ListReading,
    RevisionReading,
    is_json,
    refusal,
    retry_after,
    status_of,
)
from dyninformer.watching.states import Answer, Batch, Document, Ended, Lost, PageEnd
from tests.mutated import mutated, mutated_text
from tests.store.objects import Counted
from tests.watching.readings import (
    WIDGETS,
    bookmark,
    feed,
    line,
    obj,
    refusing,
    status,
    stream,
    told,
)


def test_events_come_in_one_batch_per_piece_with_the_newest_version() -> None:
    """In order."""
    data = line("ADDED", obj("a", "11")) + line("DELETED", obj("b", "12")) + bookmark("15")
    (batch,) = feed(stream("10"), data)
    assert told(batch) == [("ADDED", "a"), ("DELETED", "b")]
    assert batch.version == "15"


def test_a_batch_says_that_objects_of_another_shard_came_in_it() -> None:
    """S49: their versions count, and they are not among its events."""
    mine, other = "55188545-709b-41e6-95e5-cc18ca262f02", "a"
    shard = Shard(0, 2)
    assert (shard.owns(mine), shard.owns(other)) == (True, False)

    def of(uid: str, version: str) -> bytes:
        found = obj("a", version)
        found["metadata"]["uid"] = uid
        return line("MODIFIED", found)

    reading = stream("10", Store(WIDGETS, shard=shard))
    (batch,) = feed(reading, of(other, "11"))
    assert (batch.version, told(batch), batch.foreign) == ("11", [], True)
    (batch,) = feed(reading, of(mine, "12") + bookmark("13"))
    assert (batch.version, told(batch), batch.foreign) == ("13", [("MODIFIED", "a")], False)


@given(st.lists(st.integers(1, 40), max_size=8))
def test_the_pieces_may_be_cut_anywhere(cuts: list[int]) -> None:
    """The events are the same."""
    data = b"".join(line("MODIFIED", obj("é", str(version))) for version in (11, 12, 13))
    reading, batches = stream("10"), []
    for cut in cuts:
        batches += feed(reading, data[:cut])
        data = data[cut:]
    batches += feed(reading, data)
    assert [name for each in batches for _, name in told(each)] == ["é"] * 3
    assert [each.version for each in batches][-1] == "13"
    assert reading.end() == Ended()


def test_what_is_older_than_the_streams_start_is_left_out() -> None:
    """What is not is kept, in whatever order it comes (S30)."""
    data = b"".join(line("ADDED", obj(f"w{v}", v)) for v in ("9", "12", "11", "12", "10"))
    (batch,) = feed(stream("10"), data)
    assert [name for _, name in told(batch)] == ["w12", "w11", "w12", "w10"]
    assert batch.version == "12"


def test_opaque_versions_are_never_older() -> None:
    """Everything is kept, and the last one counts (S30)."""
    data = line("ADDED", obj("a", "zz")) + line("ADDED", obj("b", "aa"))
    (batch,) = feed(stream("mm"), data)
    assert len(batch.events) == 2
    assert batch.version == "aa"


def test_initial_events_are_never_stale_and_the_mark_ends_them() -> None:
    """What follows it in the same piece is a batch of its own, from the mark's version on."""
    data = (
        line("ADDED", obj("a", "5"))
        + line("ADDED", obj("b", "3"))
        + bookmark("10", mark=True)
        + line("MODIFIED", obj("a", "9"))
        + line("MODIFIED", obj("a", "11"))
    )
    initial, after = feed(stream(None), data)
    assert [name for _, name in told(initial)] == ["a", "b"]
    assert (initial.mark, initial.version) == (True, "10")
    assert [received.version for _, received in after.events] == ["11"]


def test_a_bookmark_without_the_annotation_is_no_mark() -> None:
    """But a sign that the initial events are over."""
    (batch,) = feed(stream(None), bookmark("10"))
    assert not batch.mark
    assert batch.live


def test_a_mark_in_a_watch_is_a_bookmark() -> None:
    """A watch that begins at a version has no initial events."""
    (batch,) = feed(stream("5"), bookmark("10", mark=True))
    assert not batch.mark
    assert batch.version == "10"


def test_a_mark_without_a_version_is_broken() -> None:
    """There is nothing to go on from."""
    (batch,) = feed(stream(None), bookmark("", mark=True))
    assert batch.broken


def test_an_error_ends_the_batch() -> None:
    """With what came before it."""
    data = line("ADDED", obj("a", "11")) + line("ERROR", status(code=410, reason="Expired"))
    (batch,) = feed(stream("10"), data)
    assert told(batch) == [("ADDED", "a")]
    assert batch.error is not None
    assert batch.error.too_old


@pytest.mark.parametrize("content", [None, "text", [], status(code="410"), {}])
def test_an_error_that_is_no_status_is_an_error_all_the_same(content: object) -> None:
    """It is not too old."""
    (batch,) = feed(stream("10"), line("ERROR", content))
    assert batch.error is not None
    assert not batch.error.too_old


@pytest.mark.parametrize(
    "broken", [b"garbage\n", b'{"type":"ADDED","object":{"metadata":{\n', b"\xff\xfe{not json\n"]
)
def test_a_broken_line_ends_the_batch_with_what_is_wrong(broken: bytes) -> None:
    """Length and place; of the content no more than its structure (S32)."""
    (batch, *_) = feed(stream("10"), line("ADDED", obj("a", "11")) + broken)
    assert told(batch) == [("ADDED", "a")]
    assert "bytes" in batch.broken
    assert "garbage" not in batch.broken


@pytest.mark.parametrize(
    ("content", "version", "key"),
    [
        ({"metadata": {"namespace": "ns", "resourceVersion": "12"}}, "12", None),
        ("text", "", None),
        ({"kind": "Table", "metadata": {"resourceVersion": "12"}, "rows": []}, "12", None),
    ],
)
def test_an_unusable_object_is_skipped_and_its_version_advances_the_stream(
    content: object, version: str, key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Counted, logged once per piece; the stream goes on (S32)."""
    data = line("MODIFIED", content) + line("ADDED", obj("a", "11"))
    (batch,) = feed(stream("10"), data)
    assert told(batch) == [("ADDED", "a")]
    assert batch.unusable == (key,)
    assert batch.version == (version or "11")
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING


def test_an_unknown_type_is_skipped() -> None:
    """A server may learn new ones."""
    (batch,) = feed(stream("10"), line("SOMETHING", obj("a", "12")) + line("ADDED", obj("b", "13")))
    assert told(batch) == [("ADDED", "b")]


def test_a_line_in_another_spelling_is_read_as_well() -> None:
    """Fields in another order, with spaces."""
    data = json.dumps({"object": obj("a", "11"), "extra": 1, "type": "ADDED"}).encode() + b"\n"
    tail = b'{"type":"ADDED","object":' + json.dumps(obj("b", "12")).encode() + b',"x":{}}\n'
    (batch,) = feed(stream("10"), data + tail)
    assert told(batch) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_clean_end_in_the_middle_of_a_line_is_a_loss() -> None:
    """Something was cut."""
    reading = stream("10")
    feed(reading, line("ADDED", obj("a", "11"))[:-5])
    assert isinstance(reading.end(), Lost)


@pytest.mark.parametrize("start", ["10", None])
def test_a_transform_that_raises_is_said_beside_the_events(start: str | None) -> None:
    """And never sees what was deleted (S17); the stream advances."""
    data = line("ADDED", obj("bad", "11")) + line("DELETED", obj("bad", "12"))
    (batch,) = feed(stream(start, refusing()), data)
    assert told(batch) == [("ADDED", "bad"), ("DELETED", "bad")]
    assert batch.failed == 1
    assert "ns/bad" in batch.failure
    assert batch.version == ("12" if start else "")


@pytest.mark.parametrize(
    ("body", "content"),
    [(b'{"kind":"X"}', {"kind": "X"}), (b"[]", {}), (b"{", {}), (b"\xff", {}), (b"", {})],
)
def test_a_document_is_an_object_or_empty(body: bytes, content: Object) -> None:
    """Nothing is proved by what cannot be read (S33)."""
    reading = DocumentReading()
    assert [*reading.feed(body[:1]), *reading.feed(body[1:])] == []
    assert reading.end() == Document(content)


EVENTS = [
    line("ADDED", obj("a", "5", spec={"x": ["é", 1.5, None, {"y": "\U0001f600"}]})) + bookmark("9"),
    line("DELETED", obj("a", "8")) + bookmark("9", mark=True) + line("MODIFIED", obj("b", "7")),
    line("ERROR", status(code=410, reason="Expired", message="gone", details={"name": "x"})),
    line("ODD", {}) * 2,
]


@given(mutated(EVENTS), st.sampled_from([None, "5"]), st.sampled_from([1, 7, 1000]), st.booleans())
def test_whatever_a_stream_is_it_makes_batches(
    data: bytes, start: str | None, size: int, metadata_only: bool
) -> None:
    """Of what can be used, up to where the bytes make no sense."""
    store = Store(WIDGETS, indexers={"y": ".spec.x[*].y"}, metadata_only=metadata_only)
    reading = stream(start, store)
    for place in range(0, len(data), size):
        batches = feed(reading, data[place : place + size])
        if any(batch.broken or batch.error for batch in batches):
            return
    assert isinstance(reading.end(), Ended | Lost)


def test_a_refused_object_is_not_kept_by_its_own_error() -> None:
    """Its megabytes are free at once, not when the collector comes by."""
    gc.collect()
    gc.disable()
    try:
        (batch,) = feed(stream("5"), line("ADDED", {"metadata": {}, "x": "y" * 1_000_000}))
        assert batch.unusable == (None,)
        kept = [each for each in gc.get_objects() if isinstance(each, UnusableObjectError)]
        assert not kept
    finally:
        gc.enable()


def test_a_status_of_megabytes_is_none() -> None:
    """Nobody could read it; it is an error all the same."""
    (batch,) = feed(stream("5"), line("ERROR", status(code=410, message="x" * 2_000_000)))
    assert batch.error is not None
    assert "without a Status" in batch.error.message


@pytest.mark.parametrize("unit", [b"{},", b"[],", b'"a",'])
def test_a_document_that_would_take_too_much_memory_is_lost(unit: bytes) -> None:
    """Though it is no longer than others; nothing is made of it."""
    reading = DocumentReading()
    assert list(reading.feed(b'{"a":[' + unit * 1_500_000 + b"0]}")) == []
    lost = reading.end()
    assert isinstance(lost, Lost)
    assert "67,108,864 bytes of memory" in lost.complaint


def test_a_document_is_given_up_as_soon_as_it_is_too_long() -> None:
    """And what came of it is not kept, however much is still to come."""
    reading, piece = DocumentReading(), b"a" * (1 << 20)
    found = [(number, each) for number in range(1, 80) for each in reading.feed(piece)]
    assert [(number, type(each)) for number, each in found] == [(65, Lost)]


@pytest.mark.parametrize("kind", ["ADDED", "DELETED", "BOOKMARK", "ERROR", "ODD"])
def test_what_is_nested_without_end_is_an_event_of_nothing_or_a_broken_frame(kind: str) -> None:
    """Of any type, and wherever the decoder ends."""
    deep = b'{"metadata":{"resourceVersion":"6"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    (batch,) = feed(stream("5"), b'{"type":"%b","object":%b}\n' % (kind.encode(), deep))
    assert not batch.events


def listed(*items: Object, kind: str = "WidgetList", **metadata: str) -> bytes:
    """The body of a list."""
    body = {
        "kind": kind,
        "apiVersion": "ex.io/v1",
        "metadata": {"resourceVersion": "20", **metadata},
        "items": items,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def read_list(body: bytes, store: Store | None = None) -> tuple[list[Batch], Answer]:
    """Read a list whole."""
    reading = ListReading(Store(WIDGETS) if store is None else store, "widgets.v1.ex.io")
    batches = [each for half in (body[:100], body[100:]) for each in feed(reading, half)]
    return batches, reading.end()


def test_items_of_a_list_come_as_they_arrive_and_its_metadata_in_the_end() -> None:
    """Version, continue, how many (S25)."""
    batches, end = read_list(listed(obj("a", "1"), obj("b", "2"), **{"continue": "more"}))
    assert [each for batch in batches for each in told(batch)] == [("ADDED", "a"), ("ADDED", "b")]
    assert end == PageEnd("20", "more", items=2, first="ns/a")


def test_items_of_a_built_in_list_get_the_kind_and_version_that_they_lack() -> None:
    """First, as the watch has them (S31)."""
    item = obj("a", "1")
    del item["kind"], item["apiVersion"]
    (batch,), _ = read_list(listed(item))
    ((_, received),) = batch.events
    assert received.data is not None
    assert received.data.startswith(b'{"kind":"Widget","apiVersion":"ex.io/v1",')


def test_an_item_that_cannot_be_used_is_passed_on_by_its_key() -> None:
    """It counts as present (S32)."""
    (batch,), end = read_list(listed(obj("a", "1"), {"metadata": {}}))
    assert told(batch) == [("ADDED", "a")]
    assert batch.unusable == (None,)
    assert isinstance(end, PageEnd)


def names(batches: list[Batch]) -> list[str]:
    """Of all that was read."""
    return [received.name for batch in batches for _, received in batch.events]


def test_items_that_hold_what_looks_like_items_are_read_whole() -> None:
    """They are cut on trust first, and by a parser once that was wrong."""
    things = [obj(f"w{n}", str(n), spec={"copies": [obj("inner", "1")] * 3}) for n in range(300)]
    plain = [obj(f"p{n}", str(n)) for n in range(300)]
    for items in (plain + things + plain, things):
        batches, end = read_list(listed(*items))
        assert names(batches) == [each["metadata"]["name"] for each in items]
        assert [
            json.loads(each.data or b"") for batch in batches for _, each in batch.events
        ] == items
        first = f"ns/{items[0]['metadata']['name']}"
        assert end == PageEnd("20", items=len(items), first=first)


def test_each_item_that_cannot_be_used_is_left_out_once() -> None:
    """Among many, and counted once; a wrong cut is counted as nothing."""
    items = [obj(f"w{n}", str(n), spec={"copies": [obj("inner", "1")]}) for n in range(100)]
    items[10] = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a/b"}}
    items[20] = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {}}
    counted = Counted()
    batches, end = read_list(listed(*items), Store(WIDGETS, metrics=counted))
    assert names(batches) == [f"w{n}" for n in range(100) if n not in {10, 20}]
    assert [key for batch in batches for key in batch.unusable] == [None, None]
    assert counted.counts == [("unusable_objects", 1, {})] * 2
    assert end == PageEnd("20", items=100, first="ns/w0")


def test_what_was_read_before_a_body_breaks_is_handed_on() -> None:
    """In one batch, which says what is wrong."""
    body = listed(*[obj(f"w{n}", str(n)) for n in range(50)])
    batches, _ = read_list(body.replace(b'"name":"w40"', b'"name":w40'))
    assert names(batches) == [f"w{n}" for n in range(40)]
    assert "an item of" in batches[-1].broken


def test_a_list_cut_short_is_lost() -> None:
    """Even where HTTP says that it is whole (S25)."""
    assert isinstance(read_list(listed(obj("a", "1"), obj("b", "2"))[:-30])[1], Lost)


@pytest.mark.parametrize("kind", ["Status", "Table", "Widget"])
def test_what_is_no_list_is_lost(kind: str) -> None:
    """Judged at the end (S25)."""
    assert isinstance(read_list(listed(kind=kind))[1], Lost)


def test_a_transform_that_raises_is_said_beside_the_items() -> None:
    """What becomes of the list is decided when all of it is there (S17)."""
    batches, _ = read_list(listed(obj("a", "1"), obj("bad", "2")), refusing())
    assert (len(batches[-1].events), batches[-1].failed) == (2, 1)
    assert "ns/bad" in batches[-1].failure


def test_a_look_at_the_revision_reads_the_key_and_version_of_one_object() -> None:
    """And the list's own version; what is no object is counted (S30)."""
    reading = RevisionReading()
    assert list(reading.feed(listed(obj("a", "7")))) == []
    assert reading.end() == PageEnd("20", items=1, first="ns/a", first_version="7")
    oddities: list[dict[str, object]] = [{"metadata": {}}, {"metadata": 5}, {}]
    for odd in oddities:
        reading = RevisionReading()
        assert list(reading.feed(listed(odd))) == []
        assert reading.end() == PageEnd("20", items=1)


def test_a_look_at_the_revision_that_makes_no_sense_is_lost() -> None:
    """It is repeated."""
    reading = RevisionReading()
    assert list(reading.feed(b"<html>")) == []
    assert isinstance(reading.end(), Lost)


@given(mutated([listed(obj("a", "1"), obj("b", "2", spec={"items": [obj("c", "3")]}))]))
def test_whatever_a_list_is_it_makes_batches(data: bytes) -> None:
    """And ends as a page, or is lost."""
    for reading in (ListReading(Store(WIDGETS), "widgets.v1.ex.io"), RevisionReading()):
        said = [each for half in (data[:90], data[90:]) for each in reading.feed(half)]
        broken = any(isinstance(each, Lost) or getattr(each, "broken", "") for each in said)
        assert broken or isinstance(reading.end(), PageEnd | Lost)


def test_many_items_that_cannot_be_used_come_in_several_batches() -> None:
    """So that the thread that takes them can stop in between (S34); each is counted once."""
    body = b'{"kind":"WidgetList","metadata":{"resourceVersion":"2"},"items":[' + b"0," * 30_000
    reading = ListReading(Store(WIDGETS), "widgets.v1.ex.io")
    batches = feed(reading, body + b"0]}")
    assert max(len(batch.unusable) for batch in batches) == 5000
    assert sum(len(batch.unusable) for batch in batches) == 30_001
    assert reading.end() == PageEnd("2", items=30_001)


BUSY = json.dumps(
    {
        "kind": "Status",
        "message": "busy",
        "reason": "TooManyRequests",
        "code": 429,
        "details": {"name": "x", "retryAfterSeconds": 1},
    }
).encode()


def test_a_status_is_read() -> None:
    """Code, reason, message, and what it is about."""
    found = refusal(429, {"Retry-After": "7"}, BUSY, 0.0)
    assert (found.status.code, found.status.reason) == (429, "TooManyRequests")
    assert (found.status.message, found.status.name) == ("busy", "x")
    assert found.retry_after == 7.0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"404 page not found\n", "404 page not found\n"),
        (b"", "no more is said"),
        (b"{}", "{}"),
        (b"\xff", "�"),
        (b"x" * 1000, "x" * 300),
        (b'{"message": 5}', '{"message": 5}'),
    ],
)
def test_what_is_no_status_is_text(body: bytes, said: str) -> None:
    """As proxies and overloaded servers write, and no more than the beginning."""
    found = refusal(503, {}, body, 0.0)
    assert (found.status.code, found.status.message) == (503, said)


def test_the_http_status_counts_not_the_bodys() -> None:
    """They may differ behind a proxy."""
    assert refusal(503, {}, BUSY, 0.0).status.code == 503


def test_an_answer_of_another_type_is_named() -> None:
    """A login page, say."""
    found = refusal(200, {"Content-Type": "text/html"}, b"<html>", 0.0)
    assert "text/html" in found.status.message


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("application/json", True),
        ("application/json;stream=watch", True),
        ("Application/JSON ; charset=utf-8", True),
        ("", True),
        ("application/vnd.kubernetes.protobuf", False),
        ("text/html", False),
        ("application/jsonlines", False),
    ],
)
def test_only_json_is_json(kind: str, expected: bool) -> None:
    """Nothing said is taken as JSON."""
    assert is_json({"Content-Type": kind} if kind else {}) is expected


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("9" * 400, 9999999999.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("١٢", None),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(said: str, seconds: float | None) -> None:
    """What is neither is as if it were not there (S28)."""
    assert retry_after({"Retry-After": said}, 100.0) == seconds


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b'{"code":"x"}', b"{" * 9999])
def test_what_cannot_be_read_is_no_status(body: bytes) -> None:
    """None is said, nothing is raised."""
    assert status_of(body) is None


@given(
    mutated([BUSY]),
    mutated_text(
        ["Thu, 01 Jan 1970 00:01:00 GMT", "5", "Thu, 01 Jan 99999 00:01:00 +9999"],
        [" ", ",", ":", "-", "9999999999", "+", "GMT", "\xff", "()", "\\", '"', "\0", "<", "@"],
    ),
)
def test_whatever_a_refusal_is_it_is_read(body: bytes, header: str) -> None:
    """With a wait that can be waited, if it has one."""
    found = refusal(429, {"Retry-After": header, "Content-Type": header}, body, 50.0)
    assert found.status.code == 429
    assert found.retry_after is None or 0 <= found.retry_after < float("inf")
    is_json({"Content-Type": header})
