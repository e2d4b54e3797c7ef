"""The cluster as a whole: time, controllers, snapshots, restarts, compaction."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.representations import PlainJson
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import COMPACTION_INTERVAL, INITIAL_NAMESPACES, Cluster
from dyninformer.testing.cluster.lists import ListOptions
from dyninformer.testing.cluster.log import CompactedError, GroupResource, Key
from dyninformer.testing.cluster.watches import open_watch
from dyninformer.testing.status import ApiError
from tests.testing.cluster.recordings import recorded
from tests.testing.cluster.small_cluster import (
    CRDS,
    OPTIONS,
    THINGS,
    SmallCluster,
    crd,
    without_chance,
)

NAMESPACES = GroupResource("", "namespaces")
WIDGETS = GroupResource("ex.io", "widgets")


def names(small: SmallCluster) -> list[str]:
    """The namespaces there are."""
    return [version.key.name for version in small.cluster.log.items(NAMESPACES)]


def doomed(**options: Any) -> SmallCluster:
    """The cluster of the recorded namespace deletion."""
    small = SmallCluster(**options)
    small.install(crd("widgets", "Widget", group="ex.io"))
    small.add("namespaces", {"metadata": {"name": "doomed"}})
    body = recorded("namespace-deletion", "create in a namespace")["request"]["body"]
    small.writer.create(small.resource("widgets", "ex.io"), "doomed", body, OPTIONS)
    return small


def test_a_cluster_is_born_with_its_namespaces() -> None:
    """The four that every cluster has are there, Active, and may not be deleted."""
    cluster = Cluster(ManualClock())
    found = cluster.log.items(NAMESPACES)
    assert tuple(version.key.name for version in found) == INITIAL_NAMESPACES
    assert {version.object["status"]["phase"] for version in found} == {"Active"}
    small = SmallCluster()
    with pytest.raises(ApiError) as caught:
        small.delete(small.resource("namespaces"), Key("", "default"))
    assert (
        caught.value.message
        == 'namespaces "default" is forbidden: this namespace may not be deleted'
    )


def test_without_controllers_a_namespace_is_only_marked() -> None:
    """As on a bare API server: Terminating, its content untouched, nothing new in it."""
    small = doomed(controllers=False)
    answer = small.delete(small.resource("namespaces"), Key("", "doomed"))
    theirs = recorded("namespace-deletion", "DELETE namespace")["response"]["body"]
    assert without_chance(answer) == without_chance(theirs)
    assert small.live(WIDGETS, "d1", "doomed") is not None
    recording = recorded("namespace-deletion", "create in a terminating namespace")
    assert small.replay(recording) == (403, recording["response"]["body"])
    recording = recorded("namespace-deletion", "create in a namespace that does not exist")
    assert small.replay(recording) == (404, recording["response"]["body"])


def test_a_bare_namespace_goes_when_it_is_finalized() -> None:
    """A controller ends it through the finalize subresource."""
    small = doomed(controllers=False)
    small.delete(small.resource("namespaces"), Key("", "doomed"))
    recording = recorded("namespace-deletion", "finalize namespace")
    status, body = small.replay(recording)
    theirs = recording["response"]
    assert (status, without_chance(body)) == (theirs["status"], without_chance(theirs["body"]))
    assert "doomed" not in names(small)


def test_with_controllers_a_namespace_is_emptied_and_goes() -> None:
    """Its objects are deleted one by one, then it is."""
    small = doomed()
    small.delete(small.resource("namespaces"), Key("", "doomed"))
    assert small.live(WIDGETS, "d1", "doomed") is None
    assert [kind for kind, _ in small.events(WIDGETS)] == ["ADDED", "DELETED"]
    assert "doomed" not in names(small)


def test_a_finalizer_holds_its_namespace_up() -> None:
    """The namespace goes when its last object does."""
    small = doomed()
    widgets, key = small.resource("widgets", "ex.io"), Key("doomed", "d1")
    small.merge(widgets, key, {"metadata": {"finalizers": ["x.io/f"]}})
    small.delete(small.resource("namespaces"), Key("", "doomed"))
    assert "doomed" in names(small)
    small.merge(widgets, key, {"metadata": {"finalizers": None}})
    assert "doomed" not in names(small)


def test_timers_run_in_order_when_they_are_due() -> None:
    """What is due runs in order of its time, the rest waits, and the next deadline is known."""
    small = SmallCluster()
    start, done = small.clock.now(), []
    small.cluster.call_at(start + 2, lambda: done.append("later"))
    small.cluster.call_at(start + 1, lambda: done.append("sooner"))
    assert small.cluster.next_deadline() == start + 1
    small.cluster.run_due()
    assert done == []
    small.clock.advance(2)
    small.cluster.run_due()
    assert done == ["sooner", "later"]


def test_history_is_forgotten_after_five_to_ten_minutes() -> None:
    """Each compaction forgets what was already written at the one before."""
    small = SmallCluster()
    old = small.cluster.log.revision
    small.add("configmaps", {"metadata": {"name": "c"}}, "ns1")
    small.clock.advance(COMPACTION_INTERVAL)
    small.cluster.run_due()
    assert len(small.cluster.log.since(GroupResource("", "configmaps"), old)) == 1
    small.clock.advance(COMPACTION_INTERVAL)
    small.cluster.run_due()
    with pytest.raises(CompactedError):
        small.cluster.log.since(GroupResource("", "configmaps"), old)


def test_a_restored_cluster_is_as_it_was() -> None:
    """Objects, CRDs and revisions are those of the snapshot; later ones never were."""
    small = SmallCluster()
    small.things()
    small.thing("a", {"replicas": 1})
    snapshot, revision = small.cluster.snapshot(), small.cluster.log.revision
    before = small.live(THINGS, "a", "ns1")
    small.merge(small.resource("things", "wr.io"), Key("ns1", "a"), {"spec": {"replicas": 9}})
    small.install(crd("laters", "Later", group="late.io"))
    small.delete(small.resource(CRDS.resource, CRDS.group), Key("", "things.wr.io"))
    small.cluster.restore(snapshot)
    assert small.cluster.log.revision == revision
    assert small.live(THINGS, "a", "ns1") == before
    assert small.serves("things", "wr.io")
    assert not small.serves("laters", "late.io")
    small.thing("b")
    assert small.live(THINGS, "b", "ns1") is not None


def test_a_snapshot_outlives_compaction_and_its_cluster() -> None:
    """It can be restored after its history was compacted, and into another cluster."""
    small = SmallCluster()
    small.things()
    small.thing("a")
    snapshot = small.cluster.snapshot()
    small.thing("b")
    small.cluster.compact()
    other = SmallCluster()
    for each in (small, other):
        each.cluster.restore(snapshot)
        assert each.live(THINGS, "a", "ns1") is not None
        assert each.live(THINGS, "b", "ns1") is None
        assert [version.key.name for version in each.cluster.log.items(THINGS)] == ["a"]
        each.thing("c")
    assert small.cluster.snapshot().image.revision == other.cluster.snapshot().image.revision


def test_a_restart_loses_nothing_but_ends_every_watch() -> None:
    """Open watches end; objects and their versions stay."""
    small = SmallCluster()
    small.things()
    made = small.thing("a")
    options = ListOptions(revision=small.cluster.log.revision)
    things = small.resource("things", "wr.io")
    stream = open_watch(small.cluster.caches, things, "", options, PlainJson())
    small.cluster.restart()
    stream.take()
    assert stream.ended
    assert small.live(THINGS, "a", "ns1") == made


def test_a_reset_cluster_is_as_new() -> None:
    """Only the initial namespaces are left, and only built-ins are served."""
    small = SmallCluster()
    small.things()
    small.thing("a")
    small.cluster.reset()
    assert names(small) == list(INITIAL_NAMESPACES)
    assert not small.serves("things", "wr.io")
    assert small.live(THINGS, "a", "ns1") is None
    small.add("namespaces", {"metadata": {"name": "ns1"}})
    small.things()
    assert small.thing("a")["metadata"]["name"] == "a"


def test_a_terminating_namespace_is_taken_up_after_a_restore() -> None:
    """Controllers go on with what a snapshot left half done."""
    bare = doomed(controllers=False)
    bare.delete(bare.resource("namespaces"), Key("", "doomed"))
    small = SmallCluster()
    small.cluster.restore(bare.cluster.snapshot())
    assert "doomed" not in names(small)


def test_what_nests_too_deeply_is_a_bad_request() -> None:
    """An object that no walk could follow is refused, and nothing is written."""
    small = SmallCluster()
    small.install(crd("frees", "Free"))
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    revision = small.cluster.log.revision
    body = {"apiVersion": "wr.io/v1", "kind": "Free", "metadata": {"name": "f"}, "spec": deep}
    with pytest.raises(ApiError) as caught:
        small.writer.create(small.resource("frees", "wr.io"), "ns1", body, OPTIONS)
    assert caught.value.code == 400
    assert small.cluster.log.revision == revision
