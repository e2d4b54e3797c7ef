"""Transforms on bytes and on dicts give what a user expects of them (S17)."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyninformer.errors import JSONPathError
from dyninformer.options import DROP
from dyninformer.store.codec import read
from dyninformer.store.transforms import strip, transformed
from tests.store.objects import widget

PLACES = st.sampled_from(["a", "b", "metadata"])
OBJECTS = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.dictionaries(PLACES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=12,
)


@given(st.dictionaries(PLACES, OBJECTS, max_size=3))
def test_strip_does_the_same_to_bytes_as_to_a_dict(obj: dict[str, Any]) -> None:
    """Whether a path is there or not."""
    transform = strip("a", "b.a", "metadata.a.b", "metadata.b")
    data = msgspec.json.encode(obj)
    assert msgspec.json.decode(transform.on_bytes(data)) == transform(copy.deepcopy(obj))


def test_strip_leaves_an_object_without_the_paths_as_it_is() -> None:
    """The very same bytes."""
    data = widget("a")
    assert strip("metadata.managedFields", "status").on_bytes(data) is data


def test_strip_finds_a_name_that_is_spelled_with_escapes() -> None:
    """As any reader of the JSON would."""
    data = b'{"metadata":{"manag\\u0065dFields":[]},"x":1e999}'
    assert strip("metadata.managedFields").on_bytes(data) == b'{"metadata":{},"x":1e999}'


def test_strip_takes_both_spellings_and_escaped_dots() -> None:
    """As all paths do."""
    data = b'{"metadata":{"annotations":{"ex.io/note":"x","b":"y"}}}'
    left = b'{"metadata":{"annotations":{"b":"y"}}}'
    assert strip("metadata.annotations.ex\\.io/note").on_bytes(data) == left
    assert strip("$.metadata.annotations['ex.io/note']").on_bytes(data) == left


@pytest.mark.parametrize("path", ["metadata", "metadata.name", "{.metadata.namespace}"])
def test_strip_refuses_what_an_object_cannot_do_without(path: str) -> None:
    """Name and namespace."""
    with pytest.raises(ValueError, match="needs its name"):
        strip(path)


@pytest.mark.parametrize("path", ["spec.items[*]", "spec.items[0].x", "spec[?(@.a=='b')]"])
def test_strip_refuses_a_path_of_more_than_keys(path: str) -> None:
    """And says what it takes."""
    with pytest.raises(ValueError, match="a path of keys alone"):
        strip(path)


def test_strip_refuses_no_path_and_a_malformed_one() -> None:
    """When it is made, not when an object comes."""
    with pytest.raises(TypeError, match="at least one path"):
        strip()
    with pytest.raises(JSONPathError):
        strip("spec.[")


def test_strips_of_the_same_paths_are_equal() -> None:
    """So an informer that is asked for twice has the same options."""
    assert strip("status", "spec.x") == strip("{.spec.x}", "status")
    assert hash(strip("status")) == hash(strip("{.status}"))
    assert strip("status") != strip("spec")
    assert repr(strip("status")) == "strip('status')"


def test_a_transform_sees_and_keeps_numbers_that_json_libraries_refuse() -> None:
    """What it leaves alone is stored as it was meant."""
    data = widget("a")[:-1] + b',"huge":1e999,"low":-1e999,"long":98765432109876543210}'
    kept = transformed(lambda obj: obj, data, "ns", "a")
    assert kept is not None
    assert read(kept) == read(data)


def test_a_transform_may_go_on_using_what_it_returned() -> None:
    """It is not changed, even where the name had to be put back."""
    template = {"metadata": {"name": "template", "labels": {}}, "spec": 1}
    kept = transformed(lambda obj: template, widget("a"), "ns", "a")
    assert kept is not None
    assert read(kept)["metadata"] == {"name": "a", "namespace": "ns", "labels": {}}
    assert template == {"metadata": {"name": "template", "labels": {}}, "spec": 1}


def test_drop_is_none() -> None:
    """Nothing is kept."""
    assert transformed(lambda obj: DROP, widget("a"), "ns", "a") is None
