"""A store takes watch events, and answers reads (S6, S12, S17, S18, S30)."""

from __future__ import annotations

import gc
import logging
import threading
from typing import Any

import pytest

from dyninformer.errors import OptionsConflictError, UnknownIndexError
from dyninformer.options import DROP, Drop
from dyninformer.shard import Shard
from dyninformer.store.codec import Codec
from dyninformer.store.decide import Deltas, WatchEvent
from dyninformer.store.receive import UnusableObjectError
from dyninformer.store.store import Store
from dyninformer.types import Object
from tests.store.objects import WIDGETS, Counted, Told, add, delete, held, kind, relist, widget


def a_store(**options: Any) -> tuple[Store, Told]:
    """A store, and what it tells."""
    told = Told()
    return Store(WIDGETS, on_changes=told, **options), told


def test_s6_what_is_held_decides_between_add_and_update() -> None:
    """MODIFIED of an unknown key is an add, ADDED of a known one an update."""
    store, told = a_store()
    store.apply([("MODIFIED", store.receive(widget("a", 1)))])
    store.apply([("ADDED", store.receive(widget("a", 2)))])
    assert told.kinds() == [("ADDED", "ns/a"), ("UPDATED", "ns/a")]


def test_s7_events_that_came_together_are_one_section_and_are_told_in_their_order() -> None:
    """The same key may be among them twice, and what each did is told."""
    told: list[list[str]] = []
    store = Store(WIDGETS)

    def tell(changes: Deltas) -> None:
        told.append([*(kind(change) for change in changes), *store.keys()])

    store.on_changes = tell
    objects = [widget("a", 1), widget("b", 2), widget("a", 3)]
    events: list[WatchEvent] = [("ADDED", store.receive(each)) for each in objects]
    events.append(("DELETED", store.receive(widget("b", 4), deleted=True)))
    store.apply(events)
    assert told == [["ADDED", "ADDED", "UPDATED", "DELETED", "ns/a"]]


def test_events_that_change_nothing_are_told_to_nobody() -> None:
    """Not even as a run of nothing."""
    store, told = a_store()
    add(store, widget("a", 1))
    store.apply([("MODIFIED", store.receive(widget("a", 1)))] * 2)
    assert told.kinds() == [("ADDED", "ns/a")]


def test_s6_a_new_uid_under_a_known_key_is_an_update_that_says_recreated() -> None:
    """Only the change to the other uid is marked."""
    store, told = a_store()
    add(store, widget("a", 1, uid="x"), widget("a", 2, uid="x"), widget("a", 3, uid="y"))
    assert [change.recreated for change in told.changes] == [False, False, True]


def test_s6_a_delete_of_another_uid_or_an_unknown_key_is_ignored() -> None:
    """The held object stays, and nobody hears of it."""
    store, told = a_store()
    add(store, widget("a", 1, uid="x"))
    delete(store, widget("a", 5, uid="y"))
    delete(store, widget("b", 6))
    assert told.kinds() == [("ADDED", "ns/a")]
    assert store.keys() == ["ns/a"]


def test_s6_a_delete_tells_the_last_held_state() -> None:
    """The change has the held entry as old, and no new one."""
    store, told = a_store()
    add(store, widget("a", 1, n=7))
    delete(store, widget("a", 2, n=7))
    change = told.changes[-1]
    assert change.new is None
    assert change.old is not None
    assert store.codec.decode(change.old)["spec"] == {"n": 7}
    assert len(store) == 0
    assert "ns/a" not in store


def test_s7_the_state_has_changed_and_the_lock_is_held_when_changes_are_told() -> None:
    """A read by what is told finds the new state; it may take the lock again."""
    seen: list[tuple[bool, int]] = []

    def on_changes(changes: Deltas) -> None:
        with store.lock:
            seen.append(("ns/a" in store, len(store.view())))

    store = Store(WIDGETS, on_changes=on_changes)
    add(store, widget("a"))
    delete(store, widget("a", 2))
    assert seen == [(True, 1), (False, 0)]


def test_s12_the_same_version_and_content_is_no_change_and_the_entry_stays() -> None:
    """Also where the keys come in another order."""
    store, told = a_store()
    add(store, widget("a", 1, x=1, y=2))
    entry = store.get("ns/a")
    add(store, widget("a", 1, x=1, y=2), widget("a", 1, y=2, x=1))
    assert store.get("ns/a") is entry
    assert len(told.changes) == 1


