"""PUT, patches of each type, generations, and writes that lose a race."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import APPLY, JSON_PATCH, MERGE, STRATEGIC, Wire


def _conflict(name: str) -> str:
    return (
        f'Operation cannot be fulfilled on widgets.ex.io "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_a_merge_patch_sets_and_null_removes(widgets: Collection) -> None:
    """JSON merge patch, with a higher version and generation."""
    created = widgets.fill("a", size=1, note="x")[0]
    answer = widgets.merge("a", {"spec": {"size": 2, "note": None}})
    assert answer.json["spec"] == {"replicas": 1, "size": 2}
    assert answer.json["metadata"]["generation"] == 2
    assert int(answer.version) > int(created["metadata"]["resourceVersion"])


def test_a_boolean_in_the_place_of_a_number_is_a_change(blobs: Collection) -> None:
    """It is written, and counted by the generation, however deep it is."""
    blobs.create(
        {
            "apiVersion": "loose.io/v1",
            "kind": "Blob",
            "metadata": {"name": "a"},
            "spec": {"on": True, "list": [0], "within": [{"n": 1}]},
        }
    )
    steps: list[dict[str, object]] = [{"on": 1}, {"list": [False]}, {"within": [{"n": True}]}]
    for generation, step in enumerate(steps, start=2):
        answer = blobs.merge("a", {"spec": step})
        assert answer.json["metadata"]["generation"] == generation
    assert repr(answer.json["spec"]) == "{'list': [False], 'on': 1, 'within': [{'n': True}]}"


def test_a_json_patch_applies_its_steps(widgets: Collection) -> None:
    """test, replace, add and remove, in order."""
    widgets.fill("a", size=1, note="x", parts=[{"name": "p"}])
    patch = [
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 5},
        {"op": "add", "path": "/spec/parts/-", "value": {"name": "q"}},
        {"op": "remove", "path": "/spec/note"},
    ]
    answer = widgets.api.patch(widgets.at("a"), patch, JSON_PATCH)
    assert answer.status == 200
    assert answer.json["spec"] == {
        "parts": [{"name": "p"}, {"name": "q"}],
        "replicas": 1,
        "size": 5,
    }


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/spec/size", "value": 7},
        {"op": "remove", "path": "/spec/nothing"},
    ],
    ids=["test", "remove"],
)
def test_a_json_patch_that_does_not_fit_is_refused(
    widgets: Collection, step: dict[str, object]
) -> None:
    """A failed test or a missing path is a 422 without details."""
    widgets.fill("a", size=1)
    answer = widgets.api.patch(widgets.at("a"), [step], JSON_PATCH)
    assert answer.status == 422
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


def test_a_json_patch_may_replace_what_is_not_there(widgets: Collection) -> None:
    """A replace of a missing member adds it."""
    widgets.fill("a")
    step = {"op": "replace", "path": "/spec/note", "value": "x"}
    answer = widgets.api.patch(widgets.at("a"), [step], JSON_PATCH)
    assert (answer.status, answer.json["spec"]["note"]) == (200, "x")


def test_a_json_patch_that_is_no_list_is_malformed(widgets: Collection) -> None:
    """An object is no JSON patch."""
    widgets.fill("a")
    answer = widgets.api.patch(widgets.at("a"), {"spec": {}}, JSON_PATCH)
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"] == (
        "error decoding patch: json: cannot unmarshal object into Go value of type "
        "[]handlers.jsonPatchOp"
    )


@pytest.mark.parametrize("content_type", [STRATEGIC, "application/json", "text/plain"])
def test_other_patch_types_are_unsupported(widgets: Collection, content_type: str) -> None:
    """Custom resources know three types of patches."""
    widgets.fill("a")
    answer = widgets.api.patch(widgets.at("a"), {"spec": {"size": 1}}, content_type)
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")
    assert answer.json["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_a_patch_of_a_missing_object_is_not_found(widgets: Collection) -> None:
    """Only apply creates."""
    answer = widgets.api.patch(widgets.at("nope"), {"spec": {"size": 1}})
    assert answer.status == 404
    assert answer.json["message"] == 'widgets.ex.io "nope" not found'


def test_a_patch_with_a_stale_version_conflicts(widgets: Collection) -> None:
    """A merge patch that carries a resourceVersion is held to it."""
    created = widgets.fill("a")[0]
    widgets.merge("a", {"spec": {"size": 1}})
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    answer = widgets.api.patch(widgets.at("a"), {**stale, "spec": {"size": 2}})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert answer.json["message"] == _conflict("a")
    assert answer.json["details"] == {"name": "a", "group": "ex.io", "kind": "widgets"}


def test_a_put_replaces_the_object(widgets: Collection) -> None:
    """What the new object lacks is gone; what the server owns stays."""
    created = widgets.fill("a", size=1, note="x")[0]
    changed = {**created, "spec": {"color": "red"}}
    answer = widgets.api.put(widgets.at("a"), changed)
    assert answer.status == 200
    assert answer.json["spec"] == {"color": "red", "replicas": 1}
    assert answer.json["metadata"]["uid"] == created["metadata"]["uid"]
    assert answer.json["metadata"]["generation"] == 2


def test_a_put_with_an_old_version_conflicts(widgets: Collection) -> None:
    """Optimistic locking: the loser is told to try again."""
    created = widgets.fill("a")[0]
    widgets.merge("a", {"spec": {"size": 1}})
    answer = widgets.api.put(widgets.at("a"), {**created, "spec": {"size": 2}})
    assert answer.status == 409
    assert answer.json["message"] == _conflict("a")


def test_a_put_without_a_version_is_invalid(widgets: Collection) -> None:
    """A custom resource's update must say which version it replaces."""
    widgets.fill("a")
    answer = widgets.api.put(widgets.at("a"), widget("a"))
    assert answer.status == 422
    assert answer.json["message"] == (
        'widgets.ex.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
    assert answer.json["details"]["kind"] == "widgets"


def test_a_put_with_another_uid_conflicts(widgets: Collection) -> None:
    """An object that was deleted and created again is another object."""
    created = widgets.fill("a")[0]
    other = {**created, "metadata": {**created["metadata"], "uid": "another"}}
    answer = widgets.api.put(widgets.at("a"), other)
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert (
        "Precondition failed: UID in precondition: another, UID in object meta: "
        in (answer.json["message"])
    )


def test_a_put_of_a_missing_object_is_not_found(widgets: Collection) -> None:
    """PUT does not create."""
    obj = widget("a")
    obj["metadata"]["resourceVersion"] = "5"
    answer = widgets.api.put(widgets.at("a"), obj)
    assert (answer.status, answer.json["reason"]) == (404, "NotFound")


def test_a_put_under_another_name_is_refused(widgets: Collection) -> None:
    """The name in the body must be the one in the path."""
    created = widgets.fill("a")[0]
    created["metadata"]["name"] = "other"
    answer = widgets.api.put(widgets.at("a"), created)
    assert answer.status == 400
    assert answer.json["message"] == (
        "the name of the object (other) does not match the name on the URL (a)"
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_collection_cannot_be_updated(widgets: Collection, method: str) -> None:
    """A name must be given: 400 or 405, never a write."""
    answer = widgets.api.send(method, widgets.path, {}, content_type=MERGE)
    assert (answer.status, answer.json["message"]) == (400, "name must be provided")


def test_labels_raise_the_version_and_not_the_generation(widgets: Collection) -> None:
    """The generation counts changes of what is wanted."""
    created = widgets.fill("a")[0]
    answer = widgets.merge("a", {"metadata": {"labels": {"x": "y"}}})
    assert answer.json["metadata"]["generation"] == 1
    assert answer.version != created["metadata"]["resourceVersion"]


def test_a_put_that_changes_nothing_keeps_the_version(widgets: Collection) -> None:
    """A no-op update is no write."""
    created = widgets.fill("a", size=1)[0]
    answer = widgets.api.put(widgets.at("a"), created)
    assert (answer.status, answer.json) == (200, created)


def test_what_the_server_owns_cannot_be_changed(widgets: Collection) -> None:
    """Uid and creationTimestamp in a patch change nothing."""
    created = widgets.fill("a")[0]
    answer = widgets.merge("a", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert (
        answer.json["metadata"]["creationTimestamp"] == (created["metadata"]["creationTimestamp"])
    )


def test_a_dry_patch_changes_nothing(widgets: Collection) -> None:
    """dryRun=All answers what would be."""
    created = widgets.fill("a", size=1)[0]
    answer = widgets.api.patch(widgets.at("a"), {"spec": {"size": 2}}, params={"dryRun": "All"})
    assert answer.json["spec"]["size"] == 2
    assert widgets.api.get(widgets.at("a")).json == created


def test_status_is_written_through_its_subresource_alone(widgets: Collection) -> None:
    """Each door ignores what belongs to the other, and status leaves the generation alone."""
    widgets.fill("a", size=1)
    patch = {"spec": {"size": 9}, "status": {"phase": "Ready"}}
    through_status = widgets.api.patch(widgets.at("a") + "/status", patch)
    assert through_status.json["spec"]["size"] == 1
    assert through_status.json["status"] == {"phase": "Ready"}
    assert through_status.json["metadata"]["generation"] == 1
    through_main = widgets.merge("a", {"status": {"phase": "Lost"}})
    assert through_main.json["status"] == {"phase": "Ready"}
    assert through_main.version == through_status.version
    assert widgets.api.get(widgets.at("a") + "/status").json == through_status.json


def test_status_can_be_put(widgets: Collection) -> None:
    """PUT on status replaces the status."""
    created = widgets.fill("a", size=1)[0]
    changed = {**created, "status": {"phase": "Up"}, "spec": {"size": 3}}
    answer = widgets.api.put(widgets.at("a") + "/status", changed)
    assert (answer.json["status"], answer.json["spec"]["size"]) == ({"phase": "Up"}, 1)


def test_scale_is_a_view_of_replicas(widgets: Collection) -> None:
    """The scale subresource reads and writes the CRD's paths."""
    widgets.fill("a", replicas=2)
    widgets.api.patch(widgets.at("a") + "/status", {"status": {"replicas": 2, "selector": "app=x"}})
    scale = widgets.api.get(widgets.at("a") + "/scale").json
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 2, "selector": "app=x"}
    answer = widgets.api.patch(widgets.at("a") + "/scale", {"spec": {"replicas": 4}})
    assert answer.json["spec"] == {"replicas": 4}
    found = widgets.api.get(widgets.at("a")).json
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)


def test_a_subresource_that_is_not_there_hides_the_object(blobs: Collection) -> None:
    """A subresource that the CRD lacks is answered as if the object were missing."""
    blob = {"apiVersion": "loose.io/v1", "kind": "Blob", "metadata": {"name": "a"}}
    blobs.create(blob)
    answer = blobs.api.get(blobs.at("a") + "/status")
    assert answer.status == 404
    assert answer.json["message"] == 'blobs.loose.io "a" not found'


def test_apply_creates_then_merges(widgets: Collection) -> None:
    """201 first, 200 after; lists of scalars and objects are replaced, other fields stay."""
    params = {"fieldManager": "me"}
    body = widget("a", size=1)
    first = widgets.api.patch(widgets.at("a"), body, APPLY, params)
    assert first.status == 201
    assert first.json["metadata"]["managedFields"][0]["operation"] == "Apply"
    assert first.json["metadata"]["managedFields"][0]["manager"] == "me"
    second = widgets.api.patch(
        widgets.at("a"), widget("a", note="x"), APPLY, {"fieldManager": "you"}
    )
    assert second.status == 200
    assert second.json["spec"] == {"note": "x", "replicas": 1, "size": 1}


def test_apply_needs_a_field_manager(widgets: Collection) -> None:
    """An apply without a manager is invalid."""
    answer = widgets.api.patch(widgets.at("a"), widget("a"), APPLY)
    assert answer.status == 422
    assert answer.json["message"] == (
        'PatchOptions.meta.k8s.io "" is invalid: '
        "fieldManager: Required value: is required for apply patch"
    )


def test_force_belongs_to_apply(widgets: Collection) -> None:
    """Force on another patch is invalid."""
    widgets.fill("a")
    answer = widgets.api.patch(widgets.at("a"), {}, MERGE, {"force": "true"})
    assert answer.status == 422
    assert answer.json["message"].startswith('PatchOptions.meta.k8s.io "" is invalid: force: ')


def test_apply_takes_yaml(widgets: Collection) -> None:
    """The body of an apply is YAML, of which JSON is a part."""
    body = b"apiVersion: ex.io/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n"
    answer = widgets.api.send(
        "PATCH", widgets.at("a"), body, content_type=APPLY, params={"fieldManager": "me"}
    )
    assert (answer.status, answer.json["spec"]) == (201, {"replicas": 1, "size": 3})


def test_a_lease_that_is_not_there_is_made_by_a_put_whatever_its_version(
    api: Wire, namespace: str
) -> None:
    """Unless it says the uid of the one that is meant: whoever was away too long has lost it."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15},
    }
    made = api.post(path, lease).json["metadata"]
    api.delete(f"{path}/a")
    stale = {name: made[name] for name in ("name", "namespace", "resourceVersion", "uid")}
    refused = api.put(f"{path}/a", {**lease, "metadata": stale})
    assert refused.status == 409
    assert refused.json["message"].endswith(
        f"Precondition failed: UID in precondition: {made['uid']}, UID in object meta: "
    )
    del stale["uid"]
    again = api.put(f"{path}/a", {**lease, "metadata": stale})
    assert again.status == 201
    assert again.json["metadata"]["uid"] != made["uid"]
