"""The query of a list or watch is judged in the real server's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer.testing.cluster.lists import list_versions, parse_list_options, truthy
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError

from .stage import PAINTS, WIDGETS, Recording, Stage, golden, request_of

_TOPICS = (
    "list-paging", "list-resourceversion", "watch-errors", "watchlist", "selectors",
    "selectable-fields", "sharding-on",
)  # fmt: skip
_RESOURCES = {"/apis/ex.io/v1/widgets": WIDGETS, "/apis/sel.io/v1/paints": PAINTS}


def _refusals() -> Iterator[Any]:
    """Every recorded refusal of a list or watch that does not depend on the data."""
    for topic in _TOPICS:
        for recording in golden(topic):
            path = request_of(recording).path
            if recording["response"]["status"] in (400, 422, 500) and path in _RESOURCES:
                yield pytest.param(
                    recording, _RESOURCES[path], id=f"{topic}: {recording['name'][:60]}"
                )


@pytest.mark.parametrize(("recording", "resource"), list(_refusals()))
def test_a_recorded_refusal_is_given_word_for_word(
    recording: Recording, resource: Resource
) -> None:
    """The same query gives the same code and the same Status."""
    request = request_of(recording)
    verb = "watch" if request.param("watch") is not None else "list"
    settings = ReadSettings(sharding=request.param("shardSelector") is not None)
    with pytest.raises(ApiError) as caught:
        parse_list_options(request, resource, verb, settings)
    assert caught.value.body() == recording["response"]["body"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=abc&labelSelector=a b&timeoutSeconds=x",
         'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("limit=99999999999999999999",
         'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        ("labelSelector=a b&fieldSelector=x",
         "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("fieldSelector=q%3D1&resourceVersion=abc", "field label not supported: q"),
        ("resourceVersion=18446744073709551616",
         ('invalid resource version: resourceVersion: Invalid value: "18446744073709551616": '
         'strconv.ParseUint: parsing "18446744073709551616": value out of range')),
        ("resourceVersion=%201",
         ('invalid resource version: resourceVersion: Invalid value: " 1": '
         'strconv.ParseUint: parsing " 1": invalid syntax')),
        ("continue=x&resourceVersion=5",
         "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
    ],
)  # fmt: skip
def test_the_first_fault_of_several_is_the_one_the_real_server_names(
    query: str, message: str
) -> None:
    """Numbers come before selectors, selectors before revisions, tokens before revisions."""
    with pytest.raises(ApiError) as caught:
        Stage().options(query)
    assert (caught.value.code, caught.value.message) == (400, message)


@pytest.mark.parametrize(
    ("resource", "field", "message"),
    [
        (Resource("", "v1", "pods", "Pod", True, builtin=True,
                  selectable_fields=("spec.nodeName",)),
         "a", "field label not supported: a"),
        (Resource("", "v1", "nodes", "Node", False, builtin=True,
                  selectable_fields=("spec.unschedulable",)),
         "metadata.namespace", "field label not supported: metadata.namespace"),
        (Resource("", "v1", "configmaps", "ConfigMap", True, builtin=True),
         "a", '"a" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        (Resource("batch", "v1", "jobs", "Job", True, builtin=True,
                  selectable_fields=("status.successful",)),
         "a", 'field label "a" not supported for Job'),
        (Resource("clu.io", "v1", "clus", "Clu", False),
         "metadata.namespace", "field label not supported: metadata.namespace"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_refused_as_the_kind_refuses_it(
    resource: Resource, field: str, message: str
) -> None:
    """Custom resources, built-ins with fields of their own, and plain built-ins word it apart."""
    with pytest.raises(ApiError) as caught:
        Stage(resource).options(f"fieldSelector={field}%3Dx")
    assert (caught.value.code, caught.value.message) == (400, message)


@pytest.mark.parametrize("text", ["1", "true", "", "no", "maybe", "TRUE"])
def test_any_text_but_0_and_false_is_true(text: str) -> None:
    """So ``allowWatchBookmarks=no`` allows them."""
    assert truthy(text)


@pytest.mark.parametrize("text", ["0", "false", "False", None])
def test_0_and_false_and_absence_are_false(text: str | None) -> None:
    """In any case of letters."""
    assert not truthy(text)


def test_without_the_watchlist_gate_initial_events_cannot_be_asked_for() -> None:
    """And a watch from nothing gets its objects, but no mark after them."""
    stage = Stage(watch_list=False)
    with pytest.raises(ApiError) as caught:
        stage.options("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "watch")
    assert caught.value.code == 422
    assert "WatchList feature gate" in caught.value.message
    options = stage.options("allowWatchBookmarks=true", "watch")
    assert options.send_initial_events
    assert not options.initial_events_end


def test_a_shard_selector_is_ignored_where_the_gate_is_off() -> None:
    """Even garbage selects everything."""
    stage = Stage()
    stage.put("ns/a")
    options = stage.options("shardSelector=garbage")
    assert len(list_versions(stage.caches, WIDGETS, "", options).versions) == 1


def test_the_first_of_a_repeated_parameter_counts() -> None:
    """As on the real server."""
    request = Request("GET", "/", (("limit", "3"), ("limit", "abc")))
    assert parse_list_options(request, WIDGETS, "list", ReadSettings()).limit == 3
