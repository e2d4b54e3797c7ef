"""Which connection carries a request, and what happens when connections end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dyninformer.transport import connection as connections
from dyninformer.transport.connection import Stream
from dyninformer.transport.endpoint import ConnectError, Connector, Endpoint
from dyninformer.transport.messages import LostConnectionError, Outgoing, UnprocessedError
from dyninformer.transport.pool import Pool, Traffic
from tests.transport.servers import Http2Server, client_tls, until

WATCH, LIST = Traffic.WATCH, Traffic.LIST


def pool_of(server: Http2Server) -> Pool:
    """A pool of connections to a server."""
    context = client_tls()
    return Pool(Connector(Endpoint(server.url, tls=lambda: context)))


async def begin(pool: Pool, target: str, traffic: Traffic, **options: bool) -> Stream:
    """Send a request, and wait for the head of its answer."""
    stream = await pool.begin(Outgoing("GET", target, []), 10, traffic, **options)
    assert (await stream.head()).status == 200
    return stream


async def body(stream: Stream) -> bytes:
    """The whole body."""
    found = b""
    while data := await stream.read():
        found += data
    return found


def run(test: Callable[[Http2Server, Pool], Awaitable[None]], **options: int) -> None:
    """A test with a server and a pool, in an event loop."""

    async def main() -> None:
        async with Http2Server(**options) as server:
            pool = pool_of(server)
            try:
                await test(server, pool)
            finally:
                pool.close()

    asyncio.run(main())


def test_requests_share_a_connection() -> None:
    """Those that come while it is opened wait for it."""

    async def test(server: Http2Server, pool: Pool) -> None:
        streams = await asyncio.gather(*(begin(pool, f"/{n}", LIST) for n in range(50)))
        assert [await body(each) for each in streams] == [b"/%d" % n for n in range(50)]
        assert len(server.connections) == 1

    run(test)


def test_lists_and_watches_have_connections_of_their_own() -> None:
    """On a slow link a list would hold up the events of the watches beside it."""

    async def test(server: Http2Server, pool: Pool) -> None:
        await begin(pool, "/watch", WATCH)
        await body(await begin(pool, "/list", LIST))
        await begin(pool, "/watch", WATCH)
        assert [list(each.targets.values()) for each in server.connections] == [
            ["/watch", "/watch"],
            ["/list"],
        ]

    run(test)


def test_more_watches_than_a_connection_allows_use_several() -> None:
    """kube-apiserver allows a hundred streams for each connection."""

    async def test(server: Http2Server, pool: Pool) -> None:
        await asyncio.gather(*(begin(pool, "/watch", WATCH) for _ in range(130)))
        assert sorted(len(each.streams) for each in server.connections) == [30, 100]

    run(test)


def test_a_server_that_allows_fewer_streams_gets_fewer() -> None:
    """Each connection carries as many as the server allows."""

    async def test(server: Http2Server, pool: Pool) -> None:
        await asyncio.gather(*(begin_again(pool, "/watch") for _ in range(10)))
        assert all(len(each.streams) <= 3 for each in server.connections)
        assert sum(len(each.streams) for each in server.connections) == 10

    async def begin_again(pool: Pool, target: str) -> Stream:
        for _ in range(5):
            try:
                return await begin(pool, target, WATCH)
            except UnprocessedError:  # it was sent before the server had told its limit
                continue
        raise AssertionError("it was refused over and over")

    run(test, most_streams=3)


def test_a_refused_stream_says_that_it_can_be_sent_again() -> None:
    """The server has not looked at the request."""

    async def test(server: Http2Server, pool: Pool) -> None:
        server.refusing = 1
        with pytest.raises(UnprocessedError, match="REFUSED_STREAM"):
            await begin(pool, "/watch", WATCH)
        await begin(pool, "/watch", WATCH)

    run(test)


def test_after_goaway_streams_go_on_and_new_ones_begin_elsewhere() -> None:
    """The old connection ends with its last stream."""

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch/1", WATCH)
        (old,) = server.connections
        (number,) = old.streams
        old.go_away(number)
        await until(lambda: not any(pool._free[WATCH]))
        await begin(pool, "/watch/2", WATCH)
        assert list(server.connections[1].targets.values()) == ["/watch/2"]
        old.send(number, b"still here", end=True)
        assert await body(stream) == b"still here"
        await until(lambda: server.open == server.connections[1:])

    run(test)


def test_a_stream_above_the_last_one_of_goaway_can_be_sent_again() -> None:
    """The server has not looked at it."""

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch", WATCH)
        server.connections[0].go_away(0)
        with pytest.raises(UnprocessedError):
            await stream.read()

    run(test)


def test_a_connection_that_is_cut_ends_its_streams() -> None:
    """What came before is read first."""

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch", WATCH)
        (connection,) = server.connections
        connection.send(1, b"first")
        assert await stream.read() == b"first"
        connection.cut()
        with pytest.raises(LostConnectionError):
            await stream.read()

    run(test)


def test_a_dead_connection_is_noticed_by_a_ping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its streams end, though no byte and no error ever comes."""
    monkeypatch.setattr(connections, "_QUIET", 0.05)
    monkeypatch.setattr(connections, "_PATIENCE", 0.05)

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch", WATCH)
        server.silent = True
        with pytest.raises(LostConnectionError) as caught:
            await stream.read()
        assert isinstance(caught.value.__cause__, TimeoutError)

    run(test)


