"""Writes replayed from recordings of a real server, and what no recording shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dyninformer.testing.cluster.log import GroupResource, Key
from dyninformer.testing.cluster.write_options import (
    APPLY,
    MERGE,
    STRATEGIC,
    DeleteOptions,
    WriteOptions,
    delete_options,
    write_options,
)
from dyninformer.testing.status import ApiError
from dyninformer.types import Object
from tests.testing.cluster.recordings import golden, recorded
from tests.testing.cluster.small_cluster import OPTIONS, THINGS, SmallCluster, crd, without_chance

Answers = dict[str, tuple[int, Object]]

_ELSEWHERE = {
    # answered before a writer is reached, or with a body that the recording does not hold
    "POST with content type text/plain",
    "duplicate field, fieldValidation=Strict",
    "DELETE collection across namespaces",
    "POST to the all-namespaces collection",
    "PUT on a collection",
    # CEL rules are not evaluated
    "create invalid: CEL rule",
}


def _of_things(topic: str) -> list[Object]:
    return [
        each
        for each in golden(topic)
        if each["request"]["method"] != "GET"
        and "/wr.io/" in each["request"]["path"]
        and each["name"] not in _ELSEWHERE
        and "deletecollection" not in each["name"]
    ]


def _in_order() -> list[Object]:
    """The recorded writes in the order in which they were made."""
    writes, errors, deletes = (_of_things(topic) for topic in ("writes", "errors", "deletes"))
    before = [each["name"] for each in errors].index("delete again")
    late = {each["name"]: each for each in errors[before:]}
    early = [each for each in errors[:before] if each["name"] != "apply conflict"]
    late["apply conflict"] = recorded("errors", "apply conflict")
    after = {
        "apply by a second manager, list merge": "apply conflict",
        "delete": "delete again",
        "delete it again": "add a finalizer while deleting",
        "spec change while deleting": "create same name while deleting",
        "delete propagationPolicy=Background": "delete propagationPolicy=Bogus",
    }
    found: list[Object] = []
    for each in writes + early + deletes:
        found.append(each)
        if each["name"] in after:
            found.append(late.pop(after[each["name"]]))
    assert not late
    return found


RECORDED = {each["name"]: each for each in _in_order()}


@pytest.fixture(scope="module")
def answers() -> Answers:
    """Every recorded write, made here in the same order."""
    small = SmallCluster()
    small.things()
    found: Answers = {}
    for name, recording in RECORDED.items():
        if name.startswith("delete propagationPolicy=") and "Bogus" not in name:
            small.thing(
                recording["request"]["path"].partition("?")[0].rpartition("/")[2], {"replicas": 1}
            )
        found[name] = small.replay(recording)
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_write_gets_the_recorded_answer(name: str, answers: Answers) -> None:
    """A write that was recorded of a real server is answered here as it was there."""
    status, body = answers[name]
    response = RECORDED[name]["response"]
    expected = without_chance(response["body"])
    assert (status, _comparable(without_chance(body))) == (
        response["status"],
        _comparable(expected),
    )


def _comparable(body: Object) -> Object:
    """The order in which a server finds faults with a schema is chance there."""
    details = body.get("details")
    if not details or "causes" not in details:
        return body
    causes = sorted(details["causes"], key=lambda each: (each.get("field", ""), each["message"]))
    parts = sorted(str(body["message"]).partition(": ")[2].strip("[]").split(", "))
    return {**body, "message": parts, "details": {**details, "causes": causes}}


@pytest.fixture
def small() -> SmallCluster:
    """A cluster with the recorded CRD."""
    found = SmallCluster()
    found.things()
    return found


def refused(write: Callable[[], Any]) -> ApiError:
    """The refusal of a write."""
    with pytest.raises(ApiError) as caught:
        write()
    return caught.value


def test_a_no_op_write_makes_no_revision(small: SmallCluster) -> None:
    """A patch that changes nothing answers 200 with the old version and is not stored."""
    things = small.resource("things", "wr.io")
    before = small.thing("a", {"replicas": 1})
    revision = small.cluster.log.revision
    small.clock.advance(60)
    again = small.merge(things, Key("ns1", "a"), {"spec": {"replicas": 1}})
    assert (again, small.cluster.log.revision) == (before, revision)


@pytest.mark.parametrize(
    ("was", "now"), [(True, 1), (0, False), ([{"a": True}], [{"a": 1}]), ({"a": 0}, {"a": False})]
)
def test_a_boolean_in_the_place_of_a_number_is_a_change(was: object, now: object) -> None:
    """A merge, an apply and a status as well: each is stored, with the managers of its fields."""
    small = SmallCluster()
    small.install(crd("opens", "Open", subresources={"status": {}}))
    opens, key = small.resource("opens", "wr.io"), Key("ns1", "a")
    shape = {"apiVersion": "wr.io/v1", "kind": "Open", "metadata": {"name": "a"}}
    small.add("opens", {**shape, "spec": {"v": was}}, "ns1", "wr.io")
    merged = small.merge(opens, key, {"spec": {"v": now}})
    assert repr(merged["spec"]["v"]) == repr(now)
    assert merged["metadata"]["generation"] == 2
    applied = small.apply(opens, key, {**shape, "spec": {"v": was}}, force=True).object
    assert repr(applied["spec"]["v"]) == repr(was)
    small.merge(opens, key, {"status": {"v": was}}, "status")
    told = small.merge(opens, key, {"status": {"v": now}}, "status")
    assert repr(told["status"]["v"]) == repr(now)


@pytest.mark.parametrize(
    ("patch", "subresource", "generation"),
    [
        ({"spec": {"replicas": 5}}, "", 2),
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"status": {"x": 1}}, "", 1),
        ({"status": {"x": 1}}, "status", 1),
        ({"spec": {"replicas": 5}}, "scale", 2),
    ],
)
def test_generation_counts_changes_of_the_spec(
    small: SmallCluster, patch: Object, subresource: str, generation: int
) -> None:
    """The generation rises with changes outside metadata and status, and with nothing else."""
    small.thing("a", {"replicas": 1})
    small.merge(small.resource("things", "wr.io"), Key("ns1", "a"), patch, subresource)
    live = small.live(THINGS, "a", "ns1")
    assert live is not None
    assert live["metadata"]["generation"] == generation


def test_without_a_status_subresource_status_is_like_any_field(small: SmallCluster) -> None:
    """Without the subresource a create keeps status, and its change raises the generation."""
    small.install(crd("plains", "Plain"))
    plains = small.resource("plains", "wr.io")
    body = {
        "apiVersion": "wr.io/v1",
        "kind": "Plain",
        "metadata": {"name": "p"},
        "status": {"x": 1},
    }
    assert small.writer.create(plains, "ns1", body, OPTIONS).object["status"] == {"x": 1}
    changed = small.merge(plains, Key("ns1", "p"), {"status": {"x": 2}})
    assert changed["metadata"]["generation"] == 2


def test_a_dry_run_stores_nothing(small: SmallCluster) -> None:
    """A dry run answers in full, without a resourceVersion on create, and leaves no trace."""
    things, revision = small.resource("things", "wr.io"), small.cluster.log.revision
    body = {"apiVersion": "wr.io/v1", "kind": "Thing", "metadata": {"name": "d"}, "spec": {}}
    result = small.writer.create(things, "ns1", body, WriteOptions(dry_run=True))
    assert result.status == 201
    assert result.object["spec"] == {"color": "red"}
    assert "resourceVersion" not in result.object["metadata"]
    assert small.cluster.log.revision == revision
    small.thing("d")
    small.writer.patch(
        things, Key("ns1", "d"), MERGE, {"spec": {"replicas": 3}}, WriteOptions(dry_run=True)
    )
    small.delete(things, Key("ns1", "d"), dry_run=True)
    assert small.cluster.log.revision == revision + 1


def test_stored_objects_are_never_changed(small: SmallCluster) -> None:
    """A version keeps its content whatever is written later."""
    small.thing("a", {"replicas": 1}, labels={"x": "1"})
    first = small.cluster.log.get(THINGS, Key("ns1", "a"))
    assert first is not None
    kept = repr(first.object)
    things = small.resource("things", "wr.io")
    small.merge(
        things, Key("ns1", "a"), {"metadata": {"labels": {"y": "2"}}, "spec": {"color": "green"}}
    )
    small.json(things, Key("ns1", "a"), [{"op": "add", "path": "/metadata/labels/z", "value": "3"}])
    small.delete(things, Key("ns1", "a"))
    assert repr(first.object) == kept


def test_a_deleted_event_shows_the_last_stored_state(small: SmallCluster) -> None:
    """The DELETED of an object whose last finalizer went still shows that finalizer."""
    things = small.resource("things", "wr.io")
    small.thing("a", finalizers=["x.io/f"])
    small.delete(things, Key("ns1", "a"))
    answer = small.merge(things, Key("ns1", "a"), {"metadata": {"finalizers": None}})
    kind, last = small.events(THINGS)[-1]
    assert "finalizers" not in answer["metadata"]
    assert (kind, last["metadata"]["finalizers"]) == ("DELETED", ["x.io/f"])
    assert int(last["metadata"]["resourceVersion"]) > int(answer["metadata"]["resourceVersion"])


def test_deletecollection_deletes_what_it_was_given(small: SmallCluster) -> None:
    """A collection is deleted object by object; those with finalizers are marked."""
    for name in ("a", "b", "c"):
        small.thing(name, finalizers=["x.io/f"] if name == "b" else [])
    after = small.cluster.log.revision
    things = small.resource("things", "wr.io")
    versions = small.cluster.log.items(THINGS)[:2]
    small.writer.delete_collection(things, "ns1", DeleteOptions(), versions)
    said = [(kind, obj["metadata"]["name"]) for kind, obj in small.events(THINGS, after)]
    assert said == [("DELETED", "a"), ("MODIFIED", "b")]


def test_the_recorded_deletecollection_marks_as_recorded(small: SmallCluster) -> None:
    """Objects that a foreground delete holds look as they did on the real server."""
    small.thing("fg")
    marked = small.delete(
        small.resource("things", "wr.io"), Key("ns1", "fg"), propagation_policy="Foreground"
    )
    items = recorded("deletes", "deletecollection dryRun")["response"]["body"]["items"]
    theirs = next(each for each in items if each["metadata"]["name"] == "fg")
    assert marked["metadata"]["finalizers"] == theirs["metadata"]["finalizers"]
    assert marked["metadata"]["generation"] == theirs["metadata"]["generation"] == 2


def test_generated_names_are_new(small: SmallCluster) -> None:
    """A generateName gives a name of five more characters, another one each time."""
    things = small.resource("things", "wr.io")
    body = {
        "apiVersion": "wr.io/v1",
        "kind": "Thing",
        "metadata": {"generateName": "g-"},
        "spec": {},
    }
    made = {
        small.writer.create(things, "ns1", body, OPTIONS).object["metadata"]["name"]
        for _ in range(20)
    }
    assert len(made) == 20
    assert {len(name) for name in made} == {7}


def test_the_same_seed_gives_the_same_uids() -> None:
    """Two clusters of one seed that are written to alike hold the same objects."""
    first, second = SmallCluster(), SmallCluster()
    for each in (first, second):
        each.things()
        each.thing("a")
    assert first.live(THINGS, "a", "ns1") == second.live(THINGS, "a", "ns1")


def test_the_size_of_an_object_is_limited_as_by_etcd(small: SmallCluster) -> None:
    """A body that etcd would not take is refused with etcd's words."""
    things = small.resource("things", "wr.io")
    body = {"apiVersion": "wr.io/v1", "kind": "Thing", "metadata": {"name": "big"}, "spec": {}}
    error = refused(lambda: small.writer.create(things, "ns1", body, WriteOptions(size=1_600_000)))
    theirs = recorded("errors", "body of 1600000 bytes")["response"]
    assert (error.code, error.body()) == (theirs["status"], theirs["body"])


