"""Label and field selectors, on lists and as they come and go in watches."""

from __future__ import annotations

import pytest

from dyninformer.errors import SelectorError
from dyninformer.store.matching import wanted
from tests.conformance.cluster import Collection
from tests.conformance.wire import Wire


@pytest.fixture
def labelled(widgets: Collection) -> Collection:
    """a{x=1,n=5}, b{x=2}, c{}."""
    widgets.fill("a", labels={"x": "1", "n": "5"}, color="red", size=2, on=True)
    widgets.fill("b", labels={"x": "2"}, color="green")
    widgets.fill("c")
    return widgets


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("x=1", "a"), ("x==1", "a"), ("x!=1", "bc"), ("x", "ab"), ("!x", "c"),
        ("x in (1,2)", "ab"), ("x notin (1)", "bc"), ("n>4", "a"), ("n<5", ""), ("n<9", "a"),
        ("x,n", "a"), ("x=1,x=2", ""), (" x = 2 ", "b"), ("", "abc"), ("x in ()", ""),
    ],
)  # fmt: skip
def test_label_selectors_select(labelled: Collection, selector: str, expected: str) -> None:
    """Each form of a label selector selects what it should."""
    assert labelled.api.get(labelled.path, {"labelSelector": selector}).names == list(expected)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a b===", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("x in (", "found '', expected: ',', ')' or identifier"),
        (
            "a=-b-",
            (
                'values[0][a]: Invalid value: "-b-": a valid label must be an empty string or '
                "consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
                "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
        (
            "x>a",
            (
                "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be "
                "an integer"
            ),
        ),
    ],
    ids=["two words", "open", "value", "not a number"],
)
@pytest.mark.parametrize("watch", ["0", "1"])
def test_a_label_selector_that_cannot_be_read_is_refused(
    widgets: Collection, selector: str, message: str, watch: str
) -> None:
    """List and watch alike say what was found and what was expected."""
    answer = widgets.api.get(widgets.path, {"labelSelector": selector, "watch": watch})
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"] == f"unable to parse requirement: {message}"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "bc"),
        ("metadata.name=a,metadata.name=b", ""),
        ("metadata.namespace=nowhere", ""),
        ("spec.color=red", "a"),
        ("spec.color!=red", "bc"),
        ("spec.color=", "c"),
        ("spec.size=2", "a"),
        ("spec.on=true", "a"),
        ("spec.color=red,spec.size=2", "a"),
        ("spec.color!=red,metadata.name!=c", "b"),
        ("spec.color= red", ""),
        ("spec.color!= red", "abc"),
        ("=,spec.color=red", "a"),
    ],
)
def test_field_selectors_select(labelled: Collection, selector: str, expected: str) -> None:
    """Names, namespaces and selectableFields select by their text; a missing field is empty."""
    assert labelled.api.get(labelled.path, {"fieldSelector": selector}).names == list(expected)


def test_a_field_selector_on_the_namespace_selects_among_all(
    api: Wire, widgets: Collection
) -> None:
    """Across namespaces, metadata.namespace is a field like the name."""
    widgets.fill("a")
    params = {"fieldSelector": f"metadata.namespace={widgets.namespace}"}
    assert api.get("/apis/ex.io/v1/widgets", params).names == ["a"]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("spec.note=x", "field label not supported: spec.note"),
        ("metadata.labels.x=1", "field label not supported: metadata.labels.x"),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        (
            "spec.color in (red)",
            ("invalid selector: 'spec.color in (red)'; can't understand 'spec.color in (red)'"),
        ),
        ("spec.color = red", "field label not supported: spec.color "),
        ("spec.color=red, spec.size=2", "field label not supported:  spec.size"),
        ("=red", "field label not supported: "),
    ],
    ids=[
        "no selectable field",
        "a label",
        "no operator",
        "a set",
        "blanks around the operator",
        "a blank behind the comma",
        "no field",
    ],
)
@pytest.mark.parametrize("watch", ["0", "1"])
def test_a_field_selector_that_cannot_be_used_is_refused(
    widgets: Collection, selector: str, message: str, watch: str
) -> None:
    """List and watch alike name the field, or what they cannot understand."""
    answer = widgets.api.get(widgets.path, {"fieldSelector": selector, "watch": watch})
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"] == message


