"""A CRD comes, serves, goes, and what clients of its resource see of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dyninformer.types import Object
from tests.conformance.shapes import ANYTHING, CRDS, crd
from tests.conformance.wire import Wire, until

Install = Callable[..., None]

NOT_FOUND = "404 page not found\n"


@pytest.fixture
def shape(group: str) -> Object:
    """A CRD that nobody has installed."""
    return crd(group, "gadgets", "Gadget", ANYTHING)


@pytest.fixture
def gadgets(shape: Object, namespace: str) -> str:
    """Where its objects of one namespace would be."""
    return f"/apis/{shape['spec']['group']}/v1/namespaces/{namespace}/gadgets"


def gadget(shape: Object, name: str, **metadata: object) -> Object:
    """A Gadget."""
    group = shape["spec"]["group"]
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Gadget",
        "metadata": {"name": name, **metadata},
    }


def at(shape: Object) -> str:
    """The path of a CRD."""
    return f"{CRDS}/{shape['metadata']['name']}"


def conditions(obj: Object) -> dict[str, tuple[str, str]]:
    """Type -> (status, reason)."""
    found = obj["status"]["conditions"] or []
    return {c["type"]: (c["status"], c["reason"]) for c in found}


def test_a_created_crd_has_no_conditions_yet(api: Wire, shape: Object) -> None:
    """The answer to the POST is the CRD before anyone has looked at it."""
    answer = api.post(CRDS, shape)
    assert answer.status == 201
    assert answer.json["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert answer.json["spec"]["conversion"] == {"strategy": "None"}
    assert answer.json["spec"]["names"]["listKind"] == "GadgetList"


def test_a_watch_on_crds_sees_it_accepted_and_established(api: Wire, shape: Object) -> None:
    """ADDED, then the names are accepted, then it is established."""
    params = {
        "fieldSelector": f"metadata.name={shape['metadata']['name']}",
        "resourceVersion": api.get(CRDS).version,
    }
    with api.watch(CRDS, params) as watch:
        api.post(CRDS, shape)
        events = [watch.event() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert [conditions(event["object"]) for event in events] == [
        {},
        {"NamesAccepted": ("True", "NoConflicts"), "Established": ("False", "Installing")},
        {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")},
    ]


def test_what_no_crd_serves_is_a_page_not_found(api: Wire, gadgets: str) -> None:
    """Before the CRD every verb on its paths is a text 404."""
    for answer in (
        api.get(gadgets),
        api.get(f"{gadgets}/a"),
        api.get(gadgets, {"watch": "1"}),
        api.post(gadgets, {}),
        api.get(gadgets.partition("/namespaces")[0]),
    ):
        assert (answer.status, answer.text) == (404, NOT_FOUND)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_served_resource_is_listed_at_once(
    api: Wire, shape: Object, gadgets: str, install: Install
) -> None:
    """An established CRD's collection is there and empty."""
    install(shape)
    assert api.get(gadgets).names == []


