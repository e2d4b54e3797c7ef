"""The name of a collection, in all its spellings."""

from __future__ import annotations

import pytest

from dyninformer.resource import GroupVersionResource as GVR

BLOCKS = GVR("crd.projectcalico.org", "v1", "ipamblocks")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ipamblocks.v1.crd.projectcalico.org", BLOCKS),
        ("crd.projectcalico.org/v1/ipamblocks", BLOCKS),
        ("v1/pods", GVR("", "v1", "pods")),
        ("pods.v1", GVR("", "v1", "pods")),
        ("widgets.v2beta1.ex.io", GVR("ex.io", "v2beta1", "widgets")),
        ("ex.io/stable/widgets", GVR("ex.io", "stable", "widgets")),
    ],
)
def test_every_full_spelling_is_read(text: str, expected: GVR) -> None:
    """Dotted and slashed forms name the same collection."""
    assert GVR.parse(text) == expected


@pytest.mark.parametrize("gvr", [BLOCKS, GVR("", "v1", "pods"), GVR("a.b", "v1alpha3", "cs")])
def test_what_is_printed_is_read_back(gvr: GVR) -> None:
    """str() gives the dotted form, which parse accepts."""
    assert GVR.parse(str(gvr)) == gvr


@pytest.mark.parametrize(
    "text",
    [
        "pods",
        "certificates.cert-manager.io",
        "cert",
        "",
        "/",
        "a/b/c/d",
        "/v1/pods",
        "pods.v1.",
        "pods.v0",
        "pods.v01.apps",
        "Certificate",
        "v1/",
        "x//y",
        "apps/v1",
        "pods/shop-1",
    ],
)
def test_a_spelling_that_needs_the_server_says_who_asks_it(text: str) -> None:
    """Anything shorter is a ValueError that names for_resource."""
    with pytest.raises(ValueError, match="pass it to for_resource, which asks the server"):
        GVR.parse(text)


@pytest.mark.parametrize(
    ("group", "version", "resource"),
    [
        ("Ex.io", "v1", "a"),
        ("a/b", "v1", "a"),
        ("", "V1", "a"),
        ("", "", "a"),
        ("", "v1", "Pods"),
        ("", "v1", "pods/status"),
        ("", "v1", ""),
        ("", "v1", "pods\n"),
    ],
)
def test_a_part_that_cannot_be_in_a_path_is_refused(
    group: str, version: str, resource: str
) -> None:
    """Parts that would change the request's path are ValueErrors."""
    with pytest.raises(ValueError, match="expected"):
        GVR(group, version, resource)


def test_collections_are_ordered_and_hashable() -> None:
    """They sort by group, version, resource, and are keys of dicts."""
    assert min(BLOCKS, GVR("", "v1", "pods")).resource == "pods"
    assert {BLOCKS: 1}[GVR.parse(str(BLOCKS))] == 1


def test_a_path_names_the_namespace_if_there_is_one() -> None:
    """Core and named groups, one namespace or all."""
    assert GVR("", "v1", "pods").path("prod") == "/api/v1/namespaces/prod/pods"
    assert BLOCKS.path() == "/apis/crd.projectcalico.org/v1/ipamblocks"


def test_names_without_a_version() -> None:
    """group_resource is a CRD's name, group_version an apiVersion."""
    assert BLOCKS.group_resource == "ipamblocks.crd.projectcalico.org"
    assert GVR("", "v1", "pods").group_resource == "pods"
    assert BLOCKS.group_version == "crd.projectcalico.org/v1"
    assert GVR("", "v1", "pods").group_version == "v1"
