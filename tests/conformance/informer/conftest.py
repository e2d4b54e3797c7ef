"""Factories on each of the two servers, shut down at the end of the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dyninformer import DynamicSharedInformerFactory, GenericInformer
from dyninformer.testing import LoggedRequest
from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.client import dynamic_client
from dyninformer.testing.faults import Faults
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.recorders import PATIENCE, WIDGETS
from tests.conformance.informer.relay import Relay

Factories = Callable[..., DynamicSharedInformerFactory]
Running = Callable[..., GenericInformer]
Asked = Callable[[], list[LoggedRequest]]


@pytest.fixture
def factories(cluster: Cluster, namespace: str) -> Iterator[Factories]:
    """Makes factories of the test's namespace; all are shut down after it."""
    made: list[DynamicSharedInformerFactory] = []

    def make(client: Any = None, **options: Any) -> DynamicSharedInformerFactory:
        options = {"namespace": namespace, **options}
        factory = DynamicSharedInformerFactory(client or cluster.server.client(), **options)
        made.append(factory)
        return factory

    yield make
    ended = [factory.shutdown(5) for factory in made]
    # S34: a connect that is under way cannot be interrupted, and alone may outlive the rest.
    connecting = [each for each in threading.enumerate() if " connecting to " in each.name]
    assert all(ended) or connecting


@pytest.fixture
def running(factories: Factories) -> Running:
    """Gives a synced informer of the namespace's widgets, in a factory of its own."""

    def make(resource: Any = WIDGETS, *, client: Any = None, **options: Any) -> GenericInformer:
        names = {"tweak_list_options", "metrics"} & options.keys()
        factory = factories(client, **{name: options.pop(name) for name in names})
        found = factory.for_resource(resource, **options)
        factory.sync(PATIENCE)
        return found

    return make


@pytest.fixture
def server(cluster: Cluster) -> ApiServer:
    """The embedded server, for tests that run on it alone."""
    assert isinstance(cluster.server, ApiServer)
    return cluster.server


@pytest.fixture
def faults(server: ApiServer) -> Iterator[Faults]:
    """What goes wrong on the embedded server; nothing any more after the test."""
    yield server.faults
    server.faults.clear()


@pytest.fixture
def relay(cluster: Cluster) -> Iterator[Relay]:
    """A proxy in front of the server."""
    relay = Relay(cluster.server.url)
    yield relay
    relay.close()


@pytest.fixture
def relayed(cluster: Cluster, relay: Relay) -> Any:
    """A client that reaches the server through the proxy."""
    return dynamic_client(relay.url, cluster.server.token, cluster.server.ca)


@pytest.fixture
def other(cluster: Cluster, api: Any, namespace: str) -> Collection:
    """The widgets of another namespace that no other test uses."""
    name = f"{namespace}-other"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    return Collection(api, name, f"/apis/ex.io/v1/namespaces/{name}/widgets")


@pytest.fixture
def asked(server: ApiServer, widgets: Collection) -> Asked:
    """The requests of informers for the namespace's widgets, oldest first."""

    def requests() -> list[LoggedRequest]:
        found = [each for each in server.requests if each.path == widgets.path]
        return [
            each
            for each in found
            if each.method == "GET" and not each.user_agent.startswith("conformance/")
        ]

    return requests
