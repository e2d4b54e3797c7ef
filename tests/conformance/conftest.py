"""Every test of this folder that takes ``cluster`` runs on both servers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.control_plane import ControlPlane
from tests.conformance import go_program, shapes
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.wire import Wire

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def embedded() -> Iterator[Cluster]:
    """The embedded server, as bare as kube-apiserver is without a controller manager."""
    settings = ReadSettings(sharding=True)
    # Without TLS everybody is an administrator.
    with ApiServer(tls=True, settings=settings, controllers=False) as server:
        yield from _furnish("embedded", server, server.access.add_user("alice", groups=["devs"]))


@pytest.fixture(scope="session")
def real() -> Iterator[Cluster]:
    """A real kube-apiserver, one per worker."""
    flags = ["--feature-gates=ShardedListAndWatch=true"]
    with ControlPlane(users={"alice": ["devs"]}, apiserver_flags=flags) as server:
        yield from _furnish("real", server, server.token_for("alice"))


def _furnish(
    kind: Literal["embedded", "real"], server: ApiServer | ControlPlane, alice: str
) -> Iterator[Cluster]:
    server.install(shapes.WIDGETS, shapes.LOOSE, shapes.GLOBES)
    ca = str(server.ca) if server.ca else None
    wires = [Wire(server.url, token, ca) for token in (server.token, alice, "wrong", None)]
    yield Cluster(kind, server, *wires)
    for wire in wires:
        wire.close()


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Each of the two servers in turn."""
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def api(cluster: Cluster) -> Wire:
    """The server as an administrator sees it."""
    return cluster.admin


@pytest.fixture
def namespace(api: Wire) -> str:
    """A namespace that no other test uses."""
    name = f"ns-{next(_numbers)}"
    assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    return name


@pytest.fixture
def widgets(api: Wire, namespace: str) -> Collection:
    """The widgets of a namespace that no other test uses: none yet."""
    return Collection(api, namespace, f"/apis/ex.io/v1/namespaces/{namespace}/widgets")


@pytest.fixture
def blobs(api: Wire, namespace: str) -> Collection:
    """A namespace's blobs: objects that keep whatever is written to them."""
    return Collection(api, namespace, f"/apis/loose.io/v1/namespaces/{namespace}/blobs")


@pytest.fixture
def group() -> str:
    """An API group that no other test uses."""
    return f"g{next(_numbers)}.{shapes.PASSING}"


@pytest.fixture
def rows(api: Wire, namespace: str, group: str, install: Callable[..., None]) -> Collection:
    """Rows a, b, c of a resource that no other test uses, in a namespace."""
    install(shapes.crd(group, "rows", "Row", shapes.ANYTHING))
    found = Collection(api, namespace, f"/apis/{group}/v1/namespaces/{namespace}/rows")
    for name in "abc":
        found.create({"apiVersion": f"{group}/v1", "kind": "Row", "metadata": {"name": name}})
    return found


@pytest.fixture
def install(cluster: Cluster) -> Callable[..., None]:
    """Install a CRD: it is served when this returns."""
    return cluster.server.install


@pytest.fixture(scope="session")
def clientgo() -> Path:
    """The compiled Go program of clientgo/."""
    try:
        return go_program.build()
    except LookupError as error:
        pytest.skip(str(error))
