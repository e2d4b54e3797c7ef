"""Audits: what a watch has left out is found, told and counted: S36."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer import DROP, AuditError, StoppedError
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.client import dynamic_client
from dyninformer.testing.faults import BlackHole, Call, Faults, HttpStatus, LoseEvents
from dyninformer.types import Object
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.lossy import LossyProxy
from tests.conformance.informer.recorders import (
    PATIENCE,
    WIDGETS,
    Counts,
    Heard,
    on_embedded,
    replayed,
    seen,
)
from tests.conformance.wire import until
from tests.transport.wires import Background

LOST = {("DELETED", "gone"), ("MODIFIED", "old"), ("ADDED", "new")}


@pytest.fixture
def lossy(cluster: Cluster) -> Iterator[LossyProxy]:
    """A server that loses an update of `old`, the deletion of `gone`, and the creation of `new`."""
    proxy = LossyProxy(cluster.server.url, cluster.server.ca, lambda *event: event in LOST)
    yield proxy
    proxy.close()


@pytest.fixture
def losing(cluster: Cluster, lossy: LossyProxy) -> Any:
    """A client of it."""
    return dynamic_client(lossy.url, cluster.server.token, None)


def lose(widgets: Collection, informer: Any) -> None:
    """Make the three changes that are lost, and one that is told after them."""
    widgets.merge("old", {"spec": {"size": 2}})
    widgets.api.delete(widgets.at("gone"))
    widgets.fill("new")
    seen(informer, widgets.fill("later")[0])


def state_of(widgets: Collection) -> dict[str, Object]:
    """What the server has, by key."""
    items = widgets.api.get(widgets.path).json["items"]
    return {f"{widgets.namespace}/{each['metadata']['name']}": each for each in items}


def held_by(found: Any) -> dict[str, Object]:
    """What is held, by key."""
    return dict(zip(found.lister.keys(), found.lister.list(), strict=True))


def test_s36_what_a_watch_left_out_is_told_and_counted(
    lossy: LossyProxy,
    losing: Any,
    running: Running,
    widgets: Collection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An update, a deletion and an addition, each as the change that it is."""
    widgets.fill("gone", "old", "same", size=1)
    heard, metrics = Heard(), Counts()
    found = running(client=losing, metrics=metrics)
    found.informer.add_event_handler(heard)
    lose(widgets, found.informer)
    assert set(lossy.lost) == LOST
    assert held_by(found) != state_of(widgets)
    with caplog.at_level(logging.WARNING, "dyninformer"):
        report = found.informer.audit(PATIENCE)
    inside = f"{widgets.namespace}/"
    assert report.updated == [f"{inside}old"]
    assert report.deleted == [f"{inside}gone"]
    assert report.added == [f"{inside}new"]
    assert (report.compared, report.repaired, report.unresolved) == (4, 3, [])
    assert held_by(found) == state_of(widgets)
    assert heard.wait("DELETED", "gone").final_state_unknown
    assert heard.wait("UPDATED", "old").object["spec"]["size"] == 2
    heard.wait("ADDED", "new")
    heard.wait_count(7)
    assert replayed(heard.events) == held_by(found)
    assert metrics["audit_repairs"] == found.informer.status().repaired == 3
    assert str(WIDGETS) in caplog.text
    assert "1 updated, 1 deleted, 1 added" in caplog.text
    again = found.informer.audit(PATIENCE)
    assert (again.differs, metrics["audits"], metrics["relists"]) == (False, 2, 1)


def test_s36_it_finds_nothing_where_nothing_is_wrong(running: Running, widgets: Collection) -> None:
    """Nobody is told anything, and the watch goes on as it was."""
    widgets.fill("a", "b", "c")
    heard, metrics = Heard(), Counts()
    found = running(metrics=metrics)
    found.informer.add_event_handler(heard).wait_for_sync(PATIENCE)
    assert found.informer.status().audited is None
    report = found.informer.audit(PATIENCE)
    assert (report.compared, report.differs, report.from_etcd) == (3, False, 3)
    assert found.informer.status().audited is not None
    assert (len(heard.told), metrics["relists"]) == (3, 1)