@pytest.mark.parametrize(
    ("name", "query", "body"),
    [
        ("fieldValidation bogus", {"fieldValidation": "Bogus"}, None),
        ("dryRun bogus", {"dryRun": "Bogus"}, None),
    ],
)
def test_bad_options_are_refused_as_recorded(name: str, query: Object, body: object) -> None:
    """Options that do not exist get the recorded 422."""
    del body
    error = refused(lambda: write_options("CreateOptions", query.get, {}))
    assert error.body() == recorded("errors", name)["response"]["body"]


def test_delete_options_come_from_body_or_query() -> None:
    """A body's options count; the query's do where there is no body."""
    preconditions = {"uid": "u", "resourceVersion": "7"}
    body = {"propagationPolicy": "Orphan", "preconditions": preconditions, "dryRun": ["All"]}
    assert delete_options(lambda _: None, body) == DeleteOptions(
        dry_run=True, propagation_policy="Orphan", uid="u", resource_version="7"
    )
    query = {"propagationPolicy": "Foreground"}
    assert delete_options(query.get, None).propagation_policy == "Foreground"


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "manager"),
    [
        ("me", "kubectl/v1.36", "me"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "", "unknown"),
    ],
)
def test_the_manager_is_named_by_parameter_or_agent(
    field_manager: str, user_agent: str, manager: str
) -> None:
    """The field manager counts, else the user agent up to its slash."""
    options = WriteOptions(field_manager=field_manager, user_agent=user_agent)
    assert options.manager == manager