def test_s12_the_same_version_with_other_content_is_an_update() -> None:
    """As after a schema change, which the server sends no event for."""
    store, told = a_store()
    add(store, widget("a", 1, x=1), widget("a", 1, x=True))
    assert told.kinds() == [("ADDED", "ns/a"), ("UPDATED", "ns/a")]
    assert held(store, "ns/a")["spec"] == {"x": True}


def test_s12_the_same_bytes_at_another_version_are_an_update() -> None:
    """A transform may have removed all that differs: the versions still do."""
    store, told = a_store(transform=lambda obj: {"spec": obj["spec"]})
    add(store, widget("a", 1), widget("a", 2), widget("a", 2))
    assert told.kinds() == [("ADDED", "ns/a"), ("UPDATED", "ns/a")]


def test_s17_uid_and_version_are_the_servers_whatever_a_transform_removes() -> None:
    """Stale events and deletes of another uid are still known for what they are."""
    store, told = a_store(transform=lambda obj: {"spec": obj["spec"]})
    add(store, widget("a", 5, uid="x"), widget("a", 4, uid="x"))
    delete(store, widget("a", 9, uid="y"))
    payload = store.get("ns/a")
    assert payload is not None
    assert store.codec.identity(payload) == ("x", "5")
    assert told.kinds() == [("ADDED", "ns/a")]


def test_s17_a_transform_cannot_change_namespace_or_name() -> None:
    """They are put back, and the key is the server's."""

    def rename(obj: Object) -> Object:
        obj["metadata"]["name"] = "other"
        del obj["metadata"]["namespace"]
        return obj

    store, _ = a_store(transform=rename)
    add(store, widget("a"))
    assert held(store, "ns/a")["metadata"]["name"] == "a"
    assert held(store, "ns/a")["metadata"]["namespace"] == "ns"


def test_s17_what_a_transform_drops_is_not_held_and_a_held_one_is_deleted() -> None:
    """The DELETED has the held state."""

    def small(obj: Object) -> Object | Drop:
        return DROP if obj["spec"]["n"] > 9 else obj

    store, told = a_store(transform=small)
    add(store, widget("a", 1, n=10), widget("b", 2, n=1), widget("b", 3, n=10))
    assert told.kinds() == [("ADDED", "ns/b"), ("DELETED", "ns/b")]


@pytest.mark.parametrize("why", ["dropped", "of another shard"])
def test_s17_s49_another_object_of_a_held_key_that_is_not_kept_ends_the_held_one(why: str) -> None:
    """Its own end was missed, and nobody would tell it later; an older one ends nothing."""
    shard = Shard(0, 2) if why == "of another shard" else None
    theirs = next(uid for uid in map(str, range(99)) if not Shard(0, 2).owns(uid))
    ours = next(uid for uid in map(str, range(99)) if Shard(0, 2).owns(uid))

    def mine(obj: Object) -> Object | Drop:
        return obj if obj["metadata"]["uid"] == ours else DROP

    store, told = a_store(shard=shard, transform=None if shard else mine)
    add(store, widget("a", 2, uid=ours), widget("a", 1, uid=theirs), widget("a", 3, uid=theirs))
    assert told.kinds() == [("ADDED", "ns/a"), ("DELETED", "ns/a")]
    assert told.changes[1].final_state_unknown
    assert len(store) == 0


@pytest.mark.parametrize("answer", [None, "text", []])
def test_s17_a_transform_that_returns_no_object_counts_as_raising(answer: object) -> None:
    """What came says what is wanted, and whose object it was; the store does, too."""
    store, told = a_store(transform=lambda obj: answer)
    received = store.receive(widget("a", 7))
    assert (received.key, received.version, received.data) == ("ns/a", "7", None)
    add(store, widget("a", 7))
    assert not told.changes
    assert store.untransformed.count == 1
    assert "ns/a" in store.untransformed.first
    assert "dyninformer.DROP" in store.untransformed.first


def picky(obj: dict[str, Any]) -> dict[str, Any]:
    """A transform that fails on what is bad."""
    if obj["spec"]["n"] < 0:
        raise KeyError("spec")
    return obj


