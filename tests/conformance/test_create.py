"""Creating objects, and every way the server refuses to."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import Wire


def test_a_created_object_is_furnished_by_the_server(widgets: Collection) -> None:
    """uid, version, time, generation 1, defaults, and who wrote which fields."""
    created = widgets.fill("a", size=1)[0]
    metadata = created["metadata"]
    assert list(metadata) == [
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ]
    assert (metadata["generation"], metadata["namespace"]) == (1, widgets.namespace)
    assert created["spec"] == {"replicas": 1, "size": 1}
    assert metadata["managedFields"] == [
        {
            "apiVersion": "ex.io/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:replicas": {}, "f:size": {}}},
            "manager": "conformance",
            "operation": "Update",
            "time": metadata["creationTimestamp"],
        }
    ]


def test_the_field_manager_can_be_named(widgets: Collection) -> None:
    """FieldManager replaces what the User-Agent says."""
    answer = widgets.api.post(widgets.path, widget("a", size=1), {"fieldManager": "me"})
    assert answer.json["metadata"]["managedFields"][0]["manager"] == "me"


def test_status_is_dropped_where_it_is_a_subresource(widgets: Collection) -> None:
    """A create cannot set the status of a resource that has the subresource."""
    created = widgets.create({**widget("a"), "status": {"phase": "Ready"}})
    assert "status" not in created


def test_status_is_kept_where_it_is_a_field(blobs: Collection) -> None:
    """Without the subresource, status is a field like any other."""
    blob = {
        "apiVersion": "loose.io/v1",
        "kind": "Blob",
        "metadata": {"name": "a"},
        "status": {"x": 1},
    }
    assert blobs.create(blob)["status"] == {"x": 1}


def test_generate_name_appends_five_characters(widgets: Collection) -> None:
    """The server makes the name, of consonants and digits."""
    nameless = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"generateName": "w-"}}
    names = {widgets.create(nameless)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    for name in names:
        assert name.startswith("w-")
        assert len(name) == 7


def test_the_same_name_twice_is_409(widgets: Collection) -> None:
    """AlreadyExists names the resource and the object."""
    widgets.fill("a")
    answer = widgets.api.post(widgets.path, widget("a"))
    assert answer.status == 409
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'widgets.ex.io "a" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "a", "group": "ex.io", "kind": "widgets"},
        "code": 409,
    }


def test_the_same_name_while_it_is_being_deleted_says_so(widgets: Collection) -> None:
    """A name is taken until its last finalizer is gone."""
    held = widget("a")
    held["metadata"]["finalizers"] = ["x.io/f"]
    widgets.create(held)
    widgets.api.delete(widgets.at("a"))
    answer = widgets.api.post(widgets.path, widget("a"))
    assert answer.status == 409
    assert answer.json["message"] == ('object is being deleted: widgets.ex.io "a" already exists')


def test_a_resource_version_on_create_is_refused(widgets: Collection) -> None:
    """A new object has no version yet: a 500 without a reason."""
    obj = widget("a")
    obj["metadata"]["resourceVersion"] = "5"
    answer = widgets.api.post(widgets.path, obj)
    assert answer.status == 500
    assert answer.json["message"] == "resourceVersion should not be set on objects to be created"
    assert "reason" not in answer.json


def test_another_namespace_in_the_body_is_refused(widgets: Collection) -> None:
    """The namespace in the body must be the one in the path."""
    obj = widget("a")
    obj["metadata"]["namespace"] = "elsewhere"
    answer = widgets.api.post(widgets.path, obj)
    assert answer.status == 400
    assert answer.json["message"] == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def test_another_api_version_in_the_body_is_refused(widgets: Collection) -> None:
    """The apiVersion in the body must be the one in the path."""
    answer = widgets.api.post(widgets.path, {**widget("a"), "apiVersion": "ex.io/v9"})
    assert answer.status == 400
    assert answer.json["message"] == (
        "the API version in the data (ex.io/v9) does not match the expected API version (ex.io/v1)"
    )


def test_an_object_without_a_kind_is_refused(widgets: Collection) -> None:
    """The message shows what was sent."""
    answer = widgets.api.post(widgets.path, b'{"metadata":{"name":"a"}}')
    body = '{"metadata":{"name":"a"}}'
    assert answer.status == 400
    assert answer.json["message"] == (
        "the object provided is unrecognized (must be of type Widget): "
        f"Object 'Kind' is missing in '{body}' ({body})"
    )


def test_another_kind_in_the_body_is_invalid(widgets: Collection) -> None:
    """The kind in the body must be the resource's."""
    answer = widgets.api.post(widgets.path, {**widget("a"), "kind": "Gadget"})
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert answer.json["message"] == (
        'Gadget.ex.io "a" is invalid: kind: Invalid value: "Gadget": must be Widget'
    )
    assert answer.json["details"]["kind"] == "Gadget"


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254])
def test_a_bad_name_is_invalid(widgets: Collection, name: str) -> None:
    """Names are lower case DNS subdomains."""
    answer = widgets.api.post(widgets.path, widget(name))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert answer.json["details"]["causes"][0]["field"] == "metadata.name"
    assert answer.json["details"]["causes"][0]["reason"] == "FieldValueInvalid"


