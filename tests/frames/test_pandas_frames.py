"""Columns as a pandas DataFrame."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frames.objects import PODS, certificate, holding

pandas = pytest.importorskip("pandas")

COLUMNS = {
    "replicas": ".spec.replicas",
    "weight": ".spec.weight",
    "signs": ".spec.usages.signing",
    "hosts": ".spec.dnsNames[*]",
    "issuer": ".spec.issuerRef",
    "expires": ".status.notAfter",
    "renewed": ".status.renewed",
    "cpu": ".spec.cpu",
}
DTYPES = {
    "namespace": "string",
    "name": "string",
    "replicas": "Int64",
    "weight": "float64",
    "signs": "boolean",
    "hosts": "object",
    "issuer": "object",
    "expires": "datetime64[us, UTC]",
    "renewed": "datetime64[us, UTC]",
    "cpu": "string",
}
FULL = certificate(
    "full",
    spec={
        "replicas": 2,
        "weight": 1,
        "usages": {"signing": True},
        "dnsNames": ["a", "b"],
        "issuerRef": {"name": "le"},
        "cpu": 2,
    },
    status={"notAfter": "2027-01-01T00:00:00Z", "renewed": "2026-06-01T00:00:00Z"},
)


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [certificate("empty")],
        [FULL],
        [FULL, certificate("empty"), certificate("odd", spec={"replicas": "2", "weight": "x"})],
    ],
)
def test_a_column_has_one_type_whatever_the_objects_are(objects: list[Any]) -> None:
    """Of none, of nothing but nulls, of mixed ones."""
    frame = holding(*objects).to_frame(COLUMNS)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == DTYPES


def test_values_are_read_and_nulls_are_nulls() -> None:
    """A time is one, also where the CRD's column says so alone; an integer may be missing."""
    frame = holding(FULL, certificate("empty")).to_frame(COLUMNS)
    row = frame.loc["prod/full"]
    assert row["replicas"] == 2
    assert row["expires"] == pandas.Timestamp("2027-01-01", tz="UTC")
    assert row["renewed"].month == 6
    assert row["hosts"] == ["a", "b"]
    assert row["issuer"] == {"name": "le"}
    empty = frame.loc["prod/empty"]
    assert empty["hosts"] == []
    assert frame.index.name == "key"
    assert pandas.isna(empty[["replicas", "weight", "signs", "expires", "cpu", "issuer"]]).all()


def test_lists_of_equal_length_stay_lists() -> None:
    """Numpy would make a table of them."""
    pair = {"dnsNames": ["a", "b"]}
    frame = holding(certificate("x", spec=pair), certificate("y", spec=pair)).to_frame(
        {"hosts": ".spec.dnsNames[*]"}
    )
    assert frame["hosts"].tolist() == [["a", "b"], ["a", "b"]]


def test_what_is_no_list_or_object_where_one_is_declared_is_null() -> None:
    """As in Arrow; what is declared to be anything stays what it is."""
    columns = {"a": ".spec.dnsNames", "b": ".spec.issuerRef", "c": ".spec.usages"}
    odd = certificate("odd", spec={"dnsNames": {}, "issuerRef": "le", "usages": [], "config": 1})
    frame = holding(FULL, odd).to_frame({**columns, "anything": ".spec.config"})
    assert frame[list(columns)].loc["prod/odd"].tolist() == [None, None, None]
    assert frame["c"].tolist() == [{"signing": True}, None]
    assert frame["anything"].tolist() == [None, 1]


def test_without_columns_ages_are_times() -> None:
    """And columns have the types that the CRD gives them."""
    frame = holding(FULL).to_frame()
    assert list(frame.columns)[2:] == ["Ready", "Hosts", "Replicas", "Renewed", "Broken", "Age"]
    assert frame["Age"].dt.year.tolist() == [2026]
    assert str(frame["Replicas"].dtype) == "Int64"


def test_where_nothing_is_declared_values_decide() -> None:
    """Of built-in resources, except for metadata and what kubectl shows."""
    pods = [
        certificate("a", spec={"priority": 1, "mixed": 1}),
        certificate("b", spec={"priority": 2, "mixed": "x"}),
    ]
    frame = holding(*pods, gvr=PODS, crd=None).to_frame(
        {
            "priority": ".spec.priority",
            "mixed": ".spec.mixed",
            "created": ".metadata.creationTimestamp",
            "restarts": ".status.containerStatuses[0].restartCount",
        }
    )
    assert str(frame["priority"].dtype) == "Int64"
    assert frame["mixed"].tolist() == ["1", "x"]
    assert str(frame["created"].dtype) == "datetime64[us, UTC]"
    assert str(frame["restarts"].dtype) == "Int64"


def test_quantities_and_labels_have_types_too() -> None:
    """Numbers, and text."""
    frame = holding(
        certificate("a", spec={"cpu": "500m"}, labels={"app": "x"}), certificate("b")
    ).to_frame({"cpu": ".spec.cpu"}, quantity="cpu", labels="app", sort_by="-cpu")
    assert frame["cpu"].sum() == 0.5
    assert str(frame["app"].dtype) == "string"


def test_the_index_follows_the_order_of_the_rows() -> None:
    """Each row is found under its own key."""
    objects = [certificate(name) for name in ("b", "c", "a")]
    frame = holding(*objects).to_frame({"n": ".metadata.name"}, sort_by="-n")
    assert list(frame.index) == ["prod/c", "prod/b", "prod/a"]
    assert list(frame["n"]) == ["c", "b", "a"]