def test_built_in_objects_take_a_put_without_a_version(small: SmallCluster) -> None:
    """Built-in kinds can be replaced unconditionally; custom resources cannot."""
    configmaps = small.resource("configmaps")
    small.add("configmaps", {"metadata": {"name": "c"}, "data": {"a": "1"}}, "ns1")
    body = {"metadata": {"name": "c"}, "data": {"a": "2"}}
    replaced = small.writer.replace(configmaps, Key("ns1", "c"), body, OPTIONS)
    assert replaced.object["data"] == {"a": "2"}


def test_a_put_creates_a_lease(small: SmallCluster) -> None:
    """Kinds that may be created by an update are; others answer 404."""
    leases = small.resource("leases", "coordination.k8s.io")
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert small.writer.replace(leases, Key("ns1", "l"), body, OPTIONS).status == 201
    configmaps = small.resource("configmaps")
    gone = {"metadata": {"name": "c"}}
    assert (
        refused(lambda: small.writer.replace(configmaps, Key("ns1", "c"), gone, OPTIONS)).code
        == 404
    )


def test_secrets_take_plain_text(small: SmallCluster) -> None:
    """A Secret's stringData is stored encoded, as data, and its type is filled in."""
    secret = small.add("secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}, "ns1")
    assert secret["data"] == {"a": "Yg=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


@pytest.mark.parametrize("subresource", ["status", "scale", "nope"])
def test_a_subresource_that_is_off_is_reported_as_no_object(
    small: SmallCluster, subresource: str
) -> None:
    """Where a subresource is not enabled, the object itself is said to be missing."""
    small.install(crd("nosts", "Nost", group="ns.io"))
    nosts = small.resource("nosts", "ns.io")
    body = {"apiVersion": "ns.io/v1", "kind": "Nost", "metadata": {"name": "a"}}
    small.writer.create(nosts, "ns1", body, OPTIONS)
    error = refused(lambda: small.merge(nosts, Key("ns1", "a"), {"status": {"x": 3}}, subresource))
    assert error.body() == recorded("errors", "status subresource not enabled")["response"]["body"]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "a"}, "spec": 1},
        {"metadata": {"name": "a"}, "spec": {"versions": [None], "names": None}},
        {"metadata": {"name": "a"}, "spec": {"versions": {}, "names": {"plural": 3}}},
        {"metadata": {"name": "a", "labels": {"a": None, "b": []}}, "spec": {}},
        {"metadata": [], "spec": {}},
        {"metadata": {"name": ["a"]}},
        {"kind": 3, "metadata": {"name": "a"}},
        {"metadata": {"name": "a", "managedFields": [{"fieldsV1": 3}, {}]}, "spec": {"scope": []}},
    ],
)
def test_nonsense_in_place_of_a_crd_is_a_clean_refusal(small: SmallCluster, body: Object) -> None:
    """Whatever shape a body has, the answer is a 4xx."""
    crds = small.resource("customresourcedefinitions", "apiextensions.k8s.io")
    error = refused(lambda: small.writer.create(crds, "", body, OPTIONS))
    assert 400 <= error.code < 500


