"""One resource, started and synced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyninformer import CacheSyncError, UnknownResourceError, open_informer
from dyninformer.testing import ApiServer

CRDS = Path(__file__).parent.parent / "examples" / "crd"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """A server with the example CRDs, and a few objects of them."""
    with ApiServer() as server:
        server.install(CRDS)
        yield server


def test_it_is_synced_when_it_is_there(server: ApiServer) -> None:
    """With the options of a resource, and by any spelling."""
    with open_informer(
        "cert", kubeconfig=server.kubeconfig(), namespace="prod", indexers={"s": ".spec.secretName"}
    ) as certs:
        assert certs.informer.has_synced()
        assert [o["metadata"]["name"] for o in certs.lister.by_index("s", "mail-tls")] == ["mail"]
        assert repr(certs) == "<OpenInformer of certificates.v1.cert-manager.io, 2 objects>"


def test_its_events_can_be_iterated_over(server: ApiServer) -> None:
    """First what is there."""
    with open_informer("certificates", client=server.client()) as certs:
        events = certs.informer.events()
        assert sorted((next(events).key, next(events).key)) == ["prod/mail", "prod/shop"]


def test_its_client_is_for_writes(server: ApiServer) -> None:
    """It reaches the same server."""
    with open_informer("v1/namespaces", client=server.client()) as namespaces:
        kind = namespaces.client.resources.get(api_version="v1", kind="Namespace")
        assert kind.get("prod").metadata.name == "prod"


def test_after_closing_reads_go_on(server: ApiServer) -> None:
    """Closing again is fine."""
    namespaces = open_informer("ns", client=server.client())
    assert namespaces.close()
    assert namespaces.close()
    assert "prod" in namespaces.lister


@pytest.mark.parametrize(
    ("resource", "error", "complaint"),
    [
        ("ex.io/v1/widgets", CacheSyncError, "does not exist"),
        ("certt", UnknownResourceError, "cert"),
    ],
)
def test_what_cannot_be_opened_leaves_no_thread(
    server: ApiServer, resource: str, error: type[Exception], complaint: str
) -> None:
    """The error says why."""
    before = {thread for thread in threading.enumerate() if thread.name.startswith("dyninformer ")}
    with pytest.raises(error, match=complaint):
        open_informer(resource, client=server.client(), timeout=2)
    after = {thread for thread in threading.enumerate() if thread.name.startswith("dyninformer ")}
    assert after <= before
