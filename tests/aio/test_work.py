"""The work queue in an event loop."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest

from dyninformer import Event, RateLimited, aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually, soon
from tests.config_maps import MAPS, PATIENCE, write

OURS = "metadata.name!=kube-root-ca.crt"
QUICK = RateLimited(first=0.001, longest=0.002, jitter=0)


def opened(server: ApiServer) -> Any:
    """The config maps of the namespace "default"."""
    return aio.open_informer(MAPS, client=server.client(), namespace="default", field_selector=OURS)


def test_each_key_is_worked_on_once_at_a_time(server: ApiServer, run: Run) -> None:
    """On several tasks; a change while it is at work brings it again, once."""
    for name in "abc":
        write(server, name)

    async def main() -> None:
        at_work: Counter[str] = Counter()
        turns: Counter[str] = Counter()
        gate = anyio.Event()

        async def reconcile(key: str) -> None:
            at_work[key] += 1
            assert at_work[key] == 1
            if key == "default/a" and not turns[key]:
                await gate.wait()
            await anyio.sleep(0.001)
            at_work[key] -= 1
            turns[key] += 1

        async with opened(server) as maps, anyio.create_task_group() as tasks:
            queue = maps.informer.work_queue(workers=4)
            tasks.start_soon(queue.run, reconcile)
            await eventually(lambda: turns["default/b"] and turns["default/c"])
            assert at_work["default/a"] == 1
            for x in "123":
                last = server.patch("configmaps/a", {"data": {"x": x}}, "default")
            await maps.informer.wait_for_version(last, PATIENCE)
            await eventually(lambda: queue.depth)
            gate.set()
            await eventually(lambda: turns["default/a"] == 2)
            assert await queue.close(timeout=PATIENCE)
            assert queue.closed

    run(main)


def test_what_fails_is_tried_again_and_what_is_due_comes_again(
    server: ApiServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Raising is a failure, a number of seconds a date."""
    write(server, "a")

    async def main() -> None:
        turns = 0
        done = anyio.Event()

        async def reconcile(key: str) -> float | None:
            nonlocal turns
            turns += 1
            await anyio.sleep(0)
            if turns < 3:
                raise ValueError(f"try {turns}")
            if turns == 3:
                return 0.001
            done.set()
            return None

        async with opened(server) as maps, anyio.create_task_group() as tasks:
            queue = maps.informer.work_queue(retry=QUICK)
            tasks.start_soon(queue.run, reconcile)
            await soon(done.wait())
            assert queue.retries("default/a") == 0
            await queue.close(timeout=PATIENCE)

    run(main)
    assert "try 2" in caplog.text


def test_a_loop_of_ones_own_takes_items(server: ApiServer, run: Run) -> None:
    """What its block raises is tried again; a task that has an item closes without a wait."""
    write(server, "a")
    write(server, "b")

    async def main() -> None:
        found: list[str] = []
        async with opened(server) as maps:
            queue = maps.informer.work_queue(retry=QUICK)
            async for item in queue:
                with item:
                    await anyio.sleep(0)
                    found.append(f"{item.key} {item.retries}")
                    if len(found) == 2:
                        raise ValueError("once")
                    if len(found) == 3:
                        assert not await queue.close()
            assert sorted(found[:2]) == ["default/a 0", "default/b 0"]
            assert found[2] == f"{found[1].split()[0]} 1"
            assert await queue.take() is None

    run(main)


@pytest.mark.parametrize("by", ["run", "take"])
def test_a_queue_is_closed_in_a_child_task_of_the_work(run: Run, by: str) -> None:
    """The close does not wait for the key whose work has started the task, as by gather."""

    async def main() -> None:
        found: list[bool] = []
        queue, other = aio.WorkQueue(), aio.WorkQueue()
        queue.add("a")

        async def close(each: aio.WorkQueue) -> None:
            found.append(await each.close())

        async def reconcile(key: str) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(close, queue)
                tasks.start_soon(close, other)

        if by == "run":
            await soon(queue.run(reconcile))
        else:
            with await queue.take() as item:
                await soon(reconcile(item.key))
        assert sorted(found) == [False, True]
        assert await soon(queue.close())

    run(main)


