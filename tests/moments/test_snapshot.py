"""A snapshot reads as a lister does, of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer import (
    GroupVersionResource,
    ObjectNotFoundError,
    OpenInformer,
    UnknownIndexError,
    open_informer,
)
from dyninformer.delivery.events import EventType
from dyninformer.moments.snapshot import Snapshot, snapshot_of
from dyninformer.moments.version import Told, Version
from dyninformer.store.store import Store
from dyninformer.testing import ApiServer
from tests.store.objects import WIDGETS, add, delete, widget


def moment(store: Store) -> Snapshot:
    """What it holds now."""
    return snapshot_of(store, ("",))


@pytest.fixture(scope="module")
def maps() -> Iterator[OpenInformer]:
    """An informer of ConfigMaps, with one in it."""
    with ApiServer() as server:
        data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}}
        server.create(data, namespace="default")
        indexers: Any = {"name": ".metadata.name"}
        with open_informer("v1/configmaps", client=server.client(), indexers=indexers) as opened:
            yield opened


def test_s37_informer_lister_and_what_opened_them_give_one(maps: OpenInformer) -> None:
    """Of the version that the informer has come to, and it stays as it is."""
    snapshots = [maps.snapshot(), maps.informer.snapshot(), maps.lister.snapshot()]
    before = snapshots[0]
    assert {each.resource_version for each in snapshots} == {
        maps.informer.last_sync_resource_version()
    }
    made = maps.patch("settings", "default", {"data": {"a": "b"}}, wait=True)
    after = maps.snapshot()
    assert after.resource_version == made["metadata"]["resourceVersion"]
    assert before.get("default/settings").get("data") is None
    assert after.get("settings", "default")["data"] == {"a": "b"}
    assert before.gvr == maps.gvr
    assert before.time < after.time
    assert after.snapshot() is after


def test_s37_it_has_the_reads_of_a_lister(maps: OpenInformer) -> None:
    """Each gives what the lister gives."""
    lister, snapshot = maps.lister, maps.snapshot()
    assert list(snapshot) == snapshot.list() == lister.list()
    assert snapshot.keys() == lister.keys()
    assert "default/settings" in snapshot
    assert snapshot.by_index("name", "settings") == lister.by_index("name", "settings")
    assert snapshot.by_namespace("default").list() == lister.by_namespace("default").list()
    assert snapshot.select({"n": ".metadata.name"}) == lister.select({"n": ".metadata.name"})
    assert snapshot.find("settings") == lister.find("settings")
    assert snapshot.get("default/settings", shared=True) is snapshot.get(
        "default/settings", shared=True
    )


def test_what_is_missing_is_said_of_the_snapshot(maps: OpenInformer) -> None:
    """Not of the cache; and a bare name is refused as the lister refuses it."""
    snapshot = maps.snapshot()
    with pytest.raises(ObjectNotFoundError, match="'default/nope' in the snapshot of 20"):
        snapshot.get("default/nope")
    with pytest.raises(ValueError, match="is namespaced"):
        snapshot.get("settings")
    with pytest.raises(UnknownIndexError, match="it has: name, namespace"):
        snapshot.by_index("nope", "x")
    snapshot.add_indexers({"data": ".data.a"})
    assert snapshot.by_index("data", "nothing") == []


def test_s37_a_snapshot_outlives_the_informer() -> None:
    """It holds what it needs."""
    with ApiServer() as server, open_informer("v1/namespaces", client=server.client()) as opened:
        snapshot = opened.snapshot()
    del opened
    assert snapshot.get("default")["kind"] == "Namespace"


def test_s37_a_difference_has_what_came_went_and_changed() -> None:
    """With paths by the keys of lists; what differs in bookkeeping alone is the same."""
    store = Store(WIDGETS)
    old = [{"type": "Ready", "status": "False"}]
    add(store, widget("a", 1, c=old), widget("b", 2), widget("c", 3), widget("d", 4))
    before = moment(store)
    new = [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "True"}]
    add(store, widget("a", 5, c=new), widget("c", 6), widget("e", 7))
    delete(store, widget("b", 8))
    difference = moment(store).diff(before)
    assert [each.key for each in difference.added] == ["ns/e"]
    assert [each.key for each in difference.removed] == ["ns/b"]
    assert [each.key for each in difference.changed] == ["ns/a"]
    (changed,) = difference.changed
    assert [each.path for each in changed.changes()] == [
        '.spec.c[?(@.type=="Ready")].status',
        '.spec.c[?(@.type=="Synced")]',
    ]
    assert changed.changes(".spec.c") == []
    assert (changed.old or {})["spec"]["c"] == old
    assert (changed.new or {})["spec"]["c"] == new
    assert (changed.namespace, changed.name, changed.type) == ("ns", "a", "CHANGED")
    assert len(difference) == 3
    assert bool(difference)
    assert not moment(store).diff(moment(store))
    assert repr(difference).endswith("1 added, 1 removed, 1 changed>")


def test_s37_equal_content_in_other_bytes_is_the_same() -> None:
    """What was compressed meanwhile, or held by another informer, has not changed."""
    plain, packed = Store(WIDGETS), Store(WIDGETS)
    add(plain, widget("a", 1, x="y"))
    add(packed, *(widget(f"w{n}", n + 2) for n in range(1100)), widget("a", 1, x="y"))
    for n in range(1100):
        delete(packed, widget(f"w{n}", n + 2000))
    assert plain.get("ns/a") != packed.get("ns/a")
    assert not moment(plain).diff(moment(packed))


def test_s37_the_same_version_with_other_content_has_changed() -> None:
    """As in S12: a schema may have."""
    before, after = Store(WIDGETS), Store(WIDGETS)
    add(before, widget("a", 1, n=1))
    add(after, widget("a", 1, n=True))
    (changed,) = moment(after).diff(moment(before)).changed
    assert changed.changes() == [(".spec.n", 1, True)]


def test_s37_another_object_of_the_name_has_changed() -> None:
    """Also where nothing but the uid differs; it says so."""
    store = Store(WIDGETS)
    add(store, widget("a", 1, uid="x"))
    before = moment(store)
    add(store, widget("a", 2, uid="y"))
    (changed,) = moment(store).diff(before).changed
    assert changed.recreated


def test_a_difference_is_rows_and_a_summary_that_is_safe_to_show() -> None:
    """One row for each field that changed, and one for what came or went."""
    store = Store(WIDGETS)
    add(store, widget("a", 1, n="old"))
    before = moment(store)
    add(store, widget("a", 2, n="\x1b[31m"), widget("b", 3))
    difference = moment(store).diff(before)
    head = {"namespace": "ns"}
    assert difference.rows() == [
        {"type": "ADDED", **head, "name": "b", "path": None, "old": None, "new": None},
        {
            "type": "CHANGED", **head, "name": "a", "path": ".spec.n", "old": "old",
            "new": "\x1b[31m",
        },
    ]  # fmt: skip
    lines = str(difference).splitlines()
    assert lines[0].endswith("1 added, 0 removed, 1 changed")
    assert lines[1:] == ["+ ns/b", "~ ns/a", '    .spec.n: "old" -> "\\u001b[31m"']
    assert list(difference.to_frame()["name"]) == ["b", "a"]


def test_a_summary_shows_no_value_of_a_secret() -> None:
    """As no display does; rows are data, and have it."""
    store = Store(GroupVersionResource("", "v1", "secrets"))
    add(store, widget("a", 1, n="b2xk"))
    before = moment(store)
    add(store, widget("a", 2, n="bmV3", m="bW9yZQ=="))
    difference = moment(store).diff(before)
    assert str(difference).splitlines()[2:] == [
        "    .spec.n: (not shown) -> (not shown)",
        "    .spec.m: (none) -> (not shown)",
    ]
    assert [row["new"] for row in difference.rows()] == ["bmV3", "bW9yZQ=="]


def test_what_is_printed_of_names_and_versions_acts_on_no_terminal() -> None:
    """Some resources allow any character in a name, and a version is what the server says."""
    store = Store(WIDGETS)
    before = moment(store)
    add(store, widget("a\x1b[2J"))
    store.versions[""] = "1\x1b[2J"
    after = moment(store)
    difference = after.diff(before)
    (added,) = difference
    assert (added.name, after.resource_version) == ("a\x1b[2J", "1\x1b[2J")
    version = Version((WIDGETS, store.codec), added.key, b"{}", Told(EventType.ADDED, None))
    for shown in (repr(added), repr(after), str(difference), repr(version)):
        assert "\\x1b[2J" in shown
        assert "\x1b" not in shown


def test_a_summary_of_much_is_short() -> None:
    """It says how much more there is."""
    store = Store(WIDGETS)
    before = moment(store)
    add(store, *(widget(f"w{n}", n + 1) for n in range(30)))
    assert str(moment(store).diff(before)).splitlines()[-1] == "... 10 more objects"


def test_only_snapshots_of_one_resource_can_be_compared(maps: OpenInformer) -> None:
    """Anything else is said in words."""
    with pytest.raises(ValueError, match="before is of widgets"):
        maps.snapshot().diff(moment(Store(WIDGETS)))
    lister: Any = maps.lister
    with pytest.raises(TypeError, match="give a Snapshot"):
        maps.snapshot().diff(lister)
