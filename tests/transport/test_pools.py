"""Pools of connections: what is added to urllib3's, and what is left out."""

from __future__ import annotations

from queue import LifoQueue
from typing import Any

import urllib3

from dyninformer.testing import ApiServer
from dyninformer.transport.pools import unfilled

Pool = urllib3.HTTPConnectionPool


def pool(server: ApiServer, kind: type[Pool], places: int) -> Pool:
    """One that waits for nobody."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    return unfilled(kind)(host, int(port), maxsize=places, block=False)


def ask(asked: Pool) -> int:
    """A request; whatever its answer is, it was one."""
    return asked.request("GET", "/version", retries=False).status


def test_a_new_pool_has_no_places_to_fill() -> None:
    """A pool that may keep thousands of connections is made as quickly as one for two."""
    with ApiServer() as server:
        made = pool(server, Pool, 4096)
        assert made.pool is not None
        assert made.pool.qsize() == 0
        made.close()


def test_a_pool_keeps_its_connections_for_the_next_requests() -> None:
    """As many as it may, and closes the others."""
    with ApiServer() as server:
        made = pool(server, Pool, 2)
        for _ in range(3):
            ask(made)
        assert (made.num_connections, made.num_requests) == (1, 3)
        answers = [made.request("GET", "/version", preload_content=False) for _ in range(3)]
        assert made.num_connections == 3
        for each in answers:
            each.drain_conn()
            each.release_conn()
        assert made.pool is not None
        assert made.pool.qsize() == 2
        made.close()


def test_a_pool_with_a_queue_of_its_own_keeps_that() -> None:
    """Somebody has made it so."""

    class Queue(LifoQueue[Any]):
        """Theirs."""

    class Theirs(Pool):
        """A user's."""

        QueueCls = Queue

    assert unfilled(Theirs) is Theirs
