"""Server-side apply: what its manager says, owns and gives up."""

from __future__ import annotations

import pytest

from dyninformer.types import Object
from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import APPLY, Answer, Wire

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}
SOLE = [
    {"annotations": {"a": "b"}},
    {"labels": {"a": "b"}},
    {"finalizers": ["ex.io/f"]},
    {"ownerReferences": [OWNER]},
]


def _apply(api: Wire, path: str, obj: Object, manager: str = "m", **params: str) -> Answer:
    return api.patch(path, obj, APPLY, {"fieldManager": manager, **params})


def _config_map(**metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}


def _secret(**fields: object) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


def _owned(obj: Object, manager: str = "m") -> Object:
    """The fields that a manager owns; none if it is not among the managers."""
    entries = obj["metadata"].get("managedFields", ())
    return next((e["fieldsV1"] for e in entries if e["manager"] == manager), {})


@pytest.mark.parametrize("sole", SOLE, ids=lambda sole: next(iter(sole)))
@pytest.mark.parametrize("builtin", [True, False], ids=["ConfigMap", "Widget"])
def test_giving_up_the_only_metadata_field_takes_that_field_away(
    api: Wire, namespace: str, widgets: Collection, sole: Object, builtin: bool
) -> None:
    """And nothing else of the metadata; a dry run says so and changes nothing."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/c" if builtin else widgets.at("c")
    bare = _config_map() if builtin else {**widget("c"), "spec": {}}
    with_it = {**bare, "metadata": {"name": "c", **sole}}
    assert _apply(api, path, with_it).status == 201
    before = api.get(path).json["metadata"]
    (field,) = sole
    for params in ({"dryRun": "All"}, {}):
        answer = _apply(api, path, bare, **params)
        assert answer.status == 200, answer.text
        left = answer.json["metadata"]
        assert field not in left
        assert (left["name"], left["uid"]) == ("c", before["uid"])
        assert (field in api.get(path).json["metadata"]) == ("dryRun" in params)


def test_the_last_finalizer_of_a_deleted_object_can_be_given_up(api: Wire, namespace: str) -> None:
    """The object goes with it."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/c"
    _apply(api, path, _config_map(finalizers=["ex.io/f"]))
    assert api.delete(path).status == 200
    assert _apply(api, path, _config_map()).status == 200
    assert api.get(path).status == 404


def test_what_was_there_before_the_first_apply_is_nobodys_to_give_up(
    api: Wire, namespace: str
) -> None:
    """An object without managers gets one that owns what it has."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    there = {**_config_map(labels={"l": "1"}, annotations={"n": "1"}), "data": {"x": "y"}}
    assert api.post(path, there).status == 201
    api.patch(f"{path}/c", {"metadata": {"managedFields": [{}]}})
    config = {**_config_map(labels={"a": "b"}), "data": {"a": "b"}}
    applied = _apply(api, f"{path}/c", config).json
    assert _owned(applied, "before-first-apply") == {
        "f:data": {".": {}, "f:x": {}},
        "f:metadata": {
            "f:annotations": {".": {}, "f:n": {}},
            "f:labels": {".": {}, "f:l": {}},
        },
    }
    left = _apply(api, f"{path}/c", _config_map()).json
    assert left["data"] == {"x": "y"}
    assert left["metadata"]["labels"] == {"l": "1"}
    assert left["metadata"]["annotations"] == {"n": "1"}


def test_a_manager_owns_what_it_said_and_no_default(api: Wire, namespace: str) -> None:
    """The label that every namespace has belongs to whoever made the namespace."""
    path = f"/api/v1/namespaces/{namespace}"
    metadata = {"name": namespace, "annotations": {}, "labels": {"a": "b"}}
    answer = _apply(api, path, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    said: Object = {"f:annotations": {}, "f:labels": {"f:a": {}}}
    assert _owned(answer.json) == {"f:metadata": said}


@pytest.mark.parametrize(
    ("plural", "obj", "complaint"),
    [
        ("configmaps", {**_config_map(), "dta": {"a": "b"}}, "/v1, Kind=ConfigMap): .dta"),
        ("secrets", _secret(hush=1), "/v1, Kind=Secret): .hush"),
    ],
)
def test_an_apply_of_a_built_in_object_with_an_unknown_field_is_refused(
    api: Wire, namespace: str, plural: str, obj: Object, complaint: str
) -> None:
    """As one of a custom resource, and unlike any other write, which drops the field."""
    name = obj["metadata"]["name"]
    answer = _apply(api, f"/api/v1/namespaces/{namespace}/{plural}/{name}", obj)
    assert (answer.status, answer.json["message"]) == (
        500,
        f"failed to create typed patch object (/{name}; {complaint}: field not declared in schema",
    )


def test_text_that_is_applied_to_a_secret_is_among_its_data(api: Wire, namespace: str) -> None:
    """Its manager owns it as it was written; a dry run shows it, too."""
    path = f"/api/v1/namespaces/{namespace}/secrets/s"
    for params, value in (({"dryRun": "All"}, "b"), ({}, "b"), ({}, "c")):
        secret = _apply(api, path, _secret(stringData={"a": value}), **params).json
        assert secret["data"] == {"a": {"b": "Yg==", "c": "Yw=="}[value]}
        assert "stringData" not in secret
        assert _owned(secret) == {"f:stringData": {"f:a": {}}}
    answer = _apply(api, path, _secret(stringData={"a": "z"}), "n")
    assert (answer.status, answer.json["details"]["causes"]) == (
        409,
        [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "m"',
                "field": ".stringData.a",
            }
        ],
    )
    both = _apply(api, path, _secret(stringData={"a": "z"}, data={"b": "eA=="}), "n", force="true")
    assert both.json["data"] == {"a": "eg==", "b": "eA=="}


def test_base64_may_have_line_ends(api: Wire, namespace: str) -> None:
    """As in a YAML block; the server answers without them, and compares an apply with them."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    block = (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  k: |\n    aGVs\n    bG8=\n"
    )
    answer = api.send("POST", path, block, content_type="application/yaml")
    assert (answer.status, answer.json.get("data")) == (201, {"k": "aGVsbG8="})
    data = {"binaryData": {"k": "\r\naGVs\r\nbG8=\n"}}
    made = api.post(f"/api/v1/namespaces/{namespace}/configmaps", {**_config_map(), **data})
    assert made.json["binaryData"] == {"k": "aGVsbG8="}
    assert _apply(api, f"{path}/s", _secret(data={"k": "aGVsbG8="})).status == 200
    assert _apply(api, f"{path}/s", _secret(data={"k": "aGVsbG8=\n"}), "n").status == 409


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("a", 0), ("====", 0), ("aGVsbG8", 4), ("aGVs bG8=", 4), ("aGVs\tbG8=", 4),
        ("aGVs-G8=", 4), ("aGVsbG8==", 8), ("aGVsbG8=x", 8), ("aGVsbG8=\nx", 9), ("aGVsbA=", 7),
        ("aGVsbA=x", 6), ("aGVsbA=\n\nx", 8), ("aGVsbA\n=\n=\nx", 11), ("aGVs\nbG8", 5),
        ("aGVsé", 4), ("aGVsbG\n8", 5),
    ],
)  # fmt: skip
def test_what_is_no_base64_is_refused_with_the_place(
    api: Wire, namespace: str, text: str, at: int
) -> None:
    """The byte at which Go's decoder gives up."""
    answer = api.post(f"/api/v1/namespaces/{namespace}/secrets", _secret(data={"k": text}))
    assert answer.status == 400
    assert answer.json["message"].endswith(f": illegal base64 data at input byte {at}")
