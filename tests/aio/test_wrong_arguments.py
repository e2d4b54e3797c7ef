"""What is of the wrong type is refused in words by `dyninformer.aio`, too: at every public door."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dyninformer import GroupVersionResource, aio
from dyninformer.testing import ApiServer
from tests.doors import SECONDS, Door, doors, shown

public: Any = aio  # a type checker would find all that follows
PODS = GroupVersionResource("", "v1", "pods")
NEW = "v1/secrets"
"""A resource that no test has asked for."""
F = "DynamicSharedInformerFactory"
I = "SharedIndexInformer"  # noqa: E741 - read in a table
NO_KEY = "5 is no key: give"
make = public.DynamicSharedInformerFactory


class World:
    """A factory in a loop, and an informer of it that is not started."""

    def __init__(self, client: Any, factory: Any, generic: Any) -> None:
        self.client = client
        self.factory = factory
        self.generic = generic
        self.informer = generic.informer

    @property
    def queue(self) -> Any:
        """A work queue of the informer."""
        return self.informer.work_queue()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of one server for all: nothing here changes it."""
    with ApiServer() as server:
        yield server.client()


DOORS = [
    Door(F, lambda w: make("client").start(), "client must be a kubernetes.dynamic.DynamicClient"),
    Door(F, lambda w: make(w.client, resync="10").start(), "resync is '10': give seconds, 0 for"),
    Door(
        F, lambda w: make(w.client, namespace=5).start(), "namespace is 5: give a name, or several"
    ),
    *(
        Door(name, partial(call, given=given), f"a resource is {given!r}: give")
        for given in (None, 5, ("", "v1", "pods"))
        for name, call in [
            (f"{F}.for_resource", lambda w, given: w.factory.for_resource(given)),
            (f"{F}.remove", lambda w, given: w.factory.remove(given)),
            (f"{F}.informer_for", lambda w, given: w.factory.informer_for(given, print)),
            ("open_informer", lambda w, given: public.open_informer(given, client=w.client)),
        ]
    ),
    Door(
        f"{F}.for_resource",
        lambda w: w.factory.for_resource(NEW, compress="no"),
        "compress is 'no': give True or False",
    ),
    Door(
        f"{F}.for_resource", lambda w: w.factory.for_resource(NEW, indexer={}), "no option 'index"
    ),
    Door(f"{F}.for_resource", lambda w: w.factory.for_resource("x", timeout="5"), SECONDS),
    Door(
        f"{F}.informer_for", lambda w: w.factory.informer_for(NEW, "x"), "new_informer is 'x': give"
    ),
    Door(f"{F}.sql", lambda w: w.factory.sql(5), "a query is 5: give SQL, such as"),
    Door(f"{F}.sync", lambda w: w.factory.sync("5"), SECONDS),
    Door(f"{F}.wait_for_cache_sync", lambda w: w.factory.wait_for_cache_sync("5"), SECONDS),
    Door(f"{F}.wait", lambda w: w.factory.wait("5"), SECONDS),
    Door(f"{F}.remove", lambda w: w.factory.remove(NEW, "5"), SECONDS),
    Door(f"{F}.shutdown", lambda w: make(w.client).shutdown("5"), SECONDS),
    Door(
        f"{F}.follow", lambda w: w.factory.follow(), "follow needs patterns like '*.cert-manager.i"
    ),
    Door(
        f"{F}.follow", lambda w: w.factory.follow(5), "a pattern is 5: give text, each for itself"
    ),
    Door(
        f"{F}.follow",
        lambda w: w.factory.follow("*", on_event="x"),
        "on_event is 'x': give a function of",
    ),
    Door(
        f"{F}.require_fresh", lambda w: w.factory.require_fresh("5"), "max_age is '5': give seconds"
    ),
    Door(f"{F}.require_fresh", lambda w: w.factory.require_fresh(5, "5"), SECONDS),
    Door(
        "open_informer", lambda w: public.open_informer("ns", client=w.client, timeout="5"), SECONDS
    ),
    Door(
        "open_informer",
        lambda w: public.open_informer("ns", client=w.client, namespace=5),
        "namespace is 5: give a name",
    ),
    Door("OpenInformer.close", lambda w: closed(w, "5"), SECONDS),
    Door(
        "OpenInformer.events", lambda w: streamed(w, coalesce="x"), "coalesce is 'x': give True or"
    ),
    Door(
        "GenericInformer.events",
        lambda w: w.generic.events(idle_timeout="5"),
        "idle_timeout is '5': give seconds",
    ),
    Door("Follower.wait_for_sync", lambda w: followed(w, "5"), SECONDS),
    *(
        Door(f"{I}.add_event_handler", partial(lambda w, given: add(w, **given), given=given), said)
        for given, said in [
            ({}, "a handler needs one of on_add, on_update, on_delete"),
            ({"handler": 5}, "5 has none of the methods on_add, on_update"),
            ({"on_add": "x"}, "on_add is 'x': give a"),
            ({"on_event": print, "filter": 5}, "filter is 5: give a function"),
            (
                {"on_event": asyncio.sleep, "when_changed": 5},
                "when_changed is 5: give a path, or sev",
            ),
            ({"on_event": asyncio.sleep, "resync": "5"}, "resync is '5': give seconds"),
            (
                {"on_event": asyncio.sleep, "coalesce": "yes"},
                "coalesce is 'yes': give True or False",
            ),
            ({"on_event": asyncio.sleep, "name": 5}, "name is 5: give a name for the handler"),
        ]
    ),
    Door(
        f"{I}.add_event_handler_with_resync_period",
        lambda w: w.informer.add_event_handler_with_resync_period(Handler(), "5"),
        "resync is '5': give seconds",
    ),
    Door(
        f"{I}.remove_event_handler",
        lambda w: w.informer.remove_event_handler("x"),
        "a registration is 'x': give what add_event_handler returned",
    ),
    Door("Registration.wait_for_sync", lambda w: add(w, on_event=hear).wait_for_sync("5"), SECONDS),
    Door(f"{I}.events", lambda w: w.informer.events(initial="no"), "initial is 'no': give True or"),
    Door("EventStream.take", lambda w: w.informer.events().take("5"), SECONDS),
    Door(
        f"{I}.set_transform", lambda w: w.informer.set_transform(5), "transform is 5: give a functi"
    ),
    Door(
        f"{I}.set_watch_error_handler",
        lambda w: w.informer.set_watch_error_handler(5),
        "a watch error handler is 5: give a plain function",
    ),
    Door(
        f"{I}.add_indexers", lambda w: w.informer.add_indexers(["x"]), "indexers is ['x']: give a"
    ),
    Door(f"{I}.stop", lambda w: w.informer.stop("5"), SECONDS),
    Door(f"{I}.wait_synced", lambda w: w.informer.wait_synced("5"), SECONDS),
    Door(f"{I}.history", lambda w: w.informer.history(5), "name is 5: give a name"),
    Door(f"{I}.audit", lambda w: w.informer.audit("5"), SECONDS),
    Door(
        f"{I}.wait_for", lambda w: w.informer.wait_for(5, name="a"), "a condition is 5: give text"
    ),
    Door(
        f"{I}.wait_for", lambda w: w.informer.wait_for("create", name=5), "name is 5: give a name"
    ),
    Door(
        f"{I}.wait_for",
        lambda w: w.informer.wait_for("create", name="a", namespace="b", timeout="5"),
        SECONDS,
    ),
    Door(
        f"{I}.wait_for_version", lambda w: w.informer.wait_for_version(5), "a int without metadata"
    ),
    Door(f"{I}.wait_for_version", lambda w: w.informer.wait_for_version("5", "5"), SECONDS),
    Door(f"{I}.wait_fresh", lambda w: w.informer.wait_fresh("5"), "max_age is '5': give seconds"),
    Door(f"{I}.wait_fresh", lambda w: w.informer.wait_fresh(5, "5"), SECONDS),
    Door(f"{I}.patch", lambda w: w.informer.patch(5, None, {}), "name is 5: give a name"),
    Door(f"{I}.patch", lambda w: w.informer.patch("a", None, "x"), "the patch is str: give a"),
    Door(f"{I}.patch_status", lambda w: w.informer.patch_status("a", None, 5), "the patch is int"),
    Door(f"{I}.apply", lambda w: w.informer.apply(5), "the object has no metadata.name: give"),
    Door(f"{I}.delete", lambda w: w.informer.delete(5), "name is 5: give a name"),
    Door(f"{I}.delete", lambda w: w.informer.delete("a", wait="x"), "wait is 'x': give True"),
    Door(f"{I}.work_queue", lambda w: w.informer.work_queue(workers="4"), "workers is '4': give a"),
    Door("WorkQueue", lambda w: public.WorkQueue(["x"]), "informers is ['x']: give"),
    Door("WorkQueue", lambda w: public.WorkQueue(retry=5), "retry is 5: give"),
    Door("WorkQueue.watch", lambda w: w.queue.watch("x"), "'x' is no informer of dyninformer.aio"),
    Door("WorkQueue.watch", lambda w: w.queue.watch(w.informer, 5), "keys is 5: give a function"),
    Door("WorkQueue.add", lambda w: w.queue.add(5), NO_KEY),
    Door("WorkQueue.add_after", lambda w: w.queue.add_after(5, 1), NO_KEY),
    Door(
        "WorkQueue.add_after",
        lambda w: w.queue.add_after("a", "1"),
        "delay is '1': give a number",
    ),
    Door("WorkQueue.add_rate_limited", lambda w: w.queue.add_rate_limited(5), NO_KEY),
    Door("WorkQueue.forget", lambda w: w.queue.forget(5), NO_KEY),
    Door("WorkQueue.retries", lambda w: w.queue.retries(5), NO_KEY),
    Door("WorkQueue.run", lambda w: w.queue.run("x"), "reconcile is 'x': give a"),
    Door(
        "WorkQueue.run", lambda w: w.queue.run(lambda: None), "reconcile is called as reconcile(k"
    ),
    Door("WorkQueue.take", lambda w: w.queue.take("5"), SECONDS),
    Door("WorkQueue.close", lambda w: w.queue.close(drain="x"), "drain is 'x': give True or False"),
    Door("WorkQueue.close", lambda w: w.queue.close(timeout="5"), SECONDS),
]


