"""An informer in an event loop: waits, indexes, life."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

import anyio
import pytest

from dyninformer import (
    ObjectNotFoundError,
    StaleCacheError,
    StoppedError,
    WaitTimeoutError,
    aio,
)
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus
from tests.aio.conftest import Run, eventually, soon, threads
from tests.config_maps import MAPS, PATIENCE, write


def opened(server: ApiServer, **options: Any) -> Any:
    """The config maps of the namespace "default"."""
    return aio.open_informer(MAPS, client=server.client(), namespace="default", **options)


def waits(maps: aio.OpenInformer) -> int:
    """The number of keys that are watched, and of sleepers at the informer's bell."""
    core = maps.informer._core
    return len(core._dispatcher._watched) + len(core._reflectors._changed._sleepers)


def test_a_registration_of_another_informer_is_refused(server: ApiServer, run: Run) -> None:
    """It stays where it is, and can be removed there, also twice."""

    async def main() -> None:
        async with (
            opened(server) as maps,
            aio.open_informer("ns", client=server.client()) as spaces,
        ):
            registration = maps.informer.add_event_handler(on_event=lambda event: None)
            with pytest.raises(ValueError, match=r"was not added to this informer of namespaces"):
                spaces.informer.remove_event_handler(registration)
            assert "removed" not in repr(registration)
            maps.informer.remove_event_handler(registration)
            maps.informer.remove_event_handler(registration)
            assert "removed" in repr(registration)

    run(main)


def test_a_wait_ends_with_the_change_that_meets_its_condition(server: ApiServer, run: Run) -> None:
    """The object need not be there when the wait begins; what is there is waited for no longer."""

    async def main() -> None:
        async with opened(server) as maps, anyio.create_task_group() as tasks:
            found: list[Any] = []

            async def wait(condition: Any) -> None:
                found.append(
                    await maps.informer.wait_for(
                        condition, name="a", namespace="default", timeout=PATIENCE
                    )
                )

            tasks.start_soon(wait, "jsonpath={.data.x}=2")
            tasks.start_soon(wait, lambda obj: obj["data"]["x"] == "2")
            await eventually(lambda: waits(maps))
            write(server, "b", x="2")
            write(server, "a", x="1")
            changed = server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
            await eventually(lambda: len(found) == 2)
            assert found == [changed, changed]
            await wait("create")
            assert found[2] == changed
            gone = anyio.Event()

            async def deleted() -> None:
                last = await maps.informer.wait_for("delete", name="a", namespace="default")
                assert last == changed
                gone.set()

            tasks.start_soon(deleted)
            await anyio.sleep(0.01)
            server.delete("configmaps/a", "default")
            await soon(gone.wait())
            assert waits(maps) == 0

    run(main)


def test_a_wait_that_is_not_met_holds_the_last_state(server: ApiServer, run: Run) -> None:
    """And leaves nothing."""
    made = write(server, "a", x="1")

    async def main() -> None:
        async with opened(server) as maps:
            with pytest.raises(WaitTimeoutError, match='is "1"') as caught:
                await maps.informer.wait_for(
                    "jsonpath={.data.x}=2", name="a", namespace="default", timeout=0.05
                )
            assert caught.value.last == made
            with pytest.raises(ValueError, match="nothing to wait for"):
                await maps.informer.wait_for("whatever", name="a", namespace="default")
            assert waits(maps) == 0

    run(main)


def test_a_condition_that_raises_ends_its_wait(server: ApiServer, run: Run) -> None:
    """At the first look, and at a later one; the error is the waiting task's."""

    def spelled(obj: dict[str, Any]) -> bool:
        return bool(obj["data"]["y"])

    async def main() -> None:
        async with opened(server) as maps, anyio.create_task_group() as tasks:
            ended = anyio.Event()

            async def wait() -> None:
                with pytest.raises(KeyError, match="y"):
                    await maps.informer.wait_for(spelled, name="a", namespace="default")
                ended.set()

            tasks.start_soon(wait)
            await eventually(lambda: waits(maps))
            write(server, "a", x="1")
            await soon(ended.wait())
            await maps.informer.wait_for("create", name="a", namespace="default")
            await wait()
            assert waits(maps) == 0

    run(main)


