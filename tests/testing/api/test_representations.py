"""Objects, lists and lines: in plain JSON, and cut to their metadata."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dyninformer.testing.api.representations import in_struct_order, joined
from dyninformer.testing.cluster.lists import Page
from dyninformer.testing.cluster.structural import Structural
from tests.testing.api.conftest import WIDGETS as WIDGETS_PATH
from tests.testing.api.conftest import Asker, widget
from tests.testing.api.conftest import lines as lines_of
from tests.testing.cluster.one_collection import (
    CONFIGMAPS,
    NAMESPACES,
    WIDGETS,
    OneCollection,
    lines,
)
from tests.testing.cluster.recordings import golden, recorded


def _body(collection: OneCollection, page: Page) -> str:
    return b"".join(collection.plain.list_(page, collection.resource)).decode()


def test_an_empty_custom_list_has_an_empty_continue() -> None:
    """The recorded bytes."""
    collection = OneCollection()
    collection.advance_to(119308)
    recording = recorded("namespace-deletion", "list in the deleted namespace")
    assert _body(collection, collection.page(namespace="doomed")) == recording["response"]["raw"]


def test_a_custom_list_has_the_recorded_bytes() -> None:
    """Sorted keys; items with apiVersion and kind."""
    recording = recorded("namespace-deletion", "deletecollection in the namespace")
    body = recording["response"]["body"]
    (item,) = body["items"]
    collection = OneCollection()
    collection.put("doomed/d1", item, at=int(item["metadata"]["resourceVersion"]))
    collection.advance_to(int(body["metadata"]["resourceVersion"]))
    assert _body(collection, collection.page()) == recording["response"]["raw"]


def test_a_page_says_what_remains() -> None:
    """Between the token and the version, as keys are sorted."""
    collection = OneCollection()
    collection.put("ns/a")
    collection.put("ns/b")
    metadata = json.loads(_body(collection, collection.page("limit=1")))["metadata"]
    assert list(metadata) == ["continue", "remainingItemCount", "resourceVersion"]


def test_a_list_kind_of_its_own_is_used() -> None:
    """A CRD may name it."""
    collection = OneCollection(replace(WIDGETS, list_kind="WidgetCollection"))
    assert json.loads(_body(collection, collection.page()))["kind"] == "WidgetCollection"


def test_a_recorded_namespace_is_written_as_its_struct_is() -> None:
    """Kind first, metadata in the order of ObjectMeta, then spec and status."""
    recording = recorded("namespace-deletion", "DELETE namespace")
    obj = recording["response"]["body"]
    shuffled = {key: obj[key] for key in ("status", "metadata", "spec", "kind", "apiVersion")}
    shuffled["metadata"] = dict(sorted(obj["metadata"].items()))
    collection = OneCollection(NAMESPACES)
    version = collection.put("doomed", shuffled, at=119305)
    assert collection.plain.single(version, NAMESPACES).decode() == recording["response"]["raw"]


def test_recorded_lines_of_a_namespace_are_written_again() -> None:
    """ADDED, MODIFIED and DELETED of a built-in kind."""
    recording = recorded("namespace-deletion", "watch of the namespace")
    wanted = recording["response"]["body"]
    objects = [json.loads(line)["object"] for line in wanted]
    revisions = [int(obj["metadata"]["resourceVersion"]) for obj in objects]
    collection = OneCollection(NAMESPACES)
    watch = collection.watch("fieldSelector=metadata.name%3Ddoomed")
    collection.put("doomed", objects[0], at=revisions[0])
    collection.put("doomed", objects[1], at=revisions[1])
    collection.put("doomed", objects[2], at=revisions[2] - 1)
    assert len(watch.take()) == 3
    collection.delete("doomed", at=revisions[2])
    assert lines(watch) == [wanted[2]]


def test_items_of_a_built_in_list_have_no_kind() -> None:
    """Nor an empty continue; the list has struct order too."""
    collection = OneCollection(CONFIGMAPS)
    collection.put(
        "ns/a",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"z": "1", "a": "2"},
            "metadata": {"namespace": "ns", "name": "a"},
        },
    )
    assert _body(collection, collection.page()) == (
        '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":['
        '{"metadata":{"name":"a","namespace":"ns","resourceVersion":"2"},'
        '"data":{"a":"2","z":"1"}}]}\n'
    )


def test_each_version_of_a_resource_shows_its_own_api_version() -> None:
    """From one stored object, without changing it."""
    collection = OneCollection()
    version = collection.put("ns/a", n=1)
    second = replace(WIDGETS, version="v2")
    assert json.loads(collection.plain.item(version, WIDGETS))["apiVersion"] == "ex.io/v1"
    assert json.loads(collection.plain.item(version, second))["apiVersion"] == "ex.io/v2"
    assert version.object["apiVersion"] == "ex.io/v1"


def test_a_schema_shows_in_what_is_read() -> None:
    """A default added and a field dropped: other content at the same version, as recorded."""
    before, after = (
        recording["response"]["body"]["items"][0]["spec"]
        for recording in golden("crd-schema-change")
    )
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer"},
                    "c": {"type": "string", "default": after["c"]},
                },
            }
        },
    }
    changed = replace(WIDGETS, schema=schema, structural=Structural(schema))
    collection = OneCollection()
    version = collection.put("ns/a", **before)
    assert json.loads(collection.plain.item(version, WIDGETS))["spec"] == before
    assert json.loads(collection.plain.item(version, changed))["spec"] == after


def test_an_item_is_encoded_once() -> None:
    """Lists, gets and events of a version share its bytes."""
    collection = OneCollection()
    version = collection.put("ns/a")
    assert collection.plain.item(version, WIDGETS) is collection.plain.item(version, WIDGETS)
    event = collection.plain.event("ADDED", version, WIDGETS)
    assert event is collection.plain.event("ADDED", version, WIDGETS)


def test_a_long_list_comes_in_pieces_worth_sending() -> None:
    """Neither one by one nor all at once; together they are the items with commas."""
    items = [b"x" * 1000] * 1000
    pieces = list(joined(items))
    assert b"".join(pieces) == b",".join(items)
    assert all(64 << 10 < len(piece) < 256 << 10 for piece in pieces[:-1])


_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def test_fields_come_in_the_order_of_the_struct() -> None:
    """Fields have the order of Go's struct, maps are sorted, empty ones are left out."""
    found = in_struct_order(
        {
            "labels": {"b": "1", "a": "2"},
            "uid": "u",
            "name": "n",
            "annotations": {},
            "managedFields": [{"fieldsV1": {"f:b": {}, "f:a": {}}, "manager": "m"}],
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["x"],
            "generateName": "",
            "ownerReferences": [{"uid": "o", "kind": "K", "apiVersion": "v1", "name": "p"}],
        }
    )

    assert list(found) == [
        "name",
        "uid",
        "deletionGracePeriodSeconds",
        "labels",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ]
    assert list(found["labels"]) == ["a", "b"]
    assert list(found["ownerReferences"][0]) == ["apiVersion", "kind", "name", "uid"]
    assert list(found["managedFields"][0]) == ["manager", "fieldsV1"]
    assert list(found["managedFields"][0]["fieldsV1"]) == ["f:a", "f:b"]