@pytest.mark.parametrize("how", ["event", "relist"])
def test_s17_what_the_transform_fails_on_stays_as_it_was_held(how: str) -> None:
    """Or is left out, if it was not; what is in order again, or gone, is counted no more."""
    store, told = a_store(transform=picky)
    add(store, widget("a", 1, n=1), widget("b", 2, n=1))
    del told.changes[:]

    def come(*objects: bytes) -> None:
        if how == "event":
            add(store, *objects)
        else:
            relist = store.relist()
            relist.add([store.receive(each) for each in objects])
            relist.swap(first=False)

    come(widget("a", 3, n=-1), widget("b", 2, n=1), widget("new", 4, n=-1))
    assert not told.changes
    assert sorted(store.keys()) == ["ns/a", "ns/b"]
    assert (store.untransformed.count, "ns/a" in store.untransformed.first) == (2, True)
    come(widget("a", 5, n=2), widget("b", 2, n=1), widget("new", 4, n=-1))
    assert told.kinds() == [("UPDATED", "ns/a")]
    assert (store.untransformed.count, "ns/new" in store.untransformed.first) == (1, True)
    store.apply([("DELETED", store.receive(widget("new", 6, n=-1), deleted=True))])
    assert (store.untransformed.count, store.untransformed.first) == (0, "")
    assert told.kinds() == [("UPDATED", "ns/a")]


def test_s17_what_failed_and_then_did_not_in_the_same_list_is_no_longer_reported() -> None:
    """A streaming list brings an object anew when it changes meanwhile."""
    store, _ = a_store(transform=picky, codec=Codec(compress=False))
    relist = store.relist()
    relist.add([store.receive(widget("a", 1, n=-1)), store.receive(widget("b", 2, n=-1))])
    relist.add([store.receive(widget("a", 3, n=1))])
    relist.swap(first=True)
    assert [*store.keys()] == ["ns/a"]
    assert (store.untransformed.count, "ns/b" in store.untransformed.first) == (1, True)


@pytest.mark.parametrize("how", ["event", "relist"])
def test_s17_another_object_that_fails_does_not_keep_the_one_before_it(how: str) -> None:
    """Its deletion would be of another uid, and so the old one would never go."""
    store, told = a_store(transform=picky)
    add(store, widget("a", 1, n=1, uid="first"))
    second = widget("a", 2, n=-1, uid="second")
    if how == "event":
        add(store, second)
    else:
        relist = store.relist()
        relist.add([store.receive(second)])
        relist.swap(first=False)
    assert told.kinds() == [("ADDED", "ns/a"), ("DELETED", "ns/a")]
    assert store.untransformed.count == 1


def test_s17_a_namespace_of_its_own_counts_for_itself() -> None:
    """The list of one scope says nothing of what failed in another."""
    store, _ = a_store(transform=picky)
    add(store, widget("a", 1, n=-1))
    store.relist("other").swap(first=True)
    assert store.untransformed.count == 1
    store.relist("ns").swap(first=True)
    assert store.untransformed.count == 0


def test_s17_a_delete_never_asks_the_transform() -> None:
    """A transform that raises cannot keep an object alive."""
    store, told = a_store()
    add(store, widget("a"))

    def fail(obj: Object) -> Object:
        raise ZeroDivisionError

    store.set_transform(fail)
    delete(store, widget("a", 2))
    assert told.kinds()[-1] == ("DELETED", "ns/a")


