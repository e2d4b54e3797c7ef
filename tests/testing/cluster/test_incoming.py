"""Built-in kinds and metadata are read by their Go types."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.cluster.bodies import UnreadableError
from dyninformer.testing.cluster.builtins import BUILTINS
from dyninformer.testing.cluster.incoming import read_typed
from dyninformer.testing.cluster.resources import Resource

_BY_KIND = {each.kind: each for each in BUILTINS}
_THING = Resource("ex.io", "v1", "things", "Thing", namespaced=True)
_OWNER = {"uid": "1", "name": "n", "kind": "K", "apiVersion": "v1"}


def test_fields_stand_in_the_order_of_the_struct() -> None:
    """Whatever the order in a body, fields are kept in that of their Go type."""
    read, unknown = read_typed(
        _BY_KIND["Secret"],
        {"type": "x", "data": {"a": "Yg=="}, "metadata": {"uid": "u", "name": "s"}},
    )
    assert list(read) == ["kind", "apiVersion", "metadata", "data", "type"]
    assert list(read["metadata"]) == ["name", "uid"]
    assert unknown == []


def test_nulls_and_empty_metadata_are_left_out() -> None:
    """A null is no value, an empty field of metadata none either; a zero that is meant stays."""
    metadata: dict[str, Any] = {
        "name": "",
        "labels": {},
        "uid": None,
        "deletionGracePeriodSeconds": 0,
    }
    read, _ = read_typed(_THING, {"metadata": metadata, "spec": None})
    assert read["metadata"] == {"deletionGracePeriodSeconds": 0}


def test_unknown_fields_are_named_and_dropped() -> None:
    """In a built-in kind in the order of the body, in a custom resource's metadata by name."""
    metadata = {"zoo": 1, "ownerReferences": [{**_OWNER, "x": 1}], "foo": 1}
    read, unknown = read_typed(_BY_KIND["ConfigMap"], {"bar": 1, "metadata": metadata})
    assert unknown == ["bar", "metadata.zoo", "metadata.ownerReferences[0].x", "metadata.foo"]
    assert read["metadata"] == {"ownerReferences": [_OWNER]}

    read, unknown = read_typed(_THING, {"bar": 1, "metadata": metadata})
    assert unknown == ["metadata.foo", "metadata.ownerReferences[0].x", "metadata.zoo"]
    assert read["bar"] == 1


@pytest.mark.parametrize(
    ("kind", "body", "complaint"),
    [
        ("Thing", {"metadata": 5}, "number into Go value of type v1.ObjectMeta"),
        ("Pod", {"metadata": 5}, "number into Go struct field Pod.metadata of type v1.ObjectMeta"),
        (
            "Thing",
            {"metadata": {"ownerReferences": [{"uid": 5}]}},
            "number into Go struct field OwnerReference.ownerReferences.uid of type types.UID",
        ),
        (
            "ConfigMap",
            {"metadata": {"generation": 1.5}},
            "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            "Namespace",
            {"spec": {"finalizers": [True]}},
            "bool into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName",
        ),
        (
            "CustomResourceDefinition",
            {"spec": {"versions": [{"additionalPrinterColumns": [{"name": 5}]}]}},
            (
                "number into Go struct field "
                "CustomResourceColumnDefinition.spec.versions.additionalPrinterColumns.name "
                "of type string"
            ),
        ),
    ],
)
def test_a_wrong_type_is_refused_in_the_words_of_go(kind: str, body: Any, complaint: str) -> None:
    """The innermost struct is named, and the path from the top without indices."""
    with pytest.raises(UnreadableError) as refused:
        read_typed(_BY_KIND.get(kind, _THING), body)
    assert str(refused.value) == f"json: cannot unmarshal {complaint}"
