"""The work queue in an event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import anyio
import pytest

from dyninformer import Event, RateLimited, aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually, run_on, soon
from tests.config_maps import MAPS, PATIENCE, write

OURS = "metadata.name!=kube-root-ca.crt"
QUICK = RateLimited(first=0.001, longest=0.002, jitter=0)


@pytest.fixture(params=["asyncio", "uvloop"])
def run_asyncio(request: pytest.FixtureRequest) -> Run:
    """Runs a test's coroutine function on each loop of asyncio."""
    return lambda main: run_on(request.param, main)


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


def test_a_returned_delay_of_zero_or_less_means_done(run: Run) -> None:
    """As in controller-runtime, where zero is what a reconcile without a wish returns."""

    async def main() -> None:
        queue = aio.WorkQueue()
        turns: list[str] = []

        async def reconcile(key: str) -> float:
            turns.append(key)
            return -1 if key == "b" else 0

        queue.add("a")
        queue.add("b")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run, reconcile)
            await eventually(lambda: len(turns) >= 2)
            assert await queue.close(drain=True, timeout=PATIENCE)
        assert turns == ["a", "b"]

    run(main)


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
            item = await soon(queue.take())
            with item:
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


def test_a_cancelled_run_waits_until_the_work_has_cleaned_up(run: Run) -> None:
    """Then it can be run again, and the key that was cancelled gets another turn."""

    async def main() -> None:
        queue = aio.WorkQueue(workers=2)
        entered, gate, ended = anyio.Event(), anyio.Event(), anyio.Event()
        log: list[str] = []

        async def reconcile(key: str) -> None:
            if "cleaned up" in log:
                log.append(key)
                await queue.close()
                return
            entered.set()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    log.append("cleans up")
                    await gate.wait()
                    log.append("cleaned up")

        async def work() -> None:
            try:
                await queue.run(reconcile)
            finally:
                log.append("run has ended")
                ended.set()

        queue.add("a")
        scope = anyio.CancelScope()

        async def cancelled() -> None:
            with scope:
                await work()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancelled)
            await soon(entered.wait())
            scope.cancel()
            await eventually(lambda: "cleans up" in log)
            for _ in range(5):
                await anyio.sleep(0)
            assert not ended.is_set()
            gate.set()
            await soon(ended.wait())
            assert log == ["cleans up", "cleaned up", "run has ended"]
            await soon(queue.run(reconcile))
        assert log[3:] == ["a"]

    run(main)


def test_a_run_that_is_cancelled_twice_still_waits(run_asyncio: Run) -> None:
    """As a task group does; the work is cancelled once."""

    async def main() -> None:
        queue = aio.WorkQueue()
        entered, gate = asyncio.Event(), asyncio.Event()
        log: list[str] = []

        async def reconcile(key: str) -> None:
            entered.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                log.append("cleans up")
                await gate.wait()
                log.append("cleaned up")

        queue.add("a")
        task = asyncio.create_task(queue.run(reconcile))
        await soon(entered.wait())
        task.cancel()
        await eventually(lambda: log)
        task.cancel()
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await soon(task)
        assert log == ["cleans up", "cleaned up"]

    run_asyncio(main)


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_cancelled_run_ends_although_the_work_swallows_the_cancellation(
    run_asyncio: Run, ends: str
) -> None:
    """Its task takes no other key."""

    async def main() -> None:
        queue = aio.WorkQueue(retry=QUICK)
        entered = asyncio.Event()
        keys: list[str] = []

        async def reconcile(key: str) -> None:
            keys.append(key)
            entered.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                if ends == "raises":
                    raise ValueError("in the clean-up") from None

        queue.add("a")
        queue.add("b")
        task = asyncio.create_task(queue.run(reconcile))
        await soon(entered.wait())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(task)
        assert keys == ["a"]

    run_asyncio(main)


def test_a_run_whose_task_is_cancelled_by_other_code_raises(run_asyncio: Run) -> None:
    """All its tasks have cleaned up then, the keys are kept, and it can be run again."""

    async def main() -> None:
        queue = aio.WorkQueue(workers=2)
        begun: list[str] = []
        cleaned: list[str] = []

        async def reconcile(key: str) -> None:
            begun.append(key)
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                await asyncio.sleep(0)
                cleaned.append(key)

        queue.add("a")
        queue.add("b")
        task = asyncio.create_task(queue.run(reconcile))
        await eventually(lambda: len(begun) == 2)
        next(each for each in asyncio.all_tasks() if "dyninformer work" in each.get_name()).cancel()
        with pytest.raises(RuntimeError, match="was cancelled by other code"):
            await soon(task)
        assert sorted(cleaned) == ["a", "b"]
        assert not queue.closed
        again: list[str] = []
        task = asyncio.create_task(queue.run(again.append))
        await eventually(lambda: sorted(again) == ["a", "b"])
        assert await queue.close(timeout=PATIENCE)
        await soon(task)

    run_asyncio(main)


@pytest.mark.parametrize("when", ["before", "after"])
def test_close_drains_nothing_once_the_run_was_cancelled(run: Run, when: str) -> None:
    """No task is left that takes the keys, be the close called before the end of the run."""

    async def main() -> None:
        queue = aio.WorkQueue()
        entered = anyio.Event()
        closed: list[bool] = []

        async def stuck(key: str) -> None:
            entered.set()
            await anyio.sleep_forever()

        async def close() -> None:
            closed.append(await soon(queue.close(drain=True)))

        for key in "abc":
            queue.add(key)
        async with anyio.create_task_group() as closing:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(queue.run, stuck)
                await soon(entered.wait())
                if when == "before":
                    closing.start_soon(close)
                    await eventually(lambda: queue.closed)
                tasks.cancel_scope.cancel()
            if when == "after":
                await close()
        assert closed == [True]
        assert queue.depth == 0

    run(main)


def test_close_drains_a_key_that_was_added_while_it_was_at_work(run: Run) -> None:
    """Also if the other task finds nothing to do, and ends, at that moment."""

    async def main() -> None:
        for turns in range(15):
            queue = aio.WorkQueue(workers=2)
            begun: list[str] = []
            gate = anyio.Event()

            async def reconcile(
                key: str, begun: list[str] = begun, gate: anyio.Event = gate
            ) -> None:
                begun.append(key)
                await gate.wait()

            async with anyio.create_task_group() as tasks:
                queue.add("a")
                tasks.start_soon(queue.run, reconcile)
                await eventually(begun.copy)
                queue.add("a")
                tasks.start_soon(partial(queue.close, drain=True))
                for _ in range(turns):
                    await anyio.sleep(0)
                gate.set()
            assert begun == ["a", "a"]

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
