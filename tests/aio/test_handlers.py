"""Handlers that an event loop calls."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from dyninformer import Event, StoppedError, aio
from dyninformer.testing import ApiServer
from tests.aio.conftest import Run, eventually, soon
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until

OURS = "metadata.name!=kube-root-ca.crt"


def opened(server: ApiServer) -> Any:
    """The config maps of the namespace "default"."""
    return aio.open_informer(MAPS, client=server.client(), namespace="default", field_selector=OURS)


def test_a_coroutine_hears_its_events_in_order_one_at_a_time(server: ApiServer, run: Run) -> None:
    """Each is awaited before the next begins (S8)."""
    for name in "abc":
        write(server, name)

    async def main() -> None:
        heard: list[str] = []
        running = 0

        async def note(event: Event) -> None:
            nonlocal running
            running += 1
            assert running == 1
            await anyio.sleep(0.001)
            heard.append(f"{event.type} {event.name}")
            running -= 1

        async with opened(server) as maps:
            handler = maps.informer.add_event_handler(on_event=note)
            assert await handler.wait_for_sync(PATIENCE)
            assert handler.has_synced()
            assert sorted(heard) == ["ADDED a", "ADDED b", "ADDED c"]
            server.patch("configmaps/a", {"data": {"x": "1"}}, "default")
            server.delete("configmaps/b", "default")
            await eventually(lambda: len(heard) == 5)
            assert heard[3:] == ["UPDATED a", "DELETED b"]

    run(main)


def test_a_handler_has_all_kinds_of_callbacks(server: ApiServer, run: Run) -> None:
    """Coroutine functions and plain ones, methods and what returns a coroutine."""

    class Both:
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def on_add(self, obj: dict[str, Any]) -> None:
            await anyio.sleep(0)
            self.heard.append(f"added {obj['metadata']['name']}")

        def on_update(self, old: dict[str, Any], new: dict[str, Any]) -> None:
            self.heard.append(f"{old.get('data')} to {new['data']}")

    async def main() -> None:
        both = Both()
        gone: list[str] = []

        async def on_delete(obj: dict[str, Any]) -> None:
            gone.append(obj["metadata"]["name"])

        async with opened(server) as maps:
            maps.informer.add_event_handler(both)
            maps.informer.add_event_handler(on_delete=partial(on_delete))
            write(server, "a")
            server.patch("configmaps/a", {"data": {"x": "1"}}, "default")
            server.delete("configmaps/a", "default")
            await eventually(lambda: gone)
            await eventually(lambda: len(both.heard) == 2)
            assert both.heard == ["added a", "{} to {'x': '1'}"] or both.heard == [
                "added a",
                "None to {'x': '1'}",
            ]

    run(main)


def test_handlers_do_not_wait_for_each_other(server: ApiServer, run: Run) -> None:
    """One that waits for ever holds up itself alone; what it has not heard is its backlog."""
    for name in "abc":
        write(server, name)

    async def main() -> None:
        heard: list[str] = []
        gate = anyio.Event()

        async def stuck(obj: dict[str, Any]) -> None:
            await gate.wait()

        async with opened(server) as maps:
            slow = maps.informer.add_event_handler(on_add=stuck)
            quick = maps.informer.add_event_handler(
                on_add=lambda obj: heard.append(obj["metadata"]["name"])
            )
            assert await quick.wait_for_sync(PATIENCE)
            assert sorted(heard) == ["a", "b", "c"]
            assert slow.backlog == 3
            assert not slow.has_synced()
            gate.set()
            assert await slow.wait_for_sync(PATIENCE)
            assert slow.backlog == 0

    run(main)


def test_filter_when_changed_and_coalesce_hold_for_coroutines(server: ApiServer, run: Run) -> None:
    """An update that enters is an addition."""
    write(server, "a", x="1")

    async def main() -> None:
        heard: list[str] = []

        async def note(event: Event) -> None:
            heard.append(f"{event.type} {event.object['data']}")

        async with opened(server) as maps:
            maps.informer.add_event_handler(
                on_event=note, filter=lambda obj: obj["data"]["x"] != "1"
            )
            changed: list[str] = []
            handler = maps.informer.add_event_handler(
                on_update=lambda old, new: changed.append(new["data"]["x"]),
                when_changed="{.data.x}",
                coalesce=True,
            )
            assert await handler.wait_for_sync(PATIENCE)
            server.patch("configmaps/a", {"data": {"y": "1"}}, "default")
            server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
            await eventually(lambda: heard and changed)
            assert heard == ["ADDED {'x': '2', 'y': '1'}"]
            assert changed == ["2"]

    run(main)


def test_s20_what_waits_for_a_coroutine_has_a_bound(server: ApiServer, run: Run) -> None:
    """Beyond it, it is told the newest state; so is a stream."""
    write(server, "a", x="0")

    async def main() -> None:
        heard: list[str] = []
        gate = anyio.Event()

        async def note(event: Event) -> None:
            heard.append(event.object["data"]["x"])
            await gate.wait()

        async with opened(server) as maps:
            handler = maps.informer.add_event_handler(on_event=note, max_backlog=2)
            events = maps.events(max_backlog=2)
            assert (await anext(events)).initial
            await eventually(lambda: heard)
            for number in range(1, 9):
                server.patch("configmaps/a", {"data": {"x": str(number)}}, "default")
            await eventually(lambda: maps.lister.get("default/a")["data"]["x"] == "8")
            gate.set()
            await eventually(lambda: heard[-1] == "8" and not handler.backlog)
            assert heard == ["0", "8"]
            assert (handler.overflows, events.overflows, maps.informer.status().backlog) == (
                1,
                1,
                2,
            )
            changed = await anext(events)
            assert [change.new for change in changed.changes()] == ["8"]

    run(main)


@pytest.mark.parametrize("error", [ValueError, BaseException, asyncio.CancelledError])
def test_a_handler_that_raises_hears_the_next_event(
    server: ApiServer, run: Run, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    """It is logged with the key (S10)."""
    write(server, "a")
    write(server, "b")

    async def main() -> None:
        heard: list[str] = []

        async def fail(obj: dict[str, Any]) -> None:
            heard.append(obj["metadata"]["name"])
            await anyio.sleep(0)
            raise error

        async with opened(server) as maps:
            handler = maps.informer.add_event_handler(on_add=fail, name="failing")
            assert await handler.wait_for_sync(PATIENCE)
            assert sorted(heard) == ["a", "b"]

    run(main)
    assert "handler failing of configmaps.v1 failed on default/a" in caplog.text
    assert "handler failing of configmaps.v1 failed on default/b" in caplog.text


def test_no_callback_begins_after_remove(server: ApiServer, run: Run) -> None:
    """The one that runs goes on; its task ends then (S11)."""
    for name in "abc":
        write(server, name)

    async def main() -> None:
        entered, gate, left = anyio.Event(), anyio.Event(), anyio.Event()
        heard = 0

        async def note(event: Event) -> None:
            nonlocal heard
            heard += 1
            entered.set()
            await gate.wait()
            left.set()

        async with opened(server) as maps:
            handler = maps.informer.add_event_handler(on_event=note)
            await soon(entered.wait())
            handler.remove()
            handler.remove()
            gate.set()
            await soon(left.wait())
            write(server, "d")
            await maps.informer.wait_for("create", name="d", namespace="default", timeout=PATIENCE)
            assert heard == 1
            assert not await handler.wait_for_sync(PATIENCE)

    run(main)


def test_a_handler_removes_itself_and_adds_another(server: ApiServer, run: Run) -> None:
    """From inside a callback."""
    write(server, "a")
    write(server, "b")

    async def main() -> None:
        first: list[str] = []
        second: list[str] = []

        async with opened(server) as maps:

            async def once(obj: dict[str, Any]) -> None:
                handler.remove()
                first.append(obj["metadata"]["name"])
                maps.informer.add_event_handler(
                    on_add=lambda obj: second.append(obj["metadata"]["name"])
                )

            handler = maps.informer.add_event_handler(on_add=once)
            await eventually(lambda: len(second) == 2)
            assert len(first) == 1

    run(main)


def test_the_same_name_replaces_a_handler(server: ApiServer, run: Run) -> None:
    """A notebook cell that is run twice."""

    async def main() -> None:
        heard: list[str] = []
        async with opened(server) as maps:
            for time in ("first", "second"):
                maps.informer.add_event_handler(
                    on_add=lambda obj, time=time: heard.append(time), name="mine"
                )
            write(server, "a")
            await eventually(lambda: heard)
            assert heard == ["second"]

    run(main)


def test_a_handler_waits_for_nothing_of_its_own(server: ApiServer, run: Run) -> None:
    """Neither for its own initial events, nor for the end of its own factory (S11)."""
    write(server, "a")

    async def main() -> None:
        found: list[object] = []
        synced = anyio.Event()
        async with aio.DynamicSharedInformerFactory(server.client(), namespace="default") as made:
            maps = await made.for_resource(MAPS, field_selector=OURS)

            async def note(obj: dict[str, Any]) -> None:
                found.append(await handler.wait_for_sync())
                await synced.wait()
                found.append(await made.shutdown())
                found.append("after")

            handler = maps.informer.add_event_handler(on_add=note)
            await made.sync(PATIENCE)
            synced.set()
            await eventually(lambda: "after" in found)
            assert found[0] is False
            assert await made.wait(PATIENCE)

    run(main)


@pytest.mark.parametrize("end", ["stop", "remove", "shutdown"])
def test_a_handler_does_not_wait_for_itself_in_a_child_task(
    server: ApiServer, run: Run, end: str
) -> None:
    """A task that its call has started, as by gather, is recognised as a part of the call."""
    write(server, "a")

    async def main() -> None:
        found: list[object] = []
        async with aio.DynamicSharedInformerFactory(server.client(), namespace="default") as made:
            maps = await made.for_resource(MAPS, field_selector=OURS)

            async def stop() -> None:
                if end == "stop":
                    found.append(await maps.informer.stop())
                elif end == "remove":
                    found.append(await made.remove(MAPS, PATIENCE))
                else:
                    found.append(await made.shutdown())

            async def note(obj: dict[str, Any]) -> None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(stop)
                    tasks.start_soon(stop)
                found.append("after")

            maps.informer.add_event_handler(on_add=note)
            await made.start()
            await eventually(lambda: "after" in found)
            assert await made.shutdown(PATIENCE)

    run(main)


def test_a_handler_does_not_wait_for_itself_in_wait_for_and_gather(server: ApiServer) -> None:
    """Both run what they are given in tasks, in some versions of Python."""
    write(server, "a")

    async def main() -> None:
        found: list[object] = []
        async with opened(server) as maps:

            async def note(obj: dict[str, Any]) -> None:
                found.append(await asyncio.wait_for(handler.wait_for_sync(), PATIENCE))
                await asyncio.gather(maps.informer.stop(), maps.informer.stop())
                found.append(await asyncio.wait_for(maps.close(None), PATIENCE))

            handler = maps.informer.add_event_handler(on_add=note)
            await eventually(lambda: len(found) == 2)
        assert found == [False, False]

    asyncio.run(main())


def test_a_task_that_outlives_the_call_that_started_it_waits(server: ApiServer) -> None:
    """It waits for the call that runs when it stops the informer."""
    write(server, "a")
    write(server, "b")

    async def main() -> None:
        found: list[object] = []
        tasks: list[asyncio.Task[None]] = []
        second, gate = asyncio.Event(), asyncio.Event()
        async with opened(server) as maps:

            async def stop() -> None:
                await second.wait()
                found.append(await maps.informer.stop(PATIENCE))

            async def note(obj: dict[str, Any]) -> None:
                if not tasks:
                    tasks.append(asyncio.create_task(stop()))
                    return
                second.set()
                await gate.wait()
                found.append("the second call has ended")

            maps.informer.add_event_handler(on_add=note)
            await eventually(maps.informer.is_stopped)
            gate.set()
            await soon(tasks[0])
        assert found == ["the second call has ended", True]

    asyncio.run(main())


def test_a_handler_that_does_not_end_is_named_and_cancelled(
    server: ApiServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Shutdown says False at its timeout."""
    write(server, "a")

    async def main() -> None:
        cancelled = anyio.Event()
        entered = anyio.Event()

        async def stuck(obj: dict[str, Any]) -> None:
            entered.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

        made = aio.DynamicSharedInformerFactory(server.client())
        maps = await made.for_resource(MAPS)
        maps.informer.add_event_handler(on_add=stuck, name="stuck")
        await made.sync(PATIENCE)
        await soon(entered.wait())
        assert not await made.shutdown(0.05)
        await soon(cancelled.wait())
        assert await made.shutdown(PATIENCE)

    run(main)
    assert re.search(r"still running after 0\.05 s: .*\bstuck\b", caplog.text)


