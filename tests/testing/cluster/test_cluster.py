"""The cluster as a whole: time, controllers, snapshots, restarts, compaction."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.api.lists import PlainJson
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import BORN_NAMESPACES, COMPACTION_INTERVAL, Cluster
from dyninformer.testing.cluster.lists import ListOptions
from dyninformer.testing.cluster.log import CompactedError, GroupResource, Key
from dyninformer.testing.cluster.watches import open_watch
from dyninformer.testing.status import ApiError
from tests.testing.cluster.desk import CRDS, OPTIONS, THINGS, Desk, crd, recorded, without_chance

NAMESPACES = GroupResource("", "namespaces")
WIDGETS = GroupResource("ex.io", "widgets")


def names(desk: Desk) -> list[str]:
    """The namespaces there are."""
    return [version.key.name for version in desk.cluster.log.items(NAMESPACES)]


def doomed(**options: Any) -> Desk:
    """The cluster of the recorded namespace deletion."""
    desk = Desk(**options)
    desk.install(crd("widgets", "Widget", group="ex.io"))
    desk.add("namespaces", {"metadata": {"name": "doomed"}})
    body = recorded("namespace-deletion", "create in a namespace")["request"]["body"]
    desk.writer.create(desk.resource("widgets", "ex.io"), "doomed", body, OPTIONS)
    return desk


def test_a_cluster_is_born_with_its_namespaces() -> None:
    """The four that every cluster has are there, Active, and may not be deleted."""
    cluster = Cluster(ManualClock())
    found = cluster.log.items(NAMESPACES)
    assert tuple(version.key.name for version in found) == BORN_NAMESPACES
    assert {version.object["status"]["phase"] for version in found} == {"Active"}
    desk = Desk()
    with pytest.raises(ApiError) as caught:
        desk.delete(desk.resource("namespaces"), Key("", "default"))
    assert (
        caught.value.message
        == 'namespaces "default" is forbidden: this namespace may not be deleted'
    )


def test_without_controllers_a_namespace_is_only_marked() -> None:
    """As on a bare API server: Terminating, its content untouched, nothing new in it."""
    desk = doomed(controllers=False)
    answer = desk.delete(desk.resource("namespaces"), Key("", "doomed"))
    theirs = recorded("namespace-deletion", "DELETE namespace")["response"]["body"]
    assert without_chance(answer) == without_chance(theirs)
    assert desk.live(WIDGETS, "d1", "doomed") is not None
    recording = recorded("namespace-deletion", "create in a terminating namespace")
    assert desk.replay(recording) == (403, recording["response"]["body"])
    recording = recorded("namespace-deletion", "create in a namespace that does not exist")
    assert desk.replay(recording) == (404, recording["response"]["body"])


def test_a_bare_namespace_goes_when_it_is_finalized() -> None:
    """Whoever plays the controller ends it through the finalize subresource."""
    desk = doomed(controllers=False)
    desk.delete(desk.resource("namespaces"), Key("", "doomed"))
    recording = recorded("namespace-deletion", "finalize namespace")
    status, body = desk.replay(recording)
    theirs = recording["response"]
    assert (status, without_chance(body)) == (theirs["status"], without_chance(theirs["body"]))
    assert "doomed" not in names(desk)


def test_with_controllers_a_namespace_is_emptied_and_goes() -> None:
    """Its objects are deleted one by one, then it is."""
    desk = doomed()
    desk.delete(desk.resource("namespaces"), Key("", "doomed"))
    assert desk.live(WIDGETS, "d1", "doomed") is None
    assert [kind for kind, _ in desk.events(WIDGETS)] == ["ADDED", "DELETED"]
    assert "doomed" not in names(desk)


def test_a_finalizer_holds_its_namespace_up() -> None:
    """The namespace goes when its last object does."""
    desk = doomed()
    widgets, key = desk.resource("widgets", "ex.io"), Key("doomed", "d1")
    desk.merge(widgets, key, {"metadata": {"finalizers": ["x.io/f"]}})
    desk.delete(desk.resource("namespaces"), Key("", "doomed"))
    assert "doomed" in names(desk)
    desk.merge(widgets, key, {"metadata": {"finalizers": None}})
    assert "doomed" not in names(desk)


def test_timers_run_in_order_when_they_are_due() -> None:
    """What is due runs in order of its time, the rest waits, and the next deadline is told."""
    desk = Desk()
    start, done = desk.clock.now(), []
    desk.cluster.call_at(start + 2, lambda: done.append("later"))
    desk.cluster.call_at(start + 1, lambda: done.append("sooner"))
    assert desk.cluster.next_deadline() == start + 1
    desk.cluster.run_due()
    assert done == []
    desk.clock.advance(2)
    desk.cluster.run_due()
    assert done == ["sooner", "later"]


def test_history_is_forgotten_after_five_to_ten_minutes() -> None:
    """Each compaction forgets what was already written at the one before."""
    desk = Desk()
    old = desk.cluster.log.revision
    desk.add("configmaps", {"metadata": {"name": "c"}}, "ns1")
    desk.clock.advance(COMPACTION_INTERVAL)
    desk.cluster.run_due()
    assert len(desk.cluster.log.since(GroupResource("", "configmaps"), old)) == 1
    desk.clock.advance(COMPACTION_INTERVAL)
    desk.cluster.run_due()
    with pytest.raises(CompactedError):
        desk.cluster.log.since(GroupResource("", "configmaps"), old)


def test_a_restored_cluster_is_as_it_was() -> None:
    """Objects, CRDs and revisions are those of the snapshot; later ones never were."""
    desk = Desk()
    desk.things()
    desk.thing("a", {"replicas": 1})
    snapshot, revision = desk.cluster.snapshot(), desk.cluster.log.revision
    before = desk.live(THINGS, "a", "ns1")
    desk.merge(desk.resource("things", "wr.io"), Key("ns1", "a"), {"spec": {"replicas": 9}})
    desk.install(crd("laters", "Later", group="late.io"))
    desk.delete(desk.resource(CRDS.resource, CRDS.group), Key("", "things.wr.io"))
    desk.cluster.restore(snapshot)
    assert desk.cluster.log.revision == revision
    assert desk.live(THINGS, "a", "ns1") == before
    assert desk.serves("things", "wr.io")
    assert not desk.serves("laters", "late.io")
    desk.thing("b")
    assert desk.live(THINGS, "b", "ns1") is not None


def test_a_snapshot_outlives_compaction_and_its_cluster() -> None:
    """It can be restored after its history was compacted, and into another cluster."""
    desk = Desk()
    desk.things()
    desk.thing("a")
    snapshot = desk.cluster.snapshot()
    desk.thing("b")
    desk.cluster.compact()
    other = Desk()
    for each in (desk, other):
        each.cluster.restore(snapshot)
        assert each.live(THINGS, "a", "ns1") is not None
        assert each.live(THINGS, "b", "ns1") is None
        assert [version.key.name for version in each.cluster.log.items(THINGS)] == ["a"]
        each.thing("c")
    assert desk.cluster.snapshot().image.revision == other.cluster.snapshot().image.revision


def test_a_restart_loses_nothing_but_ends_every_watch() -> None:
    """Open watches end; objects and their versions stay."""
    desk = Desk()
    desk.things()
    made = desk.thing("a")
    options = ListOptions(revision=desk.cluster.log.revision)
    things = desk.resource("things", "wr.io")
    stream = open_watch(desk.cluster.caches, things, "", options, PlainJson())
    desk.cluster.restart()
    stream.take()
    assert stream.ended
    assert desk.live(THINGS, "a", "ns1") == made


def test_a_reset_cluster_is_as_new() -> None:
    """Only the born namespaces are left, and only built-ins are served."""
    desk = Desk()
    desk.things()
    desk.thing("a")
    desk.cluster.reset()
    assert names(desk) == list(BORN_NAMESPACES)
    assert not desk.serves("things", "wr.io")
    assert desk.live(THINGS, "a", "ns1") is None
    desk.add("namespaces", {"metadata": {"name": "ns1"}})
    desk.things()
    assert desk.thing("a")["metadata"]["name"] == "a"


def test_a_terminating_namespace_is_taken_up_after_a_restore() -> None:
    """Controllers go on with what a snapshot left half done."""
    bare = doomed(controllers=False)
    bare.delete(bare.resource("namespaces"), Key("", "doomed"))
    desk = Desk()
    desk.cluster.restore(bare.cluster.snapshot())
    assert "doomed" not in names(desk)


def test_what_nests_too_deeply_is_a_bad_request() -> None:
    """An object that no walk could follow is refused, and nothing is written."""
    desk = Desk()
    desk.install(crd("frees", "Free"))
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    revision = desk.cluster.log.revision
    body = {"apiVersion": "wr.io/v1", "kind": "Free", "metadata": {"name": "f"}, "spec": deep}
    with pytest.raises(ApiError) as caught:
        desk.writer.create(desk.resource("frees", "wr.io"), "ns1", body, OPTIONS)
    assert caught.value.code == 400
    assert desk.cluster.log.revision == revision