def test_deleting_a_crd_answers_the_crd(api: Wire, shape: Object, install: Install) -> None:
    """It is marked, kept by its own finalizer, and Terminating."""
    install(shape)
    answer = api.delete(at(shape))
    assert answer.status == 200
    metadata = answer.json["metadata"]
    assert answer.json["kind"] == "CustomResourceDefinition"
    assert metadata["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert metadata["deletionTimestamp"]
    assert conditions(answer.json)["Terminating"] == ("True", "InstanceDeletionPending")


def test_a_deleted_crd_takes_its_objects_along(
    api: Wire, shape: Object, gadgets: str, install: Install
) -> None:
    """A watch hears DELETED for each object, then ends cleanly; the path is gone."""
    install(shape)
    for name in ("a", "b"):
        assert api.post(gadgets, gadget(shape, name)).status == 201
    with api.watch(gadgets, {"resourceVersion": api.get(gadgets).version}) as watch:
        api.delete(at(shape))
        events = watch.rest()
    told = sorted((event["type"], event["object"]["metadata"]["name"]) for event in events)
    assert told == [("DELETED", "a"), ("DELETED", "b")]
    assert until(lambda: api.get(gadgets)).text == NOT_FOUND
    assert api.get(at(shape)).status == 404


def test_the_crds_end_is_told_in_three_steps(api: Wire, shape: Object, install: Install) -> None:
    """Pending, in progress, DELETED."""
    install(shape)
    params = {
        "fieldSelector": f"metadata.name={shape['metadata']['name']}",
        "resourceVersion": api.get(CRDS).version,
    }
    with api.watch(CRDS, params) as watch:
        api.delete(at(shape))
        events = [watch.event() for _ in range(3)]
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert [conditions(event["object"])["Terminating"][1] for event in events[:2]] == [
        "InstanceDeletionPending",
        "InstanceDeletionInProgress",
    ]


def test_an_object_with_a_finalizer_keeps_the_crd(
    api: Wire, shape: Object, gadgets: str, install: Install
) -> None:
    """Until it is let go the CRD terminates: objects are served, and nothing new is created."""
    install(shape)
    api.post(gadgets, gadget(shape, "a", finalizers=["x.io/y"]))
    assert api.delete(at(shape)).status == 200
    held = until(lambda: _marked(api, f"{gadgets}/a"))
    assert held["metadata"]["finalizers"] == ["x.io/y"]
    refused = api.post(gadgets, gadget(shape, "new"))
    group = shape["spec"]["group"]
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert refused.json["message"] == (
        f'gadgets.{group} "new" is forbidden: '
        "create not allowed while custom resource definition is terminating"
    )
    again = api.post(CRDS, shape)
    assert again.status == 409
    assert again.json["message"] == (
        "object is being deleted: customresourcedefinitions.apiextensions.k8s.io "
        f'"gadgets.{group}" already exists'
    )
    verbs = api.get(f"/apis/{group}/v1").json["resources"][0]["verbs"]
    assert verbs == ["delete", "deletecollection", "get", "list", "watch"]
    assert api.patch(f"{gadgets}/a", {"metadata": {"finalizers": None}}).status == 200
    until(lambda: api.get(at(shape)).status == 404, patience=15)


def _marked(api: Wire, path: str) -> Object | None:
    found: Object = api.get(path).json
    return found if "deletionTimestamp" in found["metadata"] else None


def test_a_resource_can_come_back(api: Wire, shape: Object, gadgets: str, install: Install) -> None:
    """A CRD created again serves an empty collection, at higher versions than before."""
    install(shape)
    before = api.post(gadgets, gadget(shape, "a")).version
    api.delete(at(shape))
    until(lambda: api.get(at(shape)).status == 404)
    install(shape)
    answer = api.get(gadgets)
    assert answer.names == []
    assert int(answer.version) > int(before)


def test_a_watch_from_before_the_return_is_expired(
    api: Wire, shape: Object, gadgets: str, install: Install
) -> None:
    """The new collection remembers nothing of the old one."""
    install(shape)
    before = api.post(gadgets, gadget(shape, "a")).version
    api.delete(at(shape))
    until(lambda: api.get(at(shape)).status == 404)
    install(shape)
    with api.watch(gadgets, {"resourceVersion": before}) as watch:
        (event,) = watch.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_names_that_are_taken_are_not_accepted(api: Wire, shape: Object, install: Install) -> None:
    """A second CRD of the same group with the same list kind waits, unserved, for the first."""
    group = shape["spec"]["group"]
    install(shape)
    rival = crd(group, "others", "Other", ANYTHING)
    rival["spec"]["names"]["listKind"] = "GadgetList"
    api.post(CRDS, rival)
    found = until(lambda: _judged(api, rival))
    assert conditions(found) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    messages = [condition["message"] for condition in found["status"]["conditions"]]
    assert messages == ['"GadgetList" is already in use', "not all names are accepted"]
    assert api.get(f"/apis/{group}/v1/others").text == NOT_FOUND
    api.delete(at(shape))
    until(lambda: api.get(f"/apis/{group}/v1/others").status == 200)


def _judged(api: Wire, shape: Object) -> Object | None:
    found: Object = api.get(at(shape)).json
    return found if found["status"]["conditions"] else None


@pytest.mark.parametrize("field", ["metadata.name", "spec.scope", "spec.versions"])
def test_a_crd_that_cannot_be_is_refused(api: Wire, shape: Object, field: str) -> None:
    """A CRD not named plural.group, or without scope or storage version, is a 422 that says so."""
    match field:
        case "metadata.name":
            shape["metadata"]["name"] = "wrong.name.io"
        case "spec.scope":
            del shape["spec"]["scope"]
        case _:
            shape["spec"]["versions"][0]["storage"] = False
    answer = api.post(CRDS, shape)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert field in {cause["field"] for cause in answer.json["details"]["causes"]}


def test_every_answer_of_a_deprecated_version_has_a_warning(
    api: Wire, install: Install, shape: Object, namespace: str
) -> None:
    """The version's own text, or one that names the newest served version to use instead."""
    served = shape["spec"]["versions"][0]
    old = {**served, "storage": False, "deprecated": True}
    versions = [
        served,
        {**served, "name": "v2", "storage": False},
        {**served, "name": "v3", "storage": False, "served": False},
        {**old, "name": "v1beta1"},
        {**old, "name": "v1alpha1", "deprecationWarning": 'it is "old"'},
        {**old, "name": "v9"},
    ]
    install({**shape, "spec": {**shape["spec"], "versions": versions}})
    group = shape["spec"]["group"]

    def warnings(path: str, method: str = "GET", body: object = None) -> list[str]:
        answer = api.send(method, f"/apis/{group}/{path}", body)
        return answer.headers.getlist("Warning")  # type: ignore[attr-defined, no-any-return]

    told = f'299 - "{group}/v1beta1 Gadget is deprecated; use {group}/v2 Gadget"'
    gadgets = f"v1beta1/namespaces/{namespace}/gadgets"
    body = {"apiVersion": f"{group}/v1beta1", "kind": "Gadget", "metadata": {"name": "a"}}
    assert warnings(gadgets, "POST", body) == [told]
    assert warnings(f"{gadgets}/a") == warnings(f"{gadgets}/none") == [told]
    assert warnings("v1beta1/gadgets") == [told]
    assert warnings("v1beta1/gadgets?watch=1&timeoutSeconds=1") == [told]
    assert warnings(f"{gadgets}/a", "DELETE") == [told]
    assert warnings("v1alpha1/gadgets") == [r'299 - "it is \"old\""']
    assert warnings("v9/gadgets") == [f'299 - "{group}/v9 Gadget is deprecated"']
    assert warnings("v1/gadgets") == warnings("v2/gadgets") == []
