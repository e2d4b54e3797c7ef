"""Which columns and rows somebody gets who asks for a table."""

from __future__ import annotations

import gc
from copy import deepcopy
from typing import Any

import pytest

from dyninformer.display.notebook import page
from dyninformer.errors import SelectorError, UnknownIndexError
from dyninformer.jsonpath import JSONPath
from dyninformer.lister import GenericLister
from tests.frames.objects import CRD, PODS, certificate, holding

READY = {"type": "Ready", "status": "True"}


@pytest.fixture
def lister() -> GenericLister:
    """Three certificates in two namespaces, by issuer."""
    return holding(
        certificate(
            "shop",
            spec={"dnsNames": ["a", "b"], "issuerRef": {"name": "le"}, "cpu": "500m"},
            status={"conditions": [READY, {"type": "Ready", "status": "again"}]},
            labels={"app": "shop", "example.com/tier": "web"},
        ),
        certificate("mail", spec={"dnsNames": ["c"], "replicas": 2, "cpu": 2}),
        certificate("shop", "dev", labels={"app": "shop"}),
        indexers={"by-issuer": ".spec.issuerRef.name"},
    )


def test_a_path_with_each_is_always_a_list_and_one_without_never(lister: GenericLister) -> None:
    """However many values an object has: none, one, or several."""
    rows = lister.select({"all": ".spec.dnsNames[*]", "first": ".spec.dnsNames[0]"})
    assert [(row["all"], row["first"]) for row in rows] == [
        (["a", "b"], "a"),
        (["c"], "c"),
        ([], None),
    ]


def test_a_filter_gives_the_first_that_it_finds(lister: GenericLister) -> None:
    """It is made to find one."""
    rows = lister.select({"ready": ".status.conditions[?(@.type=='Ready')].status"})
    assert [row["ready"] for row in rows] == ["True", None, None]


def test_slices_unions_and_descents_are_lists_too(lister: GenericLister) -> None:
    """In both dialects."""
    paths = {"s": ".spec.dnsNames[0:1]", "d": "..name", "x": "$.spec.dnsNames[*]", "u": "$.spec.*"}
    row = lister.select({**paths, "plain": "$.spec.cpu"})[1]
    assert row["s"] == ["c"]
    assert row["x"] == ["c"]
    assert "mail" in row["d"]
    assert isinstance(row["u"], list)
    assert row["plain"] == 2


def test_a_template_of_several_parts_is_its_text(lister: GenericLister) -> None:
    """As kubectl prints it."""
    rows = lister.select({"id": "{.metadata.namespace}:{.metadata.name}"})
    assert [row["id"] for row in rows] == ["prod:shop", "prod:mail", "dev:shop"]


def test_without_columns_they_are_those_of_kubectl(lister: GenericLister) -> None:
    """With what kubectl shows; those of wide tables are not there, nor what cannot be read."""
    first = lister.select()[0]
    assert first == {
        "namespace": "prod",
        "name": "shop",
        "Ready": "True",
        "Hosts": '["a","b"]',
        "Replicas": None,
        "Renewed": None,
        "Broken": None,
        "Age": "2026-01-02T03:04:05Z",
    }


def test_what_is_nested_too_deep_to_be_printed_is_an_empty_cell() -> None:
    """The other objects, and the other columns, are there."""
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    lister = holding(
        certificate("deep", spec={"dnsNames": deep, "replicas": 1}),
        certificate("shop", spec={"dnsNames": ["a"], "replicas": 2}),
    )
    rows = [(row["name"], row["Hosts"], row["Replicas"]) for row in lister.select()]
    assert rows == [("deep", None, 1), ("shop", '["a"]', 2)]
    shown = page(lister)
    assert "deep" in str(shown)
    assert '["a"]' in str(shown)


