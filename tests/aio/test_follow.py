"""Following patterns of resources in an event loop."""

from __future__ import annotations

import anyio
import pytest

from dyninformer import Event, aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually
from tests.config_maps import MAPS, PATIENCE, write


def test_a_coroutine_hears_the_events_of_all_that_match(server: ApiServer, run: Run) -> None:
    """Until the follower is closed, which takes the informers that it brought."""
    write(server, "a")

    async def main() -> None:
        heard: list[str] = []

        async def note(event: Event) -> None:
            await anyio.sleep(0)
            heard.append(f"{event.type} {event.gvr.resource} {event.name}")

        async with aio.DynamicSharedInformerFactory(server.client(), namespace="default") as made:
            async with made.follow("configmaps", "secrets", on_event=note) as follower:
                assert await follower.wait_for_sync(PATIENCE), follower.reason
                assert [gvr.resource for gvr in follower.resources()] == ["configmaps", "secrets"]
                await eventually(lambda: "ADDED configmaps a" in heard)
                assert MAPS in made.status()
            assert made.status() == {}
            count = len(heard)
            write(server, "b")
            await anyio.sleep(0.02)
            assert len(heard) == count

    run(main)


def test_a_handler_does_not_wait_for_its_own_follower(server: ApiServer, run: Run) -> None:
    """The events that it would wait for are its own."""
    write(server, "a")

    async def main() -> None:
        told: list[bool] = []

        async def note(event: Event) -> None:
            if not told:
                told.append(await follower.wait_for_sync())

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            follower = await made.follow("configmaps", on_event=note)
            await eventually(lambda: told)
            follower.close()

    run(main)


def test_patterns_are_checked_when_it_begins(server: ApiServer, run: Run) -> None:
    """As in a thread."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            with pytest.raises(ValueError, match="follow needs patterns"):
                await made.follow()

    run(main)


def test_a_cancelled_call_leaves_no_follower(server: ApiServer, run: Run) -> None:
    """Wherever the cancellation finds it."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            for tries in range(20):
                with anyio.move_on_after(tries * 0.0005):
                    (await made.follow("configmaps")).close()
            await eventually(lambda: all(each._closed for each in made._core()._followers))

    run(main)
