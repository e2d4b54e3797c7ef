"""HTTP/2 with a real kube-apiserver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dyninformer.testing.control_plane import ControlPlane
from dyninformer.transport.requests import Request
from dyninformer.transport.source import Source
from tests.transport.wires import config_map, eventually, open_sockets, whole

pytestmark = pytest.mark.real

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = Request(MAPS, [("watch", "1"), ("timeoutSeconds", "300")])


@pytest.fixture(scope="module")
def server() -> Iterator[ControlPlane]:
    """A server that closes one connection in fifty, as those behind load balancers do."""
    with ControlPlane(apiserver_flags=["--goaway-chance=.02"]) as started:
        yield started


@pytest.fixture
def source(server: ControlPlane) -> Iterator[Source]:
    """A source that is closed afterwards."""
    found = Source(server.client())
    yield found
    found.close()
    found.join(10)


def test_a_watch_brings_what_is_written_after_it_began(
    server: ControlPlane, source: Source
) -> None:
    """Each event as it happens."""
    pieces = source.watch(WATCH).chunks()
    server.create(config_map("seen", colour="blue"))
    text = b""
    while b'"name":"seen"' not in text:
        text += next(pieces)
    pieces.close()


def test_a_large_list_comes_whole(server: ControlPlane, source: Source) -> None:
    """It is larger than any window of flow control."""
    for number in range(12):
        server.create(config_map(f"large-{number}", text="x" * 500_000))
    body = json.loads(whole(source.list(Request(MAPS))))
    sizes = [len(item["data"].get("text", "")) for item in body["items"] if "data" in item]
    assert sizes.count(500_000) == 12


def test_every_request_is_answered_though_the_server_says_goaway(source: Source) -> None:
    """What it refuses is sent again; what it accepted goes on."""
    path = "/api/v1/namespaces/kube-system"
    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(lambda _: source.get_json(path).status, range(500)))
    assert statuses == [200] * 500


def test_more_watches_than_one_connection_allows_share_a_few(source: Source) -> None:
    """kube-apiserver allows a hundred for each."""
    source.get_json("/version")
    before = open_sockets()
    with ThreadPoolExecutor(16) as threads:
        streams = list(threads.map(lambda _: source.watch(WATCH), range(130)))
    assert [each.status for each in streams] == [200] * 130
    assert open_sockets() - before <= 2 + 8  # GOAWAY may have made some of them leave early
    for stream in streams:
        stream.close()


def test_closing_a_source_closes_its_sockets(server: ControlPlane) -> None:
    """Also those of streams that are open."""
    before = open_sockets()
    source = Source(server.client())
    streams = [source.watch(WATCH) for _ in range(3)]
    assert open_sockets() > before
    source.close()
    source.join(10)
    eventually(lambda: open_sockets() <= before)
    assert [list(each.chunks()) for each in streams] == [[], [], []]
