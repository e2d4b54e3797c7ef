"""What is opened in an event loop, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final

import anyio
import pytest

from dyninformer import aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually, threads
from tests.config_maps import MAPS, PATIENCE
from tests.conformance.wire import until

REFLECTOR: Final = f"dyninformer reflector {MAPS}"
PARTS: Final[dict[str, Callable[[aio.OpenInformer], object]]] = {
    "informer": lambda opened: opened.informer,
    "lister": lambda opened: opened.lister,
    "store": lambda opened: opened.informer.store,
    "indexer": lambda opened: opened.informer.indexer,
    "events": lambda opened: opened.events(),
    "registration": lambda opened: opened.informer.add_event_handler(on_add=len),
    "work queue": lambda opened: opened.informer.work_queue(),
    "close": lambda opened: opened.close,
}


@contextmanager
def uncollected() -> Iterator[None]:
    """Run the block without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_s42_an_informer_without_references_is_closed(server: ApiServer, run: Run) -> None:
    """At once and without a garbage collection; the warning names the line that opened it."""

    async def main() -> None:
        opened = await aio.open_informer(MAPS, client=server.client())
        store = opened.informer._core._store
        opened = await aio.open_informer(MAPS, client=server.client())
        await eventually(lambda: threads().count(REFLECTOR) == 1)
        await eventually(lambda: store.held_bytes == 0)
        assert opened.informer.status().live
        del opened
        await eventually(lambda: not threads(), "the threads have ended")

    with uncollected(), pytest.warns(ResourceWarning, match="async with aio.open_inf") as warned:
        run(main)
    assert [each.filename for each in warned] == [__file__] * 2


def test_s42_the_warning_names_the_line_that_called_open_informer(server: ApiServer) -> None:
    """Also if it was awaited elsewhere, in a task of its own."""

    async def main() -> None:
        await asyncio.wait_for(aio.open_informer(MAPS, client=server.client()), PATIENCE)
        await eventually(lambda: not threads(), "the threads have ended")

    with pytest.warns(ResourceWarning, match="no references to this informer of conf") as warned:
        asyncio.run(main())
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("part", PARTS)
def test_s42_a_part_of_an_informer_keeps_it_open(server: ApiServer, run: Run, part: str) -> None:
    """Until there are no references to that part either."""

    async def main() -> None:
        held = PARTS[part](await aio.open_informer(MAPS, client=server.client()))
        gc.collect()
        assert threads().count(REFLECTOR) == 1
        with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
            del held
            gc.collect()
            await eventually(lambda: not threads(), "the threads have ended")

    run(main)


def test_s42_an_informer_that_was_closed_does_not_warn(server: ApiServer, run: Run) -> None:
    """By close, or by leaving an async with in any way."""

    async def main() -> None:
        opened = await aio.open_informer(MAPS, client=server.client())
        assert await opened.close(PATIENCE)
        del opened
        async with aio.open_informer(MAPS, client=server.client()):
            pass
        with anyio.CancelScope() as scope:
            async with await aio.open_informer(MAPS, client=server.client()):
                scope.cancel()
                await anyio.sleep_forever()
        gc.collect()

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        run(main)


def test_an_informer_outlives_its_event_loop(server: ApiServer) -> None:
    """It is closed when the last reference to it goes, be there a loop or not."""

    async def main() -> aio.OpenInformer:
        return await aio.open_informer(MAPS, client=server.client())

    opened = asyncio.run(main())
    assert threads().count(REFLECTOR) == 1
    with pytest.warns(ResourceWarning):  # noqa: PT031 - the end of its use is in it
        del opened
        until(lambda: not threads(), why="the threads have ended")


@pytest.mark.parametrize("what", ["open_informer", "follow"])
def test_what_is_entered_cannot_be_entered_again(server: ApiServer, run: Run, what: str) -> None:
    """Neither in the block nor while it opens; once it was left, it opens another one."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            opening: AbstractAsyncContextManager[Any] = (
                made.follow("configmaps")
                if what == "follow"
                else aio.open_informer(MAPS, client=server.client())
            )
            refused: list[str] = []

            async def enter() -> None:
                try:
                    async with opening:
                        await entered.wait()
                except RuntimeError as error:
                    refused.append(str(error))

            entered = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(enter)
                tasks.start_soon(enter)
                await eventually(lambda: refused)
                entered.set()
            async with opening as first:
                await enter()
                assert what == "follow" or first.informer.status().live
            async with opening as second:
                assert second is not first
            assert len(refused) == 2
            assert "is entered already" in refused[0]

    run(main)
