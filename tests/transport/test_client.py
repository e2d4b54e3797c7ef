"""Requests of coroutines, and when they are sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from dyninformer.errors import UnreachableError
from dyninformer.transport import connection as connections
from dyninformer.transport.client import Client
from dyninformer.transport.endpoint import Endpoint
from dyninformer.transport.failures import RefreshError
from dyninformer.transport.messages import Pairs
from dyninformer.transport.pool import Traffic
from dyninformer.transport.requests import BrokenAnswerError, Request, SilentError
from dyninformer.transport.settings import Settings
from tests.transport.servers import Http2Server, client_tls, until

LIST = Request("/list", [("limit", "500")])
WATCH = Request("/watch")


def no_credentials() -> Pairs:
    """No header."""
    return ()


def settings_for(server: Http2Server) -> Settings:
    """Settings without credentials."""
    context = client_tls()
    endpoint = Endpoint(server.url, tls=lambda: context)
    return Settings(endpoint=endpoint, headers=(), auth=no_credentials, blocks=False)


def run(
    test: Callable[[Http2Server, Client], Awaitable[None]],
    change: Callable[[Settings], Settings] = lambda settings: settings,
) -> None:
    """A test with a server and a client, in an event loop."""

    async def main() -> None:
        async with Http2Server() as server:
            client = Client(change(settings_for(server)), server.url)
            try:
                await test(server, client)
            finally:
                client.close()

    asyncio.run(main())


async def whole(client: Client, request: Request = LIST) -> bytes:
    """The body of an answer."""
    answer = await client.request(request, Traffic.LIST)
    found = b""
    while piece := await answer.read():
        found += piece
    return found


def test_a_request_has_its_query_and_an_answer_its_body() -> None:
    """As for any client of HTTP."""

    async def test(server: Http2Server, client: Client) -> None:
        del server
        assert await whole(client) == b"/list?limit=500"

    run(test)


def test_a_refused_request_is_sent_again() -> None:
    """The server has not looked at it. After three times the caller is told."""

    async def test(server: Http2Server, client: Client) -> None:
        server.refusing = 2
        assert await whole(client) == b"/list?limit=500"
        server.refusing = 3
        with pytest.raises(UnreachableError, match="REFUSED_STREAM"):
            await whole(client)
        assert server.refusing == 0

    run(test)


def test_a_request_on_a_connection_that_died_while_idle_is_sent_again_over_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller sees an answer that is a little late."""
    monkeypatch.setattr(connections, "_QUIET", 0.01)
    monkeypatch.setattr(connections, "_HURRY", 0.05)

    async def test(server: Http2Server, client: Client) -> None:
        await whole(client)
        await asyncio.sleep(0.02)  # it is idle for longer than _QUIET
        (dead,) = server.connections
        monkeypatch.setattr(dead, "data_received", lambda data: None)
        assert await whole(client) == b"/list?limit=500"
        assert len(server.connections) == 2

    run(test)


def test_a_request_on_a_new_connection_that_breaks_is_not_repeated() -> None:
    """It may have been carried out; the next try is one that waits (S29)."""

    async def test(server: Http2Server, client: Client) -> None:
        server.holding = True
        task = asyncio.ensure_future(whole(client))
        await until(lambda: any(each.targets for each in server.connections))
        server.connections[0].cut()
        with pytest.raises(UnreachableError):
            await task
        assert len(server.connections) == 1

    run(test)


def test_silence_is_an_error_of_its_own() -> None:
    """Before the answer, and in the middle of it."""

    async def test(server: Http2Server, client: Client) -> None:
        answer = await client.request(replace(WATCH, deadline=0.05), Traffic.WATCH)
        with pytest.raises(SilentError, match="in the middle of an answer"):
            await answer.read()
        server.silent = True
        with pytest.raises(SilentError, match=r"said nothing for 0\.1 s"):
            await client.request(replace(LIST, deadline=0.1), Traffic.WATCH)

    run(test)


def test_a_longer_silence_can_be_allowed() -> None:
    """A watch that has told its first state may be without events for minutes."""

    async def test(server: Http2Server, client: Client) -> None:
        answer = await client.request(replace(WATCH, deadline=0.05), Traffic.WATCH)
        answer.allow_silence(60)
        reading = asyncio.ensure_future(answer.read())
        await asyncio.sleep(0.1)
        server.connections[0].send(1, b"late")
        assert await reading == b"late"

    run(test)


def test_an_answer_that_breaks_off_says_so() -> None:
    """After what came before has been read."""

    async def test(server: Http2Server, client: Client) -> None:
        answer = await client.request(WATCH, Traffic.WATCH)
        server.connections[0].send(1, b"first")
        assert await answer.read() == b"first"
        server.connections[0].cut()
        with pytest.raises(BrokenAnswerError, match=server.url):
            await answer.read()

    run(test)


def test_the_body_of_a_refusal_is_bounded() -> None:
    """It may have no end."""

    async def test(server: Http2Server, client: Client) -> None:
        answer = await client.request(WATCH, Traffic.WATCH)
        server.connections[0].send(1, b"x" * 16_000)
        for _ in range(5):
            server.connections[0].send(1, b"x" * 16_000)
        assert await answer.refusal() == b"x" * 65_536

    run(test)


def test_credentials_are_asked_for_with_each_request() -> None:
    """Those of one moment share one run of a hook that blocks."""
    runs: list[int] = []

    def refresh() -> Pairs:
        runs.append(len(runs))
        return [("Authorization", f"Bearer {len(runs)}")]

    async def test(server: Http2Server, client: Client) -> None:
        del server
        await whole(client)
        await whole(client)
        assert len(runs) == 2
        await asyncio.gather(*(whole(client) for _ in range(5)))
        assert len(runs) == 3

    run(test, lambda settings: replace(settings, auth=refresh, blocks=True))


@pytest.mark.parametrize("error", [ValueError("my token"), SystemExit("my token")])
def test_a_hook_that_fails_is_told_without_its_words(error: BaseException) -> None:
    """They may hold the token. The loop goes on, whatever is raised."""

    def refresh() -> Pairs:
        raise error

    async def test(server: Http2Server, client: Client) -> None:
        with pytest.raises(RefreshError, match=type(error).__name__) as caught:
            await whole(client)
        assert "my token" not in str(caught.value)
        assert server.connections == []

    run(test, lambda settings: replace(settings, auth=refresh, blocks=True))


def test_a_server_that_is_not_there_is_told_with_what_to_do() -> None:
    """As for every other way in which no answer comes."""

    async def main() -> None:
        async with Http2Server() as server:
            settings = settings_for(server)
        client = Client(settings, server.url)
        with pytest.raises(UnreachableError, match="connection refused"):
            await whole(client)

    asyncio.run(main())
