"""A factory in an event loop: opening, syncing, the end, cancellation."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import anyio
import pytest

from dyninformer import (
    CacheSyncError,
    ConfigError,
    OptionsConflictError,
    SharedIndexInformer,
    StoppedError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
    aio,
)
from dyninformer.aio.loops import running
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole, HttpStatus
from tests.aio.conftest import Run, eventually, run_on, soon, threads
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until


def test_a_factory_is_synced_and_read(server: ApiServer, run: Run) -> None:
    """Reads are plain calls, in the block and after it."""
    write(server, "a", x="1")

    async def main() -> Any:
        async with aio.DynamicSharedInformerFactory(server.client(), namespace="default") as made:
            maps = await made.for_resource(MAPS, indexers={"x": "{.data.x}"})
            assert await made.sync(PATIENCE) == {MAPS: True}
            assert maps.lister.by_index("x", "1")[0]["metadata"]["name"] == "a"
            assert made.status()[MAPS].synced
            return maps

    maps = run(main)
    assert "a" in maps.lister.by_namespace("default").keys()[0]
    assert maps.informer.is_stopped()


def test_a_short_name_is_looked_up_off_the_loop(server: ApiServer, run: Run) -> None:
    """What discovery answers is what it answers in a thread."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource("cm")
            assert maps.gvr == MAPS
            with pytest.raises(UnknownResourceError):
                await made.for_resource("nosuch")

    run(main)


def test_one_resource_has_one_informer(server: ApiServer, run: Run) -> None:
    """However it is spelled; other options are a conflict (S1)."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            again = await made.for_resource("configmaps")
            assert again.informer is maps.informer
            with pytest.raises(OptionsConflictError):
                await made.for_resource(MAPS, label_selector="a=b")
            assert await made.remove(MAPS)
            anew = await made.for_resource(MAPS, label_selector="a=b")
            assert anew.informer is not maps.informer

    run(main)


def test_one_resource_is_opened(server: ApiServer, run: Run) -> None:
    """With async with, and with await."""
    write(server, "a")

    async def main() -> None:
        async with aio.open_informer("cm", client=server.client(), namespace="default") as maps:
            assert "default/a" in maps.lister
        assert maps.informer.is_stopped()
        again = await aio.open_informer("cm", client=server.client())
        assert again.informer.has_synced()
        assert await again.close(PATIENCE)

    run(main)


def test_what_cannot_be_opened_says_why_and_leaves_nothing(server: ApiServer, run: Run) -> None:
    """Its factory is shut down."""
    server.faults.add(HttpStatus(403), resource="configmaps")

    async def main() -> None:
        with pytest.raises(CacheSyncError, match="forbidden"):
            async with aio.open_informer(MAPS, client=server.client(), timeout=PATIENCE):
                pass

    try:
        run(main)
    finally:
        server.faults.clear()


@pytest.mark.parametrize("resource", ["cm", "v1/configmaps"])
def test_refused_credentials_are_an_error_at_once(
    server: ApiServer, run: Run, resource: str
) -> None:
    """As in a thread."""
    server.faults.add(HttpStatus(401))

    async def main() -> None:
        with pytest.raises(UnauthorizedError):
            await aio.open_informer(resource, client=server.client(), timeout=600)

    try:
        run(main)
    finally:
        server.faults.clear()


def test_no_configuration_is_an_error_at_the_first_await(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Nothing is read before that; what is plainly wrong is said at once."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    async def main() -> None:
        made = aio.DynamicSharedInformerFactory()
        with pytest.raises(ConfigError):
            await made.start()
        with pytest.raises(ConfigError):
            async with made:
                pass
        with pytest.raises(ValueError, match="resync"):
            aio.DynamicSharedInformerFactory(resync=0.5)
        assert await made.shutdown()

    run(main)


def test_a_factory_needs_no_block(server: ApiServer, run: Run) -> None:
    """Made in one cell of a notebook, used in the next, shut down in a third."""

    async def main() -> None:
        made = aio.DynamicSharedInformerFactory(server.client())
        assert made.status() == {}
        await made.start()
        await made.for_resource(MAPS)
        await made.sync(PATIENCE)
        assert not await made.wait(0)
        assert await made.shutdown(PATIENCE)
        assert await made.wait(0)
        with pytest.raises(StoppedError):
            await made.for_resource("v1/pods")

    run(main)


def test_a_factory_that_was_never_used_is_shut_down(run: Run) -> None:
    """And is not begun any more."""

    async def main() -> None:
        made = aio.DynamicSharedInformerFactory()
        assert await made.shutdown()
        with pytest.raises(StoppedError):
            await made.start()

    run(main)
    until(lambda: not threads())


def test_the_timeout_of_remove_includes_the_lookup_of_a_short_name(
    server: ApiServer, run: Run
) -> None:
    """A server that answers nothing ends it with an error in time."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            server.faults.add(BlackHole())
            with pytest.raises(UnreachableError):
                await soon(made.remove("cm", 0.1))
            server.faults.clear()

    try:
        run(main)
    finally:
        server.faults.clear()