def test_a_write_of_your_own_is_waited_for(server: ApiServer, run: Run) -> None:
    """A version that never comes ends at the timeout."""

    async def main() -> None:
        async with opened(server) as maps:
            made = write(server, "a", x="1")
            await maps.informer.wait_for_version(made, PATIENCE)
            assert maps.lister.get("a", "default")["data"] == {"x": "1"}
            with pytest.raises(WaitTimeoutError, match="has not seen version"):
                await maps.informer.wait_for_version("999999", 0.05)
            with pytest.raises(ValueError, match=r"metadata\.resourceVersion"):
                await maps.informer.wait_for_version({})
            assert waits(maps) == 0

    run(main)


def test_waits_end_when_the_informer_stops(server: ApiServer, run: Run) -> None:
    """With an error that says so."""

    async def main() -> None:
        async with opened(server) as maps, anyio.create_task_group() as tasks:
            ended = 0

            async def wait(what: Any) -> None:
                nonlocal ended
                with pytest.raises(StoppedError):
                    await what()
                ended += 1

            tasks.start_soon(
                wait, lambda: maps.informer.wait_for("create", name="n", namespace="default")
            )
            tasks.start_soon(wait, lambda: maps.informer.wait_for_version("999999"))
            await eventually(lambda: waits(maps) == 2)
            assert await maps.informer.stop(PATIENCE)
            await eventually(lambda: ended == 2)
            await wait(lambda: maps.informer.wait_for("create", name="n", namespace="default"))

    run(main)


def test_a_cancelled_wait_leaves_nothing(server: ApiServer, run: Run) -> None:
    """Of a thousand waits, half of which are for one object."""

    async def main() -> None:
        async with opened(server) as maps:
            async with anyio.create_task_group() as tasks:
                for number in range(500):
                    for name in ("same", f"n{number}"):

                        async def wait(name: str = name) -> None:
                            await maps.informer.wait_for("create", name=name, namespace="default")

                        tasks.start_soon(wait)
                await eventually(lambda: waits(maps) == 501)
                tasks.cancel_scope.cancel()
            assert waits(maps) == 0
            write(server, "same")

    run(main)


def test_a_thousand_waits_for_one_object_end_with_it(server: ApiServer, run: Run) -> None:
    """On no more threads than one of them."""

    async def main() -> None:
        async with opened(server) as maps:
            before = threading.active_count()
            async with anyio.create_task_group() as tasks:
                for _ in range(1000):

                    async def wait() -> None:
                        await maps.informer.wait_for(
                            "create", name="a", namespace="default", timeout=PATIENCE
                        )

                    tasks.start_soon(wait)
                await eventually(lambda: waits(maps))
                # A second after the start, a thread opens the connection that is kept, and ends.
                await eventually(lambda: threading.active_count() <= before)
                write(server, "a")

    run(main)


def test_s35_a_cache_is_waited_for_to_be_fresh(server: ApiServer, run: Run) -> None:
    """And required to be, of all; StaleCacheError says why it is not."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as factory:
            maps = await factory.for_resource(MAPS)
            with pytest.raises(StaleCacheError, match="it is not started"):
                await factory.require_fresh(5, timeout=0)
            await factory.sync(PATIENCE)
            write(server, "late", x="1")
            await maps.informer.wait_fresh(timeout=PATIENCE)
            assert "default/late" in maps.lister
            assert maps.informer.status().live
            await factory.require_fresh(5)
            with pytest.raises(ValueError, match="max_age is -1"):
                await maps.informer.wait_fresh(-1)

    run(main)


def test_wait_synced_is_false_at_its_timeout_and_at_the_end(server: ApiServer, run: Run) -> None:
    """A list that is refused never syncs."""
    server.faults.add(HttpStatus(403), resource="configmaps")

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            assert not maps.informer.is_started()
            await maps.informer.start()
            assert maps.informer.is_started()
            assert not await maps.informer.wait_synced(0.02)
            assert not (await made.wait_for_cache_sync(0.02))
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    assert not await maps.informer.wait_synced()

                tasks.start_soon(wait)
                await anyio.sleep(0.01)
                await maps.informer.stop(PATIENCE)
            assert not maps.informer.has_synced()

    try:
        run(main)
    finally:
        server.faults.clear()


def test_watch_errors_are_told_in_the_loop(
    server: ApiServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that raises is logged."""
    server.faults.add(HttpStatus(500), resource="configmaps", times=1)

    async def main() -> None:
        told: list[Exception] = []

        def tell(error: Exception) -> None:
            told.append(error)
            raise ValueError("in the watch error handler")

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            maps.informer.set_watch_error_handler(tell)
            await made.sync(PATIENCE)
            await eventually(lambda: told)
            with pytest.raises(RuntimeError, match="call it before"):
                maps.informer.set_transform(dict)

    try:
        with caplog.at_level(logging.ERROR):
            run(main)
    finally:
        server.faults.clear()
    assert "in the watch error handler" in caplog.text