def test_s18_an_index_function_that_raises_indexes_the_object_under_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged once for the index, and counted each time; the object is held."""
    counted = Counted()
    store, _ = a_store(indexers={"bad": lambda obj: [obj["spec"]["x"]]}, metrics=counted)
    with caplog.at_level(logging.WARNING):
        add(store, widget("a", 1), widget("b", 2), widget("c", 3, x="here"))
    assert store.index_keys("bad", "here") == ["ns/c"]
    assert store.keys() == ["ns/a", "ns/b", "ns/c"]
    assert [each for each in counted.counts if each[0] == "index_errors"] == [
        ("index_errors", 1, {"index": "bad"})
    ] * 2
    assert len(caplog.records) == 1
    assert "'bad'" in caplog.text


@pytest.mark.parametrize("wrong", ["text", [1], 5])
def test_s18_an_index_function_that_returns_no_texts_counts_as_raising(wrong: Any) -> None:
    """One text instead of a list of texts is a mistake, not a list of letters."""
    counted = Counted()
    store, _ = a_store(indexers={"bad": lambda obj: wrong}, metrics=counted)
    add(store, widget("a"))
    assert store.index_values("bad") == []
    assert ("index_errors", 1, {"index": "bad"}) in counted.counts


def test_s30_an_event_older_than_the_held_version_of_its_key_is_dropped() -> None:
    """Versions are compared as numbers: 9 is older than 10."""
    store, told = a_store()
    add(store, widget("a", 10))
    add(store, widget("a", 9))
    delete(store, widget("a", 8))
    assert told.kinds() == [("ADDED", "ns/a")]


def test_s30_versions_of_different_keys_are_not_compared() -> None:
    """An event of one key with a lower version than another key's is applied."""
    store, told = a_store()
    add(store, widget("a", 10), widget("b", 9), widget("c", 10))
    assert len(told.changes) == 3


def test_s30_opaque_versions_are_never_older() -> None:
    """What is not 1 to 20 digits is only equal or not."""
    store, told = a_store()
    for version in ("zz", "aa", "9" * 21, "5"):
        add(
            store,
            widget("a").replace(
                b'"resourceVersion":"1"', f'"resourceVersion":"{version}"'.encode()
            ),
        )
    assert len(told.changes) == 4


def test_s32_an_unusable_object_is_counted_and_names_its_key_where_it_can() -> None:
    """The held state is not touched."""
    counted = Counted()
    store, told = a_store(metrics=counted)
    deep = widget("a", 4)[:-1] + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}"
    with pytest.raises(UnusableObjectError, match="nested too deep") as caught:
        store.receive(deep)
    assert (caught.value.key, caught.value.version) == ("ns/a", "4")
    store.count_unusable()
    assert counted.counts == [("unusable_objects", 1, {})]
    assert not told.changes


def test_events_and_objects_are_reported() -> None:
    """Each change counts by its type; the number of objects follows."""
    counted = Counted()
    store, _ = a_store(metrics=counted)
    add(store, widget("a", 1), widget("a", 2), widget("b", 3))
    delete(store, widget("a", 4))
    assert [labels["type"] for _, _, labels in counted.counts] == [
        "ADDED",
        "UPDATED",
        "ADDED",
        "DELETED",
    ]
    assert counted.gauges == {"objects": 1}


def test_every_read_of_an_object_is_the_callers_own() -> None:
    """Changing one dict changes neither the cache nor the next read."""
    store, _ = a_store()
    add(store, widget("a", 1, n=1))
    held(store, "ns/a")["spec"]["n"] = 2
    assert held(store, "ns/a")["spec"]["n"] == 1


def test_reads_find_cluster_scoped_objects_by_their_bare_name() -> None:
    """Their namespace in the index is the empty text."""
    store, _ = a_store()
    add(store, widget("node-1", namespace=""))
    assert "node-1" in store
    assert store.index_keys("namespace", "") == ["node-1"]
    assert store.index_values("namespace") == [""]
    assert store.view("").keys() == ["node-1"]


def test_a_view_is_frozen() -> None:
    """It goes on showing its moment, of all namespaces or of one."""
    store, _ = a_store()
    add(store, widget("a", 1), widget("b", 2, namespace="other"))
    whole, one = store.view(), store.view("other")
    delete(store, widget("b", 3, namespace="other"))
    add(store, widget("c", 4))
    assert whole.keys() == ["ns/a", "other/b"]
    assert [obj["metadata"]["name"] for obj in whole] == ["a", "b"]
    assert (one.keys(), len(one), "other/b" in one, "ns/a" in one) == (["other/b"], 1, True, False)
    assert store.view("none").keys() == []


def test_indexes_follow_adds_updates_and_deletes() -> None:
    """Several values of an object, several objects of a value."""
    store, _ = a_store(indexers={"tag": ".spec.tags[*]", "size": ".spec.size"})
    add(store, widget("a", 1, tags=["x", "y"], size=4), widget("b", 2, tags=["y"], size=4.0))
    assert store.index_keys("tag", "y") == ["ns/a", "ns/b"]
    assert store.index_keys("size", "4") == ["ns/a", "ns/b"]
    add(store, widget("a", 3, tags=["z"]))
    assert store.index_keys("tag", "y") == ["ns/b"]
    assert sorted(store.index_values("tag")) == ["y", "z"]
    delete(store, widget("b", 4))
    assert store.index_values("tag") == ["z"]
    assert store.index_values("size") == []
    assert [key for key, _ in store.by_index("tag", "z")] == ["ns/a"]


