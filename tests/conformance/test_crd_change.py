"""What a change of a CRD does to readers of its resource."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from dyninformer.types import Object
from tests.conformance.cluster import Collection
from tests.conformance.shapes import ANYTHING, CRDS, crd, of_object
from tests.conformance.wire import MERGE, Wire, until

Install = Callable[..., None]
NUMBER = {"type": "integer"}


@pytest.fixture
def shape(group: str) -> Object:
    """A CRD whose spec has the numbers a and b."""
    schema = of_object(spec=of_object(a=NUMBER, b=NUMBER))
    return crd(group, "things", "Thing", schema)


@pytest.fixture
def things(api: Wire, namespace: str, shape: Object, install: Install) -> Collection:
    """Its objects, with one in it: t{a=1, b=2}."""
    install(shape)
    group = shape["spec"]["group"]
    found = Collection(api, namespace, f"/apis/{group}/v1/namespaces/{namespace}/things")
    found.create(thing(group, "t", a=1, b=2))
    return found


def thing(group: str, name: str, **spec: object) -> Object:
    """A Thing."""
    metadata = {"name": name}
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def change(api: Wire, shape: Object, versions: list[Object]) -> None:
    """Give the CRD other versions."""
    patch = {"spec": {"versions": versions}}
    answer = api.patch(f"{CRDS}/{shape['metadata']['name']}", patch)
    assert answer.status == 200, answer.text


def other_schema(shape: Object) -> list[Object]:
    """B is dropped, and c is there by default."""
    versions = copy.deepcopy(shape["spec"]["versions"])
    with_default = of_object(a=NUMBER, c={"type": "string", "default": "new"})
    versions[0]["schema"] = {"openAPIV3Schema": of_object(spec=with_default)}
    return list(versions)


def test_defaults_and_pruning_apply_when_read(api: Wire, shape: Object, things: Collection) -> None:
    """After the change the same object at the same version has other content."""
    before = api.get(things.at("t"))
    assert before.json["spec"] == {"a": 1, "b": 2}
    change(api, shape, other_schema(shape))
    until(lambda: api.get(things.at("t")).json["spec"] == {"a": 1, "c": "new"})
    after = api.get(things.at("t"))
    assert after.version == before.version
    until(lambda: api.get(things.path).status == 200)
    assert api.get(things.path).json["items"][0]["spec"] == {"a": 1, "c": "new"}


def test_open_watches_end_cleanly_without_an_event(
    api: Wire, shape: Object, things: Collection
) -> None:
    """The rebuilt storage closes every watch, and says nothing of the changed objects."""
    with api.watch(things.path, {"resourceVersion": things.version()}) as watch:
        change(api, shape, other_schema(shape))
        assert watch.rest() == []


def test_a_watch_from_before_the_change_is_expired(
    api: Wire, shape: Object, things: Collection
) -> None:
    """The rebuilt cache begins at the change: older versions are 410 in the stream."""
    version = api.get(things.at("t")).version
    things.create(thing(shape["spec"]["group"], "u", a=1))
    change(api, shape, other_schema(shape))
    until(lambda: api.get(things.at("t")).json["spec"].get("c") == "new")
    until(lambda: api.get(things.path).status == 200)
    with api.watch(things.path, {"resourceVersion": version}) as watch:
        (event,) = watch.rest()
    assert event["object"]["reason"] == "Expired"


def test_a_watch_from_after_the_change_goes_on(
    api: Wire, shape: Object, things: Collection
) -> None:
    """A list taken after the change can be followed."""
    change(api, shape, other_schema(shape))
    until(lambda: api.get(things.at("t")).json["spec"].get("c") == "new")
    until(lambda: api.get(things.path).status == 200)
    with api.watch(things.path, {"resourceVersion": things.version()}) as watch:
        things.create(thing(shape["spec"]["group"], "u", a=2))
        event = watch.event()
    assert event["object"]["spec"] == {"a": 2, "c": "new"}


def test_a_change_of_metadata_ends_no_watch(api: Wire, shape: Object, things: Collection) -> None:
    """Labels of the CRD are nobody's business."""
    params = {"resourceVersion": things.version(), "timeoutSeconds": 10}
    with api.watch(things.path, params) as watch:
        patch = {"metadata": {"labels": {"x": "y"}}}
        assert api.patch(f"{CRDS}/{shape['metadata']['name']}", patch).status == 200
        things.create(thing(shape["spec"]["group"], "u"))
        assert watch.take(1) == [("ADDED", "u")]


