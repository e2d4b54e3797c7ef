"""Patches of all four kinds, and the bounds that hostile ones meet."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.patches import json_patch, merge_patch, read_patch, strategic_merge
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.shapes import shape_of
from dyninformer.testing.status import ApiError
from dyninformer.types import Object
from tests.testing.cluster.small_cluster import THINGS, SmallCluster, crd

BASE: Object = {"spec": {"l": ["x"], "any": {}}, "metadata": {"labels": {"a": "1"}}}
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True, builtin=True)


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"metadata": {"labels": {"a": None}}}, {"spec": BASE["spec"], "metadata": {"labels": {}}}),
        ({"spec": {"l": ["y"]}}, {**BASE, "spec": {"l": ["y"], "any": {}}}),
        ({"spec": None}, {"metadata": BASE["metadata"]}),
        ({"new": {"a": {"b": None, "c": 1}}}, {**BASE, "new": {"a": {"c": 1}}}),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_the_rest(patch: Object, result: Object) -> None:
    """RFC 7396, without a change to what it is applied to."""
    before = deepcopy(BASE)
    assert merge_patch(BASE, patch) == result
    assert before == BASE


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/spec/l/-", "value": "y"}, {"l": ["x", "y"], "any": {}}),
        (
            {"op": "copy", "from": "/spec/l", "path": "/spec/any/l"},
            {"l": ["x"], "any": {"l": ["x"]}},
        ),
        ({"op": "replace", "path": "/spec/zz", "value": 1}, {"l": ["x"], "any": {}, "zz": 1}),
        ({"op": "test", "path": "/spec/zz", "value": None}, {"l": ["x"], "any": {}}),
        ({"op": "move", "from": "/spec/l", "path": "/spec/m"}, {"m": ["x"], "any": {}}),
    ],
)
def test_a_json_patch_does_what_the_server_does(operation: Object, result: Object) -> None:
    """RFC 6902, and the two things that the server takes beyond it."""
    before = deepcopy(BASE)
    assert json_patch(BASE, [operation])["spec"] == result
    assert before == BASE


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/spec/nope"},
        {"op": "test", "path": "/spec/l", "value": 1},
        {"op": "nope", "path": "/a"},
        {"path": "/a"},
        {"op": "add", "path": "spec", "value": 1},
        {"op": "add", "path": "/spec/l/5", "value": "a"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/spec/l/x", "value": "a"},
        {"op": "add", "path": 3, "value": "a"},
        {"op": "copy", "from": None, "path": "/a"},
        {"op": "add", "path": "/metadata/labels/a/b/c", "value": 1},
        {"op": "replace", "path": {}, "value": 1},
        {"op": ["add"], "path": "/a", "value": 1},
    ],
)
def test_an_operation_that_fails_is_a_plain_422(operation: Object) -> None:
    """Whatever is wrong with an operation, the answer is the server's one sentence."""
    with pytest.raises(ApiError) as caught:
        json_patch(BASE, [operation])
    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "error decoding patch: unexpected end of JSON input"),
        (b"", "error decoding patch: unexpected end of JSON input"),
        (b"[" * 100_000, "error decoding patch: invalid character '[' exceeded max depth"),
    ],
)
def test_a_patch_that_is_no_json_is_a_400(body: bytes, message: str) -> None:
    """A body that cannot be read is refused in the words of a Go decoder."""
    with pytest.raises(ApiError) as caught:
        read_patch(body)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_copies_cannot_explode() -> None:
    """A patch that doubles a value again and again is refused before it fills the memory."""
    operations: list[Any] = [{"op": "add", "path": "/spec/any", "value": {"a": "x" * 1000}}]
    operations += [{"op": "copy", "from": "/spec/any", "path": f"/spec/any/{n}"} for n in range(40)]
    with pytest.raises(ApiError) as caught:
        json_patch(BASE, operations)
    assert caught.value.code == 422


def test_patches_cannot_nest_without_end() -> None:
    """Neither copies nor additions make an object too deep to be handled."""
    copies = [{"op": "copy", "from": "/spec", "path": "/spec/any/again"} for _ in range(300)]
    additions = [{"op": "add", "path": "/spec/any" + "/a" * n, "value": {}} for n in range(1, 300)]
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}
    for attempt in (
        lambda: json_patch(BASE, copies * 2),
        lambda: json_patch(BASE, additions),
        lambda: merge_patch(BASE, {"spec": deep}),
    ):
        with pytest.raises(ApiError) as caught:
            attempt()
        assert caught.value.code == 422