def test_an_index_forgets_what_an_unsteady_function_said() -> None:
    """The old values are those that it gave then, not those it would give now."""
    answers = iter(["one", "two", "three"])
    store, _ = a_store(indexers={"unsteady": lambda obj: [next(answers)]})
    add(store, widget("a", 1), widget("a", 2))
    assert store.index_values("unsteady") == ["two"]
    delete(store, widget("a", 3))
    assert store.index_values("unsteady") == []


def test_an_unknown_index_is_an_error_that_lists_the_known() -> None:
    """By whichever method it is asked for."""
    store, _ = a_store(indexers={"size": ".spec.size"})
    for ask in (
        lambda: store.by_index("siez", "x"),
        lambda: store.index_keys("siez", "x"),
        lambda: store.index_values("siez"),
        lambda: store.values_of("siez", {}),
    ):
        with pytest.raises(UnknownIndexError, match=r"'siez'; it has: namespace, size"):
            ask()


def test_the_values_that_an_index_function_gives_can_be_asked() -> None:
    """For any object, held or not."""
    store, _ = a_store(indexers={"size": ".spec.size"})
    assert store.values_of("size", {"spec": {"size": 4}}) == ["4"]
    assert store.values_of("namespace", {"metadata": {"namespace": "n"}}) == ["n"]


def test_the_namespace_index_cannot_be_another_function() -> None:
    """It may be named as it is."""
    store, _ = a_store()
    store.add_indexers({"namespace": store.get_indexers()["namespace"]})
    with pytest.raises(OptionsConflictError, match="'namespace'"):
        store.add_indexers({"namespace": ".spec.x"})


def test_metadata_only_cuts_full_objects_to_their_metadata() -> None:
    """What the server cut itself is taken as it is (S31)."""
    store, _ = a_store(metadata_only=True)
    add(store, widget("a", 1, secret="x"))
    partial = (
        b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b"}}'
    )
    add(store, partial)
    assert held(store, "ns/a") == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "1", "uid": "uid-a"},
    }
    payload = store.get("b")
    assert payload is not None
    assert store.codec.plain(payload) == partial


def test_the_shared_object_of_an_entry_is_one_dict_until_the_entry_changes() -> None:
    """A key that is not held has none."""
    store, _ = a_store()
    add(store, widget("a", 1, n=1))
    first = store.shared("ns/a")
    assert first is store.shared("ns/a")
    add(store, widget("a", 1, n=2))
    second = store.shared("ns/a")
    assert second is not None
    assert second["spec"] == {"n": 2}
    assert store.shared("ns/b") is None


def test_past_a_thousand_objects_entries_are_compressed_earlier_ones_too() -> None:
    """They read as before, and their shared dicts may stay."""
    store, told = a_store()
    add(store, *(widget(f"w{n}", n, text="the same in all of them " * 8) for n in range(1, 1002)))
    payloads = [payload for _, payload in store.view().items()]
    assert all(payload[:1] == b"(" for payload in payloads)
    assert [obj["metadata"]["name"] for obj in store.view()] == [f"w{n}" for n in range(1, 1002)]
    old = told.changes[0].new
    assert old is not None
    assert store.codec.decode(old)["metadata"]["name"] == "w1"


def test_threads_that_ask_at_once_share_one_dict() -> None:
    """Whichever of them decoded it first."""
    store = Store(WIDGETS)
    add(store, *(widget(f"w{index}", 1, text="x" * 2000) for index in range(200)))
    start = threading.Barrier(6)
    seen: list[list[Any]] = []

    def ask() -> None:
        start.wait()
        seen.append([store.shared(f"ns/w{index}") for index in range(200)])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({id(obj) for obj in same}) == 1 for same in zip(*seen, strict=True))