def test_a_version_that_is_no_longer_served_is_not_found(
    api: Wire, shape: Object, things: Collection
) -> None:
    """served: false takes the path away and ends its watches."""
    versions = copy.deepcopy(shape["spec"]["versions"])
    second = {**copy.deepcopy(versions[0]), "name": "v2", "storage": False}
    change(api, shape, [*versions, second])
    newer = things.path.replace("/v1/", "/v2/")
    until(lambda: api.get(newer).status == 200)
    with api.watch(newer, {"resourceVersion": api.get(newer).version}) as watch:
        change(api, shape, [*versions, {**second, "served": False}])
        assert watch.rest() == []
    assert api.get(newer).text == "404 page not found\n"
    until(lambda: api.get(things.path).status == 200)


@pytest.fixture
def two(api: Wire, group: str, namespace: str, install: Install) -> tuple[str, str]:
    """The paths of one resource in v1 and in v2, without conversion."""
    shape = crd(group, "multis", "Multi", ANYTHING)
    shape["spec"]["versions"].append(
        {**copy.deepcopy(shape["spec"]["versions"][0]), "name": "v2", "storage": False}
    )
    install(shape)
    path = f"/apis/{group}/{{}}/namespaces/{namespace}/multis"
    return path.format("v1"), path.format("v2")


def multi(path: str, name: str) -> Object:
    """A Multi, in the version that the path names."""
    version = "/".join(path.split("/")[2:4])
    return {"apiVersion": version, "kind": "Multi", "metadata": {"name": name}}


def test_each_version_shows_the_same_object_as_its_own(api: Wire, two: tuple[str, str]) -> None:
    """Same uid and version under another apiVersion, on the list and on each item."""
    api.post(two[0], multi(two[0], "m"))
    lists = [api.get(path).json for path in two]
    for path, found in zip(two, lists, strict=True):
        version = "/".join(path.split("/")[2:4])
        assert (found["apiVersion"], found["items"][0]["apiVersion"]) == (version, version)
    metadata = [found["items"][0]["metadata"] for found in lists]
    assert metadata[0] == metadata[1]


def test_a_write_through_one_version_shows_on_watches_of_the_other(
    api: Wire, two: tuple[str, str]
) -> None:
    """One write is one event at one version on both."""
    old, new = two
    start = {"resourceVersion": api.get(old).version}
    with api.watch(old, start) as one, api.watch(new, start) as other:
        created = api.post(old, multi(old, "m")).json
        events = [one.event(), other.event()]
    versions = {event["object"]["metadata"]["resourceVersion"] for event in events}
    assert versions == {created["metadata"]["resourceVersion"]}
    assert events[0]["object"]["apiVersion"].endswith("/v1")
    assert events[1]["object"]["apiVersion"].endswith("/v2")


def test_an_object_of_another_version_is_refused(api: Wire, two: tuple[str, str]) -> None:
    """The apiVersion in the body must be the one in the path."""
    old, new = two
    answer = api.post(new, multi(old, "m"))
    group = old.split("/")[2]
    assert answer.status == 400
    assert answer.json["message"] == (
        f"the API version in the data ({group}/v1) does not match "
        f"the expected API version ({group}/v2)"
    )


def test_stored_versions_remember_a_new_storage_version(
    api: Wire, shape: Object, things: Collection
) -> None:
    """Moving storage to v2 adds it to status.storedVersions."""
    versions = copy.deepcopy(shape["spec"]["versions"])
    second = {**copy.deepcopy(versions[0]), "name": "v2"}
    versions[0]["storage"] = False
    change(api, shape, [*versions, second])
    path = f"{CRDS}/{shape['metadata']['name']}"
    until(lambda: api.get(path).json["status"]["storedVersions"] == ["v1", "v2"])
    newer = things.path.replace("/v1/", "/v2/")
    until(lambda: api.get(newer).status == 200)
    assert api.patch(f"{newer}/t", {"spec": {"a": 5}}, MERGE).status == 200
    until(lambda: api.get(things.path).status == 200)
    assert api.get(things.at("t")).json["spec"]["a"] == 5
