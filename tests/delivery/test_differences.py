"""What differs between two states, path by path."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dyninformer import JSONPath
from dyninformer.delivery.differences import Change, differences

names = st.sampled_from(["a", "b", "app.kubernetes.io/name", "x y", "c-d", "e_f", "g[0]", "h$"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "s", "t"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, values, max_size=4)


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


@given(objects, objects)
def test_a_path_finds_its_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Each path, as a JSONPath, finds what the change says of both objects."""
    for change in differences(old, new):
        for state, value in ((old, change.old), (new, change.new)):
            assert JSONPath(f"{{{change.path}}}").first(state) == value


@given(objects)
def test_an_object_does_not_differ_from_itself(obj: dict[str, Any]) -> None:
    """Nothing is made up."""
    assert differences(obj, obj) == []