def test_a_removed_informer_cancels_its_stuck_handlers_alone(server: ApiServer, run: Run) -> None:
    """Those of other informers go on."""
    write(server, "a")

    async def main() -> None:
        entered, gate, ended = anyio.Event(), anyio.Event(), anyio.Event()

        async def stuck(obj: dict[str, Any]) -> None:
            entered.set()
            await anyio.sleep_forever()

        async def patient(obj: dict[str, Any]) -> None:
            await gate.wait()
            ended.set()

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            spaces = await made.for_resource("v1/namespaces")
            maps.informer.add_event_handler(on_add=stuck)
            spaces.informer.add_event_handler(on_add=patient)
            await made.sync(PATIENCE)
            await soon(entered.wait())
            assert not await made.remove(MAPS, 0.05)
            gate.set()
            await soon(ended.wait())
            with pytest.raises(StoppedError):
                maps.informer.add_event_handler(on_add=stuck)

    run(main)


@pytest.mark.parametrize("end", ["remove", "stop"])
def test_a_timeout_cancels_no_handler_of_another_informer(
    server: ApiServer, run: Run, end: str
) -> None:
    """Neither one that was removed, nor one whose own informer stops and has more time."""
    write(server, "a")
    server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, "default")

    async def main() -> None:
        stuck, waiting, stopping = anyio.Event(), anyio.Event(), anyio.Event()
        cancelled, gate = anyio.Event(), anyio.Event()
        ended: list[object] = []

        async def never_ends(obj: dict[str, Any]) -> None:
            stuck.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

        async def patient(begun: anyio.Event, obj: dict[str, Any]) -> None:
            begun.set()
            await gate.wait()
            ended.append(obj["kind"])

        async with aio.DynamicSharedInformerFactory(server.client()) as made:
            maps = await made.for_resource(MAPS)
            spaces = await made.for_resource(
                "v1/namespaces", field_selector="metadata.name=default"
            )
            secrets = await made.for_resource("v1/secrets")
            maps.informer.add_event_handler(on_add=never_ends)
            removed = spaces.informer.add_event_handler(on_add=partial(patient, waiting))
            secrets.informer.add_event_handler(on_add=partial(patient, stopping))
            await made.sync(PATIENCE)
            for begun in (stuck, waiting, stopping):
                await soon(begun.wait())
            removed.remove()
            async with anyio.create_task_group() as tasks:

                async def stop() -> None:
                    ended.append(await secrets.informer.stop(PATIENCE))

                tasks.start_soon(stop)
                await eventually(secrets.informer.is_stopped)
                if end == "remove":
                    assert not await made.remove(MAPS, 0.05)
                else:
                    assert not await maps.informer.stop(0.05)
                await soon(cancelled.wait())
                gate.set()
            await eventually(lambda: len(ended) == 3)
            assert sorted(map(str, ended)) == ["Namespace", "Secret", "True"]

    run(main)


