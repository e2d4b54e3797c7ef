"""Deletion: at once, held by finalizers, with preconditions, of a whole collection."""

from __future__ import annotations

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.shapes import widget
from tests.conformance.wire import JSON_PATCH, Wire


@pytest.fixture
def held(widgets: Collection) -> Collection:
    """A widget `a` that a finalizer holds."""
    obj = widget("a", size=1)
    obj["metadata"]["finalizers"] = ["x.io/f"]
    widgets.create(obj)
    return widgets


def test_a_delete_answers_a_success_with_the_uid(widgets: Collection) -> None:
    """The Status of success has no code."""
    created = widgets.fill("a")[0]
    answer = widgets.api.delete(widgets.at("a"))
    assert answer.status == 200
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": "ex.io",
            "kind": "widgets",
            "uid": created["metadata"]["uid"],
        },
    }
    assert widgets.api.get(widgets.at("a")).status == 404


def test_a_missing_object_is_not_found(widgets: Collection) -> None:
    """This is the Status of a missing object."""
    answer = widgets.api.delete(widgets.at("nope"))
    assert answer.status == 404
    assert answer.text == (
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        '"message":"widgets.ex.io \\"nope\\" not found","reason":"NotFound",'
        '"details":{"name":"nope","group":"ex.io","kind":"widgets"},"code":404}\n'
    )


def test_a_finalizer_holds_the_object(held: Collection) -> None:
    """DELETE answers the object, marked; a second one changes nothing."""
    answer = held.api.delete(held.at("a"))
    metadata = answer.json["metadata"]
    assert answer.status == 200
    assert answer.json["kind"] == "Widget"
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["generation"] == 2
    assert held.api.delete(held.at("a")).version == answer.version


def test_watchers_see_the_mark_then_the_end(held: Collection) -> None:
    """MODIFIED with the deletionTimestamp; DELETED, still with the finalizer, when it goes."""
    with held.api.watch(held.path, {"resourceVersion": held.version()}) as watch:
        marked = held.api.delete(held.at("a"))
        assert watch.event() == {"type": "MODIFIED", "object": marked.json}
        last = held.merge("a", {"metadata": {"finalizers": None}})
        gone = watch.event()
    assert last.version == marked.version
    assert "finalizers" not in last.json["metadata"]
    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["finalizers"] == ["x.io/f"]
    assert int(gone["object"]["metadata"]["resourceVersion"]) > int(marked.version)
    assert held.api.get(held.at("a")).status == 404


def test_the_last_finalizer_can_go_by_json_patch(held: Collection) -> None:
    """However the list becomes empty, the object goes."""
    held.api.delete(held.at("a"))
    step = {"op": "remove", "path": "/metadata/finalizers/0"}
    assert held.api.patch(held.at("a"), [step], JSON_PATCH).status == 200
    assert held.api.get(held.at("a")).status == 404


def test_finalizers_without_a_delete_come_and_go(held: Collection) -> None:
    """An object that is not being deleted outlives its finalizers."""
    held.merge("a", {"metadata": {"finalizers": None}})
    assert held.api.get(held.at("a")).status == 200


def test_the_spec_can_change_while_deleting(held: Collection) -> None:
    """A held object can still be written."""
    held.api.delete(held.at("a"))
    assert held.merge("a", {"spec": {"size": 2}}).json["spec"]["size"] == 2


def test_no_finalizer_can_be_added_while_deleting(held: Collection) -> None:
    """What is going may only be let go."""
    held.api.delete(held.at("a"))
    answer = held.api.patch(held.at("a"), {"metadata": {"finalizers": ["x.io/f", "x.io/g"]}})
    assert answer.status == 422
    cause = answer.json["details"]["causes"][0]
    assert cause["field"] == "metadata.finalizers"
    assert cause["message"] == (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x.io/g"}'
    )


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_a_policy_that_needs_the_collector_holds_the_object(
    widgets: Collection, policy: str, finalizer: str
) -> None:
    """Foreground and Orphan wait for the garbage collector by a finalizer."""
    widgets.fill("a")
    answer = widgets.api.delete(widgets.at("a"), params={"propagationPolicy": policy})
    assert answer.json["metadata"]["finalizers"] == [finalizer]


