"""A relist is built apart and swapped in at once (S2, S8, S13, S14, S32)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dyninformer.options import DROP, Drop
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Deltas
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, Told, add, held, relist, widget


def a_store(**options: Any) -> tuple[Store, Told]:
    """A store, and what it tells."""
    told = Told()
    return Store(WIDGETS, on_changes=told, **options), told


def test_s8_deletes_are_told_first_then_the_rest_in_list_order() -> None:
    """All in one call, under the lock."""
    calls: list[list[str]] = []

    def on_changes(changes: Deltas) -> None:
        calls.append([change.key for change in changes])

    store = Store(WIDGETS, on_changes=on_changes)
    add(store, widget("a", 1), widget("b", 2), widget("d", 3))
    calls.clear()
    relist(store, widget("c", 9), widget("b", 8), widget("a", 7))
    assert calls == [["ns/d", "ns/c", "ns/b", "ns/a"]]


def test_s13_what_a_list_does_not_have_is_deleted_in_an_unknown_final_state() -> None:
    """The change has the last known state."""
    store, told = a_store()
    add(store, widget("a", 1, n=5))
    told.clear()
    relist(store)
    (change,) = told.changes
    assert change.final_state_unknown
    assert change.old is not None
    assert store.codec.decode(change.old)["spec"] == {"n": 5}
    assert len(store) == 0


def test_s14_a_relist_tells_what_changed_and_keeps_the_entries_of_what_did_not() -> None:
    """Equal content in another order of keys is no change either."""
    store, told = a_store()
    add(store, widget("a", 1, x=1, y=2), widget("b", 2, x=1), widget("c", 3))
    entries = dict(store.view().items())
    told.clear()
    relist(store, widget("a", 1, y=2, x=1), widget("b", 2, x=2), widget("c", 3))
    assert told.kinds() == [("UPDATED", "ns/b")]
    assert store.get("ns/a") is entries["ns/a"]
    assert store.get("ns/c") is entries["ns/c"]


def test_s30_a_list_is_the_truth_even_where_it_is_older() -> None:
    """As after a restore from a backup."""
    store, told = a_store()
    add(store, widget("a", 10, n=2))
    relist(store, widget("a", 5, n=1))
    assert held(store, "ns/a")["spec"] == {"n": 1}
    assert told.kinds()[-1] == ("UPDATED", "ns/a")


def test_s2_a_relist_of_a_namespace_touches_no_other() -> None:
    """Not even those that are not there any more."""
    store, told = a_store()
    add(store, widget("a", 1, "one"), widget("b", 2, "two"))
    told.clear()
    relist(store, widget("c", 3, "one"), scope="one")
    assert told.kinds() == [("DELETED", "one/a"), ("ADDED", "one/c")]
    assert sorted(store.keys()) == ["one/c", "two/b"]


def test_the_changes_of_a_first_state_are_initial() -> None:
    """Later ones are not."""
    store, told = a_store()
    relist(store, widget("a", 1), widget("b", 2), first=True)
    relist(store, widget("a", 1), widget("b", 2), widget("c", 3))
    assert [(change.key, change.initial) for change in told.changes] == [
        ("ns/a", True),
        ("ns/b", True),
        ("ns/c", False),
    ]


def test_the_changes_of_a_first_state_can_be_kept_indexed_and_walked_twice() -> None:
    """They stay what they were when the store goes on."""
    kept: list[Deltas] = []
    store = Store(WIDGETS, on_changes=kept.append)
    relist(store, *(widget(name, 1) for name in "abcd"), first=True)
    add(store, widget("a", 2))
    (initial, _) = kept
    assert [change.key for change in initial] == ["ns/a", "ns/b", "ns/c", "ns/d"]
    assert [change.key for change in initial] == [initial[at].key for at in range(len(initial))]
    assert [change.key for change in initial[1:3]] == ["ns/b", "ns/c"]
    assert initial[-1].new is store.get("ns/d")


def test_an_empty_first_state_tells_nothing() -> None:
    """There is no call without a change."""
    store, told = a_store()
    relist(store, first=True)
    assert told.changes == []


def test_a_relist_knows_its_size_before_and_after_the_swap() -> None:
    """What is equal, changed and new all counts."""
    store, _ = a_store()
    add(store, widget("a", 1), widget("b", 2), widget("gone", 3))
    state = store.relist()
    for data in (widget("a", 1), widget("b", 5), widget("c", 6)):
        state.add([store.receive(data)])
    assert len(state) == 3
    state.swap(first=False)
    assert len(state) == 3


def test_nothing_changes_until_the_swap() -> None:
    """A relist that is dropped was never there."""
    store, told = a_store(indexers={"n": ".spec.n"})
    add(store, widget("a", 1))
    told.clear()
    state = store.relist()
    state.add([store.receive(widget("b", 2, n="x"))])
    assert len(state) == 1
    del state
    assert (store.keys(), store.index_values("n"), told.changes) == (["ns/a"], [], [])


def test_of_two_objects_of_one_key_the_later_counts() -> None:
    """In the state, in its indexes, and against what is held."""
    store, told = a_store(indexers={"n": ".spec.n"})
    add(store, widget("held", 1, n="held"))
    told.clear()
    relist(
        store,
        widget("a", 2, n="x"),
        widget("held", 3, n="x"),
        widget("a", 4, n="y"),
        widget("held", 1, n="held"),
    )
    assert told.kinds() == [("ADDED", "ns/a")]
    assert store.index_values("n") == ["held", "y"]


def test_s24_an_object_deleted_while_a_streaming_list_runs_is_not_in_the_state() -> None:
    """Whether it was held before or not; added again, it is."""
    store, told = a_store(indexers={"n": ".spec.n"})
    add(store, widget("a", 1, n="1"), widget("b", 2, n="2"))
    told.clear()
    state = store.relist()
    for name in "abc":
        state.add([store.receive(widget(name, 5, n=name))])
    for name in "abc":
        state.remove(store.receive(widget(name, 6), deleted=True))
    state.add([store.receive(widget("b", 7, n="again"))])
    state.swap(first=False)
    assert told.kinds() == [("DELETED", "ns/a"), ("UPDATED", "ns/b")]
    assert store.index_values("n") == ["again"]


def test_s17_what_a_transform_drops_is_not_in_the_state() -> None:
    """If it was held, it is deleted."""
    store, told = a_store()
    add(store, widget("a", 1))
    store.set_transform(lambda obj: DROP)
    relist(store, widget("a", 2), widget("b", 3))
    assert told.kinds()[1:] == [("DELETED", "ns/a")]


def test_s32_an_unusable_object_of_a_known_key_keeps_its_held_state() -> None:
    """One that is not held is not there."""
    store, told = a_store()
    add(store, widget("a", 1), widget("b", 2))
    told.clear()
    state = store.relist()
    state.keep("ns/a")
    state.keep("ns/nowhere")
    state.swap(first=False)
    assert told.kinds() == [("DELETED", "ns/b")]


def test_s32_a_list_with_an_object_of_no_known_key_deletes_nothing() -> None:
    """It adds and updates as any other."""
    store, told = a_store()
    add(store, widget("a", 1), widget("b", 2))
    told.clear()
    state = store.relist()
    state.keep_all()
    state.add([store.receive(widget("b", 3))])
    state.swap(first=False)
    assert told.kinds() == [("UPDATED", "ns/b")]


def test_s32_what_is_said_to_be_gone_is_deleted_even_where_nothing_missing_is() -> None:
    """A stream told of its deletion, or the transform dropped it: it is not just missing."""
    store, told = a_store()
    add(store, widget("gone"), widget("dropped"), widget("added"), widget("missing"))
    store.set_transform(lambda obj: DROP if obj["metadata"]["name"] == "dropped" else obj)
    told.clear()
    state = store.relist()
    state.remove(store.receive(widget("gone", 5), deleted=True))
    state.remove(store.receive(widget("added", 5), deleted=True))
    state.keep_all()
    state.add([store.receive(widget("dropped", 5))])
    state.add([store.receive(widget("added", 6, n=1))])
    state.swap(first=False)
    assert told.kinds() == [
        ("DELETED", "ns/gone"),
        ("DELETED", "ns/dropped"),
        ("UPDATED", "ns/added"),
    ]


def test_s33_clearing_deletes_all_that_is_held_of_the_scope() -> None:
    """The indexes are empty afterwards."""
    store, told = a_store(indexers={"n": ".spec.n"})
    add(store, widget("a", 1, "one", n="x"), widget("b", 2, "two", n="y"))
    told.clear()
    store.clear("one")
    assert told.kinds() == [("DELETED", "one/a")]
    assert store.index_values("n") == ["y"]
    store.clear()
    assert len(store) == 0


def test_s15_an_index_added_while_a_relist_is_built_has_what_it_brings() -> None:
    """What was added, what changed and what went."""
    store, _ = a_store(indexers={"n": ".spec.n"})
    add(store, widget("a", 1, n="1", m="old"), widget("b", 2, n="2", m="old"))
    state = store.relist()
    state.add([store.receive(widget("a", 3, n="1", m="new"))])
    state.add([store.receive(widget("c", 4, n="3", m="new"))])
    late = store.receive(widget("d", 5, n="3", m="new"))
    store.add_indexers({"m": ".spec.m", "call": lambda obj: [obj["spec"]["m"]]})
    state.add([late])
    state.swap(first=False)
    for name in ("m", "call"):
        assert sorted(store.index_keys(name, "new")) == ["ns/a", "ns/c", "ns/d"]
        assert store.index_values(name) == ["new"]
    assert sorted(store.index_keys("n", "3")) == ["ns/c", "ns/d"]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_batch_is_taken_as_its_objects_are_one_by_one(seed: int, compress: bool) -> None:
    """New ones and held ones, a key twice, what a transform drops, and values of any number."""

    def transform(obj: Object) -> Object | Drop:
        return DROP if obj["spec"]["n"] == "drop" else obj

    def outcome(in_batches: bool) -> tuple[object, ...]:
        random = Random(seed)
        store, told = a_store(
            codec=Codec(compress),
            transform=transform if seed % 2 else None,
            indexers={"n": ".spec.n", "many": ".spec.many[*]", "call": lambda o: [o["spec"]["n"]]},
        )

        def some(count: int, version: int) -> list[bytes]:
            return [
                widget(
                    f"w{random.randrange(30)}",
                    version + at,
                    n=random.choice(["1", "2", "3", "drop"]),
                    many=random.choices("abcdefgh", k=random.randrange(4)),
                )
                for at in range(count)
            ]

        add(store, *some(15, 1))
        state = store.relist()
        for batch in range(3):
            received = [store.receive(data) for data in some(12, 100 * (batch + 1))]
            if batch == 2 and seed % 3 == 0:
                store.add_indexers({"late": ".spec.n"})
            if in_batches:
                state.add(received)
            else:
                for each in received:
                    state.add([each])
        state.swap(first=False)
        indexes = {
            (name, value): sorted(store.index_keys(name, value))
            for name in store.get_indexers()
            for value in store.index_values(name)
        }
        objects = {key: held(store, key) for key, _ in store.view().items()}
        return objects, indexes, told.kinds()

    assert outcome(in_batches=True) == outcome(in_batches=False)


def test_a_large_state_is_compressed_as_it_comes() -> None:
    """Adds and updates alike, what came before there was a dictionary too."""
    store, told = a_store()
    add(store, *(widget(f"w{n}", n, text="t" * 99) for n in range(1, 500)))
    relist(store, *(widget(f"w{n}", n + 5000, text="t" * 99) for n in range(1, 2000)))
    assert all(payload[:1] == b"(" for _, payload in store.view().items())
    assert all(change.new is None or change.new[:1] == b"(" for change in told.changes[499:])
    assert held(store, "ns/w7")["metadata"]["resourceVersion"] == "5007"


def test_a_state_of_many_thousand_objects_is_swapped_in_whole() -> None:
    """All namespaces, indexes and changes are there."""
    store, told = a_store(indexers={"n": ".spec.n"})
    spaces = [f"n{index}" for index in range(40)]
    relist(
        store,
        *(widget(f"w{at}", at + 1, space, n=str(at % 7)) for space in spaces for at in range(260)),
        first=True,
    )
    assert len(store) == len(told.changes) == 10_400
    assert sum(len(store.index_keys("n", value)) for value in store.index_values("n")) == 10_400
    assert store.index_values("namespace") == spaces