async def hear(event: object) -> None:
    """A handler."""


class Handler:
    """It has the right methods."""

    async def on_event(self, event: object) -> None:
        """Hear it."""


def add(w: Any, **wrong: Any) -> Any:
    """Add a handler."""
    return w.informer.add_event_handler(**wrong)


async def closed(w: Any, timeout: Any) -> None:
    """Close an open informer."""
    async with public.open_informer("ns", client=w.client) as opened:
        await opened.close(timeout)


async def streamed(w: Any, **wrong: Any) -> None:
    """Ask an open informer for events."""
    async with public.open_informer("ns", client=w.client) as opened:
        opened.events(**wrong)


async def followed(w: Any, timeout: Any) -> None:
    """Wait for a follower."""
    async with w.factory.follow("x") as follower:
        await follower.wait_for_sync(timeout)


@pytest.mark.parametrize("door", DOORS, ids=shown)
def test_what_is_wrong_is_said_in_words(client: Any, door: Door) -> None:
    """What it is called, what was given, and what to give, when called or when awaited."""

    async def call() -> None:
        async with make(client) as factory:
            world = World(client, factory, await factory.for_resource(PODS))
            found: Any = door.call(world)
            if inspect.isawaitable(found):
                await found

    with pytest.raises((TypeError, ValueError), match=re.escape(door.said)):
        asyncio.run(call())


def test_every_public_door_is_in_the_table() -> None:
    """Each function, method and class that coroutines call with arguments."""
    tried = {door.name for door in DOORS}
    assert {name for name in doors("dyninformer.aio") if name not in tried} == set()
