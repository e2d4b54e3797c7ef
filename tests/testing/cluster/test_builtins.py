"""The built-in resources, and the table in which everything served is found."""

from __future__ import annotations

import pytest

from dyninformer.testing.cluster.builtins import BUILTINS
from dyninformer.testing.cluster.log import GroupResource
from dyninformer.testing.cluster.resources import Resource, ResourceTable
from tests.testing.cluster.small_cluster import SmallCluster, crd


def test_no_two_built_ins_share_a_place() -> None:
    """Group, version and plural name one resource."""
    places = {(each.group, each.version, each.plural) for each in BUILTINS}
    assert len(places) == len(BUILTINS)


@pytest.mark.parametrize(
    ("plural", "group", "short", "categories", "namespaced"),
    [
        ("pods", "", ("po",), ("all",), True),
        ("deployments", "apps", ("deploy",), ("all",), True),
        ("apiservices", "apiregistration.k8s.io", (), ("api-extensions",), False),
        ("namespaces", "", ("ns",), (), False),
        ("endpointslices", "discovery.k8s.io", (), (), True),
    ],
)
def test_kubectls_spellings_are_known(
    plural: str, group: str, short: tuple[str, ...], categories: tuple[str, ...], namespaced: bool
) -> None:
    """Short names, categories and scope are those of a real server."""
    found = next(each for each in BUILTINS if (each.plural, each.group) == (plural, group))
    assert (found.short_names, found.categories, found.namespaced) == (
        short,
        categories,
        namespaced,
    )
    assert found.builtin


GROUPS = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
]
"""As kube-apiserver 1.36 lists those of them that are served here."""


def test_groups_are_preferred_as_on_a_real_server() -> None:
    """Built-in groups stand in a real server's order, groups of CRDs after them by name."""
    small = SmallCluster()
    small.install(crd("zs", "Z", group="zz.io"))
    small.install(crd("as", "A", group="aa.io"))
    ours = [group for group in small.cluster.resources.groups() if group]
    assert ours == [*GROUPS, "aa.io", "zz.io"]


def test_namespaces_cannot_be_deleted_as_a_collection() -> None:
    """They alone have no deletecollection."""
    without = {each.plural for each in BUILTINS if "deletecollection" not in each.verbs}
    assert without == {"namespaces"}


def served(version: str, plural: str = "widgets", group: str = "ex.io") -> Resource:
    """A resource."""
    return Resource(group, version, plural, "Widget", namespaced=True)


def test_the_newest_stable_version_is_preferred() -> None:
    """Versions go from stable to alpha, newest first."""
    table = ResourceTable()
    table.put(GroupResource("ex.io", "widgets"), map(served, ("v1beta1", "v1", "v2alpha1", "v2")))
    assert table.versions_of("ex.io") == ("v2", "v1", "v1beta1", "v2alpha1")
    assert [each.version for each in table.all()] == ["v2", "v1", "v1beta1", "v2alpha1"]


def test_what_is_no_longer_put_is_no_longer_found() -> None:
    """Putting no versions takes a collection out; listeners hear of each change."""
    table, heard = ResourceTable(), []
    stop = table.listen(lambda: heard.append(table.groups()))
    collection = GroupResource("ex.io", "widgets")
    first = served("v1")
    table.put(collection, [first])
    assert table.find("ex.io", "v1", "widgets") is first
    table.put(collection, [])
    table.put(collection, [])
    assert table.find("ex.io", "v1", "widgets") is None
    stop()
    table.put(collection, [first])
    assert heard == [("ex.io",), ()]