def test_a_function_maps_events_of_several_informers_to_keys(server: ApiServer, run: Run) -> None:
    """It runs in the loop."""
    write(server, "a", of="x")

    def keys(event: Event) -> list[str]:
        return [f"data/{value}" for value in (event.object.get("data") or {}).values()]

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(server.client(), namespace="default") as made:
            maps = await made.for_resource(MAPS, field_selector=OURS)
            secrets = await made.for_resource("v1/secrets")
            queue = aio.WorkQueue({maps: keys, secrets: None}, name="both")
            assert await queue.take(0.01) is None  # not synced yet
            await made.sync(PATIENCE)
            item = await soon(queue.take())
            assert item.key == "data/x"
            assert queue.name == "both"
            item.done()
            with pytest.raises(TypeError, match="no informer"):
                queue.watch(maps.lister)  # type: ignore[arg-type]
            await queue.close()

    run(main)


def test_a_cancelled_take_loses_no_key(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever the cancellation finds it; the key is another's then, and nothing is logged."""

    async def main() -> None:
        async with aio.WorkQueue() as queue:
            found: list[str] = []

            async def take() -> None:
                item = await queue.take()
                assert item is not None
                found.append(item.key)
                item.done()

            for number in range(200):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(take)
                    for _ in range(number % 4):
                        await anyio.sleep(0)
                    queue.add(f"k{number}")
                    for _ in range(number % 3):
                        await anyio.sleep(0)
                    tasks.cancel_scope.cancel()
                while (item := await queue.take(0)) is not None:
                    found.append(item.key)
                    item.done()
            assert found == [f"k{number}" for number in range(200)]

    run(main)
    assert "lost" not in caplog.text


def test_a_cancelled_run_gives_its_keys_back(server: ApiServer, run: Run) -> None:
    """And can be begun again."""

    async def main() -> None:
        entered = anyio.Event()

        async def stuck(key: str) -> None:
            entered.set()
            await anyio.sleep_forever()

        async with aio.WorkQueue(workers=2) as queue:
            queue.add("a")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(queue.run, stuck)
                await soon(entered.wait())
                with pytest.raises(RuntimeError, match="runs already"):
                    await queue.run(stuck)
                tasks.cancel_scope.cancel()
            item = await soon(queue.take())
            assert item.key == "a"
            item.done()
            done = anyio.Event()
            async with anyio.create_task_group() as tasks:
                queue.add("b")
                tasks.start_soon(queue.run, lambda key: done.set())
                await soon(done.wait())
                await queue.close()

    run(main)


@pytest.mark.parametrize("drain", [True, False])
def test_close_drains_or_drops(run: Run, drain: bool) -> None:
    """What is due later is dropped in either case."""

    async def main() -> None:
        found: list[str] = []
        gate = anyio.Event()

        async def reconcile(key: str) -> None:
            await gate.wait()
            found.append(key)

        queue = aio.WorkQueue()
        for key in "abc":
            queue.add(key)
        queue.add_after("later", 100)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run, reconcile)
            await eventually(lambda: queue.depth == 2)

            async def close() -> None:
                assert await queue.close(drain=drain, timeout=PATIENCE)

            tasks.start_soon(close)
            await eventually(lambda: queue.closed)
            gate.set()
        assert found == (["a", "b", "c"] if drain else ["a"])

    run(main)


def test_a_run_ends_when_its_informers_have_stopped(server: ApiServer, run: Run) -> None:
    """Nothing can come any more."""

    async def main() -> None:
        async with opened(server) as maps, anyio.create_task_group() as tasks:
            queue = maps.informer.work_queue(workers=3)

            async def work() -> None:
                await queue.run(lambda key: None)

            tasks.start_soon(work)
            await anyio.sleep(0.01)
            await maps.informer.stop(PATIENCE)

    run(main)
