"""What is cached, asked by DuckDB."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import pytest

from dyninformer.errors import NotSyncedWarning
from dyninformer.frames import selection, sql
from dyninformer.frames.sql import Cached, relation
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from tests.frames.objects import CRD, PODS, certificate, holding

pytest.importorskip("duckdb")
pytest.importorskip("nanoarrow")

NODES = GroupVersionResource("", "v1", "nodes")
TYPE = "node.kubernetes.io/instance-type"


def node(name: str, type_: str) -> dict[str, Any]:
    """A node of an instance type."""
    return {"kind": "Node", "metadata": {"name": name, "labels": {TYPE: type_}}}


@pytest.fixture
def cached() -> list[Cached]:
    """Pods on nodes, and certificates with a schema."""
    pods = [
        certificate(f"web-{n}", spec={"nodeName": f"n{n % 2}"}, status={"phase": "Running"})
        for n in range(3)
    ]
    return [
        moment(holding(*pods, gvr=PODS, crd=None)),
        moment(holding(node("n0", "small"), node("n1", "large"), gvr=NODES, crd=None)),
        moment(
            holding(
                certificate("shop", spec={"issuerRef": {"name": "le"}, "dnsNames": ["a", "b"]}),
                certificate("mail", spec={"replicas": 3}),
            )
        ),
    ]


def moment(lister: GenericLister) -> Cached:
    """What a factory gives of it."""
    return Cached(lister.held.store.view(), lister.held.known, lister.early)


def asked(cached: list[Cached], query: str) -> list[Any]:
    """All rows of an answer."""
    return relation(query, cached).fetchall()


def test_pods_are_grouped_by_their_nodes_instance_type(cached: list[Cached]) -> None:
    """A join of two collections, by labels and by a column of wide tables."""
    found = asked(
        cached,
        f"select n.labels['{TYPE}'] as type, count(*) from pods p join nodes n on n.name = p.node"
        " group by all order by all",
    )
    assert found == [("large", 1), ("small", 2)]


def test_fields_are_structs_where_the_schema_says_so_and_else_json(cached: list[Cached]) -> None:
    """So ``spec.x`` reads the one, and ``spec->>'x'`` the other."""
    query = "select name, spec.issuerRef.name, spec.dnsNames[1] from certificates order by name"
    assert asked(cached, query) == [("mail", None, None), ("shop", "le", "a")]
    query = "select distinct spec->>'nodeName' as node from pods order by node"
    assert asked(cached, query) == [("n0",), ("n1",)]


def test_a_table_has_names_metadata_fields_and_what_kubectl_shows(cached: list[Cached]) -> None:
    """A printer column that is called as a field has another name; SQL knows no case."""
    metadata = ["uid", "labels", "annotations", "created", "deleting", "generation"]
    assert relation("from pods", cached).columns == [
        "namespace", "name", *metadata, "resource_version", "spec", "status",
        "Status_column", "Restarts", "Age", "IP", "Node",
    ]  # fmt: skip
    columns = relation("from certificates", cached).columns
    assert columns[9:] == [
        "spec", "status", "Ready", "Hosts", "Replicas", "Renewed", "Status_column", "Broken", "Age",
    ]  # fmt: skip
    assert "namespace" not in relation("from nodes", cached).columns


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("select name from pods", {"name"}),
        ("select \"Node\" from pods where status_column = 'Running'", {"node", "status_column"}),
        ("select count(*) from pods", {"namespace"}),
        ("select p.spec->>'x' from pods p order by p.created", {"spec", "created"}),
        ("with a as (select uid from pods) select uid from a", {"uid"}),
        ("select 1 from pods p join nodes using (name)", {"name"}),
    ],
)
def test_only_what_a_query_names_is_read(
    cached: list[Cached], query: str, read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other columns are not decoded, and do not exist for it."""
    seen: set[str] = set()
    table_of = selection.table_of

    def noted(view: Any, columns: Any) -> Any:
        seen.update(each.name.lower() for each in columns)
        return table_of(view, columns)

    monkeypatch.setattr(sql, "table_of", noted)
    asked(cached, query)
    assert seen == read


@pytest.mark.parametrize(
    "query",
    [
        "from pods",
        "select * from pods",
        "select columns('.*') from pods",
        "select #1 from pods",
        "select p from pods p",
        "select pods from pods",
        "describe pods",
        "summarize pods",
        "select * from (select * from pods) natural left join nodes",
    ],
)
def test_a_query_that_names_no_column_gets_them_all(cached: list[Cached], query: str) -> None:
    """A star, a row as a whole, a place, a pattern."""
    assert asked(cached, query)


@pytest.mark.parametrize("whole", ["p", "pods", "P"])
def test_a_row_as_a_whole_has_all_columns(cached: list[Cached], whole: str) -> None:
    """Also where some of them are named beside it."""
    alias = "" if whole == "pods" else "p"
    query = f"select {whole} from pods {alias} where name = 'web-0'"
    [(found,)] = asked(cached, query)
    assert list(found) == relation("from pods", cached).columns


