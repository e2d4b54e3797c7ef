"""A frozen store reads as the store did, and does not change with it."""

from __future__ import annotations

import pytest

from dyninformer.errors import OptionsConflictError, UnknownIndexError
from dyninformer.store.frozen import FrozenStore
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, add, widget

INDEXERS = {"n": ".spec.n", "m": ".spec.m"}


def frozen_of(store: Store) -> FrozenStore:
    """It, as it is now."""
    return FrozenStore(store.view(), store.get_indexers())


def test_s37_it_has_what_was_there_whatever_happens_to_the_store() -> None:
    """By key, by index, by namespace, and in number."""
    store = Store(WIDGETS, indexers=INDEXERS)
    add(store, widget("a", 1, n="x"), widget("b", 2, "dev", n="x"))
    frozen = frozen_of(store)
    add(store, widget("a", 3, n="y"), widget("c", 4, n="x"))
    assert frozen.index_keys("n", "x") == ["ns/a", "dev/b"]
    assert [key for key, _ in frozen.by_index("n", "x", "dev")] == ["dev/b"]
    assert (len(frozen), frozen.keys(), "ns/c" in frozen) == (2, ["ns/a", "dev/b"], False)
    assert frozen.view("dev").keys() == ["dev/b"]
    assert frozen.index_values("namespace") == ["ns", "dev"]


def test_s37_it_shares_the_entries() -> None:
    """They are the very same bytes, and the view is not copied again for a read."""
    store = Store(WIDGETS)
    add(store, widget("a", 1))
    frozen = frozen_of(store)
    assert frozen.get("ns/a") is store.get("ns/a")
    assert frozen.view() is frozen.view()


def test_an_index_is_built_once_when_it_is_asked_for() -> None:
    """And not before: most snapshots are never asked."""
    calls: list[str] = []

    def by_name(obj: Object) -> list[str]:
        calls.append(obj["metadata"]["name"])
        return [obj["metadata"]["name"]]

    store = Store(WIDGETS, indexers={"name": by_name})
    add(store, widget("a", 1))
    frozen = frozen_of(store)
    calls.clear()
    assert frozen.get_indexers()["name"] is by_name
    assert (frozen.index_keys("name", "a"), frozen.index_keys("name", "a")) == (["ns/a"], ["ns/a"])
    assert calls == ["a"]


def test_indexes_can_be_added_and_unknown_ones_are_named() -> None:
    """Another function under a known name is refused, built or not."""
    store = Store(WIDGETS, indexers=INDEXERS)
    add(store, widget("a", 1, n="x", k="z"))
    frozen = frozen_of(store)
    frozen.add_indexers({"k": ".spec.k", "n": ".spec.n"})
    assert frozen.index_keys("k", "z") == ["ns/a"]
    for name in ("k", "m"):
        with pytest.raises(OptionsConflictError):
            frozen.add_indexers({name: ".spec.other"})
    with pytest.raises(UnknownIndexError, match="it has: k, m, n, namespace"):
        frozen.by_index("nope", "x")


def test_s37_the_version_of_a_moment_is_that_of_its_entries() -> None:
    """It changes in the section that changes the entries; of several scopes it is the lowest."""
    store = Store(WIDGETS)
    told: list[tuple[int, str]] = []
    store.on_changes = lambda _: told.append((len(store), store.moment(("ns",))[1]))
    assert store.moment(("ns",))[1] == ""
    relist = store.relist("ns")
    relist.add([store.receive(widget("a", 1))])
    relist.swap(True, version="7")
    store.apply([("ADDED", store.receive(widget("b", 8)))], "ns", "8")
    assert told == [(1, "7"), (2, "8")]
    assert store.moment(("ns", "dev"))[1] == ""
    store.versions["dev"] = "5"
    assert store.moment(("ns", "dev"))[1] == "5"