def test_no_column_takes_the_place_of_another_unless_somebody_says_so() -> None:
    """Names and namespaces tell objects apart, whatever a CRD or a label is called."""
    said = {
        "name": ".spec.title",
        "Ready": ".status.ready",
        "namespace": ".spec.of",
    }
    crd = deepcopy(CRD)
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": name, "type": "string", "jsonPath": path}
        for name, path in [*said.items(), ("Ready", ".spec.ready")]
    ]
    spec = {"title": "A shop", "of": "them", "ready": "no"}
    shop = certificate("shop", spec=spec, status={"ready": "yes"}, labels={"name": "label"})
    lister = holding(shop, crd=crd)
    assert lister.select(labels=["name"])[0] == {
        "namespace": "prod",
        "name": "shop",
        "name_column": "A shop",
        "Ready": "yes",
        "namespace_column": "them",
        "Ready_column": "no",
        "name_column_column": "label",
    }
    assert lister.select({"name": ".spec.title"})[0] == {"namespace": "prod", "name": "A shop"}
    assert lister.select({}, labels={"name": "name"})[0] == {"namespace": "prod", "name": "label"}


def test_built_in_resources_have_the_columns_that_everybody_knows() -> None:
    """Nothing has to be asked for."""
    pod = certificate("web", spec={"nodeName": "n1"}, status={"phase": "Running"})
    row = holding(pod, gvr=PODS, crd=None).select()[0]
    assert {"Status": "Running", "Restarts": None}.items() <= row.items()


def test_selectors_namespaces_and_indexes_choose_rows(lister: GenericLister) -> None:
    """Each alone, and together."""
    name = {"n": ".metadata.name"}
    assert [r["namespace"] for r in lister.select(name, selector="app=shop")] == ["prod", "dev"]
    assert [r["n"] for r in lister.select(name, field_selector="spec.cpu=2")] == ["mail"]
    assert [r["n"] for r in lister.select(name, namespace="dev")] == ["shop"]
    assert [r["n"] for r in lister.select(name, index=("by-issuer", "le"))] == ["shop"]
    assert not lister.select(name, index=("by-issuer", "le"), namespace="dev")
    assert not lister.select(name, index=("by-issuer", "le"), selector="app=mail")
    assert len(lister.by_namespace("prod").select(name, index=("by-issuer", "le"))) == 1
    with pytest.raises(UnknownIndexError, match="has no index 'nope'"):
        lister.select(name, index=("nope", "x"))
    with pytest.raises(SelectorError):
        lister.select(name, selector="a in (")


def test_labels_become_columns(lister: GenericLister) -> None:
    """Under their own name, or another one."""
    row = lister.select({}, labels=["app", "example.com/tier"])[0]
    assert (row["app"], row["example.com/tier"]) == ("shop", "web")
    assert lister.select({}, labels={"tier": "example.com/tier"})[1]["tier"] is None


def test_a_template_of_several_parts_can_be_a_quantity(lister: GenericLister) -> None:
    """In rows, frames and Arrow alike: a number and its unit are often in two fields."""
    columns = {"cpu": "{.spec.replicas}Ki", "all": "{.spec.dnsNames[*]}{.spec.cpu}"}
    rows = lister.select(columns, quantity=["cpu", "all"])
    assert [(row["cpu"], row["all"]) for row in rows] == [
        (None, None),
        (2048.0, None),
        (None, None),
    ]
    frame = lister.to_frame(columns, quantity=["cpu", "all"])
    assert frame["cpu"].dropna().tolist() == [2048.0]
    assert str(frame["all"].dtype) == "float64"


def test_each_of_several_labels_has_a_column_of_its_own() -> None:
    """Also where one is called what another one's column would be called."""
    lister = holding(certificate("shop", labels={"name": "a", "name_column": "b"}))
    row = lister.select({}, labels=["name", "name_column"])[0]
    assert (row["name"], row["name_column"], row["name_column_column"]) == ("shop", "a", "b")


