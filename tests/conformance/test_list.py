"""What a list holds, in which order, and how it is written."""

from __future__ import annotations

from tests.conformance.cluster import Collection
from tests.conformance.shapes import GLOBES, crd, of_object, widget
from tests.conformance.wire import Wire


def test_an_empty_list_is_a_list_with_an_empty_continue(widgets: Collection) -> None:
    """A custom resource's list has sorted keys, its own kind, and always a continue token."""
    answer = widgets.api.get(widgets.path)
    version = answer.version
    assert answer.status == 200
    assert answer.text == (
        '{"apiVersion":"ex.io/v1","items":[],"kind":"WidgetList",'
        f'"metadata":{{"continue":"","resourceVersion":"{version}"}}}}\n'
    )


def test_items_carry_api_version_and_kind(widgets: Collection) -> None:
    """Each item of a custom resource's list says what it is."""
    widgets.fill("a")
    item = widgets.api.get(widgets.path).json["items"][0]
    assert (item["apiVersion"], item["kind"]) == ("ex.io/v1", "Widget")
    assert list(item) == sorted(item)


def test_items_of_a_built_in_list_do_not_say_what_they_are(api: Wire, namespace: str) -> None:
    """A built-in list is in struct order, and its items lack apiVersion and kind."""
    found = api.get(
        "/api/v1/namespaces", {"labelSelector": f"kubernetes.io/metadata.name={namespace}"}
    )
    assert list(found.json) == ["kind", "apiVersion", "metadata", "items"]
    assert found.json["kind"] == "NamespaceList"
    assert "continue" not in found.json["metadata"]
    assert [("kind" in item, "apiVersion" in item) for item in found.json["items"]] == [
        (False, False)
    ]


def test_a_list_is_ordered_by_name_whatever_the_order_of_creation(widgets: Collection) -> None:
    """Items come in etcd's key order, never by resourceVersion."""
    widgets.fill("m", "z", "a-b", "a.b", "a", "a1")
    assert widgets.api.get(widgets.path).names == ["a", "a-b", "a.b", "a1", "m", "z"]


def test_all_namespaces_are_listed_by_namespace_then_name(api: Wire, widgets: Collection) -> None:
    """`ns-b` sorts before `ns/`: the order is that of the path, dash before slash."""
    longer = f"{widgets.namespace}-b"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": longer}}).status == 201
    widgets.fill("z")
    other = f"/apis/ex.io/v1/namespaces/{longer}/widgets"
    assert api.post(other, widget("a")).status == 201
    items = api.get("/apis/ex.io/v1/widgets").json["items"]
    mine = [
        i["metadata"]["namespace"]
        for i in items
        if i["metadata"]["namespace"] in (widgets.namespace, longer)
    ]
    assert mine == [longer, widgets.namespace]


def test_a_namespace_that_does_not_exist_is_an_empty_list(api: Wire) -> None:
    """Listing in an unknown namespace is a 200 without items."""
    answer = api.get("/apis/ex.io/v1/namespaces/nowhere/widgets")
    assert (answer.status, answer.names) == (200, [])


def test_an_empty_namespace_in_the_path_means_all(widgets: Collection) -> None:
    """`/namespaces//widgets` is the list of all namespaces."""
    widgets.fill("all-1")
    assert "all-1" in widgets.api.get("/apis/ex.io/v1/namespaces//widgets").names


def test_a_trailing_slash_is_accepted(widgets: Collection) -> None:
    """A path that ends in a slash is the path without it."""
    widgets.fill("a")
    assert widgets.api.get(widgets.path + "/").names == ["a"]


def test_unknown_parameters_are_ignored(widgets: Collection) -> None:
    """A parameter nobody knows changes nothing."""
    widgets.fill("a")
    assert widgets.api.get(widgets.path, {"nonsense": "1"}).names == ["a"]


def test_the_first_of_two_equal_parameters_counts(widgets: Collection) -> None:
    """Of a repeated parameter only the first value is read."""
    widgets.fill("a", "b", "c")
    assert widgets.api.get(f"{widgets.path}?limit=1&limit=2").names == ["a"]


def test_a_cluster_scoped_resource_lists_at_the_root(api: Wire) -> None:
    """Objects without a namespace have none in their metadata."""
    name = GLOBES["spec"]["names"]["plural"]
    globe = {"apiVersion": "ex.io/v1", "kind": "Globe", "metadata": {"name": "earth"}}
    assert api.post(f"/apis/ex.io/v1/{name}", globe).status == 201
    item = api.get(f"/apis/ex.io/v1/{name}", {"fieldSelector": "metadata.name=earth"}).json[
        "items"
    ][0]
    assert "namespace" not in item["metadata"]


def test_head_answers_the_headers_of_get(widgets: Collection) -> None:
    """HEAD is a GET without a body."""
    answer = widgets.api.send("HEAD", widgets.path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == "application/json"


def test_one_object_is_written_compactly_with_sorted_keys(widgets: Collection) -> None:
    """A GET gives one line of JSON, keys sorted at every level, and a newline."""
    widgets.fill("a", size=1, color="red")
    text = widgets.api.get(widgets.at("a")).text
    assert text.startswith(
        '{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"creationTimestamp":'
    )
    assert text.endswith(',"spec":{"color":"red","replicas":1,"size":1}}\n')


def test_a_get_may_ask_for_a_version(widgets: Collection) -> None:
    """A GET at resourceVersion 0, or at one that exists, gives the object.

    The watch cache that answers for 0 may be behind: the other question waits for it.
    """
    created = widgets.fill("a")[0]
    for version in (created["metadata"]["resourceVersion"], "0"):
        assert (
            widgets.api.get(widgets.at("a"), {"resourceVersion": version}).version
            == (created["metadata"]["resourceVersion"])
        )


def test_resource_versions_are_one_count_for_the_whole_server(
    api: Wire, widgets: Collection, blobs: Collection
) -> None:
    """A write to any collection raises the version that every list says."""
    before = int(widgets.version())
    created = blobs.create({"apiVersion": "loose.io/v1", "kind": "Blob", "metadata": {"name": "a"}})
    version = int(created["metadata"]["resourceVersion"])
    assert before < version <= int(widgets.version())


def test_list_kinds_can_be_named_by_the_crd(api: Wire, group: str, install: object) -> None:
    """The CRD's listKind is the kind of the list."""
    assert callable(install)
    shape = crd(group, "mice", "Mouse", of_object())
    shape["spec"]["names"]["listKind"] = "MouseCollection"
    install(shape)
    assert api.get(f"/apis/{group}/v1/mice").json["kind"] == "MouseCollection"
