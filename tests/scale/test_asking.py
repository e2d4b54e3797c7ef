"""Leases asked for over a connection (S50)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from dyninformer import ConfigError, DynamicSharedInformerFactory
from dyninformer.scale.asking import LeaseClient, checked_lease, source_of
from dyninformer.scale.leases import Lease
from dyninformer.scale.rounds import Failure, Look, Put, Remove
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import Fault, HttpStatus, LoseAnswer, RawAnswer
from dyninformer.watching.client import Source

MINE = Lease("a", "", holder="me", duration=15.0, shards=2)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An empty one."""
    with ApiServer() as started:
        yield started


@pytest.fixture
def source(server: ApiServer, tmp_path: Path) -> Iterator[Source]:
    """With settings from a file."""
    with closing(source_of(None, server.kubeconfig(tmp_path / "kubeconfig"))) as made:
        yield made


@pytest.fixture
def client(source: Source) -> LeaseClient:
    """Of the group "g"."""
    return LeaseClient(source, "default", "g", 5.0)


def made(client: LeaseClient) -> Lease:
    """A lease that is there."""
    lease = client.answer(Put(MINE))
    assert isinstance(lease, Lease)
    return lease


def test_what_was_written_is_listed(client: LeaseClient) -> None:
    """As the server has it."""
    lease = made(client)
    assert client.answer(Look()) == [lease]
    assert client.get("a") == lease


def test_a_lease_that_changed_is_not_written(client: LeaseClient) -> None:
    """Nor removed, nor made again."""
    old = made(client)
    new = client.answer(Put(old))
    assert isinstance(new, Lease)
    assert client.answer(Put(old)) is client.answer(Remove(old)) is Failure.CONFLICT
    assert client.answer(Put(MINE)) is Failure.CONFLICT
    assert client.answer(Remove(new)) == new


def test_s50_a_lease_that_is_gone_does_not_come_back_by_a_write(client: LeaseClient) -> None:
    """Its uid is said: API servers would make it anew."""
    lease = made(client)
    client.answer(Remove(lease))
    assert client.answer(Put(lease)) is Failure.CONFLICT
    assert client.get("a") is Failure.GONE
    assert client.answer(Remove(lease)) is Failure.GONE


def test_s50_a_lease_of_the_same_name_is_not_the_one_that_was_seen(client: LeaseClient) -> None:
    """Somebody may have removed it and made it."""
    lease = made(client)
    client.answer(Remove(lease))
    again = made(client)
    stale = lease._replace(version=again.version)
    assert client.answer(Put(stale)) is client.answer(Remove(stale)) is Failure.CONFLICT


def test_s50_a_404_of_a_proxy_is_no_proof_that_a_lease_is_gone(
    client: LeaseClient, server: ApiServer
) -> None:
    """The server names what it has not."""
    lease = made(client)
    with server.faults.add(HttpStatus(404, text="no backend"), resource="leases"):
        assert client.answer(Remove(lease)) is Failure.REFUSED
        assert client.get("a") is Failure.REFUSED
    assert client.get("a") == lease


@pytest.mark.parametrize("code", [400, 401, 403, 429])
def test_a_write_that_was_refused_was_not_done(
    client: LeaseClient, server: ApiServer, code: int
) -> None:
    """And will not be. Why is said."""
    with server.faults.add(HttpStatus(code), resource="leases"):
        assert client.answer(Put(MINE)) is Failure.REFUSED
        assert f"HTTP {code}" in client.trouble
    made(client)
    assert not client.trouble


