"""Reads of the caches of all clusters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from dyninformer import ClusterKey, Fleet, FleetLister, NotSyncedWarning, ObjectNotFoundError
from dyninformer.errors import JSONPathWarning
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import Refuse
from tests.conformance.shapes import ANYTHING, crd
from tests.conformance.wire import until
from tests.fleet.clusters import PATIENCE, config_map


@pytest.fixture
def lister(fleet: Fleet, eu: ApiServer, us: ApiServer) -> FleetLister:
    """Two of each cluster, of which one name is in both."""
    for each, own in ((eu, "a"), (us, "b")):
        each.create(config_map("both", app="shop"))
        each.create(config_map(own, "kube-system", app=own))
    maps = fleet.for_resource("cm", indexers={"by-colour": "{.data.colour}"})
    fleet.sync(PATIENCE)
    return maps.lister


def test_reads_are_of_all_clusters_in_their_order(lister: FleetLister) -> None:
    """Keys say where; objects are as the server sent them."""
    assert len(lister) == 4
    assert lister.clusters == ["eu", "us"]
    assert lister.keys() == [
        ("eu", "default/both"),
        ("eu", "kube-system/a"),
        ("us", "default/both"),
        ("us", "kube-system/b"),
    ]
    assert isinstance(lister.keys()[0], ClusterKey)
    names = [obj["metadata"]["name"] for obj in lister]
    assert names == [obj["metadata"]["name"] for obj in lister.list()]
    assert names == ["both", "a", "both", "b"]
    assert "cluster" not in lister.list()[0]


def test_selections_are_of_all_clusters(lister: FleetLister) -> None:
    """Labels, fields and indexes; `items` says which cluster."""
    assert [cluster for cluster, _ in lister.items("app=shop")] == ["eu", "us"]
    assert len(lister.list("app=shop")) == len(lister.by_index("by-colour", "shop")) == 2
    assert len(lister.list(field_selector="metadata.name=a")) == 1
    assert len(lister.by_index("by-colour", "shop", shared=True)) == 2


def test_a_name_that_several_clusters_have_needs_its_cluster(lister: FleetLister) -> None:
    """The error names them."""
    for call in (lister.get, lister.find):
        with pytest.raises(ValueError, match=r"in the clusters eu, us: .*cluster="):
            call("both", "default")
        found: Any = call("both", "default", cluster="us")
        assert found["metadata"]["name"] == "both"
    assert lister.get("kube-system/b")["data"] == {"colour": "b"}
    assert lister.find("a") is not None
    assert lister.find(lambda obj: obj["data"]["colour"] == "b") is not None
    assert lister.find("nobody") is None


def test_what_no_cluster_has_says_where_it_was_looked_for(lister: FleetLister) -> None:
    """In how many, or in which; a bare name of what is namespaced is the caller's mistake."""
    with pytest.raises(ObjectNotFoundError, match=r"no cm 'x/y' in the cache of 2 clusters, which"):
        lister.get("y", "x")
    with pytest.raises(ObjectNotFoundError, match="of cluster eu, which is synced"):
        lister.get("x/y", cluster="eu")
    assert lister.get("x/y", default=None) is None
    with pytest.raises(ValueError, match="give the namespace too"):
        lister.get("y")


def test_a_swapped_name_and_namespace_get_a_hint(lister: FleetLister) -> None:
    """If any of the clusters that are read has the object."""
    hint = r"kube-system/b is there: the name comes first, as in get\('b', 'kube-system'\)"
    for cluster in (None, "us"):
        with pytest.raises(ObjectNotFoundError, match=hint):
            lister.get("kube-system", "b", cluster=cluster)
    with pytest.raises(ObjectNotFoundError, match=r"which is synced$"):
        lister.get("kube-system", "b", cluster="eu")


