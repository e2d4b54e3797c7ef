"""What is said to the server (S2, S24, S25, S26, S30, S31)."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.resource import GroupVersionResource
from dyninformer.watching.states import (
    AskDocument,
    AskRevision,
    ListPage,
    Scope,
    StreamState,
    Want,
    WatchFrom,
)
from dyninformer.watching.wants import request_for, verb

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")
WANTS = [StreamState(1800), WatchFrom("5", 220), ListPage(), ListPage("token"), AskRevision()]


def query(want: Want, **options: Any) -> dict[str, str]:
    """The parameters of a request."""
    found = request_for(Scope(gvr=WIDGETS, **options), want).query
    assert len(dict(found)) == len(found)
    return dict(found)


def test_a_streaming_list_asks_for_the_newest_state_with_its_mark() -> None:
    """No resourceVersion is set (S24)."""
    assert query(StreamState(1800)) == {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "1800",
    }


def test_a_watch_asks_for_what_follows_a_version() -> None:
    """With bookmarks and a timeout (S26)."""
    assert query(WatchFrom("5", 220)) == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "220",
    }


def test_pages_are_limited_and_never_have_a_version() -> None:
    """With a limit it would mean that very version (S25)."""
    assert query(ListPage()) == {"limit": "500"}
    assert query(ListPage("token")) == {"limit": "500", "continue": "token"}
    assert query(ListPage(limited=False)) == {}
    assert query(ListPage("token", limited=False)) == {"continue": "token"}
    assert query(ListPage(), page_size=0) == {}


def test_a_look_at_the_revision_is_a_list_of_one() -> None:
    """Of the newest state (S30)."""
    assert query(AskRevision()) == {"limit": "1"}


def test_one_object_is_asked_for_as_part_of_what_may_be_listed() -> None:
    """By its namespace and name, within the user's selectors, and only its metadata (S2, S30)."""
    scope = Scope(gvr=WIDGETS, label_selector="a=b", field_selector="spec.x=y")
    request = request_for(scope, AskRevision("ns/w,1"))
    assert request.path == "/apis/ex.io/v1/namespaces/ns/widgets"
    assert dict(request.query) == {
        "limit": "1",
        "labelSelector": "a=b",
        "fieldSelector": "spec.x=y,metadata.name=w\\,1",
    }
    assert "as=PartialObjectMetadataList" in request.headers["Accept"]
    cluster_scoped = request_for(Scope(gvr=WIDGETS), AskRevision("w"))
    assert cluster_scoped.path == "/apis/ex.io/v1/widgets"


@pytest.mark.parametrize("want", WANTS, ids=repr)
def test_selectors_and_namespace_are_in_every_request(want: Want) -> None:
    """LIST and WATCH alike (S2)."""
    scope = Scope(gvr=WIDGETS, namespace="prod", label_selector="a=b", field_selector="c=d")
    request = request_for(scope, want)
    assert request.path == "/apis/ex.io/v1/namespaces/prod/widgets"
    assert ("labelSelector", "a=b") in request.query
    assert ("fieldSelector", "c=d") in request.query


@pytest.mark.parametrize("want", WANTS, ids=repr)
def test_metadata_only_asks_for_the_form_that_fits(want: Want) -> None:
    """A list is asked for as a list, a watch as items; plain JSON is taken too (S31)."""
    accept = request_for(Scope(gvr=WIDGETS, metadata_only=True), want).headers["Accept"]
    kind = "PartialObjectMetadata" if verb(want) == "watch" else "PartialObjectMetadataList"
    assert accept == f"application/json;as={kind};v=v1;g=meta.k8s.io,application/json"
    assert request_for(Scope(gvr=WIDGETS), want).headers["Accept"] == "application/json"


def test_proof_is_asked_for_fresh_and_without_selectors() -> None:
    """Of another path (S33)."""
    request = request_for(Scope(gvr=WIDGETS, label_selector="a=b"), AskDocument("/apis"))
    assert (request.path, list(request.query)) == ("/apis", [])
    assert request.headers["Cache-Control"] == "no-cache"
