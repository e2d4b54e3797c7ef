"""A server that is gone without a word, in a network of the test's own: S35."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from dyninformer import InformerState, SharedIndexInformer, open_informer
from dyninformer.testing import ApiServer, ControlPlane
from dyninformer.testing.client import dynamic_client
from dyninformer.watching import silence, witness
from dyninformer.watching.witness import Way
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Running
from tests.conformance.informer.recorders import PATIENCE, on_real
from tests.conformance.informer.relay import Relay
from tests.conformance.wire import until

_CLONE_NEWNET = 0x40000000


def ip(*words: str) -> None:
    """iproute2, which fails in words."""
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise PermissionError(done.stderr.strip())


class Island:
    """A network namespace with one address, which can vanish; a veth pair leads there."""

    def __init__(self) -> None:
        number = os.getpid() % 250
        self.name = f"dyninf{os.getpid()}"
        self._near, self.far = f"dn{os.getpid()}", f"df{os.getpid()}"
        self.address = f"10.213.{number}.2"
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self._near, "type", "veth", "peer", self.far, "netns", self.name)
            ip("addr", "add", f"10.213.{number}.1/24", "dev", self._near)
            ip("link", "set", self._near, "up")
            ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", self.far)
            ip("-n", self.name, "link", "set", self.far, "up")
        except BaseException:
            self.close()
            raise

    def listen(self) -> socket.socket:
        """A socket that listens there: one belongs to the namespace that it was made in."""
        made: list[socket.socket | OSError] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/var/run/netns/{self.name}") as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                    made.append(OSError(ctypes.get_errno(), "setns"))
                    return
            made.append(socket.create_server((self.address, 0)))

        thread = threading.Thread(target=make)  # the thread alone goes there, and ends there
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def vanish(self) -> None:
        """Nothing there answers any more, and nobody says that it does not."""
        ip("-n", self.name, "addr", "flush", "dev", self.far)

    def close(self) -> None:
        """Take it down."""
        ip("netns", "del", self.name)


@pytest.fixture
def island() -> Iterator[Island]:
    """One, where this machine permits it."""
    try:
        made = Island()
    except OSError as error:  # no rights, or no iproute2
        pytest.skip(f"no network namespace of the test's own can be made here: {error}")
    yield made
    made.close()


def test_s35_a_server_that_vanishes_is_noticed_within_30_seconds(island: Island) -> None:
    """And the watch goes on elsewhere, as soon as it is there again."""
    with ApiServer() as server:
        relay = Relay(server.url, island.listen())
        there: Any = dynamic_client(relay.url, server.token, server.ca)
        with open_informer("v1/namespaces", client=there) as namespaces:
            until(lambda: namespaces.informer.status().live)
            island.vanish()
            vanished = time.monotonic()
            until(lambda: not namespaces.informer.status().live, 40)
            assert time.monotonic() - vanished < 30
            until(lambda: namespaces.informer.status().state is InformerState.BACKING_OFF, 15)
            assert "timed out" in namespaces.informer.status().reason
        relay.close()


@on_real
@pytest.mark.soak
def test_s35_a_server_that_stands_still_is_noticed_within_60_seconds(
    cluster: Cluster, running: Running, widgets: Collection
) -> None:
    """Its system goes on answering for it; the cache is current as soon as it goes on itself."""
    assert isinstance(cluster.server, ControlPlane)
    found = running()
    found.informer.wait_fresh(timeout=PATIENCE)
    cluster.server.pause("kube-apiserver")
    stopped = time.monotonic()
    try:
        until(lambda: not found.informer.status().live, 70)
        assert time.monotonic() - stopped < 60
        assert "stands still" in found.informer.status().reason
    finally:
        cluster.server.resume("kube-apiserver")
    found.informer.wait_fresh(timeout=PATIENCE)


def test_s35_a_stream_that_goes_dead_while_new_ones_work_is_opened_again(
    running: Running,
    widgets: Collection,
    relay: Relay,
    relayed: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second watch shows what it does not bring. Half a minute would be long for a test."""
    monkeypatch.setattr(silence, "QUIET", 0.5)
    monkeypatch.setattr(silence, "HEARTBEAT_EVERY", 1.0)
    monkeypatch.setattr(silence, "HOLDS", 2)
    found = running(client=relayed)
    until(lambda: found.informer.status().live, PATIENCE)
    relay.forget()
    widgets.fill("a")
    until(lambda: len(found.lister) == 1, PATIENCE)
    until(lambda: found.informer.status().live, PATIENCE)


def _heartbeats_end(informer: SharedIndexInformer) -> bool:
    """One has, so that the connection that is kept lies idle, or waits for the end of another."""
    members = informer._reflectors._runtime.prober._members.values()
    return any(each.stream is not None and each.stream.listened > 0 for each in members)


@pytest.mark.parametrize("count", [1, 20])
def test_s35_streams_that_all_go_dead_at_once_are_opened_again_whatever_they_miss(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Before their first bookmark; by the connection that is kept, whichever stream is asked of."""
    monkeypatch.setattr(silence, "QUIET", 0.5)
    monkeypatch.setattr(silence, "HEARTBEAT_EVERY", 2.0)
    monkeypatch.setattr(silence, "HOLDS", 1)
    monkeypatch.setattr(silence, "ALSO_SILENT", 0.5)
    monkeypatch.setattr(silence, "BEHIND", 1000.0)  # nothing that is missing is proof
    monkeypatch.setattr(witness, "KEPT", Way(kept=True, anew=False, within=0.5))
    names = [f"n{number}" for number in range(count)]
    with ApiServer() as server:
        for name in names:
            server.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
        relay = Relay(server.url)
        there: Any = dynamic_client(relay.url, server.token, server.ca)
        with open_informer("v1/configmaps", client=there, namespace=names) as found:
            until(lambda: found.informer.status().live, PATIENCE)
            until(lambda: _heartbeats_end(found.informer), PATIENCE)
            relay.forget()
            metadata = {"name": "a", "namespace": names[-1]}
            asked = len(server.requests)
            server.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
            until(lambda: len(found.lister) == 1, PATIENCE)
            assert all(
                "sendInitialEvents" not in dict(each.query) for each in server.requests[asked:]
            )
        relay.close()


def test_s29_caches_are_current_soon_after_a_server_is_back(
    running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """However often it was away, and however long reflectors would wait by themselves."""
    found = running(client=relayed)
    with relay.away():
        until(lambda: found.informer.status().attempts >= 4, PATIENCE)
    by_itself = found.informer.status().next_try  # the fourth wait is of 6.4 s or more
    widgets.fill("a")
    found.informer.wait_fresh(timeout=PATIENCE)
    assert by_itself is None or datetime.now(UTC) < by_itself
    assert len(found.lister) == 1