def test_a_quiet_connection_lives_as_long_as_pings_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watch may be without events for days."""
    monkeypatch.setattr(connections, "_QUIET", 0.01)

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch", WATCH)
        pings = 0
        ping = server.connections[0]._h2.receive_data

        def count(data: bytes) -> object:
            nonlocal pings
            pings += 1
            return ping(data)

        monkeypatch.setattr(server.connections[0]._h2, "receive_data", count)
        await until(lambda: pings > 5)
        server.connections[0].send(1, b"alive", end=True)
        assert await body(stream) == b"alive"

    run(test)


def test_a_connection_without_requests_is_closed_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server has a file open for each."""
    monkeypatch.setattr(connections, "_IDLE", 0.05)

    async def test(server: Http2Server, pool: Pool) -> None:
        await body(await begin(pool, "/list", LIST))
        await until(lambda: len(pool) == 0)
        await until(lambda: not server.open)

    run(test)


def test_a_request_on_a_connection_that_died_while_idle_fails_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A PING goes along with it, so that the caller need not wait for its own deadline."""
    monkeypatch.setattr(connections, "_QUIET", 0.01)
    monkeypatch.setattr(connections, "_HURRY", 0.05)

    async def test(server: Http2Server, pool: Pool) -> None:
        await body(await begin(pool, "/list", LIST))
        await asyncio.sleep(0.02)  # it is idle for longer than _QUIET
        server.silent = True
        stream = await pool.begin(Outgoing("GET", "/list", []), 60, LIST)
        assert stream.reused
        with pytest.raises(LostConnectionError):
            await stream.head()

    run(test)


def test_a_fresh_connection_can_be_asked_for() -> None:
    """Where the others may be dead. It is used by others afterwards."""

    async def test(server: Http2Server, pool: Pool) -> None:
        await body(await begin(pool, "/1", LIST))
        await body(await begin(pool, "/2", LIST, fresh=True))
        assert [list(each.targets.values()) for each in server.connections] == [["/1"], ["/2"]]

    run(test)


def test_all_that_wait_for_a_connection_get_the_error_if_none_comes_about() -> None:
    """Each gets an error of its own, at once."""

    async def main() -> None:
        async with Http2Server() as server:
            context = client_tls()
            pool = Pool(Connector(Endpoint(server.url, tls=lambda: context, server_name="other")))
            found = await asyncio.gather(
                *(begin(pool, "/", LIST) for _ in range(20)), return_exceptions=True
            )
            assert all(isinstance(each, ConnectError) for each in found)
            assert len({id(each) for each in found}) == 20
            pool.close()

    asyncio.run(main())


def test_a_request_that_is_cancelled_while_it_waits_is_never_sent() -> None:
    """And the connection that is opened for it is there for others."""

    async def test(server: Http2Server, pool: Pool) -> None:
        task = asyncio.ensure_future(begin(pool, "/cancelled", LIST))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await body(await begin(pool, "/other", LIST))
        assert [list(each.targets.values()) for each in server.connections] == [["/other"]]

    run(test)


def test_closing_the_pool_ends_every_request() -> None:
    """Those that are read, and those that wait."""

    async def test(server: Http2Server, pool: Pool) -> None:
        stream = await begin(pool, "/watch", WATCH)
        reading = asyncio.ensure_future(stream.read())
        waiting = asyncio.ensure_future(begin(pool, "/list", LIST))
        await asyncio.sleep(0)
        pool.close()
        with pytest.raises(LostConnectionError):
            await reading
        with pytest.raises((asyncio.CancelledError, ConnectError)):
            await waiting
        await until(lambda: not server.open)

    run(test)


def test_a_slow_reader_holds_up_no_other_stream() -> None:
    """Its own stream stands still at its window."""

    async def test(server: Http2Server, pool: Pool) -> None:
        slow = await begin(pool, "/watch/slow", WATCH)
        quick = await begin(pool, "/watch/quick", WATCH)
        (connection,) = server.connections
        sent = 0
        while size := min(connection._h2.local_flow_control_window(1), 16_384):
            connection.send(1, b"x" * size)
            sent += size
        for number in range(100):
            connection.send(3, b"event %d" % number)
            assert await quick.read() == b"event %d" % number
        received = 0
        while received < sent:
            received += len(await slow.read())
        await until(lambda: connection._h2.local_flow_control_window(1) > 0)

    run(test)
