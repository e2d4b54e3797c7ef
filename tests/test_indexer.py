"""The cache by key and by index, in client-go's words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dyninformer.errors import JSONPathWarning, OptionsConflictError, UnknownIndexError
from dyninformer.indexer import Indexer
from dyninformer.indexer import Store as Cache
from dyninformer.lister import GenericLister
from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from tests.frames.objects import certificate, holding

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")


def widget(name: str, *colors: str) -> dict[str, Any]:
    """A widget in the namespace "ns"."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "colors": [*colors]}


@pytest.fixture
def widgets() -> Store:
    """A store that holds a red one, a red and blue one, and one without a colour."""
    store = Store(WIDGETS, indexers={"color": "{.colors[*]}"})
    relist = store.relist()
    for obj in (widget("a", "red"), widget("b", "red", "blue"), widget("c")):
        relist.add([store.receive(msgspec.json.encode(obj))])
    relist.swap(first=True)
    return store


def indexer_of(store: Store, lister: GenericLister | None = None) -> Indexer:
    """An indexer that warns as the lister of the same cache does."""
    lister = lister or GenericLister(store, lambda: True)
    return Indexer(store, store.add_indexers, lister.check_index)


def names(objects: list[dict[str, Any]]) -> list[str]:
    """The names of objects, sorted."""
    return sorted(obj["metadata"]["name"] for obj in objects)


def test_an_object_is_found_by_its_key_or_by_itself(widgets: Store) -> None:
    """None where there is nothing of that key."""
    store = Cache(widgets)
    assert store.get_by_key("ns/a") == widget("a", "red")
    assert store.get({"metadata": {"name": "a", "namespace": "ns"}}) == widget("a", "red")
    assert store.get_by_key("ns/x") is None
    assert store.get({"metadata": {"name": "a"}}) is None


def test_what_is_returned_belongs_to_the_caller(widgets: Store) -> None:
    """A change of it does not change the cache."""
    store = Cache(widgets)
    first = store.get_by_key("ns/a")
    assert first is not None
    first["colors"].append("green")
    assert store.get_by_key("ns/a") == widget("a", "red")


def test_all_objects_and_keys_are_listed(widgets: Store) -> None:
    """Once each; a store is true even if it is empty."""
    store = Cache(widgets)
    assert names(store.list()) == ["a", "b", "c"]
    assert sorted(store.list_keys()) == ["ns/a", "ns/b", "ns/c"]
    assert len(store) == 3
    assert bool(Cache(Store(WIDGETS)))
    assert repr(indexer_of(widgets)) == "<Indexer of widgets.v1.ex.io, 3 objects>"


def test_an_index_is_read_by_value(widgets: Store) -> None:
    """Objects, keys, and the values under which there is something."""
    indexer = indexer_of(widgets)
    assert names(indexer.by_index("color", "red")) == ["a", "b"]
    assert indexer.index_keys("color", "blue") == ["ns/b"]
    assert indexer.by_index("color", "green") == []
    assert sorted(indexer.list_index_func_values("color")) == ["blue", "red"]


def test_what_shares_a_value_with_an_object_is_found_once(widgets: Store) -> None:
    """Though it shares several; the object itself need not be held."""
    indexer = indexer_of(widgets)
    assert names(indexer.index("color", widget("new", "blue", "red"))) == ["a", "b"]
    assert indexer.index("color", widget("new")) == []
    assert names(indexer.index("namespace", widget("new"))) == ["a", "b", "c"]


def test_the_namespace_index_is_always_there(widgets: Store) -> None:
    """Also where no indexers were given."""
    indexer = indexer_of(widgets)
    assert sorted(indexer.index_keys("namespace", "ns")) == ["ns/a", "ns/b", "ns/c"]
    assert set(indexer.get_indexers()) == {"namespace", "color"}


def test_an_index_can_be_added_later(widgets: Store) -> None:
    """By a function of the object; another function under a known name is a conflict."""
    indexer = indexer_of(widgets)
    indexer.add_indexers({"initial": lambda obj: [obj["metadata"]["name"][0].upper()]})
    assert indexer.index_keys("initial", "B") == ["ns/b"]
    with pytest.raises(OptionsConflictError, match="initial"):
        indexer.add_indexers({"initial": "{.metadata.name}"})


@pytest.mark.parametrize("read", ["by_index", "index_keys", "index", "list_index_func_values"])
def test_an_unknown_index_is_an_error_that_lists_the_known(widgets: Store, read: str) -> None:
    """Whatever is asked of it."""
    indexer = indexer_of(widgets)
    calls: dict[str, Any] = {
        "by_index": lambda: indexer.by_index("colour", "red"),
        "index_keys": lambda: indexer.index_keys("colour", "red"),
        "index": lambda: indexer.index("colour", widget("a", "red")),
        "list_index_func_values": lambda: indexer.list_index_func_values("colour"),
    }
    with pytest.raises(UnknownIndexError, match="color, namespace"):
        calls[read]()


@pytest.mark.parametrize("read", ["by_index", "index_keys"])
def test_an_index_on_a_path_that_no_object_can_have_warns(read: str) -> None:
    """At the first look-up, which finds nothing."""
    lister = holding(certificate("a"), indexers={"typo": ".spec.isuerRef.name"})
    indexer = indexer_of(lister.held.store, lister)
    with pytest.warns(JSONPathWarning, match="did you mean .spec.issuerRef.name?"):
        assert getattr(indexer, read)("typo", "ca") == []