def test_a_watch_sends_metadata(ask: Asker) -> None:
    """Each event's object, bookmarks included, is metadata alone."""
    ask.create(WIDGETS_PATH, widget("a", n=1))
    stream = ask.watch(WIDGETS_PATH, _PARTIAL, allowWatchBookmarks="true")
    ask.create(WIDGETS_PATH, widget("b", n=1))

    found = lines_of(stream)
    assert [line["type"] for line in found] == ["ADDED", "BOOKMARK", "ADDED"]
    for line in found:
        assert set(line["object"]) == {"kind", "apiVersion", "metadata"}
        assert line["object"]["kind"] == "PartialObjectMetadata"


def test_a_watch_asked_as_lists_ends_at_its_first_event(ask: Asker) -> None:
    """A watch as PartialObjectMetadataList sends nothing, and ends at the first event."""
    stream = ask.watch(WIDGETS_PATH, _PARTIAL_LIST, resourceVersion=str(ask.cluster.log.revision))
    assert (lines_of(stream), stream.ended) == ([], False)

    ask.create(WIDGETS_PATH, widget("a"))
    assert (lines_of(stream), stream.ended) == ([], True)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_version_asked_for_is_named(ask: Asker, version: str) -> None:
    """Lists and their items name the version that was asked for."""
    ask.create(WIDGETS_PATH, widget("a"))
    found = ask.get(WIDGETS_PATH, _PARTIAL_LIST.replace("v=v1", f"v={version}"))

    assert found["apiVersion"] == f"meta.k8s.io/{version}"
    assert found["items"][0]["apiVersion"] == f"meta.k8s.io/{version}"


def test_a_built_in_list_is_named_in_the_refusal(ask: Asker) -> None:
    """A list asked as one object is a 406 that names the list's type."""
    status = ask.refused("GET", "/api/v1/configmaps", headers={"accept": _PARTIAL})

    assert (status["code"], status["reason"]) == (406, "NotAcceptable")
    assert status["message"].endswith("the requested object is a list (*core.ConfigMapList)")