@pytest.mark.parametrize("page_size", [1, 2, 500])
def test_s36_pages_of_any_size_are_compared(
    running: Running, widgets: Collection, page_size: int
) -> None:
    """The last page, too."""
    widgets.fill("a", "b", "c", "d", "e")
    report = running(page_size=page_size).informer.audit(PATIENCE)
    assert (report.compared, report.differs) == (5, False)


def test_s36_only_what_is_watched_is_compared(
    cluster: Cluster, running: Running, widgets: Collection, other: Collection
) -> None:
    """Selectors and namespaces are those of the informer; so is metadata-only."""
    for each in (widgets, other):
        each.create({**widget("mine"), "metadata": {"name": "mine", "labels": {"app": "me"}}})
        each.fill("not")
    found = running(
        label_selector="app=me",
        namespaces=[widgets.namespace, other.namespace],
        metadata_only=True,
    )
    report = found.informer.audit(PATIENCE)
    assert (report.compared, report.differs) == (2, False)


def widget(name: str) -> Object:
    """One to create."""
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}}


def test_s36_what_leaves_the_selection_is_deleted_and_what_enters_is_added(
    losing: Any, running: Running, widgets: Collection
) -> None:
    """As they would be on the watch."""
    for name, app in (("gone", "me"), ("new", "you")):
        obj = widget(name)
        obj["metadata"]["labels"] = {"app": app}
        widgets.create(obj)
    found = running(client=losing, label_selector="app=me")
    widgets.merge("gone", {"metadata": {"labels": {"app": "you"}}})
    widgets.merge("new", {"metadata": {"labels": {"app": "me"}}})
    last = widget("later")
    last["metadata"]["labels"] = {"app": "me"}
    seen(found.informer, widgets.create(last))
    report = found.informer.audit(PATIENCE)
    assert [len(each) for each in (report.deleted, report.added, report.updated)] == [1, 1, 0]
    assert {each["metadata"]["name"] for each in found.lister} == {"new", "later"}


def test_s36_what_the_transform_dropped_is_no_difference(
    running: Running, widgets: Collection
) -> None:
    """And what it changed is none, either."""
    widgets.fill("a", "b", "c", size=1)

    def without_b(obj: Object) -> Any:
        obj["spec"]["size"] = 7
        return DROP if obj["metadata"]["name"] == "b" else obj

    found = running(transform=without_b)
    report = found.informer.audit(PATIENCE)
    assert (report.compared, report.differs, len(found.lister)) == (3, False, 2)


def test_s36_what_is_put_right_is_transformed(
    losing: Any, running: Running, widgets: Collection
) -> None:
    """What the transform does not want any more is deleted."""
    widgets.fill("gone", "old", size=1)

    def small(obj: Object) -> Any:
        return DROP if obj["spec"].get("size") == 2 else obj

    found = running(client=losing, transform=small)
    lose(widgets, found.informer)
    report = found.informer.audit(PATIENCE)
    assert [len(each) for each in (report.deleted, report.added, report.updated)] == [2, 1, 0]
    assert {each["metadata"]["name"] for each in found.lister} == {"new", "later"}


