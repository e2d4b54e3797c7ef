"""Objects cut to their metadata."""

from __future__ import annotations

import pytest

from dyninformer.testing.api.metadata_only import in_struct_order
from tests.testing.api.conftest import WIDGETS, Asker, lines, widget

_ONE = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def test_fields_come_in_the_order_of_the_struct() -> None:
    """Fields have the order of Go's struct, maps are sorted, empty ones are left out."""
    found = in_struct_order(
        {
            "labels": {"b": "1", "a": "2"}, "uid": "u", "name": "n", "annotations": {},
            "managedFields": [{"fieldsV1": {"f:b": {}, "f:a": {}}, "manager": "m"}],
            "deletionGracePeriodSeconds": 0, "finalizers": ["x"], "generateName": "",
            "ownerReferences": [{"uid": "o", "kind": "K", "apiVersion": "v1", "name": "p"}],
        }
    )  # fmt: skip

    assert list(found) == [
        "name", "uid", "deletionGracePeriodSeconds", "labels", "ownerReferences", "finalizers",
        "managedFields",
    ]  # fmt: skip
    assert list(found["labels"]) == ["a", "b"]
    assert list(found["ownerReferences"][0]) == ["apiVersion", "kind", "name", "uid"]
    assert list(found["managedFields"][0]) == ["manager", "fieldsV1"]
    assert list(found["managedFields"][0]["fieldsV1"]) == ["f:a", "f:b"]


def test_a_watch_sends_metadata(ask: Asker) -> None:
    """Each event's object, bookmarks included, is metadata alone."""
    ask.create(WIDGETS, widget("a", n=1))
    stream = ask.watch(WIDGETS, _ONE, allowWatchBookmarks="true")
    ask.create(WIDGETS, widget("b", n=1))

    found = lines(stream)
    assert [line["type"] for line in found] == ["ADDED", "BOOKMARK", "ADDED"]
    for line in found:
        assert set(line["object"]) == {"kind", "apiVersion", "metadata"}
        assert line["object"]["kind"] == "PartialObjectMetadata"


def test_a_watch_asked_as_lists_ends_at_its_first_event(ask: Asker) -> None:
    """A watch as PartialObjectMetadataList sends nothing, and ends at the first event."""
    stream = ask.watch(WIDGETS, _LIST, resourceVersion=str(ask.cluster.log.revision))
    assert (lines(stream), stream.ended) == ([], False)

    ask.create(WIDGETS, widget("a"))
    assert (lines(stream), stream.ended) == ([], True)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_version_asked_for_is_named(ask: Asker, version: str) -> None:
    """Lists and their items name the version that was asked for."""
    ask.create(WIDGETS, widget("a"))
    found = ask.get(WIDGETS, _LIST.replace("v=v1", f"v={version}"))

    assert found["apiVersion"] == f"meta.k8s.io/{version}"
    assert found["items"][0]["apiVersion"] == f"meta.k8s.io/{version}"


def test_a_built_in_list_is_named_in_the_refusal(ask: Asker) -> None:
    """A list asked as one object is a 406 that names the list's type."""
    status = ask.refused("GET", "/api/v1/configmaps", headers={"accept": _ONE})

    assert (status["code"], status["reason"]) == (406, "NotAcceptable")
    assert status["message"].endswith("the requested object is a list (*core.ConfigMapList)")
