"""The same rules in an event loop, on each kind of loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from dyninformer import Event, UnknownResourceError, aio
from tests.aio.conftest import LOOPS, Main, Run, eventually, run_on, soon
from tests.conformance import shapes
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.recorders import PATIENCE, WIDGETS, replayed


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's coroutine function on each kind of loop."""

    def on_loop(main: Main) -> Any:
        return run_on(request.param, main)

    return on_loop


@pytest.fixture
def opened(cluster: Cluster, namespace: str) -> Callable[[], Any]:
    """Opens the namespace's widgets."""
    return lambda: aio.open_informer(WIDGETS, client=cluster.server.client(), namespace=namespace)


def test_s33_a_name_is_known_as_soon_as_its_crd_is_installed(
    cluster: Cluster, group: str, run: Run
) -> None:
    """Though discovery was read just before."""

    async def main() -> None:
        async with aio.DynamicSharedInformerFactory(cluster.server.client()) as made:
            with pytest.raises(UnknownResourceError):
                await made.for_resource(f"rows.{group}")
            rows = shapes.crd(group, "rows", "Row", shapes.ANYTHING)
            await anyio.to_thread.run_sync(cluster.server.install, rows)
            assert (await made.for_resource(f"rows.{group}")).gvr.group == group

    run(main)


def test_a_handler_and_a_stream_replay_what_the_server_has(
    opened: Callable[[], Any], widgets: Collection, run: Run
) -> None:
    """S8, S9: the first state, then each change, in order and exactly once."""
    widgets.fill("a", "b", "c", size=1)

    async def main() -> None:
        heard: list[Event] = []
        streamed: list[Event] = []

        async def note(event: Event) -> None:
            await anyio.sleep(0.0005)
            heard.append(event)

        async with opened() as found, found.events() as events:
            handler = found.informer.add_event_handler(on_event=note)
            assert await handler.wait_for_sync(PATIENCE)
            for size in (2, 3):
                widgets.merge("a", {"spec": {"size": size}})
            widgets.api.delete(widgets.at("b"))
            last = widgets.merge("c", {"spec": {"size": 9}}).json
            await found.informer.wait_for_version(last, PATIENCE)
            await eventually(lambda: not handler.backlog)
            while events.backlog:
                streamed.append(await soon(anext(events)))
            state = dict(zip(found.lister.keys(), found.lister.list(), strict=True))
            assert replayed(heard) == replayed(streamed) == state
            assert [repr(event) for event in heard] == [repr(event) for event in streamed]

    run(main)


def test_a_wait_ends_with_the_write_that_meets_it(
    opened: Callable[[], Any], widgets: Collection, namespace: str, run: Run
) -> None:
    """As kubectl's; and the deletion is waited for, too."""

    async def main() -> None:
        async with opened() as found, anyio.create_task_group() as tasks:
            ended: list[Any] = []

            async def wait(condition: str) -> None:
                obj = await found.informer.wait_for(
                    condition, name="late", namespace=namespace, timeout=PATIENCE
                )
                ended.append(obj["spec"]["size"])

            tasks.start_soon(wait, "jsonpath={.spec.size}=2")
            await anyio.sleep(0.01)
            widgets.fill("late", size=1)
            widgets.merge("late", {"spec": {"size": 2}})
            await eventually(lambda: ended == [2])
            tasks.start_soon(wait, "delete")
            await anyio.sleep(0.01)
            widgets.api.delete(widgets.at("late"))

    run(main)


def test_a_work_queue_ends_in_the_state_of_the_server(
    opened: Callable[[], Any], widgets: Collection, run: Run
) -> None:
    """Each key is worked on after its last change."""
    widgets.fill(*(f"w{number}" for number in range(10)), size=0)

    async def main() -> None:
        done: dict[str, Any] = {}

        async with opened() as found, anyio.create_task_group() as tasks:
            queue = found.informer.work_queue(workers=3)

            async def reconcile(key: str) -> None:
                await anyio.sleep(0.001)
                obj = found.lister.get(key, default=None)
                done[key] = obj and obj["spec"]["size"]

            tasks.start_soon(queue.run, reconcile)
            await eventually(lambda: len(done) == 10)
            for number in range(5):
                last = widgets.merge(f"w{number}", {"spec": {"size": 7}}).json
            await found.informer.wait_for_version(last, PATIENCE)
            await eventually(lambda: list(done.values()).count(7) == 5)
            assert await queue.close(timeout=PATIENCE)

    run(main)


def test_an_audit_is_awaited(opened: Callable[[], Any], widgets: Collection, run: Run) -> None:
    """S36: what is held is what the server has."""
    widgets.fill("a", "b")

    async def main() -> None:
        async with opened() as found:
            report = await found.informer.audit(PATIENCE)
            assert (report.compared, report.differs) == (2, False)

    run(main)