def test_indexes_are_added_while_running(server: ApiServer, run: Run) -> None:
    """Reads of them are plain calls."""
    write(server, "a", x="1")

    async def main() -> None:
        async with opened(server) as maps:
            await maps.informer.add_indexers({"x": "{.data.x}"})
            assert maps.informer.indexer.index_keys("x", "1") == ["default/a"]
            assert maps.informer.store.get_by_key("default/a") is not None
            assert maps.informer.last_sync_resource_version()
            assert maps.informer.status().synced

    run(main)


def test_run_ends_with_the_informer_or_ends_it(server: ApiServer, run: Run) -> None:
    """Cancelled, it stops it."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(maps.informer.run)
                assert await maps.informer.wait_synced(PATIENCE)
                tasks.cancel_scope.cancel()
            assert maps.informer.is_stopped()
            spaces = await made.for_resource("v1/namespaces")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(spaces.informer.run)
                assert await spaces.informer.wait_synced(PATIENCE)
                await spaces.informer.stop(PATIENCE)

    run(main)


def test_what_is_written_is_in_the_cache_when_that_was_awaited(server: ApiServer, run: Run) -> None:
    """By the calls that threads have; refusals are theirs, too."""
    made = {"apiVersion": "v1", "kind": "ConfigMap"}
    named = {**made, "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}}

    async def main() -> None:
        async with opened(server) as maps:
            applied = await maps.informer.apply(named, wait=True)
            assert maps.lister.get("a", "default") == applied
            patched = await maps.informer.patch("a", "default", {"data": {"x": "2"}}, wait=True)
            assert maps.lister.get("a", "default") == patched
            assert patched["data"] == {"x": "2"}
            status = await maps.informer.delete("a", "default", wait=True)
            assert status["kind"] == "Status"
            assert "default/a" not in maps.lister
            with pytest.raises(ObjectNotFoundError):
                await maps.informer.patch("a", "default", {})
            with pytest.raises(ValueError, match="name is empty"):
                await maps.informer.delete("")

    run(main)


def test_a_swapped_name_and_namespace_get_a_hint(server: ApiServer, run: Run) -> None:
    """The lister is the one that threads have."""
    write(server, "a", x="1")

    async def main() -> None:
        async with opened(server) as maps:
            with pytest.raises(ObjectNotFoundError, match=r"as in get\('a', 'default'\)"):
                maps.lister.get("default", "a")

    run(main)


def test_a_wait_for_a_write_costs_no_thread(server: ApiServer, run: Run) -> None:
    """The request does, while it is under way."""

    async def main() -> None:
        async with opened(server, label_selector="x=y") as maps, anyio.create_task_group() as tasks:
            write(server, "a")
            metadata = {"finalizers": ["ex.io/keep"], "labels": {"x": "y"}}
            await maps.informer.patch("a", "default", {"metadata": metadata}, wait=True)
            tasks.start_soon(partial(maps.informer.delete, "a", "default", wait=True))
            await eventually(lambda: waits(maps))
            await eventually(lambda: "dyninformer aio" not in threads())
            server.patch("configmaps/a", {"metadata": {"finalizers": None}}, "default")
        assert maps.lister.list() == []

    run(main)