def test_a_path_that_no_object_can_have_warns_once_for_all_clusters(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """In selections, tables and indexes; one cluster is asked for the CRD."""
    for each in (eu, us):
        each.install("examples/crd")
    typo = ".spec.isuerRef.name"
    reads: list[Callable[[FleetLister], object]] = [
        lambda lister: lister.list(field_selector=f"{typo}=ca"),
        lambda lister: list(lister.items(field_selector=f"{typo}1=ca")),
        lambda lister: lister.select({"issuer": f"{typo}2"}),
        lambda lister: lister.by_index("typo", "ca"),
    ]
    lister = fleet.for_resource("cert", indexers={"typo": f"{typo}3"}).lister
    fleet.sync(PATIENCE)
    for read in reads:
        with pytest.warns(JSONPathWarning, match="isuerRef") as warned:
            read(lister)
        assert len(warned) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(lister)


def test_a_key_is_in_it_with_its_cluster_or_without(lister: FleetLister) -> None:
    """A pair asks one cluster, a key any."""
    assert ("us", "kube-system/b") in lister
    assert ("eu", "kube-system/b") not in lister
    assert ("asia", "kube-system/b") not in lister
    assert "kube-system/b" in lister
    assert ("eu", "kube-system/b", "more") not in lister


def test_one_namespace_is_read_in_all_clusters(lister: FleetLister) -> None:
    """By bare names."""
    system = lister.by_namespace("kube-system")
    assert (len(system), system.namespace, system.lister) == (2, "kube-system", lister)
    assert system.keys() == [("eu", "kube-system/a"), ("us", "kube-system/b")]
    assert system.get("b")["data"] == {"colour": "b"}
    assert system.get("both", default=None) is None
    assert system.find("a") == system.get("a", cluster="eu")
    assert "a" in system
    assert ("us", "a") not in system
    assert "default/both" not in system
    assert len(system.list("app=a")) == len(system.by_index("by-colour", "a")) == len([*system]) - 1
    assert [row["cluster"] for row in system.select()] == ["eu", "us"]
    assert list(system.to_frame()["cluster"]) == ["eu", "us"]
    with pytest.raises(ValueError, match="is no namespace"):
        lister.by_namespace("a/b")


def test_tables_have_the_cluster_first(lister: FleetLister) -> None:
    """Rows, frames and Arrow; sorted they are over all clusters."""
    rows = lister.select({"colour": ".data.colour"}, sort_by=["-colour", "cluster"])
    assert [list(row.values()) for row in rows] == [
        ["eu", "default", "both", "shop"],
        ["us", "default", "both", "shop"],
        ["us", "kube-system", "b", "b"],
        ["eu", "kube-system", "a", "a"],
    ]
    assert [*rows[0]] == ["cluster", "namespace", "name", "colour"]
    frame = lister.to_frame({"colour": ".data.colour"})
    assert list(frame.columns) == ["cluster", "namespace", "name", "colour"]
    assert list(frame.loc["default/both"]["cluster"]) == ["eu", "us"]
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(lister)
    assert table.column_names[:3] == ["cluster", "namespace", "name"]
    assert table.schema == pyarrow.schema(lister)
    by_index = lister.select(index=("by-colour", "shop"), namespace="default")
    assert [row["cluster"] for row in by_index] == ["eu", "us"]
    with pytest.raises(ValueError, match="'cluster' is the first column"):
        lister.select({"cluster": ".data.colour"})


def test_tables_of_two_versions_have_the_columns_of_both(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """What one of them lacks is None there; a CRD's own column of that name gets another."""
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    other = {"name": "cluster", "type": "string", "jsonPath": ".spec.cluster"}
    for each, named, columns in ((eu, "v1", [column]), (us, "v2", [column, other])):
        each.install(
            crd(
                "ex.io", "gadgets", "Gadget", ANYTHING, name=named, additionalPrinterColumns=columns
            )
        )
        gadget = {
            "apiVersion": f"ex.io/{named}",
            "kind": "Gadget",
            "metadata": {"name": named},
            "spec": {"size": 3, "cluster": "mine"},
        }
        each.create(gadget, namespace="default")
    lister = fleet.for_resource("gadgets").lister
    fleet.sync(PATIENCE)
    rows = lister.select()
    assert [(row["cluster"], row["Size"], row["cluster_column"]) for row in rows] == [
        ("eu", 3, None),
        ("us", 3, "mine"),
    ]


def test_a_cluster_that_is_away_is_not_asked_for_columns(
    fleet: Fleet, eu: ApiServer, us: ApiServer
) -> None:
    """Those of a version are asked of one cluster, which is live."""
    for each in (eu, us):
        each.install(crd("ex.io", "gadgets", "Gadget", ANYTHING))
    lister = fleet.for_resource("ex.io/v1/gadgets").lister
    fleet.sync(PATIENCE)
    with eu.faults.add(Refuse()):
        eu.restart()
        until(lambda: fleet.status()["eu"].standing != "live", PATIENCE)
        before = len(us.requests)
        lister.select()
        asked = {each.path for each in us.requests[before:]}
    assert any("customresourcedefinitions" in path for path in asked)


def test_a_read_before_the_first_sync_warns_once(fleet: Fleet, us: ApiServer) -> None:
    """It names the clusters; who has waited for the fleet knows what is there."""
    lister = fleet.for_resource("v1/configmaps").lister
    with pytest.warns(NotSyncedWarning, match="first sync in eu, us, so"):
        len(lister)
    with us.faults.add(Refuse()):
        other = fleet.for_resource("v1/secrets").lister
        fleet.sync(PATIENCE, require="reachable")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(lister) == len(other) == 0
