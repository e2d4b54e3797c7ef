"""Blocking calls: each has a thread, so that no awaited call waits for an unrelated one."""

from __future__ import annotations

import threading
from typing import Any, Final

import anyio

from dyninformer import GroupVersionResource, aio
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole
from tests.aio.conftest import Run, eventually, soon, threads
from tests.config_maps import MAPS, PATIENCE, write

SPACES = GroupVersionResource("", "v1", "namespaces")
KINDS: Final = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Pod": "pods",
    "Endpoints": "endpoints",
    "ServiceAccount": "serviceaccounts",
}


async def one_object_each(
    server: ApiServer, made: aio.DynamicSharedInformerFactory
) -> list[aio.GenericInformer]:
    """Informers of several resources, each with one object."""
    for kind in KINDS:
        server.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "mine"}}, "default")
    return [
        await made.for_resource(f"v1/{resource}", field_selector="metadata.name=mine")
        for resource in KINDS.values()
    ]


def test_no_call_waits_for_a_slow_one(server: ApiServer, run: Run) -> None:
    """While many calls of a factory block, each of its other methods returns."""
    opened = threading.Event()

    async def main() -> None:
        blocked: list[str] = []

        def blocks(obj: dict[str, Any]) -> list[str]:
            blocked.append(obj["kind"])
            assert opened.wait(PATIENCE)
            return []

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            slow = await one_object_each(server, made)
            spaces = await made.for_resource(SPACES)
            await made.sync(PATIENCE)
            async with anyio.create_task_group() as tasks:
                for each in slow:
                    tasks.start_soon(each.informer.add_indexers, {"blocks": blocks})
                await eventually(lambda: len(blocked) == len(KINDS))
                await soon(made.start())
                assert await soon(made.sync(PATIENCE))
                assert await soon(made.wait_for_cache_sync(PATIENCE))
                await soon(made.require_fresh(60, PATIENCE))
                assert not await soon(made.wait(0.01))
                assert (await soon(made.for_resource("v1/services"))).gvr.resource == "services"
                await soon(spaces.informer.add_indexers({"name": "{.metadata.name}"}))
                assert not (await soon(spaces.informer.audit(PATIENCE))).differs
                patch = {"metadata": {"labels": {"a": "b"}}}
                await soon(spaces.informer.patch("default", None, patch, wait=True))
                assert await soon(spaces.informer.stop(PATIENCE))
                assert await soon(made.remove(SPACES, PATIENCE))
                assert await soon(made.shutdown(PATIENCE))
                opened.set()

    try:
        run(main)
    finally:
        opened.set()


def test_informers_stop_while_their_handlers_write(server: ApiServer, run: Run) -> None:
    """Each stop waits for a handler, whose write needs a thread as well."""

    async def main() -> None:
        begun: list[str] = []
        written: list[str] = []
        stopped: list[bool] = []
        gate = anyio.Event()
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            spaces = await made.for_resource(SPACES)

            async def handler(obj: dict[str, Any]) -> None:
                begun.append(obj["kind"])
                await gate.wait()
                labels = {"seen": obj["kind"]}
                await spaces.informer.patch("default", None, {"metadata": {"labels": labels}})
                written.append(obj["kind"])

            async def stop(found: aio.GenericInformer) -> None:
                stopped.append(await found.informer.stop(PATIENCE))

            informers = await one_object_each(server, made)
            for each in informers:
                each.informer.add_event_handler(on_add=handler)
            await made.sync(PATIENCE)
            await eventually(lambda: sorted(begun) == sorted(KINDS))
            async with anyio.create_task_group() as tasks:
                for each in informers:
                    tasks.start_soon(stop, each)
                await eventually(lambda: all(each.informer.is_stopped() for each in informers))
                gate.set()
            assert stopped == [True] * len(KINDS)
            assert sorted(written) == sorted(KINDS)

    run(main)


def test_cancelled_stops_keep_no_other_call_waiting(server: ApiServer, run: Run) -> None:
    """Their threads end once the handler that they waited for has returned."""
    write(server, "a")

    async def main() -> None:
        begun: list[str] = []
        gate = anyio.Event()

        async def stuck(obj: dict[str, Any]) -> None:
            begun.append(obj["kind"])
            await gate.wait()

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            informers = await one_object_each(server, made)
            for each in informers:
                each.informer.add_event_handler(on_add=stuck)
            await made.sync(PATIENCE)
            await eventually(lambda: sorted(begun) == sorted(KINDS))
            async with anyio.create_task_group() as tasks:
                for each in informers:
                    tasks.start_soon(each.informer.stop)
                await eventually(lambda: all(each.informer.is_stopped() for each in informers))
                tasks.cancel_scope.cancel()
            assert (await soon(made.for_resource("v1/services"))).gvr.resource == "services"
            gate.set()
            await eventually(lambda: "dyninformer aio" not in threads(), "the threads have ended")
            assert await soon(made.shutdown(PATIENCE))

    run(main)


def test_cancelled_audits_keep_no_other_call_waiting(server: ApiServer, run: Run) -> None:
    """Their threads end with the requests that they made."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            await made.sync(PATIENCE)
            silence = server.faults.add(BlackHole(), verb="list", resource="configmaps")
            async with anyio.create_task_group() as tasks:
                for _ in KINDS:
                    tasks.start_soon(maps.informer.audit)
                await eventually(lambda: silence.hits == len(KINDS))
                tasks.cancel_scope.cancel()
            assert (await soon(made.for_resource("v1/services"))).gvr.resource == "services"
            assert await soon(made.shutdown(PATIENCE))
            await eventually(lambda: not threads(), "the threads have ended")

    try:
        run(main)
    finally:
        server.faults.clear()