def test_no_name_at_all_is_invalid(widgets: Collection) -> None:
    """Name or generateName is required."""
    answer = widgets.api.post(widgets.path, {"apiVersion": "ex.io/v1", "kind": "Widget"})
    assert answer.status == 422
    assert answer.json["message"] == (
        'Widget.ex.io "" is invalid: '
        "metadata.name: Required value: name or generateName is required"
    )


def test_a_namespace_that_does_not_exist_is_not_found(api: Wire) -> None:
    """Nothing is created in a namespace that is not there."""
    answer = api.post("/apis/ex.io/v1/namespaces/nons/widgets", widget("a"))
    assert answer.status == 404
    assert answer.json["message"] == 'namespaces "nons" not found'
    assert answer.json["details"] == {"name": "nons", "kind": "namespaces"}


def test_a_dry_run_stores_nothing(widgets: Collection) -> None:
    """dryRun=All gives the whole answer without a version, and no event."""
    version = widgets.version()
    answer = widgets.api.post(widgets.path, widget("a", size=1), {"dryRun": "All"})
    assert answer.status == 201
    assert "resourceVersion" not in answer.json["metadata"]
    assert answer.json["spec"] == {"replicas": 1, "size": 1}
    assert widgets.api.get(widgets.at("a")).status == 404
    with widgets.api.watch(widgets.path, {"resourceVersion": version}) as watch:
        widgets.fill("b")
        assert watch.take(1) == [("ADDED", "b")]


def test_a_dry_run_of_something_else_is_invalid(widgets: Collection) -> None:
    """All is the one dry run there is."""
    answer = widgets.api.post(widgets.path, widget("a"), {"dryRun": "Bogus"})
    assert answer.status == 422
    assert answer.json["message"] == (
        'CreateOptions.meta.k8s.io "" is invalid: '
        'dryRun: Unsupported value: ["Bogus"]: supported values: "All"'
    )


@pytest.mark.parametrize("params", [{}, {"fieldValidation": "Warn"}])
def test_an_unknown_field_is_pruned_with_a_warning(
    widgets: Collection, params: dict[str, str]
) -> None:
    """By default the answer carries a Warning header."""
    answer = widgets.api.post(widgets.path, widget("a", bogus=1), params)
    assert answer.status == 201
    assert "bogus" not in answer.json["spec"]
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.bogus\\""'


def test_an_unknown_field_is_pruned_in_silence_when_ignored(widgets: Collection) -> None:
    """fieldValidation=Ignore says nothing."""
    answer = widgets.api.post(widgets.path, widget("a", bogus=1), {"fieldValidation": "Ignore"})
    assert answer.status == 201
    assert "Warning" not in answer.headers


def test_an_unknown_field_is_refused_when_strict(widgets: Collection) -> None:
    """fieldValidation=Strict is a 400 that names the field."""
    answer = widgets.api.post(widgets.path, widget("a", bogus=1), {"fieldValidation": "Strict"})
    assert answer.status == 400
    assert answer.json["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: '
        'strict decoding error: unknown field "spec.bogus"'
    )


def test_a_repeated_field_is_refused_when_strict(widgets: Collection) -> None:
    """JSON with the same key twice is not what its writer meant."""
    body = (
        b'{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"a"},'
        b'"spec":{"size":1,"size":2}}'
    )
    answer = widgets.api.post(widgets.path, body, {"fieldValidation": "Strict"})
    assert answer.status == 400
    assert 'duplicate field "spec.size"' in answer.json["message"]


def test_another_field_validation_is_invalid(widgets: Collection) -> None:
    """Ignore, Warn and Strict are all there is."""
    answer = widgets.api.post(widgets.path, widget("a"), {"fieldValidation": "Maybe"})
    assert answer.status == 422
    assert answer.json["message"].startswith(
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation'
    )


def test_yaml_is_accepted(widgets: Collection) -> None:
    """A body may be YAML."""
    body = b"apiVersion: ex.io/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n"
    answer = widgets.api.send("POST", widgets.path, body, content_type="application/yaml")
    assert (answer.status, answer.json["spec"]["size"]) == (201, 3)


def test_a_new_namespace_is_active(api: Wire, namespace: str) -> None:
    """A namespace has its phase, its own finalizer in spec, and its name as a label."""
    found = api.get(f"/api/v1/namespaces/{namespace}").json
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"] == {"phase": "Active"}
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}


def test_built_in_config_maps_can_be_used(api: Wire, namespace: str) -> None:
    """ConfigMaps are created, read, listed and deleted."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    assert api.post(path, obj).status == 201
    assert api.get(f"{path}/c").json["data"] == {"k": "v"}
    assert api.get(path).names == ["c"]
    assert api.delete(f"{path}/c").json["status"] == "Success"