def test_an_informer_of_your_own_is_adopted(server: ApiServer, run: Run) -> None:
    """``new_informer`` makes a plain one."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            own = await made.informer_for(
                MAPS, lambda client, resync: SharedIndexInformer(client, MAPS)
            )
            assert (await made.for_resource(MAPS)).informer is own.informer
            await made.sync(PATIENCE)

    run(main)


def test_a_cancelled_block_ends_promptly_and_leaves_nothing(server: ApiServer, run: Run) -> None:
    """Neither handlers that wait for something, nor streams, nor waits, nor threads."""
    write(server, "a")

    async def main() -> None:
        entered = anyio.Event()

        async def stuck(obj: Any) -> None:
            entered.set()
            await anyio.sleep_forever()

        async def work() -> None:
            async with aio.open_informer(MAPS, client=server.client()) as maps:
                maps.informer.add_event_handler(on_add=stuck)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read, maps)
                    tasks.start_soon(wait, maps)

        async def read(maps: aio.OpenInformer) -> None:
            async for _event in maps.events():
                pass

        async def wait(maps: aio.OpenInformer) -> None:
            await maps.informer.wait_for("create", name="never", namespace="default")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await soon(entered.wait())
            tasks.cancel_scope.cancel()
        await eventually(lambda: not threads(), "the threads have ended")

    run(main)


def test_a_sync_is_cancelled_while_the_server_says_nothing(server: ApiServer, run: Run) -> None:
    """The connection is ended, and the threads with it."""
    server.faults.add(BlackHole(), resource="configmaps")

    async def main() -> None:
        with anyio.move_on_after(0.2) as scope:
            async with aio.DynamicSharedInformerFactory(server.client()) as made:
                await made.for_resource(MAPS)
                await made.sync()
        assert scope.cancelled_caught
        await eventually(lambda: not threads(), "the threads have ended")

    try:
        run(main)
    finally:
        server.faults.clear()


def test_opening_is_cancelled_in_the_middle(server: ApiServer, run: Run) -> None:
    """The factory that it made is shut down."""
    server.faults.add(BlackHole(), resource="configmaps")

    async def main() -> None:
        with anyio.move_on_after(0.2) as scope:
            async with aio.open_informer(MAPS, client=server.client()):
                pass
        assert scope.cancelled_caught

    try:
        run(main)
    finally:
        server.faults.clear()


def test_asyncio_runs_twice(server: ApiServer) -> None:
    """A factory outlives the loop that it was made in."""
    write(server, "a")
    made = aio.DynamicSharedInformerFactory(server.client())

    async def first() -> None:
        await made.for_resource(MAPS, namespaces="default")
        await made.sync(PATIENCE)

    async def second() -> list[str]:
        maps = await made.for_resource(MAPS)
        async with maps.events(idle_timeout=0.05) as events:
            found = [event.key async for event in events]
        assert await made.shutdown(PATIENCE)
        return found

    asyncio.run(first())
    assert "default/a" in asyncio.run(second())


def test_several_loops_share_a_factory(server: ApiServer) -> None:
    """Each thread has a loop of another kind, and all wait for the same object."""
    made = aio.DynamicSharedInformerFactory(server.client())
    ready = threading.Barrier(4)
    found: list[str] = []

    async def main() -> None:
        maps = await made.for_resource(MAPS)
        await made.sync(PATIENCE)
        ready.wait(PATIENCE)
        obj = await maps.informer.wait_for(
            "create", name="late", namespace="default", timeout=PATIENCE
        )
        found.append(obj["metadata"]["name"])

    loops = [threading.Thread(target=run_on, args=(loop, main)) for loop in ("asyncio", "trio")]
    loops.append(threading.Thread(target=run_on, args=("asyncio", main)))
    for each in loops:
        each.start()
    ready.wait(PATIENCE)
    write(server, "late")
    for each in loops:
        each.join(PATIENCE)
    assert found == ["late"] * 3
    assert asyncio.run(made.shutdown(PATIENCE))


def test_outside_a_loop_the_error_says_what_is_needed(server: ApiServer) -> None:
    """It names both ways out."""
    with pytest.raises(RuntimeError, match="inside an event loop"):
        running()


def test_ctrl_c_ends_the_block(server: ApiServer) -> None:
    """Asyncio cancels the main task, and raises KeyboardInterrupt then."""

    async def main() -> None:
        async with aio.open_informer(MAPS, client=server.client()) as maps:
            signal.raise_signal(signal.SIGINT)
            await maps.informer.wait_for("create", name="never", namespace="default")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