def test_a_handler_has_the_context_of_who_added_it(server: ApiServer) -> None:
    """Its task is a task like any other."""
    write(server, "a")
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    async def main() -> None:
        found: list[str] = []

        async def note(obj: dict[str, Any]) -> None:
            task = asyncio.current_task()
            found.append(f"{who.get()}: {task and task.get_name()}")

        async with opened(server) as maps:
            who.set("me")
            await maps.informer.add_event_handler(on_add=note, name="n").wait_for_sync(PATIENCE)
        assert found == ["me: dyninformer configmaps.v1 handler n"]

    asyncio.run(main())


def test_what_is_no_handler_is_refused(server: ApiServer, run: Run) -> None:
    """With words that say what to give."""

    async def keep(obj: dict[str, Any]) -> bool:
        return True

    async def stream(obj: dict[str, Any]) -> Any:
        yield obj

    async def main() -> None:
        async with opened(server) as maps:
            add: Callable[..., Any] = maps.informer.add_event_handler
            with pytest.raises(TypeError, match="filter is a coroutine function"):
                add(on_add=print, filter=keep)
            with pytest.raises(TypeError, match="asynchronous generator"):
                add(on_add=stream)
            with pytest.raises(TypeError, match="needs one of"):
                add()

    run(main)


def test_outside_a_loop_no_handler_is_added(server: ApiServer) -> None:
    """The error says what is needed."""
    found: list[Any] = []

    async def main() -> None:
        async with opened(server) as maps:
            found.append(maps)

            def add() -> None:
                with pytest.raises(RuntimeError, match="inside an event loop"):
                    maps.informer.add_event_handler(on_add=print)

            thread = threading.Thread(target=add)
            thread.start()
            thread.join(PATIENCE)

    asyncio.run(main())


