"""What differs between two states of an object."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.delivery.changes import Change, differences
from dyninformer.jsonpath import JSONPath

ODD = " .\\\"'[]{}()=<>!&|$@*,?a1\n\t_-/ü😀"
texts = st.text(ODD, max_size=3) | st.sampled_from(
    ["name", "type", "where", "app.io/name", "ports"]
)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2, width=16) | texts
elements = st.fixed_dictionaries(
    {},
    optional={
        "name": texts | st.integers(0, 3),
        "type": texts | st.none(),
        "port": st.integers(0, 2),
        "protocol": st.sampled_from(["TCP", "UDP"]),
        "x": scalars,
    },
)
values = st.recursive(
    scalars | st.lists(elements, max_size=4) | st.lists(texts, max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)


def test_every_kind_of_difference_is_told() -> None:
    """A value, a type, what came and what went, in maps and in lists."""
    old = {"spec": {"n": 1, "gone": 5, "kind": [1], "items": [{"k": 1}, {"k": 2}]}}
    new = {"spec": {"n": 2, "kind": {"a": 1}, "items": [{"k": 1}, {"k": 3}, 4], "new": None}}
    assert differences(old, new) == [
        Change(".spec.n", 1, 2),
        Change(".spec.gone", 5, None),
        Change(".spec.kind", [1], {"a": 1}),
        Change(".spec.items[1].k", 2, 3),
        Change(".spec.items[2]", None, 4),
        Change(".spec.new", None, None),
    ]


def test_bookkeeping_is_no_difference() -> None:
    """The fields managedFields and resourceVersion change with every write."""
    old = {"metadata": {"resourceVersion": "1", "managedFields": [{"time": 1}], "name": "a"}}
    new = {"metadata": {"resourceVersion": "2", "managedFields": [], "name": "b"}}
    assert [change.path for change in differences(old, new)] == [".metadata.name"]


def test_ignored_paths_are_left_out_with_all_below() -> None:
    """In any spelling; a star is any item; a longer name is another path."""
    old = {"status": {"conditions": [{"t": 1, "s": 1}], "x": 1}, "statusText": 1, "spec": {"a": 1}}
    new = {"status": {"conditions": [{"t": 2, "s": 2}], "x": 2}, "statusText": 2, "spec": {"a": 2}}

    def paths(*ignore: str) -> list[str]:
        return [change.path for change in differences(old, new, ignore)]

    assert paths("status") == [".statusText", ".spec.a"]
    assert paths("{.status.conditions[*].t}", ".status.x") == [
        ".status.conditions[0].s",
        ".statusText",
        ".spec.a",
    ]
    assert [change.path for change in differences(old, new, ".status")] == paths("{.status}")


def test_true_is_not_one() -> None:
    """As JSON has it, a number is no boolean; 1 and 1.0 are the same number."""
    assert differences({"a": 1, "b": 1}, {"a": True, "b": 1.0}) == [Change(".a", 1, True)]


def test_deep_objects_are_compared() -> None:
    """Deeper than Python's own calls could go."""
    old: Any = 1
    new: Any = 2
    for _ in range(5000):
        old, new = {"a": old}, {"a": new}
    assert differences(old, new) == [Change(".a" * 5000, 1, 2)]


def test_an_element_at_the_head_of_a_list_is_one_change() -> None:
    """The others have not moved for anybody who reads it."""
    old = {"hosts": ["a", "b", "c"], "containers": [{"name": "app", "image": "1"}]}
    new = {
        "hosts": ["x", "a", "b", "c"],
        "containers": [{"name": "side"}, {"name": "app", "image": "2"}],
    }
    assert differences(old, new) == [
        Change(".hosts[0]", None, "x"),
        Change('.containers[?(@.name=="app")].image', "1", "2"),
        Change('.containers[?(@.name=="side")]', None, {"name": "side"}),
    ]


@pytest.mark.parametrize(
    ("field", "old", "new", "changes"),
    [
        (
            "conditions",
            [{"type": "Ready", "status": "False"}],
            [{"type": "Issuing", "status": "True"}, {"type": "Ready", "status": "True"}],
            ['[?(@.type=="Ready")].status', '[?(@.type=="Issuing")]'],
        ),
        (
            "volumeMounts",
            [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
            [{"name": "v", "mountPath": "/b", "readOnly": True}],
            ['[?(@.mountPath=="/a")]', '[?(@.mountPath=="/b")].readOnly'],
        ),
        (
            "ports",
            [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}],
            [{"containerPort": 80, "protocol": "TCP", "name": "web"}],
            ["[?(@.containerPort==53)]", "[?(@.containerPort==80)].name"],
        ),
        ("anything", [{"n": 1}, {"n": 2}], [{"n": 2}], ["[0]"]),
        ("anything", ["a", "b"], ["b", "c"], ["[0]", "[1]"]),
        ("anything", [{"name": "a"}, {"name": None}], [{"name": "a"}], ["[1]"]),
        ("anything", [{"name": "a"}, {"name": 1}], [{"name": 1}], ["[0]"]),
        ("anything", [{"name": "a"}, {"name": "a"}], [{"name": "a"}], ["[1]"]),
    ],
)
def test_what_tells_elements_apart(
    field: str, old: list[Any], new: list[Any], changes: list[str]
) -> None:
    """Keys of built-in types, then likely ones, if all elements have them; else their order."""
    found = differences({field: old}, {field: new})
    assert [change.path for change in found] == [f".{field}{path}" for path in changes]