def test_a_patch_has_at_most_ten_thousand_operations() -> None:
    """One more is a 413 that says so."""
    operation = {"op": "test", "path": "/spec/l", "value": ["x"]}
    with pytest.raises(ApiError) as caught:
        json_patch(BASE, [operation] * 10_001)
    assert caught.value.code == 413
    assert caught.value.message.endswith("maximum operations in a JSON patch is 10000, got 10001")


CONTAINERS: list[Object] = [
    {"name": "a", "image": "i", "env": [{"name": "E", "value": "1"}]},
    {"name": "b", "image": "j"},
]


def pod(**spec: Any) -> Object:
    """A deployment's template."""
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        (
            {"containers": [{"name": "b", "image": "k"}]},
            [CONTAINERS[0], {"name": "b", "image": "k"}],
        ),
        (
            {"containers": [{"name": "c", "image": "k"}]},
            [{"name": "c", "image": "k"}, *CONTAINERS],
        ),
        ({"containers": [{"name": "b", "$patch": "delete"}]}, CONTAINERS[:1]),
        (
            {"containers": [{"$patch": "replace"}, {"name": "z", "image": "q"}]},
            [{"name": "z", "image": "q"}],
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "b", "image": "z"}],
            },
            [{"name": "b", "image": "z"}, CONTAINERS[0]],
        ),
        (
            {"containers": [{"name": "a", "env": [{"name": "E", "$patch": "delete"}]}]},
            [{"name": "a", "image": "i"}, CONTAINERS[1]],
        ),
    ],
)
def test_a_strategic_merge_patch_merges_containers_by_name(
    patch: Object, result: list[Object]
) -> None:
    """Lists with keys merge item by item, in the order a real server gave; $patch directs."""
    before = pod(containers=CONTAINERS)
    merged = strategic_merge(before, pod(**patch), shape_of(DEPLOYMENTS))
    assert merged == pod(containers=result)
    assert before == pod(containers=CONTAINERS)


def test_lists_without_keys_are_replaced() -> None:
    """Tolerations are one value."""
    before = pod(tolerations=[{"key": "a"}])
    merged = strategic_merge(before, pod(tolerations=[{"key": "b"}]), shape_of(DEPLOYMENTS))
    assert merged == pod(tolerations=[{"key": "b"}])


def test_finalizers_merge_by_value() -> None:
    """A set gains what is new, and loses what $deleteFromPrimitiveList names."""
    before = {"metadata": {"finalizers": ["a", "b"]}}
    shape = shape_of(DEPLOYMENTS)
    assert strategic_merge(before, {"metadata": {"finalizers": ["b"]}}, shape) == {
        "metadata": {"finalizers": ["a", "b"]}
    }
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(before, patch, shape) == {"metadata": {"finalizers": ["b"]}}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$patch": "nope"}, "unknown patch type: nope in map: map[$patch:nope]"),
        ({"$patch": ["a", {}]}, "unknown patch type: [a map[]] in map: map[$patch:[a map[]]]"),
        (
            pod(containers=[{"image": "a"}]),
            "map: map[image:a] does not contain declared merge key: name",
        ),
    ],
)
def test_directives_that_make_no_sense_are_refused(patch: Object, message: str) -> None:
    """The server's words for them, and no traceback."""
    with pytest.raises(ApiError, match=r".*") as caught:
        strategic_merge(pod(containers=CONTAINERS), patch, shape_of(DEPLOYMENTS))
    assert caught.value.message == message


@pytest.fixture
def small() -> SmallCluster:
    """A cluster with the recorded CRD."""
    found = SmallCluster()
    found.things()
    return found


def managers(obj: Object | None) -> dict[str, Object]:
    """The fields by the managers that own them."""
    assert obj is not None
    return {each["manager"]: each["fieldsV1"] for each in obj["metadata"]["managedFields"]}