def test_quantities_become_numbers(lister: GenericLister) -> None:
    """Those of the columns that are named; what is none is nothing."""
    columns = {"cpu": ".spec.cpu", "hosts": ".spec.dnsNames[*]", "text": ".spec.cpu"}
    rows = lister.select(columns, quantity=["cpu", "hosts"])
    assert [row["cpu"] for row in rows] == [0.5, 2.0, None]
    assert [row["hosts"] for row in rows] == [[None, None], [None], []]
    assert rows[0]["text"] == "500m"


def test_rows_are_sorted_and_what_has_no_value_comes_last(lister: GenericLister) -> None:
    """By a column or a path, in either direction; rows that are equal keep their order."""
    names = {"who": "{.metadata.namespace}/{.metadata.name}"}

    def order(*by: str) -> list[str]:
        return [row["who"] for row in lister.select(names, sort_by=by)]

    assert order("name") == ["prod/mail", "prod/shop", "dev/shop"]
    assert order("-name") == ["prod/shop", "dev/shop", "prod/mail"]
    assert order(".spec.replicas") == ["prod/mail", "prod/shop", "dev/shop"]
    assert order("-.spec.replicas") == ["prod/mail", "prod/shop", "dev/shop"]
    assert order("namespace", "name") == ["dev/shop", "prod/mail", "prod/shop"]
    assert list(lister.select(names, sort_by=".spec.cpu")[0]) == ["namespace", "name", "who"]


def test_times_and_large_numbers_are_sorted_by_what_they_are() -> None:
    """Times by the moment, whatever their zone; whole numbers by all of their digits."""
    said = {
        "second": (2**53 + 1, "2026-01-01T00:30:00Z"),
        "third": (10**400, "2026-01-01T00:30:00.5Z"),
        "first": (2**53, "2026-01-01T02:00:00+02:00"),
        "none": (None, "yesterday"),
    }
    lister = holding(
        *(
            certificate(name, spec={"replicas": number}, status={"notAfter": time})
            for name, (number, time) in said.items()
        )
    )
    columns = {"number": ".spec.replicas", "time": ".status.notAfter"}
    for column in columns:
        rows = lister.select(columns, sort_by=column)
        assert [row["name"] for row in rows] == ["first", "second", "third", "none"], column
        rows = lister.select(columns, sort_by=f"-{column}")
        assert [row["name"] for row in rows] == ["third", "second", "first", "none"], column


def test_rows_are_a_sequence_of_dicts_of_the_callers_own(lister: GenericLister) -> None:
    """They equal a list, and changing one changes no other."""
    rows = lister.select({"n": JSONPath(".metadata.name")})
    plain = list(rows)
    assert rows == plain
    assert rows != plain[1:]
    assert rows[-1] == plain[-1]
    assert rows[1:] == plain[1:]
    rows[0].clear()
    assert rows == plain
    assert repr(rows) == repr(plain)
    assert rows != "rows"
    assert plain[0] in rows
    assert (rows.index(plain[-1]), rows.count(plain[0])) == (len(plain) - 1, 1)
    assert list(reversed(rows)) == plain[::-1]


def test_a_long_repr_ends_early() -> None:
    """So that nobody prints 100,000 rows by mistake."""
    rows = holding(*(certificate(f"c{n}") for n in range(30))).select({})
    assert repr(rows).count("'name'") == 20
    assert repr(rows).endswith(", ... 30 rows]")


def test_cluster_scoped_objects_have_no_namespace() -> None:
    """Neither have none of a resource that is known to be cluster-scoped."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    assert holding(node, gvr=PODS, crd=None).select({}) == [{"name": "n1"}]
    assert [each.name for each in holding().select({}).table.columns] == ["namespace", "name"]


def test_what_collects_is_back_as_it_was(lister: GenericLister) -> None:
    """Making a table holds the collector for a moment."""
    before = gc.get_threshold()
    lister.select({})
    assert gc.get_threshold() == before
