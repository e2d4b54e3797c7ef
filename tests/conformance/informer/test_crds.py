"""CRDs that come, change and go: S27, S33."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from dyninformer import GroupVersionResource, InformerState, UnknownResourceError
from dyninformer.testing.faults import Faults, HttpStatus, Reset
from dyninformer.types import Object
from tests.conformance import shapes
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    GLOBES,
    PATIENCE,
    WIDGETS,
    Heard,
    on_embedded,
    reason_of,
    replayed,
    rights_of_alice,
)
from tests.conformance.wire import Wire, until

Install = Callable[..., None]


def rows_of(group: str) -> GroupVersionResource:
    """The resource of the CRD that the ``rows`` fixture installs."""
    return GroupVersionResource(group, "v1", "rows")


def row(group: str, name: str) -> Object:
    """A Row."""
    return {"apiVersion": f"{group}/v1", "kind": "Row", "metadata": {"name": name}}


def change(api: Wire, group: str, versions: list[Object]) -> None:
    """Give the CRD of the rows other versions."""
    answer = api.patch(f"{shapes.CRDS}/rows.{group}", {"spec": {"versions": versions}})
    assert answer.status == 200, answer.text


# -- S27: the schema changes ---


def test_s27_a_changed_schema_is_read_anew_and_then_watched_on(
    api: Wire, group: str, rows: Collection, running: Running
) -> None:
    """Every object that looks otherwise is told, and later events come as before."""
    found, heard = running(rows_of(group)), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    versions = copy.deepcopy(api.get(f"{shapes.CRDS}/rows.{group}").json["spec"]["versions"])
    schema = versions[0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"mood": {"type": "string", "default": "fine"}}
    change(api, group, versions)
    for name in "abc":
        assert heard.wait("UPDATED", name).object["mood"] == "fine"
    until(lambda: rows.api.post(rows.path, row(group, "d")).status == 201)
    assert heard.wait("ADDED", "d").object["mood"] == "fine"
    assert sorted(heard.told[3:6]) == [("UPDATED", name) for name in "abc"]
    assert len(heard.told) == 7


# -- S33: it is not there, it goes, it comes back ---


def test_s33_a_resource_is_synced_once_its_crd_is_installed(
    cluster: Cluster, group: str, factories: Factories, namespace: str
) -> None:
    """The informer waits for the CRD, and needs nobody to ask again."""
    factory = factories()
    found, heard = factory.for_resource(rows_of(group)), Heard()
    found.informer.add_event_handler(heard)
    factory.start()
    until(lambda: found.informer.status().state is InformerState.ABSENT, PATIENCE)
    assert not found.informer.has_synced()
    cluster.server.install(shapes.crd(group, "rows", "Row", shapes.ANYTHING))
    cluster.server.create(row(group, "a"), namespace)
    assert factory.wait_for_cache_sync(PATIENCE)
    heard.wait("ADDED", "a")


def test_s06_a_bare_name_is_a_mistake_once_the_crd_says_that_it_is_namespaced(
    cluster: Cluster, group: str, factories: Factories
) -> None:
    """Nobody can know before; it is said then, long before the timeout."""
    factory = factories()
    informer = factory.for_resource(rows_of(group), namespaces="").informer
    factory.start()
    with ThreadPoolExecutor() as pool:
        waits = [
            pool.submit(informer.wait_for, condition, name="a", timeout=600)
            for condition in ("create", "delete")
        ]
        until(lambda: informer.status().state is InformerState.ABSENT, PATIENCE)
        cluster.server.install(shapes.crd(group, "rows", "Row", shapes.ANYTHING))
        for each in waits:
            with pytest.raises(ValueError, match="is namespaced: give the namespace too"):
                each.result(PATIENCE)


def test_s33_without_the_right_to_crds_one_line_says_what_is_lost(
    cluster: Cluster, factories: Factories, widgets: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    """The right is optional, so it is no warning, and no namespace is advised."""
    widgets.fill("a")
    for each in rights_of_alice(widgets.namespace):
        cluster.server.create(each, widgets.namespace)
    client = cluster.server.client(token=cluster.alice._token)
    factory = factories(client)
    with caplog.at_level(logging.INFO, "dyninformer"):
        factory.for_resource(WIDGETS)
        factory.sync(PATIENCE)
        crds = factory.runtime.crds
        # It is tried a second time, which says the same again, and is not logged.
        until(lambda: crds.status().attempts >= 2, PATIENCE)
    said = [each for each in caplog.records if "customresourcedefinitions" in each.getMessage()]
    assert [each.levelname for each in said] == ["INFO"]
    (line,) = (each.getMessage() for each in said)
    assert "This right is optional. Without it, informers notice up to 30 s later" in line
    assert "namespace=" not in line
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", ["rows", "row", "rw", "Row"])
def test_s33_a_name_is_known_as_soon_as_its_crd_is_installed(
    cluster: Cluster, group: str, factories: Factories, name: str
) -> None:
    """By its plural, singular, short name or kind, though discovery was read just before."""
    factory = factories()
    with pytest.raises(UnknownResourceError):
        factory.for_resource(f"{name}.{group}")
    rows = shapes.crd(group, "rows", "Row", shapes.ANYTHING)
    rows["spec"]["names"]["shortNames"] = ["rw"]
    cluster.server.install(rows)
    assert factory.for_resource(f"{name}.{group}").gvr == rows_of(group)


def test_s06_a_write_of_a_bare_name_is_a_mistake_as_soon_as_the_crd_is_installed(
    cluster: Cluster, group: str, factories: Factories
) -> None:
    """Though discovery was read just before, and had no such resource then."""
    factory = factories()
    informer = factory.for_resource(rows_of(group), namespaces="").informer
    with pytest.raises(UnknownResourceError):
        factory.for_resource(f"rows.{group}")
    cluster.server.install(shapes.crd(group, "rows", "Row", shapes.ANYTHING))
    with pytest.raises(ValueError, match="is namespaced: give the namespace too"):
        informer.patch("a", None, {"mood": "fine"})


@on_embedded
def test_s06_a_bare_name_is_a_mistake_also_where_no_list_is_allowed(
    faults: Faults, factories: Factories
) -> None:
    """The scope is known without one: the first state is not waited for."""
    faults.add(HttpStatus(403), resource="widgets")
    factory = factories()
    informer = factory.for_resource(WIDGETS, namespaces="").informer
    factory.start()
    with pytest.raises(ValueError, match="is namespaced: give the namespace too"):
        informer.wait_for("create", name="a", timeout=600)


def test_s33_a_crd_that_goes_and_comes_back_under_load(
    cluster: Cluster, group: str, rows: Collection, running: Running
) -> None:
    """What is held is told as DELETED; afterwards the new objects are told, all of them."""
    found, heard = running(rows_of(group)), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows.api.post(rows.path, row(group, f"w{number}"))  # whatever it is answered
            stop.wait(0.005)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    crd = f"{shapes.CRDS}/rows.{group}"
    until(lambda: len(found.lister) >= 10)
    assert rows.api.delete(crd).status == 200
    until(lambda: found.informer.status().state is InformerState.ABSENT, PATIENCE)
    assert len(found.lister) == 0
    gone = len(heard.wait_until(lambda: not replayed(heard.events) and heard.told, "all deleted"))
    until(lambda: rows.api.get(crd).status == 404, PATIENCE)
    cluster.server.install(shapes.crd(group, "rows", "Row", shapes.ANYTHING))
    heard.wait_until(lambda: len(heard.events) > gone + 5, "new objects")
    stop.set()
    writer.join()
    made = rows.create(row(group, "last"))
    found.informer.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    heard.wait("ADDED", "last")
    items = rows.api.get(rows.path).json["items"]
    assert sorted(o["metadata"]["name"] for o in found.lister) == sorted(
        o["metadata"]["name"] for o in items
    )
    assert len(replayed(heard.events)) == len(items)


def test_s33_a_version_that_is_no_longer_served_keeps_what_is_held(
    api: Wire, group: str, rows: Collection, running: Running
) -> None:
    """The status says which versions are; served again, it goes on where it was."""
    found, heard = running(rows_of(group)), Heard()
    found.informer.add_event_handler(heard)
    heard.wait_count(3)
    versions = api.get(f"{shapes.CRDS}/rows.{group}").json["spec"]["versions"]
    other = {**copy.deepcopy(versions[0]), "name": "v2", "storage": False}
    dropped = {**versions[0], "served": False}
    change(api, group, [dropped, other])
    assert "serves v2" in reason_of(found.informer, f"rows.{group}")
    assert found.informer.status().state is InformerState.BACKING_OFF
    assert len(found.lister) == 3
    change(api, group, [versions[0], other])
    until(lambda: found.informer.status().state is InformerState.WATCHING, PATIENCE)
    until(lambda: rows.api.post(rows.path, row(group, "d")).status == 201)
    heard.wait("ADDED", "d")
    assert heard.told[3:] == [("ADDED", "d")]


@on_embedded
def test_s33_a_404_without_proof_empties_nothing(
    faults: Faults, running: Running, widgets: Collection
) -> None:
    """While the CRD is there, a collection that is not found is asked for again."""
    widgets.fill("a")
    faults.add(Reset(after_lines=3), verb="watch", namespace=widgets.namespace, times=1)
    found, heard = running(), Heard()
    found.informer.add_event_handler(heard)
    with faults.add(HttpStatus(404), verb=["list", "watch"], namespace=widgets.namespace):
        widgets.fill("b")
        heard.wait("ADDED", "b")
        assert "is established" in reason_of(found.informer, "not found (404)")
        assert len(found.lister) == 2
    widgets.fill("c")
    heard.wait("ADDED", "c")
    assert heard.told == [("ADDED", name) for name in "abc"]


@on_embedded
def test_s33_a_namespace_for_a_cluster_scoped_resource_is_a_reason(factories: Factories) -> None:
    """It is not found, and the status says what to leave out."""
    factory = factories(namespace="default")
    informer = factory.for_resource(GLOBES).informer
    factory.start()
    assert "Leave it out" in reason_of(informer, "cluster-scoped")
