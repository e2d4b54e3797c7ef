"""CRDs come and go on a server, and what a follower's handler hears of it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer.delivery.events import Event
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.testing import ApiServer
from tests.conformance.shapes import ANYTHING, crd
from tests.test_follow import names, until

GROUP = "follow.test"
GADGETS = crd(GROUP, "gadgets", "Gadget", ANYTHING)
GIZMOS = crd(GROUP, "gizmos", "Gizmo", ANYTHING)


def obj(kind: str, name: str, version: str = "v1") -> dict[str, Any]:
    """A custom resource of the group."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata}


class Heard:
    """What a handler was told, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _events
        self._events: list[tuple[str, str, str]] = []

    def hear(self, event: Event) -> None:
        """The handler."""
        with self._lock:
            self._events.append((str(event.type), str(event.gvr), event.name))

    def take(self) -> list[tuple[str, str, str]]:
        """All so far."""
        with self._lock:
            return list(self._events)


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}}


@pytest.fixture
def factory(kube_api: ApiServer) -> Iterator[DynamicSharedInformerFactory]:
    """A factory for the server."""
    with DynamicSharedInformerFactory(kube_api.client()) as factory:
        yield factory


def test_resources_come_and_go(kube_api: ApiServer, factory: DynamicSharedInformerFactory) -> None:
    """Objects are told as ADDED, the events name their resource, and the end is DELETED."""
    kube_api.install(GADGETS)
    kube_api.create(obj("Gadget", "a"))
    heard = Heard()
    with factory.follow(f"*.{GROUP}", on_event=heard.hear) as follower:
        until(lambda: heard.take() == [("ADDED", f"gadgets.v1.{GROUP}", "a")])
        until(follower.has_synced)
        kube_api.install(GIZMOS)
        kube_api.create(obj("Gizmo", "b"))
        until(lambda: ("ADDED", f"gizmos.v1.{GROUP}", "b") in heard.take())
        kube_api.delete(GADGETS)
        until(lambda: names(follower) == [f"gizmos.v1.{GROUP}"])
        assert heard.take()[2:] == [("DELETED", f"gadgets.v1.{GROUP}", "a")]
        until(lambda: [str(gvr) for gvr in factory.status()] == [f"gizmos.v1.{GROUP}"])


def test_a_version_is_dropped(kube_api: ApiServer, factory: DynamicSharedInformerFactory) -> None:
    """The objects come again in the other version, and none is told as DELETED."""
    kube_api.install(GADGETS)
    kube_api.create(obj("Gadget", "a"))
    heard = Heard()
    with factory.follow(f"gadgets.{GROUP}", on_event=heard.hear) as follower:
        until(lambda: len(heard.take()) == 1)
        changed = kube_api.get(GADGETS)
        (old,) = changed["spec"]["versions"]
        new = copy.deepcopy(old) | {"name": "v2"}
        changed["spec"]["versions"] = [new, old | {"served": False, "storage": False}]
        kube_api.replace(changed)
        until(lambda: names(follower) == [f"gadgets.v2.{GROUP}"])
        until(lambda: len(heard.take()) == 2)
        assert heard.take()[1] == ("ADDED", f"gadgets.v2.{GROUP}", "a")
        kube_api.create(obj("Gadget", "b", "v2"))
        until(lambda: heard.take()[2:] == [("ADDED", f"gadgets.v2.{GROUP}", "b")])


def test_built_in_resources_are_followed_too(
    kube_api: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """A namespace is for those that have one."""
    kube_api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    for namespace in ("default", "other"):
        metadata = {"name": f"in-{namespace}", "namespace": namespace}
        kube_api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    heard = Heard()
    with factory.follow(
        "configmaps", "namespaces", on_event=heard.hear, namespaces="other"
    ) as follower:
        until(follower.has_synced)
        until(lambda: ("ADDED", "namespaces.v1", "default") in heard.take())
        until(lambda: ("ADDED", "configmaps.v1", "in-other") in heard.take())
        assert ("ADDED", "configmaps.v1", "in-default") not in heard.take()


def test_shutdown_ends_following(kube_api: ApiServer) -> None:
    """Its thread too; what it held can still be read."""
    kube_api.install(GADGETS)
    kube_api.create(obj("Gadget", "a"))
    factory = DynamicSharedInformerFactory(kube_api.client())
    follower = factory.follow(f"*.{GROUP}")
    until(follower.has_synced)
    lister = factory.for_resource(f"gadgets.v1.{GROUP}").lister
    assert factory.shutdown(30)
    assert follower.wait_stopped(30) == []
    assert lister.get("a", "default")["kind"] == "Gadget"


def test_a_handler_may_end_it(kube_api: ApiServer, factory: DynamicSharedInformerFactory) -> None:
    """From its own thread: nothing waits for itself, and nothing more is told."""
    kube_api.install(GADGETS)
    for name in "abc":
        kube_api.create(obj("Gadget", name))
    heard = Heard()
    ready, ended = threading.Event(), threading.Event()

    def once(event: Event) -> None:
        heard.hear(event)
        assert ready.wait(30)
        follower.close()
        ended.set()

    follower = factory.follow(f"*.{GROUP}", on_event=once)
    ready.set()
    assert ended.wait(30)
    assert follower.wait_stopped(30) == []
    assert len(heard.take()) == 1
    assert follower.resources() == []


def test_what_was_asked_for_by_name_outlives_the_follower(
    kube_api: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """Though the follower had brought it: it goes on watching, and the others end."""
    kube_api.install(GADGETS)
    kube_api.install(GIZMOS)
    with factory.follow(f"*.{GROUP}") as follower:
        until(follower.has_synced)
        gadgets = factory.for_resource(f"gadgets.v1.{GROUP}")
    assert [str(gvr) for gvr in factory.status()] == [f"gadgets.v1.{GROUP}"]
    made = kube_api.create(obj("Gadget", "a"))
    gadgets.informer.wait_for_version(made["metadata"]["resourceVersion"], 30)
    assert gadgets.lister.get("a", "default") == made


def test_its_own_handler_does_not_wait_for_it(
    kube_api: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """It would wait for itself: it is told at once how things stand."""
    kube_api.install(GADGETS)
    kube_api.create(obj("Gadget", "a"))
    begun, answers = threading.Event(), list[bool]()

    def ask(event: Event) -> None:
        del event
        assert begun.wait(30)
        answers.append(follower.wait_for_sync())

    follower = factory.follow(f"*.{GROUP}", on_event=ask)
    begun.set()
    assert follower.wait_for_sync(30)
    assert answers == [False]


def test_one_that_is_cluster_scoped_is_shared(
    kube_api: ApiServer, factory: DynamicSharedInformerFactory
) -> None:
    """What for_resource has of it is what a follower uses."""
    kube_api.create(NODE)
    nodes = factory.for_resource("v1/nodes")
    factory.sync(30)
    with factory.follow("nodes") as follower:
        assert follower.wait_for_sync(30)
        assert (follower.reason, follower.resources()) == ("", [nodes.gvr])
        assert factory.for_resource("v1/nodes") is nodes