def test_where_one_key_is_not_enough_all_of_them_name_the_element() -> None:
    """Kubectl's dialect has no "and", so that the path is jsonpath-ng's."""
    both = [{"port": 53, "protocol": each, "nodePort": 1} for each in ("TCP", "UDP")]
    (change,) = differences({"ports": both}, {"ports": [both[0], {**both[1], "nodePort": 2}]})
    assert change == ('$.ports[?(@.port==53 && @.protocol=="UDP")].nodePort', 1, 2)


def test_keys_of_a_schema_go_first() -> None:
    """At any depth, in lists and in maps."""
    keys = {".listeners": ["host"], ".listeners[*].routes": ["to"], ".by.*": ["id", "zone"]}
    old = {
        "listeners": [{"name": "a", "host": "x", "routes": [{"name": "r", "to": "s"}]}],
        "by": {"k.k": [{"name": "n", "id": 1, "zone": "z", "v": 1}]},
    }
    new = {
        "listeners": [{"name": "b", "host": "x", "routes": [{"name": "q", "to": "s"}]}],
        "by": {"k.k": [{"name": "n", "id": 1, "zone": "z", "v": 2}]},
    }
    assert [change.path for change in differences(old, new, keys=keys)] == [
        '.listeners[?(@.host=="x")].name',
        '.listeners[?(@.host=="x")].routes[?(@.to=="s")].name',
        r".by.k\.k[?(@.id==1)].v",
    ]


def test_another_order_is_one_change_of_the_keys() -> None:
    """An update that only moves elements is told, though no element changed."""
    a, b = {"name": "a"}, {"name": "b"}
    (change,) = differences({"c": [a, b]}, {"c": [b, a]})
    assert change == Change(".c[*].name", ["a", "b"], ["b", "a"])
    assert JSONPath(".c[*].name").values({"c": [b, a]}) == ["b", "a"]


def test_an_element_can_be_ignored_by_its_key() -> None:
    """By the path of the change itself, too."""
    old = {"status": {"conditions": [{"type": "A", "s": 1}, {"type": "]", "s": 1}]}}
    new = {"status": {"conditions": [{"type": "A", "s": 2}, {"type": "]", "s": 2}]}}
    first, second = (change.path for change in differences(old, new))
    assert [change.path for change in differences(old, new, [first])] == [second]
    assert [change.path for change in differences(old, new, [second])] == [first]
    assert differences(old, new, [".status.conditions[*].s"]) == []
    both = [{"port": 53, "protocol": each} for each in ("TCP", "UDP")]
    (gone,) = differences({"ports": both}, {"ports": both[:1]} | {"ports": [both[0]]})
    assert differences({"ports": both}, {"ports": [both[0]]}, [gone.path]) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, 2] * 10_000, [2, 1] * 10_000),
        ([["x" * 1000]] * 5_000, [["y" * 1000]] * 5_000),
        ([{"name": str(n)} for n in range(10_000)], [{"name": str(-n)} for n in range(10_000)]),
        ([str(n) for n in range(10_000)], [str(n) for n in reversed(range(10_000))]),
    ],
)
def test_huge_lists_take_no_quadratic_time(old: list[Any], new: list[Any]) -> None:
    """Hours it would be; where it is too much, elements are compared by place."""
    assert differences({"x": old}, {"x": new})


@given(objects, objects)
def test_a_path_finds_its_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    """As a JSONPath, with and without braces, in the new object, or in the old if it is gone."""
    for change in differences(old, new):
        came = [(new, change.new)] if change.new is not None or change.old is None else []
        went = [(old, change.old)] if change.new is None else []
        spellings = [change.path]
        if not change.path.startswith("$"):
            spellings.append(f"{{{change.path}}}")
        for path in spellings:
            if isinstance(change.old, list) and isinstance(change.new, list):
                assert JSONPath(path).values(new) == change.new  # the order of keys
            else:  # a null that came or went: the change does not say which
                assert any(JSONPath(path).first(state) == value for state, value in [*came, *went])


@given(objects, objects)
def test_a_path_by_key_finds_the_old_value_too(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Only a place in a list may be another one in the old object."""
    for change in differences(old, new):
        if not re.search(r"\[\d+\]|\[\*\]", change.path):
            assert JSONPath(change.path).first(old) == change.old
            assert JSONPath(change.path).first(new) == change.new


@given(objects, objects)
def test_no_difference_is_missed(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Objects differ if and only if something is told."""
    assert bool(differences(old, new)) == (_typed(old) != _typed(new))


def _typed(value: Any) -> Any:
    """Values that Python takes for equal and JSON does not, told apart."""
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return (isinstance(value, bool), value)


@given(objects)
def test_an_object_does_not_differ_from_itself(obj: dict[str, Any]) -> None:
    """Nothing is made up."""
    assert differences(obj, obj) == []
