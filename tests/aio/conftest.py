"""Each kind of event loop, which must be left empty, and a server with config maps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeAlias

import anyio
import pytest
import trio

from dyninformer.testing import ApiServer
from tests.config_maps import PATIENCE
from tests.conformance.wire import until

Main: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]
Run: TypeAlias = Callable[[Main], Any]

LOOPS = ("asyncio", "uvloop", "trio")


def run_on(loop: str, main: Main) -> Any:
    """What ``main`` returns, on a loop of its own, which it must leave without a task."""

    async def alone() -> Any:
        result = await main()
        for _ in range(10):  # what was cancelled ends in its own time, which is short
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    if loop == "trio":
        return trio.run(main)
    if loop == "uvloop":
        uvloop = pytest.importorskip("uvloop")
        return uvloop.run(alone())
    return asyncio.run(alone())


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's coroutine function, on each kind of loop; see `run_on`."""
    return lambda main: run_on(request.param, main)


@pytest.fixture(scope="module")
def one_server() -> Iterator[ApiServer]:
    """An embedded server."""
    with ApiServer() as server:
        yield server


@pytest.fixture
def server(one_server: ApiServer) -> Iterator[ApiServer]:
    """The same, as new; afterwards no thread of the package is left but its own."""
    one_server.reset()
    yield one_server
    until(lambda: not threads(), why="no thread is left")


def threads() -> list[str]:
    """The threads that work for informers."""
    names = [each.name for each in threading.enumerate()]
    return [each for each in names if "dyninformer" in each and "API server" not in each]


async def eventually(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait for a condition to hold, on any loop."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.002)


async def soon(awaited: Awaitable[Any]) -> Any:
    """What is awaited, which must not take for ever."""
    with anyio.fail_after(PATIENCE):
        return await awaited