@pytest.mark.parametrize(
    "patch",
    [
        {"status": None},
        {"status": {"conditions": None, "acceptedNames": None}},
        {"status": {"conditions": [None], "storedVersions": None}},
    ],
)
def test_a_crd_survives_nonsense_in_its_status(small: SmallCluster, patch: Object) -> None:
    """A CRD whose status is wiped goes on being served, and its status is written anew."""
    crds = small.resource("customresourcedefinitions", "apiextensions.k8s.io")
    small.merge(crds, Key("", "things.wr.io"), patch, "status")
    assert small.serves("things", "wr.io")
    live = small.live(
        GroupResource("apiextensions.k8s.io", "customresourcedefinitions"), "things.wr.io"
    )
    assert live is not None
    assert live["status"]["acceptedNames"]["plural"] == "things"


def test_an_unknown_patch_type_is_refused(small: SmallCluster) -> None:
    """Custom resources take no strategic merge patch: the 415 names what they take."""
    small.thing("a")
    things = small.resource("things", "wr.io")
    error = refused(lambda: small.writer.patch(things, Key("ns1", "a"), STRATEGIC, b"{}", OPTIONS))
    theirs = recorded("errors", "strategic merge patch refused")["response"]["body"]
    assert error.body() == theirs
    assert APPLY in error.message
