"""What client-go's own informer tests hold, beside what has a number's test elsewhere."""

from __future__ import annotations

import random
import threading
from functools import partial
from typing import Any

from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.faults import Call, Faults, StreamError
from tests.conformance.cluster import Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    PATIENCE,
    WIDGETS,
    Heard,
    on_embedded,
    replayed,
    seen,
)
from tests.conformance.informer.relay import Relay
from tests.conformance.informer.test_delivery import Gate
from tests.conformance.wire import until


def test_s09_handlers_before_during_and_after_the_start_hear_the_same(
    factories: Factories, widgets: Collection
) -> None:
    """Whenever they came, they know of the same objects in the end."""
    widgets.fill(*(f"w{number}" for number in range(20)))
    factory = factories()
    found = factory.for_resource(WIDGETS)
    before, during, after = Heard(), Heard(), Heard()
    found.informer.add_event_handler(before)
    factory.start()
    found.informer.add_event_handler(during)
    assert factory.wait_for_cache_sync(PATIENCE)
    found.informer.add_event_handler(after)
    widgets.fill("last")
    for each in (before, during, after):
        each.wait("ADDED", "last")
        assert sorted(replayed(each.events)) == sorted(found.lister.keys())
        assert [event.initial for event in each.events] == [True] * 20 + [False]


def test_s11_a_hundred_threads_add_and_remove_handlers(
    running: Running, widgets: Collection
) -> None:
    """While objects change, each handler that stays knows of the state, and none that went."""
    found = running()
    widgets.fill(*(f"w{number}" for number in range(5)))
    gate = threading.Barrier(101)
    stayed: list[Heard] = []
    failures: list[BaseException] = []

    def come_and_go(number: int) -> None:
        try:
            gate.wait()
            for _ in range(3):
                found.informer.add_event_handler(Heard()).remove()
            if number % 10 == 0:
                stayed.append(Heard())
                found.informer.add_event_handler(stayed[-1])
        except BaseException as error:  # noqa: BLE001 - the test's own thread tells
            failures.append(error)

    threads = [threading.Thread(target=come_and_go, args=(n,)) for n in range(100)]
    for thread in threads:
        thread.start()
    gate.wait()
    for size in range(10):
        widgets.merge(f"w{size % 5}", {"spec": {"size": size}})
    for thread in threads:
        thread.join()
    seen(found.informer, widgets.fill("last")[0])
    held = {f"{widgets.namespace}/{o['metadata']['name']}": o for o in found.lister}
    assert failures == []
    assert len(stayed) == 10
    for each in stayed:
        each.wait("ADDED", "last")
        assert replayed(each.events) == held


@on_embedded
def test_s08_a_relist_with_a_deletion_in_the_queue_tells_it_once(
    faults: Faults, server: ApiServer, running: Running, widgets: Collection
) -> None:
    """What a slow handler has yet to hear is neither lost nor told again by the relist."""
    widgets.fill("a", "b")
    again = threading.Event()
    add = partial(faults.add, verb="watch", namespace=widgets.namespace, times=1)
    add(StreamError(410, after_lines=5))  # two objects, the mark, the gate, the deletion
    add(Call(function=again.set), skip=1)
    found, gate = running(), Gate()
    heard = Heard(lambda event: gate(event) if event.name == "gate" else None)
    found.informer.add_event_handler(heard)
    widgets.fill("gate")
    assert gate.entered.wait(PATIENCE)
    widgets.api.delete(widgets.at("a"))
    assert again.wait(PATIENCE)
    seen(found.informer, widgets.fill("c")[0])
    gate.open()
    heard.wait("ADDED", "c")
    assert heard.told == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("ADDED", "gate"),
        ("DELETED", "a"),
        ("ADDED", "c"),
    ]


def test_s13_a_proxy_that_resets_connections_loses_nothing(
    running: Running, widgets: Collection, relay: Relay, relayed: Any
) -> None:
    """Under writes and resets, what handlers believe is what the server has in the end."""
    chance = random.Random(5)
    found, heard = running(client=relayed), Heard()
    found.informer.add_event_handler(heard)
    present: set[str] = set()
    for number in range(60):
        if number in (10, 25):
            relay.reset()
        name = f"w{chance.randrange(12)}"
        if name not in present:
            widgets.fill(name, size=number)
            present.add(name)
        elif chance.random() < 0.3:
            widgets.api.delete(widgets.at(name))
            present.remove(name)
        else:
            widgets.merge(name, {"spec": {"size": number}})
    seen(found.informer, widgets.fill("last")[0])
    heard.wait("ADDED", "last")
    items = widgets.api.get(widgets.path).json["items"]
    listed = {f"{widgets.namespace}/{o['metadata']['name']}": o for o in items}
    assert replayed(heard.events) == listed
    until(lambda: found.informer.status().reason == "")