def test_apply_takes_away_what_it_no_longer_names(small: SmallCluster) -> None:
    """A field that a manager gave up, and no other manager owns, is removed from the object."""
    things, key = small.resource("things", "wr.io"), Key("ns1", "a")
    small.apply(things, key, {"spec": {"replicas": 1, "list": [{"name": "x", "v": 1}]}})
    small.apply(things, key, {"spec": {"replicas": 1}}, "you")
    changed = small.apply(things, key, {"spec": {"list": [{"name": "x"}]}}).object
    assert changed["spec"] == {"color": "red", "replicas": 1, "list": [{"name": "x"}]}
    assert managers(changed)["you"] == {"f:spec": {"f:replicas": {}}}
    gone = small.apply(things, key, {"spec": {}}).object
    assert "list" not in gone["spec"]


def test_apply_conflicts_with_whoever_owns_what_it_changes(small: SmallCluster) -> None:
    """Several conflicts are listed by manager, each with its path."""
    things, key = small.resource("things", "wr.io"), Key("ns1", "a")
    small.thing("a", {"replicas": 1, "list": [{"name": "x", "v": 1}]})
    with pytest.raises(ApiError) as caught:
        small.apply(things, key, {"spec": {"replicas": 2, "list": [{"name": "x", "v": 2}]}})
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "unknown" using wr.io/v1:\n'
        '- .spec.replicas\n- .spec.list[name="x"].v'
    )
    forced = small.apply(things, key, {"spec": {"replicas": 2}}, force=True).object
    assert managers(forced)["me"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in managers(forced)["unknown"]["f:spec"]


def test_apply_to_status_owns_status_alone(small: SmallCluster) -> None:
    """What else a configuration says is ignored there, and no manager owns it for that."""
    things, key = small.resource("things", "wr.io"), Key("ns1", "a")
    small.thing("a", {"replicas": 1})
    config = {"spec": {"replicas": 7}, "status": {"phase": "Ready"}}
    changed = small.apply(things, key, config, subresource="status").object
    assert (changed["spec"]["replicas"], changed["status"]) == (1, {"phase": "Ready"})
    assert managers(changed)["me"] == {"f:status": {"f:phase": {}}}


def test_the_same_apply_again_changes_nothing(small: SmallCluster) -> None:
    """Applying twice is one revision."""
    things, key = small.resource("things", "wr.io"), Key("ns1", "a")
    config = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}
    assert small.apply(things, key, config).status == 201
    revision = small.cluster.log.revision
    small.clock.advance(60)
    assert small.apply(things, key, config).status == 200
    assert small.cluster.log.revision == revision


UNTYPED = "failed to create typed patch object (/; wr.io/v1, Kind=Thing): "


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ({"kind": "Other"}, 400, "invalid object type: wr.io/v1, Kind=Other"),
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (
            {"spec": {"zz": 1}},
            500,
            f"{UNTYPED}.spec.zz: field not declared in schema",
        ),
        (
            {"spec": {"list": [{"name": "q"}, {"name": "q"}]}},
            500,
            f'{UNTYPED}.spec.list: duplicate entries for key [name="q"]',
        ),
    ],
)
def test_a_configuration_that_cannot_be_applied_is_refused(
    small: SmallCluster, config: Object, code: int, message: str
) -> None:
    """The server's words for each."""
    things = small.resource("things", "wr.io")
    with pytest.raises(ApiError) as caught:
        small.apply(things, Key("ns1", "a"), config)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_an_update_owns_what_it_changed_and_what_it_removed_is_nobodys(small: SmallCluster) -> None:
    """The recorded rule: changed fields move to the writer, removed ones vanish."""
    things, key = small.resource("things", "wr.io"), Key("ns1", "a")
    small.apply(things, key, {"spec": {"replicas": 1, "color": "green"}})
    changed = small.merge(things, key, {"spec": {"replicas": 2, "color": None}})
    assert managers(changed)["unknown"] == {"f:spec": {"f:color": {}, "f:replicas": {}}}
    assert "me" not in managers(changed)


def test_a_merge_patch_can_write_free_form_data(small: SmallCluster) -> None:
    """Where the schema is open, any JSON is kept as it came, nulls in lists included."""
    small.install(crd("frees", "Free"))
    frees = small.resource("frees", "wr.io")
    config: Object = {"spec": {"a": [1, None, {"b": []}], "c": "ü\u2028"}}
    made = small.apply(frees, Key("ns1", "f"), config).object
    assert made["spec"] == config["spec"]
    assert small.live(THINGS, "f", "ns1") is None