@pytest.mark.parametrize("selector", ["spec.color = red", "spec.color=red, spec.size=2", "=red"])
def test_the_cache_refuses_a_field_with_a_blank_in_the_servers_words(
    widgets: Collection, selector: str
) -> None:
    """A read of the cache and a list of the server answer with the same message."""
    answer = widgets.api.get(widgets.path, {"fieldSelector": selector})
    with pytest.raises(SelectorError) as caught:
        wanted(None, selector)
    assert str(caught.value) == answer.json["message"]


def test_a_cluster_scoped_resource_has_no_namespace_field(api: Wire) -> None:
    """metadata.namespace is no field of a cluster-scoped resource."""
    answer = api.get("/apis/ex.io/v1/globes", {"fieldSelector": "metadata.namespace=x"})
    assert answer.json["message"] == "field label not supported: metadata.namespace"


def test_entering_a_label_selector_is_added_and_leaving_is_deleted(widgets: Collection) -> None:
    """ADDED at the change that enters; DELETED, with the old content, at the one that leaves."""
    widgets.fill("a", size=1)
    params = {"labelSelector": "x=y", "resourceVersion": widgets.version()}
    with widgets.api.watch(widgets.path, params) as watch:
        entered = widgets.merge("a", {"metadata": {"labels": {"x": "y"}}})
        assert watch.event() == {"type": "ADDED", "object": entered.json}
        changed = widgets.merge("a", {"spec": {"size": 2}})
        assert watch.event() == {"type": "MODIFIED", "object": changed.json}
        left = widgets.merge("a", {"metadata": {"labels": {"x": "z"}}, "spec": {"size": 3}})
        gone = watch.event()
    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["labels"] == {"x": "y"}
    assert gone["object"]["spec"]["size"] == 2
    assert gone["object"]["metadata"]["resourceVersion"] == left.version
    assert widgets.api.get(widgets.at("a")).status == 200


def test_fields_enter_and_leave_as_labels_do(widgets: Collection) -> None:
    """SelectableFields have the same transitions."""
    widgets.fill("a", color="red")
    params = {"fieldSelector": "spec.color=green", "resourceVersion": widgets.version()}
    with widgets.api.watch(widgets.path, params) as watch:
        widgets.merge("a", {"spec": {"color": "green"}})
        widgets.merge("a", {"spec": {"size": 2}})
        widgets.merge("a", {"spec": {"color": "blue"}})
        events = [watch.event() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["spec"]["color"] == "green"


def test_a_selected_watch_replays_transitions(widgets: Collection) -> None:
    """From an old version the transitions come as they would have come live."""
    version = widgets.version()
    widgets.fill("a", labels={"x": "y"})
    widgets.fill("b")
    widgets.merge("a", {"metadata": {"labels": {"x": None}}})
    widgets.merge("b", {"metadata": {"labels": {"x": "y"}}})
    params = {"labelSelector": "x=y", "resourceVersion": version}
    with widgets.api.watch(widgets.path, params) as watch:
        assert watch.take(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


def test_what_never_matched_is_never_heard_of(widgets: Collection) -> None:
    """Deleting an object outside the selector is no event."""
    widgets.fill("a")
    params = {"labelSelector": "x=y", "resourceVersion": widgets.version()}
    with widgets.api.watch(widgets.path, params) as watch:
        widgets.api.delete(widgets.at("a"))
        widgets.fill("b", labels={"x": "y"})
        assert watch.take(1) == [("ADDED", "b")]


def test_a_watch_on_a_name_sees_that_name_alone(widgets: Collection) -> None:
    """FieldSelector metadata.name follows one object through deletion and return."""
    params = {"fieldSelector": "metadata.name=a", "resourceVersion": widgets.version()}
    with widgets.api.watch(widgets.path, params) as watch:
        widgets.fill("b", "a")
        widgets.api.delete(widgets.at("a"))
        widgets.fill("a")
        assert watch.take(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_delete_collection_obeys_selectors(labelled: Collection) -> None:
    """Labels and fields choose what a delete of the collection takes."""
    gone = labelled.api.delete(labelled.path, params={"labelSelector": "x=1"})
    assert gone.names == ["a"]
    gone = labelled.api.delete(labelled.path, params={"fieldSelector": "spec.color=green"})
    assert gone.names == ["b"]
    assert labelled.api.get(labelled.path).names == ["c"]
