"""Items of a list come as they arrive (S25, S31, S32)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from dyninformer.store.store import Store
from dyninformer.types import Object
from dyninformer.watching.answers import Answer, Batch, Lost, PageEnd
from dyninformer.watching.list_reading import ListReading, RevisionReading
from tests.mutated import mutated
from tests.store.objects import Counted
from tests.watching.readings import WIDGETS, feed, obj, refusing, told


def listed(*items: Object, kind: str = "WidgetList", **metadata: str) -> bytes:
    """The body of a list."""
    body = {
        "kind": kind, "apiVersion": "ex.io/v1",
        "metadata": {"resourceVersion": "20", **metadata}, "items": items,
    }  # fmt: skip
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
    """So that whoever takes them can stop in between (S34); each is counted once."""
    body = b'{"kind":"WidgetList","metadata":{"resourceVersion":"2"},"items":[' + b"0," * 30_000
    reading = ListReading(Store(WIDGETS), "widgets.v1.ex.io")
    batches = feed(reading, body + b"0]}")
    assert max(len(batch.unusable) for batch in batches) == 5000
    assert sum(len(batch.unusable) for batch in batches) == 30_001
    assert reading.end() == PageEnd("2", items=30_001)
