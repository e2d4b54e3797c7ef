"""Owners and owned, and how they are drawn."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dyninformer.relations.tree import (
    ASCII,
    Reference,
    TreeNode,
    as_data,
    family,
    owned_among,
    references,
    rows,
    tops,
)


def thing(name: str, *owners: str, **more: Any) -> dict[str, Any]:
    """An object whose uid is its name."""
    refs = [{"apiVersion": "v1", "kind": "Thing", "name": each, "uid": each} for each in owners]
    metadata = {"name": name, "uid": name, "ownerReferences": refs}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


def drawn(root: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    """The first column."""
    node = TreeNode(root)
    family(node, owned_among(others))
    return [row[0] for row in rows([node], with_namespace=False)]


def test_a_tree_is_drawn_with_lines() -> None:
    """Sorted by kind and name; a line goes on beside what is below."""
    others = [thing("c", "a"), thing("b", "a"), thing("d", "b"), thing("x", "elsewhere")]
    assert drawn(thing("a"), *others) == [
        "Thing/a",
        "├─Thing/b",
        "│ └─Thing/d",
        "└─Thing/c",
    ]


def test_what_several_own_is_below_each_and_shown_whole_once() -> None:
    """A diamond of diamonds has no more rows than it has references."""
    others = [thing("b", "a"), thing("c", "a"), thing("d", "b", "c"), thing("e", "d")]
    assert drawn(thing("a"), *others) == [
        "Thing/a",
        "├─Thing/b",
        "│ └─Thing/d",
        "│   └─Thing/e",
        "└─Thing/c",
        "  └─Thing/d (shown above)",
    ]
    wide = [
        thing(f"{n}{side}", *(f"{n - 1}{s}" for s in "xy")) for n in range(1, 60) for side in "xy"
    ]
    assert len(drawn(thing("0x"), *wide)) < 300


def test_a_circle_ends() -> None:
    """Objects that own each other, or themselves, are what somebody wrote there."""
    assert drawn(thing("a", "b"), thing("b", "a"), thing("a", "b")) == [
        "Thing/a",
        "└─Thing/b",
        "  └─Thing/a (shown above)",
    ]
    assert drawn(thing("a", "a"), thing("a", "a")) == ["Thing/a", "└─Thing/a (shown above)"]


def test_an_owner_in_a_circle_is_drawn_once() -> None:
    """What is below an object and above it as well is one node, and what owns that is found."""
    root, second = thing("a", "b"), thing("b", "a", "top")
    there = {each["metadata"]["name"]: each for each in (root, second, thing("top"))}
    node = TreeNode(root)
    family(node, owned_among([root, second]))
    (top,) = tops(node, lambda _, owner: TreeNode(there[owner.name]))
    assert [row[0] for row in rows([top], with_namespace=False)] == [
        "Thing/top",
        "└─Thing/b",
        "  └─Thing/a",
        "    └─Thing/b (shown above)",
    ]


def test_an_owner_in_another_namespace_owns_nothing() -> None:
    """A reference is to the same namespace, or to what is in none."""

    def placed(namespace: str, obj: dict[str, Any]) -> dict[str, Any]:
        obj["metadata"]["namespace"] = namespace
        return obj

    others = [placed("x", thing("b", "a")), placed("y", thing("c", "a")), thing("d", "a")]
    assert drawn(placed("x", thing("a")), *others) == ["Thing/a", "└─Thing/b"]
    assert len(drawn(thing("a"), *others)) == 4


def test_a_long_chain_is_no_trouble() -> None:
    """However deep."""
    chain = [thing(str(n), str(n - 1)) for n in range(1, 3_000)]
    assert len(drawn(thing("0"), *chain)) == 3_000


def test_owners_are_looked_for_fifty_high_and_the_tree_says_so() -> None:
    """Each would be a request to a server; what is left out is not seen to be missing."""
    node = TreeNode(thing("60", "59"))
    asked = []

    def owner_of(_: TreeNode, owner: Reference) -> TreeNode:
        asked.append(owner.name)
        n = int(owner.name)
        return TreeNode(thing(owner.name, *([str(n - 1)] if n else [])))

    (top,) = tops(node, owner_of)
    shown = [row[0] for row in rows([top], with_namespace=False)]
    assert shown[0] == "Thing/10 (its owners are left out)"
    assert len(shown) == 51
    assert len(asked) == 50


def test_lines_can_be_ascii() -> None:
    """For terminals that know nothing else."""
    node = TreeNode(thing("a"))
    family(node, owned_among([thing("b", "a"), thing("c", "a")]))
    names = [row[0] for row in rows([node], branches=ASCII, with_namespace=False)]
    assert names == ["Thing/a", "|-Thing/b", "`-Thing/c"]


def test_a_row_says_how_the_object_is() -> None:
    """By its conditions, its phase, and whether it is being deleted."""
    ready = {"conditions": [{"type": "X"}, {"type": "Available", "status": "False", "reason": "R"}]}
    assert _state(thing("a", status=ready)) == ["False", "R", ""]
    assert _state(thing("a", status={"phase": "Bound"})) == ["", "Bound", ""]
    gone = thing("a", status=ready)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert _state(gone) == ["False", "Terminating", ""]


def _state(obj: dict[str, Any]) -> list[str]:
    (row,) = rows([TreeNode(obj)], with_namespace=False)
    return row[1:]


def test_json_has_the_same() -> None:
    """Each object whole once."""
    node = TreeNode(thing("a", "b"))
    family(node, owned_among([thing("b", "a"), thing("a", "b")]))
    (top,) = as_data([node])
    (below,) = top["owned"]
    assert (top["name"], below["name"], below["owned"][0]["seen"]) == ("a", "b", True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["uid", "name", "kind", "type", "conditions", "ownerReferences"]), inner
        )
    ),
    max_leaves=10,
)


@given(JSON, JSON)
def test_whatever_an_object_says_is_no_error(metadata: Any, status: Any) -> None:
    """Objects come as they are."""
    obj = {"kind": "Thing", "metadata": metadata, "status": status}
    references(obj)
    assert len(list(rows([TreeNode(obj)], with_namespace=True))) == 1