@pytest.mark.parametrize(
    "params", [{"propagationPolicy": "Background"}, {"gracePeriodSeconds": 30}]
)
def test_background_and_grace_delete_at_once(
    widgets: Collection, params: dict[str, object]
) -> None:
    """Neither holds a custom resource."""
    widgets.fill("a")
    assert widgets.api.delete(widgets.at("a"), params=params).json["status"] == "Success"


def test_an_unknown_policy_is_invalid(widgets: Collection) -> None:
    """The 422 lists the policies."""
    widgets.fill("a")
    answer = widgets.api.delete(widgets.at("a"), params={"propagationPolicy": "Bogus"})
    assert answer.status == 422
    assert answer.json["message"].endswith(
        'supported values: "Foreground", "Background", "Orphan", "nil"'
    )
    assert widgets.api.get(widgets.at("a")).status == 200


def _with(preconditions: dict[str, str]) -> dict[str, object]:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}


def test_preconditions_that_hold_let_the_delete_through(widgets: Collection) -> None:
    """Uid and resourceVersion can be required."""
    metadata = widgets.fill("a")[0]["metadata"]
    options = _with({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]})
    assert widgets.api.delete(widgets.at("a"), options).json["status"] == "Success"


def test_another_uid_is_a_conflict(widgets: Collection) -> None:
    """The message names both uids, and the Kind instead of the resource."""
    uid = widgets.fill("a")[0]["metadata"]["uid"]
    answer = widgets.api.delete(widgets.at("a"), _with({"uid": "other"}))
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert answer.json["message"] == (
        'Operation cannot be fulfilled on Widget.ex.io "a": the UID in the precondition (other) '
        f"does not match the UID in record ({uid}). The object might have been deleted and then "
        "recreated"
    )
    assert answer.json["details"]["kind"] == "Widget"
    assert widgets.api.get(widgets.at("a")).status == 200


def test_another_version_is_a_conflict(widgets: Collection) -> None:
    """The message names both versions."""
    version = widgets.fill("a")[0]["metadata"]["resourceVersion"]
    answer = widgets.api.delete(widgets.at("a"), _with({"resourceVersion": "1"}))
    assert answer.status == 409
    assert answer.json["message"] == (
        'Operation cannot be fulfilled on Widget.ex.io "a": the ResourceVersion in the '
        f"precondition (1) does not match the ResourceVersion in record ({version}). "
        "The object might have been modified"
    )


def test_a_dry_delete_deletes_nothing(widgets: Collection) -> None:
    """dryRun=All answers a success."""
    widgets.fill("a")
    assert widgets.api.delete(widgets.at("a"), params={"dryRun": "All"}).status == 200
    assert widgets.api.get(widgets.at("a")).status == 200


def test_a_collection_answers_what_it_held(widgets: Collection) -> None:
    """Deletecollection gives the list of before; each object is an event at its own version."""
    created = widgets.fill("a", "b")
    with widgets.api.watch(widgets.path, {"resourceVersion": widgets.version()}) as watch:
        answer = widgets.api.delete(widgets.path)
        events = [watch.event() for _ in range(2)]
    assert answer.json["items"] == created
    assert {event["type"] for event in events} == {"DELETED"}
    assert len({event["object"]["metadata"]["resourceVersion"] for event in events}) == 2
    assert widgets.api.get(widgets.path).names == []


def test_a_limit_deletes_the_first_ones(widgets: Collection) -> None:
    """limit=1 takes one object."""
    widgets.fill("a", "b")
    assert widgets.api.delete(widgets.path, params={"limit": 1}).names == ["a"]
    assert widgets.api.get(widgets.path).names == ["b"]


def test_all_namespaces_at_once_cannot_be_deleted(api: Wire) -> None:
    """DELETE on the collection of all namespaces is no path at all."""
    answer = api.delete("/apis/ex.io/v1/widgets")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


def test_a_deleted_namespace_terminates_and_takes_no_more(api: Wire, widgets: Collection) -> None:
    """Without a controller its content stays, and nothing new is created in it."""
    widgets.fill("a")
    answer = api.delete(f"/api/v1/namespaces/{widgets.namespace}")
    assert (answer.status, answer.json["status"]["phase"]) == (200, "Terminating")
    refused = widgets.api.post(widgets.path, widget("b"))
    assert refused.status == 403
    assert refused.json["message"] == (
        f'widgets.ex.io "b" is forbidden: unable to create new content in namespace '
        f"{widgets.namespace} because it is being terminated"
    )
    assert refused.json["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {widgets.namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert widgets.api.get(widgets.path).names == ["a"]
