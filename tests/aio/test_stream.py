"""Events as an asynchronous iterator."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from dyninformer import StoppedError, aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually, soon
from tests.config_maps import MAPS, PATIENCE, write


@asynccontextmanager
async def opened(server: ApiServer) -> AsyncIterator[aio.OpenInformer]:
    """The config maps of the namespace "default"."""
    async with aio.open_informer(
        MAPS,
        client=server.client(),
        namespace="default",
        field_selector="metadata.name!=kube-root-ca.crt",
    ) as maps:
        yield maps


def backlogs(maps: aio.OpenInformer) -> dict[str, int]:
    """Of all that is subscribed."""
    return maps.informer._core._dispatcher.backlog


def test_a_stream_tells_what_is_held_and_then_what_changes(server: ApiServer, run: Run) -> None:
    """In order."""
    write(server, "a")

    async def main() -> None:
        async with opened(server) as maps, maps.events() as events:
            first = await soon(anext(events))
            assert (first.type, first.name, first.initial) == ("ADDED", "a", True)
            server.patch("configmaps/a", {"data": {"x": "1"}}, "default")
            server.delete("configmaps/a", "default")
            found = [await soon(anext(events)) for _ in range(2)]
            assert [event.type for event in found] == ["UPDATED", "DELETED"]
            assert found[0].object["data"] == {"x": "1"}

    run(main)


def test_what_is_not_taken_waits_as_backlog(server: ApiServer, run: Run) -> None:
    """It crosses to the loop when it is asked for, and not before."""

    async def main() -> None:
        async with opened(server) as maps, maps.events() as events:
            for name in "abcde":
                write(server, name)
            await eventually(lambda: events.backlog == 5, "five events")
            assert (await soon(anext(events))).name == "a"
            assert events.backlog == 4
            assert [(await soon(anext(events))).name for _ in range(4)] == list("bcde")

    run(main)


def test_a_coalescing_stream_has_one_step_for_each_object(server: ApiServer, run: Run) -> None:
    """From what was told to the newest."""

    async def main() -> None:
        async with opened(server) as maps, maps.events(coalesce=True) as events:
            write(server, "a")
            for x in "123":
                last = server.patch("configmaps/a", {"data": {"x": x}}, "default")
            await maps.informer.wait_for_version(last, PATIENCE)
            event = await soon(anext(events))
            assert (event.type, event.object["data"]) == ("ADDED", {"x": "3"})

    run(main)


def test_a_stream_ends_when_it_was_idle(server: ApiServer, run: Run) -> None:
    """And takes nothing any more."""
    write(server, "a")

    async def main() -> None:
        async with opened(server) as maps:
            events = maps.events(idle_timeout=0.05)
            assert [event.name async for event in events] == ["a"]
            assert events.closed
            assert backlogs(maps) == {}
            with pytest.raises(ValueError, match="idle_timeout"):
                maps.events(idle_timeout=-1)

    run(main)


def test_take_ends_at_its_timeout_and_the_stream_does_not(server: ApiServer, run: Run) -> None:
    """It is for loops that do something else as well."""

    async def main() -> None:
        async with opened(server) as maps, maps.events() as events:
            assert await events.take(0) is None
            assert await events.take(0.02) is None
            write(server, "a")
            event = await events.take(PATIENCE)
            assert event is not None
            assert event.name == "a"

    run(main)


def test_a_stream_ends_when_its_informer_stops(server: ApiServer, run: Run) -> None:
    """A task that waits for it sees the end at once; a new one cannot be asked for."""

    async def main() -> None:
        async with opened(server) as maps, anyio.create_task_group() as tasks:
            events = maps.events()
            ended = anyio.Event()

            async def read() -> None:
                async for _event in events:
                    pass
                ended.set()

            tasks.start_soon(read)
            await anyio.sleep(0.01)
            assert await maps.informer.stop(PATIENCE)
            await soon(ended.wait())
            with pytest.raises(StoppedError):
                maps.events()

    run(main)


def test_close_wakes_the_task_that_waits(server: ApiServer, run: Run) -> None:
    """From another task."""

    async def main() -> None:
        async with opened(server) as maps:
            events = maps.events()
            async with anyio.create_task_group() as tasks:

                async def read() -> None:
                    assert [event async for event in events] == []

                tasks.start_soon(read)
                await anyio.sleep(0.01)
                events.close()
            assert backlogs(maps) == {}

    run(main)


def test_a_cancelled_wait_loses_no_event(server: ApiServer, run: Run) -> None:
    """The iteration is taken up again, however often it was given up."""
    count = 200

    async def main() -> None:
        async with opened(server) as maps, maps.events() as events:
            names: list[str] = []

            async def fill() -> None:
                for number in range(count):
                    write(server, f"n{number}")
                    if number % 10 == 0:
                        await anyio.sleep(0.001)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fill)
                tries = 0
                while len(names) < count:
                    tries += 1
                    with anyio.move_on_after(0.0005 * (tries % 4)):
                        async for event in events:
                            names.append(event.name)
            assert names == [f"n{number}" for number in range(count)]

    run(main)


def test_a_stream_that_nobody_holds_is_unsubscribed(server: ApiServer, run: Run) -> None:
    """A loop that was left by an error, say."""

    async def main() -> None:
        async with opened(server) as maps:
            with anyio.move_on_after(0.02):
                async for _event in maps.events():
                    pass
            gc.collect()
            await eventually(lambda: backlogs(maps) == {}, "nothing is subscribed")

    run(main)


def test_two_tasks_cannot_read_one_stream(server: ApiServer, run: Run) -> None:
    """The error says what to do."""

    async def main() -> None:
        async with (
            opened(server) as maps,
            maps.events() as events,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(events.take, PATIENCE)
            await anyio.sleep(0.01)
            with pytest.raises(RuntimeError, match="a stream of its own"):
                await events.take()
            tasks.cancel_scope.cancel()

    run(main)


def test_a_hot_stream_lets_others_run(server: ApiServer, run: Run) -> None:
    """A loop over events that are there already, whose body never waits."""
    for number in range(300):
        write(server, f"n{number}")

    async def main() -> None:
        async with opened(server) as maps, maps.events() as events:
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await anyio.sleep(0)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(count)
                taken = 0
                async for event in events:
                    taken += len(event.object["metadata"]["name"]) > 0
                    busy = time.monotonic() + 0.001
                    while time.monotonic() < busy:
                        pass
                    if taken == 300:
                        break
                tasks.cancel_scope.cancel()
            assert turns > 3

    run(main)


def test_a_stream_is_read_in_one_loop_after_another(server: ApiServer) -> None:
    """What came in between is there."""
    made = aio.DynamicSharedInformerFactory(server.client(), namespace="default")

    async def first() -> Any:
        maps = await made.for_resource(MAPS, field_selector="metadata.name!=kube-root-ca.crt")
        await made.sync(PATIENCE)
        events = maps.events()
        assert await events.take(0.01) is None
        return events

    async def second(events: aio.EventStream) -> str:
        name: str = (await soon(anext(events))).name
        await made.shutdown(PATIENCE)
        return name

    events = asyncio.run(first())
    write(server, "between")
    assert asyncio.run(second(events)) == "between"
