"""Discovery documents of any quality are read, or refused, and never trip the reader."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.discovery.documents import (
    MalformedError,
    aggregated,
    group_versions,
    resource_list,
)
from dyninformer.transport.document import DocumentBody
from tests.discovery.answers import group, resource
from tests.mutated import mutated

BAD_ENTRIES: list[Any] = [
    None,
    7,
    "pods",
    [],
    {},
    {"resource": "pods"},
    resource("Pods", "Pod"),
    resource("pods\n", "Pod"),
    resource("p" * 300, "Pod"),
    resource("pods", "Pod; rm"),
    resource("pods", "Pod", scope="Everywhere"),
    resource("pods", "Pod", verbs="list"),
    resource("pods", "Pod", shortNames=[1]),
    resource("pods", "Pod", shortNames=["\x1b[31m"]),
    resource("pods", "Pod", responseKind=None),
]


def _document(*items: object) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(items)}


@pytest.mark.parametrize("entry", BAD_ENTRIES, ids=repr)
def test_a_malformed_entry_costs_itself_alone(entry: object) -> None:
    """The resources beside it are read, and the group-version's problem says so."""
    good = resource("widgets", "Widget")
    (version,) = aggregated(_document(group("ex.io", entry, good)))
    assert [each.gvr.resource for each in version.resources] == ["widgets"]
    assert version.problem == "malformed entries in its discovery: 1"


@pytest.mark.parametrize(
    "bad",
    [None, 7, {}, {"metadata": {"name": 7}}, group("Ex.io"), {"metadata": {}, "versions": 7}],
    ids=repr,
)
def test_a_malformed_group_costs_itself_alone(bad: object) -> None:
    """The groups beside it are read."""
    found = aggregated(_document(bad, group("ex.io", resource("widgets", "Widget"))))
    assert [each.name for each in found if each.resources] == ["ex.io/v1"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        7,
        [],
        {},
        {"kind": "APIGroupList", "groups": 7},
        {"kind": "APIVersions"},
        {"kind": "APIVersions", "versions": [7]},
        {"kind": "PodList", "items": []},
    ],
    ids=repr,
)
def test_what_is_no_discovery_document_is_refused(body: object) -> None:
    """By one kind of error, whatever it is."""
    with pytest.raises(MalformedError):
        group_versions(body)


def test_the_preferred_version_of_the_old_form_comes_first() -> None:
    """Also where the list has it later."""
    versions = [{"version": "v1beta1"}, {"version": "v1"}]
    body = {
        "kind": "APIGroupList",
        "groups": [{"name": "ex.io", "versions": versions, "preferredVersion": {"version": "v1"}}],
    }
    assert group_versions(body) == [("ex.io", "v1"), ("ex.io", "v1beta1")]


def test_subresources_of_the_old_form_are_no_resources() -> None:
    """``widgets/status`` is left out, and is no malformed entry either."""
    entry = {"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["list"]}
    body = {"kind": "APIResourceList", "resources": [entry, {**entry, "name": "widgets/status"}]}
    found = resource_list("ex.io", "v1", body)
    assert [str(each.gvr) for each in found.resources] == ["widgets.v1.ex.io"]
    assert found.resources[0].singular == "widget"
    assert not found.problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "items",
                    "groups",
                    "versions",
                    "version",
                    "resources",
                    "resource",
                    "metadata",
                    "name",
                    "responseKind",
                    "scope",
                    "verbs",
                    "freshness",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(JSON)
def test_any_json_is_read_or_refused(body: object) -> None:
    """No other exception comes out, whatever a server says."""
    aggregated_body = body
    if isinstance(body, dict):
        aggregated_body = {**body, "kind": "APIGroupDiscoveryList"}
    for read, given_body in (
        (aggregated, aggregated_body),
        (group_versions, body),
        (lambda each: resource_list("ex.io", "v1", each), body),
    ):
        with suppress(MalformedError):
            read(given_body)


SERVED = [
    msgspec.json.encode(each)
    for each in (
        _document(group("ex.io", {"v1": [resource("widgets", "Widget", shortNames=["w"])]})),
        {"kind": "APIGroupList", "groups": [{"name": "a", "versions": [{"version": "v1"}]}]},
        {"kind": "APIResourceList", "resources": [{"name": "a", "kind": "A", "namespaced": True}]},
    )
]


@given(mutated(SERVED))
def test_whatever_a_document_is_it_is_read_or_malformed(data: bytes) -> None:
    """Each of the readers."""
    body = DocumentBody()
    body.feed(data)
    for read in (aggregated, group_versions, partial(resource_list, "ex.io", "v1")):
        with suppress(MalformedError):
            read(body.value())