@on_embedded
def test_s36_it_is_made_by_itself_within_a_period(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """A server swallows a DELETE and an UPDATE, and then sends a later event: both are told."""
    widgets.fill("gone", "old")
    for lost in (LoseEvents("DELETED", name="gone"), LoseEvents("MODIFIED", name="old")):
        faults.add(lost, namespace=widgets.namespace, verb="watch")
    heard, metrics = Heard(), Counts()
    found = running(audit=1, metrics=metrics)
    found.informer.add_event_handler(heard)
    widgets.merge("old", {"spec": {"size": 2}})
    widgets.api.delete(widgets.at("gone"))
    widgets.fill("later")
    heard.wait("DELETED", "gone")
    heard.wait("UPDATED", "old")
    until(lambda: metrics["audit_repairs"] == 2, PATIENCE)
    assert found.informer.status().repaired == 2
    until(lambda: metrics["audits"] >= 2, PATIENCE)
    assert metrics["audit_repairs"] == 2


def test_s36_nobody_has_to_ask_for_it(losing: Any, running: Running, widgets: Collection) -> None:
    """With a period, what was lost comes to the handlers by itself."""
    widgets.fill("gone", "old", size=1)
    heard = Heard()
    found = running(client=losing, audit=1)
    found.informer.add_event_handler(heard)
    lose(widgets, found.informer)
    assert heard.wait("DELETED", "gone").final_state_unknown
    heard.wait("UPDATED", "old")
    heard.wait("ADDED", "new")
    assert held_by(found) == state_of(widgets)


@on_embedded
def test_s36_one_thread_audits_one_resource_after_the_other(factories: Factories) -> None:
    """However many there are; it ends with the factory."""
    name = "dyninformer audits"
    before = [each.name for each in threading.enumerate()].count(name)
    metrics = Counts()
    factory = factories(metrics=metrics)
    for resource in (WIDGETS, "v1/configmaps", "v1/secrets"):
        factory.for_resource(resource, audit=1)
    factory.sync(PATIENCE)
    until(lambda: metrics["audits"] >= 6, PATIENCE)
    assert [each.name for each in threading.enumerate()].count(name) == before + 1
    assert factory.shutdown(5)
    assert [each.name for each in threading.enumerate()].count(name) == before


@on_embedded
@pytest.mark.parametrize("then", ["updated", "deleted", "recreated"])
def test_s36_a_change_before_the_repair_is_not_told_backwards(
    server: ApiServer,
    faults: Faults,
    running: Running,
    widgets: Collection,
    then: str,
) -> None:
    """An object changes right when it is asked for, in between nothing can be told."""
    widgets.fill("old", "gone", "new", size=1)
    widgets.api.delete(widgets.at("new"))
    for lost in (
        LoseEvents("DELETED", name="gone", count=1),
        LoseEvents("MODIFIED", name="old", count=1),
        LoseEvents("ADDED", name="new", count=1),
    ):
        faults.add(lost, namespace=widgets.namespace, verb="watch")
    heard = Heard()
    found = running()
    found.informer.add_event_handler(heard)
    lose(widgets, found.informer)

    def change() -> None:
        inside = widgets.namespace
        if then == "updated":
            for name in ("old", "new"):
                server.patch(f"widgets/{name}", {"spec": {"size": 3}}, inside)
            server.create(widget("gone"), inside)
            return
        for name in ("old", "new"):
            server.delete(f"widgets/{name}", inside)
            if then == "recreated":
                server.create(widget(name), inside)

    # The first of the three that is asked for to be repaired: a sample asks for the held ones.
    call = faults.add(Call(function=change), verb="list", name="new", times=1)
    found.informer.audit(PATIENCE)
    assert call.hits == 1
    last = widgets.fill("last")[0]
    seen(found.informer, last)
    found.informer.audit(PATIENCE)
    heard.wait("ADDED", "last")
    until(lambda: replayed(heard.events) == held_by(found) == state_of(widgets), PATIENCE)
    for name in ("old", "gone", "new"):
        versions = [int(e.object["metadata"]["resourceVersion"]) for e in heard.of(name)]
        assert versions == sorted(versions)


def test_s36_the_last_change_of_all_is_put_right_if_it_was_left_out(
    losing: Any, running: Running, widgets: Collection
) -> None:
    """Nothing has come after it, not even a bookmark: the watch will not come to its version."""
    widgets.fill("gone", "same")
    heard = Heard()
    found = running(client=losing)
    found.informer.add_event_handler(heard)
    widgets.api.delete(widgets.at("gone"))
    report = found.informer.audit(PATIENCE)
    assert (report.deleted, report.unresolved) == ([f"{widgets.namespace}/gone"], [])
    assert held_by(found) == state_of(widgets)
    assert heard.wait("DELETED", "gone").final_state_unknown


@on_embedded
def test_s36_many_differences_are_put_right_by_a_list(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """More than a hundred single requests would cost the server more."""
    names = [f"n{number}" for number in range(150)]
    widgets.fill(*names)
    faults.add(LoseEvents("DELETED"), namespace=widgets.namespace, verb="watch")
    metrics = Counts()
    found = running(metrics=metrics)
    for name in names[:120]:
        widgets.api.delete(widgets.at(name))
    seen(found.informer, widgets.fill("later")[0])
    assert len(found.lister) == 151
    report = found.informer.audit(PATIENCE)
    assert (len(report.deleted), report.repaired, report.unresolved) == (120, 120, [])
    assert (metrics["relists"], metrics["audit_repairs"]) == (2, 120)
    assert held_by(found) == state_of(widgets)


@on_embedded
def test_s36_where_objects_cannot_be_asked_for_singly_it_lists(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """Some aggregated API servers know no field selectors, or no exact versions."""
    widgets.fill("gone", "old")
    faults.add(LoseEvents("DELETED"), namespace=widgets.namespace, verb="watch")
    found = running()
    widgets.api.delete(widgets.at("gone"))
    seen(found.informer, widgets.fill("later")[0])
    faults.add(HttpStatus(400, "no such field"), verb="list", name=["gone", "old", "later"])
    report = found.informer.audit(PATIENCE)
    assert (len(report.deleted), report.from_etcd) == (1, 0)
    assert held_by(found) == state_of(widgets)


@on_embedded
def test_s36_what_cannot_be_audited_is_said_in_words(
    cluster: Cluster, faults: Faults, factories: Factories, widgets: Collection
) -> None:
    """Not started, not synced, no right any more, stopped."""
    factory = factories()
    informer = factory.for_resource(WIDGETS).informer
    with pytest.raises(AuditError, match="it is not started"):
        informer.audit()
    with faults.add(HttpStatus(503), namespace=widgets.namespace):
        factory.start()
        with pytest.raises(AuditError, match="it is not synced yet"):
            informer.audit()
    factory.sync(PATIENCE)
    refused = HttpStatus(403, 'widgets.ex.io is forbidden: User "dev" cannot list', "Forbidden")
    with (
        faults.add(refused, namespace=widgets.namespace, verb="list"),
        pytest.raises(AuditError, match=r"cannot audit .*: forbidden \(User .dev. cannot list\)"),
    ):
        informer.audit()
    with (
        faults.add(HttpStatus(404), namespace=widgets.namespace, verb="list"),
        pytest.raises(AuditError, match="404"),
    ):
        informer.audit()
    assert informer.audit(PATIENCE).compared == 0
    with pytest.raises(AuditError, match="the time is over"):
        informer.audit(0)
    informer.stop(5)
    with pytest.raises(StoppedError, match="the informer has stopped"):
        informer.audit()


@on_embedded
def test_s36_what_was_put_right_is_logged_where_another_namespace_cannot_be_audited(
    faults: Faults,
    running: Running,
    widgets: Collection,
    other: Collection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The audit fails; what it had put right by then was told to the handlers, and is no secret."""
    for each in (widgets, other):
        each.fill("gone")
    faults.add(LoseEvents("DELETED"), resource="widgets")
    metrics = Counts()
    found = running(namespaces=[widgets.namespace, other.namespace], metrics=metrics)
    first, second = found.informer.options.scopes  # in the order in which they are audited
    lost = widgets if widgets.namespace == first else other
    lost.api.delete(lost.at("gone"))
    lost.fill("later")
    until(lambda: f"{first}/later" in found.lister, PATIENCE)
    with (
        caplog.at_level(logging.WARNING, "dyninformer"),
        faults.add(HttpStatus(403), namespace=second, verb="list"),
        pytest.raises(AuditError, match=f"in namespace {second}: forbidden"),
    ):
        found.informer.audit(PATIENCE)
    assert metrics["audit_repairs"] == 1
    assert f"{first}/gone" not in found.lister
    assert "1 deleted" in caplog.text
    assert found.informer.status().audited is None


def test_s36_a_resource_that_is_gone_cannot_be_audited(
    cluster: Cluster,
    rows: Collection,
    group: str,
    running: Running,
) -> None:
    """The reason says that there is none."""
    found = running(f"rows.v1.{group}")
    assert found.informer.audit(PATIENCE).compared == 3
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rows.{group}"
    assert rows.api.delete(crd).status == 200
    until(lambda: found.informer.status().state == "absent", PATIENCE)
    with pytest.raises(AuditError, match=rf"cannot audit rows\.v1\.{group}"):
        found.informer.audit(PATIENCE)


@on_embedded
def test_s36_a_stop_ends_an_audit(faults: Faults, running: Running, widgets: Collection) -> None:
    """Wherever it is: here it waits for an answer."""
    found = running()
    hole = faults.add(BlackHole(), namespace=widgets.namespace, verb="list")
    audit = Background(found.informer.audit)
    assert hole.wait_hit()
    found.informer.stop(5)
    until(lambda: not audit.running, PATIENCE)
    assert isinstance(audit.error, StoppedError)