def test_two_resources_of_one_plural_go_by_their_groups() -> None:
    """And one alone by either name."""
    other = GroupVersionResource("example.com", "v1", "certificates")
    two = [moment(holding(certificate("a"))), moment(holding(gvr=other))]
    assert asked(two, 'select count(*) from "certificates.cert-manager.io"') == [(1,)]
    assert asked(two, 'select count(*) from "certificates.example.com"') == [(0,)]
    with pytest.raises(Exception, match="certificates") as failed:
        asked(two, "from certificates")
    assert "cached: certificates.cert-manager.io, certificates.example.com" in str(
        failed.value.__notes__
    )
    assert asked(two[:1], "select count(*) from CERTIFICATES") == [(1,)]


def test_what_the_core_group_has_goes_by_its_plural_beside_another_of_that_name() -> None:
    """As in kubectl: pods are those of the core group, and pods.metrics.k8s.io are others."""
    other = GroupVersionResource("metrics.k8s.io", "v1beta1", "pods")
    two = [moment(holding(certificate("a"), gvr=PODS, crd=None)), moment(holding(gvr=other))]
    assert asked(two, "select count(*) from pods") == [(1,)]
    assert asked(two, 'select count(*) from "pods.metrics.k8s.io"') == [(0,)]


def test_fields_that_differ_in_case_alone_are_json() -> None:
    """SQL would take the one for the other, and could not read both."""
    crd = deepcopy(CRD)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] |= {"CPU": {"type": "string"}}
    cached = [moment(holding(certificate("shop", spec={"cpu": "1", "CPU": "2"}), crd=crd))]
    query = "select spec, spec->>'cpu', spec->>'CPU' from certificates"
    assert asked(cached, query) == [('{"cpu":"1","CPU":"2"}', "1", "2")]


def test_a_column_that_is_not_there_is_told_with_those_that_are(cached: list[Cached]) -> None:
    """DuckDB itself would name only those that the query names."""
    with pytest.raises(Exception, match="Redy") as failed:
        asked(cached, "select Redy from certificates join nodes using (name)")
    certificates, nodes = sorted(failed.value.__notes__)
    assert certificates.startswith("columns of certificates: namespace, name, uid, ")
    assert ", Ready, " in certificates
    assert nodes.startswith("columns of nodes: name, uid, ")


def test_two_versions_of_one_resource_go_by_their_versions() -> None:
    """Neither takes the place of the other."""
    other = GroupVersionResource("cert-manager.io", "v2", "certificates")
    two = [moment(holding(certificate("a"))), moment(holding(gvr=other))]
    assert asked(two, 'select count(*) from "certificates.v1.cert-manager.io"') == [(1,)]
    assert asked(two, 'select count(*) from "certificates.v2.cert-manager.io"') == [(0,)]
    with pytest.raises(Exception, match="certificates") as failed:
        asked(two, 'from "certificates.cert-manager.io"')
    assert "certificates.v1.cert-manager.io" in str(failed.value.__notes__)


def test_a_table_that_is_read_before_its_first_sync_warns_once() -> None:
    """As a lister does; one that the query does not name is not read."""
    early = GenericLister(Store(PODS), lambda: False)
    two = [moment(early), moment(holding(node("n0", "small"), gvr=NODES, crd=None))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked(two, "select count(*) from nodes") == [(1,)]
    with pytest.warns(NotSyncedWarning, match=r"pods.v1 is read before its first sync"):
        assert asked(two, "select count(*) from pods") == [(0,)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked(two, "select count(*) from pods")
        early.list()


def test_a_relation_keeps_its_moment(cached: list[Cached]) -> None:
    """It can be read again, after all else is gone."""
    found = relation("select count(*) from nodes a join nodes b on a.name = b.name", cached)
    del cached[:]
    assert found.fetchall() == found.fetchall() == [(2,)]


def test_a_field_that_is_called_as_a_column_has_another_name() -> None:
    """As a printer column of such a name has."""
    crd = deepcopy(CRD)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["Labels"] = {"type": "string"}
    cached = [moment(holding(certificate("shop", Labels="mine"), crd=crd))]
    assert asked(cached, "select labels_column, cardinality(labels) from certificates") == [
        ("mine", 0)
    ]


def test_a_query_that_duckdb_cannot_read_is_its_own_error(cached: list[Cached]) -> None:
    """As DuckDB words it."""
    with pytest.raises(Exception, match="syntax error"):
        asked(cached, "selekt 1")


def test_other_statements_see_everything(cached: list[Cached]) -> None:
    """Of which DuckDB's parser tells nothing."""
    assert len(asked(cached, "pivot pods on node using count(*)"))