def test_what_fails_is_logged_when_it_begins_and_not_each_time(
    client: LeaseClient, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Of reads and writes in turn, and whichever lease it is of."""
    with server.faults.add(HttpStatus(403), resource="leases"):
        for name in "abc":
            client.answer(Put(MINE._replace(name=name)))
            client.answer(Look())
        assert len(caplog.records) == 2
        assert "POST" in client.trouble
    made(client)
    assert "GET" in client.trouble
    client.answer(Look())
    assert not client.trouble
    with server.faults.add(HttpStatus(403), resource="leases"):
        client.answer(Look())
    assert len(caplog.records) == 3


@pytest.mark.parametrize("fault", [LoseAnswer(), HttpStatus(504), HttpStatus(500)])
def test_of_a_write_without_a_good_answer_nobody_knows(
    client: LeaseClient, server: ApiServer, fault: Fault
) -> None:
    """It may be done later."""
    with server.faults.add(fault, resource="leases"):
        assert client.answer(Put(MINE)) is Failure.UNKNOWN


def test_a_lease_that_cannot_be_made_is_not_gone(source: Source) -> None:
    """As in a namespace that is not there."""
    client = LeaseClient(source, "nowhere", "g", 5.0)
    assert client.answer(Put(MINE)) is Failure.REFUSED
    assert client.trouble.endswith('HTTP 404 Not Found: namespaces "nowhere" not found')


def test_a_right_that_is_missing_is_named(server: ApiServer) -> None:
    """In the words of the server, which say whose it is, and for what."""
    with closing(Source(server.client(token=server.access.add_user("replica")))) as source:
        client = LeaseClient(source, "default", "g", 5.0)
        assert client.answer(Put(MINE)) is Failure.REFUSED
    assert 'HTTP 403 Forbidden: leases.coordination.k8s.io is forbidden: User "replica" cannot' in (
        client.trouble
    )


def test_credentials_are_read_anew_where_they_are_not_known(
    client: LeaseClient, source: Source, server: ApiServer
) -> None:
    """For the next request: a token may have been replaced."""
    made(client)
    before = source.writes_client
    with server.faults.add(HttpStatus(401), resource="leases"):
        client.answer(Look())
    assert source.writes_client is not before
    assert isinstance(client.answer(Look()), list)


def test_a_connection_of_a_factory_is_for_the_namespace_that_the_factory_is_for(
    server: ApiServer, tmp_path: Path
) -> None:
    """That of the context, or of the pod."""
    path = server.kubeconfig(tmp_path / "kubeconfig")
    said = yaml.safe_load(path.read_text("utf-8"))
    said["contexts"][0]["context"]["namespace"] = "ops"
    path.write_text(yaml.safe_dump(said), "utf-8")
    with (
        DynamicSharedInformerFactory(kubeconfig=path) as factory,
        closing(source_of(factory)) as source,
    ):
        assert source.namespace == factory.namespace == "ops"


def test_a_connection_of_a_factory_reads_credentials_anew(
    server: ApiServer, tmp_path: Path
) -> None:
    """From where the factory has them, as that does."""
    tokens = [server.access.add_user("ann", groups=["system:masters"]) for _ in range(2)]
    path = server.kubeconfig(tmp_path / "kubeconfig", token=tokens[0])
    with (
        DynamicSharedInformerFactory(kubeconfig=path) as factory,
        closing(source_of(factory)) as source,
    ):
        client = LeaseClient(source, "default", "g", 5.0)
        lease = made(client)
        server.access.remove_token(tokens[0])
        server.kubeconfig(path, token=tokens[1])
        assert client.answer(Look()) is Failure.REFUSED
        assert client.answer(Look()) == [lease]


def test_a_connection_of_a_factory_is_not_that_of_a_file(server: ApiServer, tmp_path: Path) -> None:
    """Who names both is told."""
    with (
        DynamicSharedInformerFactory(server.client()) as factory,
        pytest.raises(ConfigError, match="not both"),
    ):
        source_of(factory, server.kubeconfig(tmp_path / "kubeconfig"))


@pytest.mark.parametrize("body", [b'{"items":null}', b"{}"])
def test_a_list_without_leases_is_empty(
    client: LeaseClient, server: ApiServer, body: bytes
) -> None:
    """However it is written."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with server.faults.add(RawAnswer(answer), resource="leases"):
        assert client.answer(Look()) == []


@pytest.mark.parametrize("name", ["", "A", "a_b", "a" * 64, "-a", 3])
def test_what_cannot_name_leases_is_refused(name: Any) -> None:
    """Before the server does so."""
    with pytest.raises((TypeError, ValueError)):
        checked_lease(name, 63)