@pytest.mark.parametrize("ends", ["run", "close"])
def test_a_handler_whose_loop_has_ended_is_removed_and_logged_once(
    server: ApiServer, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    """Nothing hangs, and nothing piles up."""
    made = aio.DynamicSharedInformerFactory(server.client(), namespace="default")
    handlers: list[aio.Registration] = []

    async def begin() -> None:
        maps = await made.for_resource(MAPS, field_selector=OURS)
        await made.sync(PATIENCE)
        handlers.append(maps.informer.add_event_handler(on_add=lambda obj: None, name="left"))
        await eventually(
            lambda: any(each.get_name().endswith("handler left") for each in asyncio.all_tasks())
        )

    async def finish() -> None:
        maps = await made.for_resource(MAPS)
        for name in "abc":
            last = write(server, name)
        await maps.informer.wait_for_version(last, PATIENCE)
        await eventually(lambda: "removed" in repr(handlers[0]))
        assert handlers[0].backlog == 0
        assert await made.shutdown(PATIENCE)

    with caplog.at_level(logging.WARNING):
        if ends == "run":
            asyncio.run(begin())
        else:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(begin())
            loop.close()
        asyncio.run(finish())
        until(lambda: "event loop that called it has ended" in caplog.text, why=caplog.text)
    assert caplog.text.count("event loop that called it has ended") == 1


def test_ten_thousand_initial_events_let_others_run(server: ApiServer, run: Run) -> None:
    """Several busy handlers share the time between turns of the loop."""
    for number in range(200):
        write(server, f"n{number}")

    async def main() -> None:
        turns = 0
        heard = 0

        def count(obj: dict[str, Any]) -> None:
            nonlocal heard
            heard += 1
            sum(range(2000))

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.sleep(0)

        async with opened(server) as maps, anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            handlers = [maps.informer.add_event_handler(on_add=count) for _ in range(5)]
            for each in handlers:
                assert await each.wait_for_sync(PATIENCE)
            assert heard == 1000
            assert turns > 3
            tasks.cancel_scope.cancel()

    run(main)