def test_more_objects_than_the_shared_ones_that_are_kept_are_read_all_the_same() -> None:
    """The first are decoded anew."""
    store = Store(WIDGETS)
    relist(store, *(widget(f"w{index}", index + 1) for index in range(5000)))
    first = store.shared("ns/w0")
    for index in range(5000):
        shared = store.shared(f"ns/w{index}")
        assert shared is not None
        assert shared["metadata"]["name"] == f"w{index}"
    again = store.shared("ns/w0")
    assert again == first
    assert again is not first


def test_the_garbage_collector_has_no_more_to_walk_with_more_objects() -> None:
    """Entries, keys and indexes of one, few and many keys a value are nothing it tracks."""
    store = Store(WIDGETS, indexers={"own": ".spec.own", "few": ".spec.few", "many": ".spec.many"})

    def tracked() -> int:
        gc.collect()
        return len(gc.get_objects())

    def grow(start: int) -> None:
        for index in range(start, start + 2000):
            spec = {"own": str(index), "few": f"f{index // 3}", "many": str(index % 2)}
            add(store, widget(f"w{index}", index + 1, **spec))

    grow(0)
    before = tracked()
    grow(2000)
    assert tracked() - before < 100
    assert len(store) == 4000


def test_s7_changes_are_written_and_told_with_the_lock_held() -> None:
    """No other thread can take it meanwhile, be it an event, a relist, or the end of a resource."""
    taken: list[bool] = []
    store = Store(WIDGETS)

    def tell(changes: Deltas) -> None:
        del changes
        other = threading.Thread(target=lambda: taken.append(store.lock.acquire(blocking=False)))
        other.start()
        other.join()

    store.on_changes = tell
    add(store, widget("a", 1))
    relist(store, widget("a", 2), widget("b", 2))
    store.clear()
    assert taken == [False, False, False]


def test_a_namespace_without_objects_is_no_value_of_its_index() -> None:
    """By whatever its last object went."""
    store, _ = a_store()
    add(store, widget("a", 1, namespace="one"), widget("b", 2, namespace="two"))
    delete(store, widget("a", 3, namespace="one"))
    assert store.index_values("namespace") == ["two"]
    relist(store)
    assert store.index_values("namespace") == []


def test_the_first_objects_are_had_without_the_others() -> None:
    """Of all, or of one namespace; with how many each namespace has."""
    store, _ = a_store()
    add(store, *(widget(f"w{n}", n + 1, namespace=f"ns{n % 2}") for n in range(6)))
    assert store.first(2).keys() == ["ns0/w0", "ns0/w2"]
    assert store.first(4).keys() == ["ns0/w0", "ns0/w2", "ns0/w4", "ns1/w1"]
    assert store.first(9, "ns1").keys() == ["ns1/w1", "ns1/w3", "ns1/w5"]
    assert store.first(9, "nope").keys() == store.first(0).keys() == []
    assert [obj["metadata"]["name"] for obj in store.first(3).some(2)] == ["w0", "w2"]
    assert (store.count_in("ns1"), store.count_in("nope")) == (3, 0)


def test_an_index_tells_its_size_and_that_of_its_first_values() -> None:
    """However many keys a value has."""
    store, _ = a_store(indexers={"color": ".spec.color"})
    colors = ["red", "red", "blue", *["green"] * 12]
    add(store, *(widget(f"w{n}", n + 1, color=color) for n, color in enumerate(colors)))
    assert store.index_sizes("color", 9) == (3, {"red": 2, "green": 12, "blue": 1})
    assert store.index_sizes("color", 1) == (3, {"red": 2})
    assert store.index_sizes("namespace", 9) == (1, {"ns": 15})
    with pytest.raises(UnknownIndexError):
        store.index_sizes("nope", 1)


def test_how_many_bytes_are_held_is_known_after_every_change() -> None:
    """Adds, updates, deletions, relists, and entries that are packed again."""
    store, _ = a_store()

    def check() -> None:
        entries = sum(len(entry) for _, entry in store.view().items())
        assert store.held_bytes == entries + store.codec.memory

    add(store, widget("a", 1), widget("b", 2, text="x" * 100))
    check()
    add(store, widget("b", 3))
    delete(store, widget("a", 4))
    check()
    relist(store, *(widget(f"w{n}", 5, text="y" * (n % 50)) for n in range(1500)))
    assert not store.codec.wants_sample
    check()
    relist(store, widget("b", 6))
    check()
    store.clear()
    assert store.held_bytes == store.codec.memory > 0
