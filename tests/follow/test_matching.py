"""What a pattern means, and what has to change for it to be followed."""

from __future__ import annotations

import pytest

from dyninformer.follow.matching import matching, planned
from dyninformer.resource import GroupVersionResource as GVR
from tests.follow.stage import served

SERVED = [
    served("pods.v1"),
    served("nodes.v1", namespaced=False),
    served("certificates.v1.cert-manager.io"),
    served("certificates.v1beta1.cert-manager.io"),
    served("challenges.v1.acme.cert-manager.io"),
    served("reviews.v1.cert-manager.io", verbs="create"),
    served("ipamblocks.v1.crd.projectcalico.org"),
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.cert-manager.io", ["certificates.cert-manager.io", "challenges.acme.cert-manager.io"]),
        ("certificates.cert-manager.io", ["certificates.cert-manager.io"]),
        ("certificates.*", ["certificates.cert-manager.io"]),
        ("ipam*.*", ["ipamblocks.crd.projectcalico.org"]),
        ("pods", ["pods"]),
        ("v1/*", ["pods", "nodes"]),
        ("cert-manager.io/v1beta1/*", ["certificates.cert-manager.io"]),
        ("c[a-e]*.*", ["certificates.cert-manager.io"]),
        ("certificates", []),
        ("reviews.*", []),
    ],
)
def test_a_pattern_means_resources(pattern: str, found: list[str]) -> None:
    """By plural and group, or by group, version and plural; only what can be watched."""
    assert list(matching([pattern], SERVED)) == found


def test_the_preferred_version_comes_first_of_those_that_match() -> None:
    """A pattern may name another."""
    both = matching(["certificates.*"], SERVED)["certificates.cert-manager.io"]
    assert [each.gvr.version for each in both] == ["v1", "v1beta1"]
    old = matching(["*/v1beta1/*"], SERVED)["certificates.cert-manager.io"]
    assert [each.gvr.version for each in old] == ["v1beta1"]


def test_a_version_that_is_held_and_served_stays() -> None:
    """Also where the server prefers another by now."""
    plan = planned(
        matching(["certificates.*"], SERVED), [GVR.parse("cert-manager.io/v1beta1/certificates")]
    )
    assert not plan.missing
    assert not plan.leaving


def test_a_version_that_is_dropped_makes_way_for_the_preferred_one() -> None:
    """The old one stays until the new one can take its place."""
    held = GVR.parse("cert-manager.io/v1alpha1/certificates")
    plan = planned(matching(["certificates.*"], SERVED), [held])
    new = GVR.parse("cert-manager.io/v1/certificates")
    assert [each.gvr for each in plan.missing] == [new]
    assert plan.leaving == {held: new}


def test_of_two_versions_that_are_held_one_leaves() -> None:
    """A version that was dropped came back before its successor was there."""
    versions = [GVR.parse(f"cert-manager.io/{each}/certificates") for each in ("v1", "v1beta1")]
    plan = planned(matching(["certificates.*"], SERVED), versions)
    assert not plan.missing
    assert plan.leaving == {versions[1]: versions[0]}


def test_what_is_served_no_more_leaves_for_good() -> None:
    """Nothing takes its place."""
    gone = GVR.parse("no.io/v1/things")
    assert planned({}, [gone]).leaving == {gone: None}
