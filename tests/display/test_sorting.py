"""The order of rows."""

from __future__ import annotations

from typing import Any

from dyninformer.display.sorting import by_name, by_path


def test_numbers_are_ordered_as_numbers_and_before_text() -> None:
    """What has no value stands first; digits in a text count as a number."""
    values: list[Any] = ["node-10", 10, None, "node-2", 9.5]
    ordered = by_path([{"spec": {"x": value}} for value in values], ".spec.x")
    assert [obj["spec"]["x"] for obj in ordered] == [None, 9.5, 10, "node-2", "node-10"]


def test_names_are_ordered_within_their_namespaces() -> None:
    """Namespaces first."""
    places = [("b", "a"), ("a", "z"), ("a", "b")]
    objects = [{"metadata": {"namespace": space, "name": name}} for space, name in places]
    assert [obj["metadata"]["name"] for obj in by_name(objects)] == ["b", "z", "a"]
