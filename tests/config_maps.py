"""An embedded server with config maps, and an informer of them, for tests of one informer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer import GroupVersionResource, ResourceOptions, SharedIndexInformer
from dyninformer.testing import ApiServer

MAPS = GroupVersionResource("", "v1", "configmaps")
PATIENCE = 20.0


@pytest.fixture(scope="module")
def one_server() -> Iterator[ApiServer]:
    """An embedded server."""
    with ApiServer() as server:
        yield server


@pytest.fixture
def server(one_server: ApiServer) -> ApiServer:
    """The same, as new."""
    one_server.reset()
    return one_server


@pytest.fixture
def informer(server: ApiServer) -> Iterator[SharedIndexInformer]:
    """An informer of the config maps in the namespace "default", not started."""
    found = SharedIndexInformer(server.client(), MAPS, ResourceOptions(namespaces="default"))
    yield found
    assert found.stop(5)


@pytest.fixture
def synced(informer: SharedIndexInformer) -> SharedIndexInformer:
    """It, synced."""
    informer.start()
    assert informer.wait_synced(PATIENCE)
    return informer


def write(server: ApiServer, name: str, **data: str) -> dict[str, Any]:
    """Create a config map."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return server.create(made, "default")
