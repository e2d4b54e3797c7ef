"""Replicas in one process, on the embedded server (S50 to S54)."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any
from uuid import uuid4

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    Event,
    Fence,
    GroupVersionResource,
    JSONPathError,
    ListOptions,
    LostShardError,
    ResourceOptions,
    Shard,
    ShardEvent,
    ShardMembership,
    StoppedError,
    strip,
)
from dyninformer.metrics import GatheredMetrics
from dyninformer.scale.fences import Ownership, Tenure
from dyninformer.scale.rounds import Failure, Put
from dyninformer.scale.sharded import ShardedInformer
from dyninformer.shard import shard_of
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus, LoseAnswer
from dyninformer.threads import OwnThread
from tests.conformance.wire import until

PATIENCE = 30.0
SHARDS = 8
GROUP = "demo"
NAMES = [f"c{number:02d}" for number in range(24)]
Join = Callable[..., ShardMembership]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """With some objects."""
    with ApiServer() as started:
        for name in NAMES:
            started.create(config_map(name), "default")
        yield started


@pytest.fixture
def join(server: ApiServer) -> Iterator[Join]:
    """Makes replicas, and closes them afterwards."""
    made: list[ShardMembership] = []

    def join(client: Any = None, **options: Any) -> ShardMembership:
        times = {"lease_duration": 4, "renew_deadline": 3.0, "retry_period": 0.2}
        options = {"name": GROUP, "namespace": "default", "shards": SHARDS, **times, **options}
        membership = ShardMembership(client or server.client(), **options)
        made.append(membership)
        return membership

    yield join
    for each in made:
        each.close(5)


def config_map(name: str, uid: str | None = None) -> dict[str, Any]:
    """An object."""
    metadata = {"name": name} if uid is None else {"name": name, "namespace": "default", "uid": uid}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(objects: Any) -> list[str]:
    """Sorted."""
    return sorted(each["metadata"]["name"] for each in objects)


def test_s50_a_replica_that_is_alone_has_everything(join: Join) -> None:
    """And its handlers are told of all of it."""
    membership = join()
    heard: list[Any] = []
    found = membership.informer("v1/configmaps")
    handler = found.add_event_handler(on_add=heard.append)
    with membership:
        assert membership.wait_shared(PATIENCE)
        assert found.wait_synced(PATIENCE)
        until(handler.has_synced, PATIENCE)
        assert names(heard) == names(found) == NAMES
        assert len(found) == len(NAMES)
        assert f"default/{NAMES[0]}" in found
        assert membership.shards == set(range(SHARDS))


def test_s50_two_replicas_have_half_each_and_every_object_once(join: Join) -> None:
    """However they come to it."""
    first, second = join(), join()
    ours, theirs = first.informer("v1/configmaps"), second.informer("v1/configmaps")
    with first, second:
        until(lambda: len(first.shards) == len(second.shards) == SHARDS // 2, PATIENCE)
        until(lambda: names([*ours, *theirs]) == NAMES, PATIENCE)
        assert first.shards | second.shards == set(range(SHARDS))
        assert first.status().members == second.status().members


def test_s53_whoever_gets_a_shard_is_told_all_of_its_objects(join: Join) -> None:
    """As additions, with the shard and its fence; what it had is not told again."""
    first, second = join(), join()
    told: list[ShardEvent] = []

    def hear(event: Event) -> None:
        assert isinstance(event, ShardEvent)
        told.append(event)

    ours = first.informer("v1/configmaps")
    ours.add_event_handler(on_event=hear)
    with first:
        with second:
            until(lambda: len(first.shards) == len(second.shards) == SHARDS // 2, PATIENCE)
            until(lambda: len(told) >= len(ours) > 0, PATIENCE)
            before, kept = len(told), set(ours.keys())
        until(lambda: len(first.shards) == SHARDS, PATIENCE)
        until(lambda: names(ours) == NAMES, PATIENCE)
        until(lambda: len(told) == before + len(NAMES) - len(kept), PATIENCE)
        assert {each.key for each in told[before:]} == set(ours.keys()) - kept
        for each in told[before:]:
            assert each.type == "ADDED"
            assert each.shard == shard_of(each.object["metadata"]["uid"], SHARDS)
            each.fence.check()


def values_of(metrics: GatheredMetrics, **labels: str) -> dict[str, Any]:
    """What there is of one lease, by name and by what tells a counter's values apart."""
    found: dict[str, Any] = {}
    for each in metrics.gather():
        rest = dict(each.labels)
        if rest.pop("lease", "") == GROUP and labels.items() <= rest.items():
            assert rest.pop("resource") == "leases.v1.coordination.k8s.io"
            words = [word for name, word in rest.items() if name not in labels]
            found[" ".join([each.name, *words])] = each.value
    return found


def test_s50_the_metrics_count_shards_hand_overs_and_renewals(join: Join) -> None:
    """Of each replica by itself; they end with it."""
    metrics = GatheredMetrics()
    first = join(metrics=metrics.labelled(replica="first"))
    second = join(metrics=metrics.labelled(replica="second"))
    with first:
        assert first.wait_shared(PATIENCE)
        until(
            lambda: values_of(metrics, replica="first").get("lease_renewals renewed", 0) > 1,
            PATIENCE,
        )
        until(
            lambda: values_of(metrics, replica="first").get("shard_handovers taken") == SHARDS,
            PATIENCE,
        )
        assert values_of(metrics, replica="first")["shards_owned"] == SHARDS
        with second:
            until(lambda: values_of(metrics, replica="second").get("shards_owned") == 4, PATIENCE)
            until(
                lambda: values_of(metrics, replica="first").get("shard_handovers given") == 4,
                PATIENCE,
            )
            assert values_of(metrics, replica="first")["shards_owned"] == 4
            assert "shard_handovers lost" not in values_of(metrics)
        assert values_of(metrics, replica="second") == {}
    assert values_of(metrics) == {}


def test_s51_the_metrics_count_failed_renewals_and_lost_shards(
    join: Join, server: ApiServer
) -> None:
    """A replica that cannot renew its lease loses all that it has."""
    metrics = GatheredMetrics()
    with join(metrics=metrics) as membership:
        assert membership.wait_shared(PATIENCE)
        with server.faults.add(HttpStatus(500), resource="leases"):
            until(lambda: values_of(metrics).get("lease_renewals failed"), PATIENCE)
            until(lambda: values_of(metrics)["shards_owned"] == 0, PATIENCE)
        until(lambda: values_of(metrics).get("shard_handovers lost") == SHARDS, PATIENCE)
        until(lambda: values_of(metrics)["shard_handovers taken"] == 2 * SHARDS, PATIENCE)
        assert values_of(metrics)["shards_owned"] == SHARDS


def test_a_replica_reports_to_the_metrics_of_its_factory(join: Join, server: ApiServer) -> None:
    """Its informers do, too."""
    metrics = GatheredMetrics()
    factory = DynamicSharedInformerFactory(server.client(), metrics=metrics)
    with factory, join(factory) as membership:
        maps = membership.informer("v1/configmaps")
        assert membership.wait_shared(PATIENCE)
        assert maps.wait_synced(PATIENCE)
        assert values_of(metrics)["shards_owned"] == SHARDS
        objects = [each.value for each in metrics.gather() if each.name == "objects"]
        assert objects == [len(maps)]


def by_events(note: Callable[[str, Any], None]) -> dict[str, Any]:
    """A handler of events."""
    return {"on_event": lambda event: note(event.type.value, event.object)}


def by_callbacks(note: Callable[[str, Any], None]) -> dict[str, Any]:
    """A handler of objects, which hears no update of a value that stays the same."""
    return {
        "on_add": lambda new: note("ADDED", new),
        "on_update": lambda old, new: note("UPDATED", new),
        "on_delete": lambda old: note("DELETED", old),
        "when_changed": ".metadata.name",
    }


@pytest.mark.parametrize("handler", [by_events, by_callbacks])
def test_s53_a_name_that_comes_back_with_another_uid_is_a_deletion_and_an_addition(
    join: Join, server: ApiServer, handler: Callable[..., dict[str, Any]]
) -> None:
    """Each is delivered if its shard is ours, also where both were merged into one update."""
    # Few shards, and time enough to take them in one round.
    first, second = (join(shards=2, retry_period=1.0) for _ in range(2))
    ours = first.informer("v1/configmaps")
    blocked, go_on = threading.Event(), threading.Event()
    heard: list[tuple[str, str]] = []

    def note(kind: str, obj: dict[str, Any]) -> None:
        heard.append((kind, obj["metadata"]["uid"]))
        if obj["metadata"]["name"] == "block":
            blocked.set()
            go_on.wait(PATIENCE)
        if kind == "DELETED":
            raise ValueError("this handler fails, and still gets the addition")

    ours.add_event_handler(**handler(note), coalesce=True)
    with first:
        # While it is alone it takes both shards, with one informer; then it gives one away.
        assert first.wait_shared(PATIENCE)
        assert ours.wait_synced(PATIENCE)
        assert len(ours.statuses()) == 1
        with second:
            until(lambda: len(first.shards) == len(second.shards) == 1, PATIENCE)
            uids = [str(uuid4()) for _ in range(100)]
            here = [uid for uid in uids if shard_of(uid, 2) in first.shards]
            there = [uid for uid in uids if shard_of(uid, 2) in second.shards]
            replaced = {
                "leaves": (here[0], there[0]),
                "enters": (there[1], here[1]),
                "stays": (here[2], here[3]),
                "elsewhere": (there[2], there[3]),
            }
            for name, (before, _) in replaced.items():
                server.load(config_map(name, before))
            server.load(config_map("block", here[4]))
            assert blocked.wait(PATIENCE)
            heard.clear()
            for name, (before, after) in replaced.items():
                server.unload(config_map(name, before))
                server.load(config_map(name, after))
            server.load(config_map("last", here[5]))
            until(lambda: "default/last" in ours, PATIENCE)
            go_on.set()
            until(lambda: ("ADDED", here[5]) in heard, PATIENCE)
            assert heard == [
                ("DELETED", here[0]),
                ("ADDED", here[1]),
                ("DELETED", here[2]),
                ("ADDED", here[3]),
                ("ADDED", here[5]),
            ]


_LEFT_AT_EXIT = """
import threading
from dyninformer import ShardMembership
from dyninformer.testing import ApiServer
server = ApiServer().__enter__()
membership = ShardMembership(
    server.client(), name="demo", namespace="default", shards=1, retry_period=0.2
)
told = threading.Event()
def run():
    membership.run("v1/namespaces", on_add=lambda obj: told.set())
    print(server.list("leases", namespace="default")[0]["metadata"]["name"])
threading.Thread(target=run).start()
told.wait()
"""


def test_s11_a_run_in_another_thread_ends_with_the_interpreter() -> None:
    """The interpreter waits for this thread, which gives its lease up."""
    ran = subprocess.run(
        [sys.executable, "-c", _LEFT_AT_EXIT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == "demo-shard-0-of-1\n", ran.stderr  # no member's lease is left


def test_s54_a_shard_is_given_away_only_when_nothing_works_on_it(
    join: Join, server: ApiServer
) -> None:
    """Until then it is nobody else's."""
    first, second = join(), join()
    obj = server.get(f"configmaps/{NAMES[0]}", "default")
    shard = shard_of(obj["metadata"]["uid"], SHARDS)
    fences: list[Fence] = []
    with first:
        until(lambda: len(first.shards) == SHARDS, PATIENCE)
        with first.owned(obj) as fence:
            second.start()
            until(lambda: shard in first.status().leaving or len(second.shards) == 4, PATIENCE)
            assert shard not in second.shards
            fence.check()
            fences.append(fence)
        until(lambda: len(second.shards) == 4, PATIENCE)
        assert (shard in first.shards) != (shard in second.shards)
        if shard in second.shards:
            with pytest.raises(LostShardError):
                fences[0].check()
            assert second.fence(obj).term > fences[0].term


def test_s51_a_replica_that_cannot_renew_stops_and_begins_anew_later(
    join: Join, server: ApiServer
) -> None:
    """Its handlers are told everything again: something may have been left out."""
    membership = join()
    heard: list[Any] = []
    membership.informer("v1/configmaps").add_event_handler(on_add=heard.append)
    with membership:
        until(lambda: len(heard) == len(NAMES), PATIENCE)
        with server.faults.add(HttpStatus(500), resource="leases"):
            until(lambda: not membership.shards, PATIENCE)
            with pytest.raises(LostShardError):
                membership.fence(server.get(f"configmaps/{NAMES[0]}", "default"))
            assert "leases" in membership.status().reason
            server.create(config_map("later"), "default")
        until(lambda: len(membership.shards) == SHARDS, PATIENCE)
        until(lambda: len(heard) == 2 * len(NAMES) + 1, PATIENCE)


def test_s51_a_replica_whose_lease_is_removed_joins_under_another_name(
    join: Join, server: ApiServer
) -> None:
    """What it had is taken in other terms."""
    with join() as membership:
        until(lambda: len(membership.shards) == SHARDS, PATIENCE)
        obj = server.get(f"configmaps/{NAMES[0]}", "default")
        fence = membership.fence(obj)
        leases = server.list("leases.coordination.k8s.io", "default")
        (lease,) = [each for each in leases if "member" in each["metadata"]["name"]]
        server.delete(f"leases/{lease['metadata']['name']}", "default")
        until(lambda: not fence.holds() and len(membership.shards) == SHARDS, PATIENCE)
        assert membership.identity != fence.holder
        assert membership.fence(obj).term == fence.term + 1


def test_s53_a_registration_waits_until_its_handler_was_told_of_all_that_is_ours(
    join: Join,
) -> None:
    """Until then it is out of time; the handler itself cannot wait for what it does."""
    membership = join()
    may, heard, said = threading.Event(), list[str](), list[bool]()

    def hear(obj: Any) -> None:
        may.wait(PATIENCE)
        if not heard:
            said.append(handler.wait_for_sync(PATIENCE))
        heard.append(obj["metadata"]["name"])

    handler = membership.informer("v1/configmaps").add_event_handler(on_add=hear)
    assert not handler.wait_for_sync(0)
    with membership:
        assert membership.wait_shared(PATIENCE)
        assert not handler.wait_for_sync(0.1)
        may.set()
        assert handler.wait_for_sync(PATIENCE)
        assert sorted(heard) == NAMES
        assert said == [False]
    assert not handler.wait_for_sync(PATIENCE)


def test_s54_a_with_block_ends_with_the_membership(join: Join, server: ApiServer) -> None:
    """Its thread has ended, its shards are free for others, and it takes none again."""
    with join() as membership:
        assert membership.wait_shared(PATIENCE)
    assert membership.wait(0)
    assert not membership.shards
    left = [each["metadata"]["name"] for each in server.list("leases", "default")]
    assert not [each for each in left if each.startswith(f"{GROUP}-member")]
    assert f"dyninformer shards {GROUP}" not in [each.name for each in threading.enumerate()]


def test_s54_a_replica_that_ends_waits_for_its_callback_and_hands_over(join: Join) -> None:
    """The other one need not wait for the lease to run out."""
    first, second = join(lease_duration=3600), join()
    entered, go_on = threading.Event(), threading.Event()

    def work(_: object) -> None:
        entered.set()
        go_on.wait(PATIENCE)

    first.informer("v1/configmaps").add_event_handler(on_add=work)
    first.start()
    assert entered.wait(PATIENCE)
    second.start()
    ending = threading.Thread(target=first.close, args=(PATIENCE,))
    ending.start()
    until(lambda: first.shards == frozenset(), PATIENCE)
    assert len(second.shards) < SHARDS
    go_on.set()
    ending.join(PATIENCE)
    until(lambda: len(second.shards) == SHARDS, PATIENCE)


def test_s54_replicas_with_other_numbers_of_shards_take_nothing_from_each_other(
    join: Join,
) -> None:
    """Who comes second says why it has nothing, until the other one has gone."""
    first, second = join(), join(shards=SHARDS + 1)
    with first:
        until(lambda: len(first.shards) == SHARDS, PATIENCE)
        with second:
            until(lambda: "another number of shards" in second.status().reason, PATIENCE)
            assert second.shards == frozenset()
            first.close()
            until(lambda: len(second.shards) == SHARDS + 1, PATIENCE)


def test_a_membership_ends_with_its_factory(join: Join, server: ApiServer) -> None:
    """Threads and all."""
    with DynamicSharedInformerFactory(server.client()) as factory:
        membership = join(factory)
        membership.start()
        until(lambda: len(membership.shards) == SHARDS, PATIENCE)
        factory.shutdown(5)
        assert membership.wait(PATIENCE)
    until(lambda: not any("shards demo" in each.name for each in threading.enumerate()), PATIENCE)
    assert membership.shards == frozenset()


def test_what_a_factory_is_made_for_is_what_its_membership_sees(
    join: Join, server: ApiServer
) -> None:
    """Its namespace, its options of a resource, and what it changes in lists."""
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
    for name in ("ours", "another"):
        server.create(config_map(name), "ops")

    def only_ours(options: ListOptions) -> None:
        options.field_selector = "metadata.name=ours"

    def marked(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "data": {"marked": "yes"}}

    config_maps = GroupVersionResource("", "v1", "configmaps")
    options = {config_maps: ResourceOptions(transform=marked)}
    with (
        DynamicSharedInformerFactory(server.client(), namespace="ops", resources=options) as plain,
        DynamicSharedInformerFactory(server.client(), tweak_list_options=only_ours) as tweaking,
        join(plain, name="one") as first,
        join(tweaking, name="two") as second,
    ):
        found = first.informer(config_maps)
        elsewhere = first.informer(config_maps, namespaces="default")
        tweaked = second.informer(config_maps)
        assert all(each.wait_shared(PATIENCE) for each in (first, second))
        assert all(each.wait_synced(PATIENCE) for each in (found, elsewhere, tweaked))
        assert found.keys() == ["ops/another", "ops/ours"]
        assert found.get("ops/ours")["data"] == {"marked": "yes"}
        assert names(elsewhere) == NAMES
        assert tweaked.keys() == ["ops/ours"]


def test_a_handler_is_told_until_it_is_removed(join: Join, server: ApiServer) -> None:
    """By all generations."""
    membership = join()
    heard: list[Any] = []
    found = membership.informer("v1/configmaps")
    with membership:
        found.wait_synced(PATIENCE)
        registration = found.add_event_handler(on_add=heard.append)
        until(lambda: len(heard) == len(NAMES), PATIENCE)
        registration.remove()
        server.create(config_map("later"), "default")
        until(lambda: len(found) == len(NAMES) + 1, PATIENCE)
        assert len(heard) == len(NAMES)


def test_s53_nothing_is_shared_or_synced_while_leases_cannot_be_renewed(
    join: Join, server: ApiServer
) -> None:
    """Reads give nothing then, which is not all that is ours."""
    membership = join(renew_deadline=1.0)
    found = membership.informer("v1/configmaps")
    with membership:
        assert membership.wait_shared(PATIENCE)
        assert found.wait_synced(PATIENCE)
        with server.faults.add(HttpStatus(500), resource="leases"):
            until(lambda: not membership.shards, PATIENCE)
            assert list(found) == []
            assert not found.has_synced()
            assert not found.wait_synced(0.1)
            assert not membership.wait_shared(0.1)
        assert membership.wait_shared(PATIENCE)
        assert found.wait_synced(PATIENCE)
        assert names(found) == NAMES


def test_s53_nothing_is_shared_or_synced_once_a_membership_has_ended(join: Join) -> None:
    """Who asks for it then is told at once."""
    with join() as membership:
        found = membership.informer("v1/configmaps")
        assert membership.wait_shared(PATIENCE)
        assert found.wait_synced(PATIENCE)
    assert not found.has_synced()
    assert not found.wait_synced()
    assert not membership.wait_shared()


def test_s53_shards_that_are_ours_and_have_no_informer_yet_are_waited_for(join: Join) -> None:
    """They get it at the end of the round that takes them."""
    membership = join()
    found = membership.informer("v1/configmaps")
    tenure = Tenure(time.monotonic, math.inf)
    shards = {each: Ownership("a shard", each, "me", 1, tenure) for each in range(SHARDS)}
    owned = {0: shards[0]}
    found.follow(lambda: owned)
    assert found.wait_synced(PATIENCE)
    owned.update(shards)
    assert not found.has_synced()
    assert not found.wait_synced(0.1)
    found.follow(lambda: owned)
    assert found.wait_synced(PATIENCE)
    assert names(found) == NAMES


def test_s53_a_handler_that_is_removed_is_not_told_what_waited_for_its_turn(join: Join) -> None:
    """Of another generation, while a callback of the first ran."""
    found = join().informer("v1/configmaps")
    tenure = Tenure(time.monotonic, math.inf)
    shards = {each: Ownership("a shard", each, "me", 1, tenure) for each in range(SHARDS)}
    first = {each: shards[each] for each in range(SHARDS // 2)}
    found.follow(lambda: first)
    found.follow(lambda: shards)
    assert found.wait_synced(PATIENCE)
    heard: list[Any] = []
    go_on = threading.Event()

    def hear(obj: Any) -> None:
        heard.append(obj)
        go_on.wait(PATIENCE)

    registration = found.add_event_handler(on_add=hear)
    until(lambda: len(heard) == 1, PATIENCE)
    telling = [each for each in threading.enumerate() if each.name.endswith(" handler hear")]
    assert len(telling) == 2
    registration.remove()
    go_on.set()
    for each in telling:
        each.join(PATIENCE)
        assert not each.is_alive()
    assert len(heard) == 1


def test_handlers_whose_callbacks_are_called_the_same_are_all_told(join: Join) -> None:
    """Those of before the start, and later ones; what calls them has their callback's name."""
    membership = join()
    found = membership.informer("v1/configmaps")
    heard: list[list[Any]] = [[], [], []]
    threads: set[str] = set()

    def telling(into: list[Any]) -> Callable[[Any], None]:
        def hear(obj: Any) -> None:
            into.append(obj)
            threads.add(threading.current_thread().name)

        return hear

    for each in heard[:2]:
        found.add_event_handler(on_add=telling(each))
    with membership:
        assert found.wait_synced(PATIENCE)
        found.add_event_handler(on_add=telling(heard[2]))
        until(lambda: [names(each) for each in heard] == [NAMES] * 3, PATIENCE)
    assert {each.rpartition(" ")[2] for each in threads} == {"hear", "hear-2", "hear-3"}


def test_a_handler_of_a_name_that_was_given_takes_the_place_of_the_one_before(
    join: Join, server: ApiServer
) -> None:
    """As with any informer."""
    membership = join()
    found = membership.informer("v1/configmaps")
    before: list[Any] = []
    after: list[Any] = []
    with membership:
        assert found.wait_synced(PATIENCE)
        found.add_event_handler(on_add=before.append, name="mine")
        until(lambda: names(before) == NAMES, PATIENCE)
        found.add_event_handler(on_add=after.append, name="mine")
        server.create(config_map("later"), "default")
        until(lambda: names(after) == [*NAMES, "later"], PATIENCE)
    assert names(before) == NAMES


def test_run_tells_a_handler_until_the_membership_is_closed(join: Join) -> None:
    """In one call, as a controller's main function."""
    membership = join()
    heard: list[Any] = []

    def hear(obj: object) -> None:
        heard.append(obj)
        if len(heard) == len(NAMES):
            membership.close()

    membership.run("v1/configmaps", on_add=hear)
    assert len(heard) == len(NAMES)


def test_run_returns_when_what_was_begun_is_done(join: Join) -> None:
    """Whoever goes on after it may take away what callbacks need."""
    membership = join(**LONG)
    closed, go_on = threading.Event(), threading.Event()

    def end(_: object) -> None:
        membership.close()
        closed.set()
        go_on.wait(PATIENCE)

    running = threading.Thread(
        target=membership.run, args=("v1/configmaps",), kwargs={"on_add": end}
    )
    running.start()
    assert closed.wait(PATIENCE)
    assert not membership.wait(0.2)
    assert running.is_alive()
    go_on.set()
    assert membership.wait(PATIENCE)
    running.join(PATIENCE)
    assert not running.is_alive()


def test_s54_an_interrupt_of_run_hands_over(
    join: Join, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the shards stay with a program that has caught it, and does something else."""
    membership = join(**LONG)

    def interrupt() -> None:
        assert membership.wait_shared(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(membership, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        membership.run("v1/configmaps", on_add=print)
    assert not membership.shards
    assert member_leases(server) == []


def test_what_is_over_is_not_begun_again(join: Join) -> None:
    """Neither the membership nor its informers."""
    membership = join()
    membership.start()
    membership.close()
    with pytest.raises(StoppedError, match="has ended"):
        membership.start()
    with pytest.raises(StoppedError, match="has ended"):
        membership.informer("v1/pods")


def test_which_shard_is_not_for_the_caller_to_say(join: Join) -> None:
    """The membership does."""
    with pytest.raises(TypeError, match="leave it out"):
        join().informer("v1/pods", shard=Shard(0, 2))


LONG = {"lease_duration": 90, "renew_deadline": 60.0}
"""Leases that do not run out in a test."""


def member_leases(server: ApiServer) -> list[str]:
    """The names of the replicas' leases."""
    leases = server.list("leases.coordination.k8s.io", "default")
    found = [each["metadata"]["name"] for each in leases]
    return [name for name in found if "-member-" in name]


def lease_requests(server: ApiServer) -> int:
    """How many there were."""
    return sum("/leases" in each.path for each in server.requests)


def without_metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """A transform."""
    return {"kind": obj["kind"], "metadata": {"name": obj["metadata"]["name"]}}


def test_s53_a_transform_that_takes_the_uid_away_changes_nothing_of_whose_an_object_is(
    join: Join,
) -> None:
    """It is left in."""
    first, second = join(), join()
    told: list[Any] = []
    ours, theirs = (
        each.informer("v1/configmaps", transform=without_metadata) for each in (first, second)
    )
    for each in (ours, theirs):
        each.add_event_handler(on_add=told.append)
    with first, second:
        until(lambda: len(first.shards) == len(second.shards) == SHARDS // 2, PATIENCE)
        until(lambda: names([*ours, *theirs]) == NAMES, PATIENCE)
        until(lambda: sorted({each["metadata"]["name"] for each in told}) == NAMES, PATIENCE)
        assert all(each["metadata"]["uid"] for each in [*ours, *theirs])


def test_s53_a_transform_of_bytes_that_takes_the_uid_away_is_refused(join: Join) -> None:
    """Nobody looks into what it makes."""
    with pytest.raises(ValueError, match=r"takes metadata\.uid away"):
        join().informer("v1/configmaps", transform=strip("metadata.uid"))
    join().informer("v1/configmaps", transform=strip("metadata.managedFields"))


def test_s50_a_replica_without_its_namespace_says_so_and_asks_once_in_each_period(
    join: Join, server: ApiServer
) -> None:
    """By the name that it has."""
    membership = join(namespace="nowhere")
    identity = membership.identity
    with membership:
        began = time.monotonic()
        until(lambda: lease_requests(server) >= 7, PATIENCE)  # two in each round
        assert time.monotonic() - began >= 3 * 0.2
        assert "HTTP 404" in membership.status().reason
        assert membership.identity == identity


def test_what_failed_once_and_was_done_after_all_is_no_reason_for_ever(
    join: Join, server: ApiServer
) -> None:
    """The answer to the lease that was made is lost, and no lease is made again."""
    with join() as before:
        assert before.wait_shared(PATIENCE)
    membership = join()
    with server.faults.add(LoseAnswer(), resource="leases", times=1), membership:
        until(lambda: "POST" in membership.status().reason, PATIENCE)
        assert membership.wait_shared(PATIENCE)
        until(lambda: not membership.status().reason, PATIENCE)


def test_s54_a_shard_that_cannot_be_released_is_tried_once_in_each_period(
    join: Join, server: ApiServer
) -> None:
    """Though nothing works on it any more."""
    first, second = join(**LONG), join(**LONG)
    objects = server.list("configmaps", "default")
    with first, ExitStack() as works:
        until(lambda: len(first.shards) == SHARDS, PATIENCE)
        for each in objects:
            works.enter_context(first.owned(each))
        second.start()
        until(lambda: len(first.status().leaving) > 0, PATIENCE)
        second.close()
        with server.faults.add(HttpStatus(403), resource="leases"):
            until(lambda: "403" in first.status().reason, PATIENCE)
            works.close()
            before, began = lease_requests(server), time.monotonic()
            until(lambda: lease_requests(server) >= before + 8, PATIENCE)  # two in each round
            assert time.monotonic() - began >= 2 * 0.2


def test_s54_a_replica_that_ends_waits_for_work_of_an_earlier_ownership(
    join: Join, server: ApiServer
) -> None:
    """Or leaves its lease to run out."""
    membership = join(renew_deadline=1.0)
    membership.start()
    until(lambda: len(membership.shards) == SHARDS, PATIENCE)
    with membership.owned("an object") as fence:
        with server.faults.add(HttpStatus(500), resource="leases"):
            until(lambda: not membership.shards, PATIENCE)
        until(lambda: len(membership.shards) == SHARDS, PATIENCE)
        assert not fence.holds()
        assert membership.close(PATIENCE)
        assert len(member_leases(server)) == 1


def test_s54_the_fence_of_what_works_while_a_replica_ends_holds(
    join: Join, server: ApiServer
) -> None:
    """It is waited for."""
    membership = join(**LONG)
    membership.start()
    until(lambda: len(membership.shards) == SHARDS, PATIENCE)
    with membership.owned("an object") as fence:
        assert not membership.close(0.2)
        assert membership.shards == frozenset()
        fence.check()
    assert membership.close(PATIENCE)
    assert not fence.holds()
    assert member_leases(server) == []


def test_s54_a_replica_that_ends_while_it_renews_removes_its_lease(
    join: Join, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is after the renewal."""
    membership = join(**LONG)
    leases = membership._leases
    answer = leases.answer

    def answer_and_end(ask: Any) -> Any:
        found = answer(ask)
        if len(membership.shards) == SHARDS and isinstance(ask, Put):
            membership.close()  # on its own thread: this waits for nothing
        return found

    monkeypatch.setattr(leases, "answer", answer_and_end)
    membership.start()
    assert membership.wait(PATIENCE)
    assert membership.close(PATIENCE)
    assert member_leases(server) == []


def test_s53_shards_that_come_while_others_are_waited_for_are_waited_for_too(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is ours is held then."""
    membership = join()
    found = membership.informer("v1/configmaps")
    tenure = Tenure(time.monotonic, math.inf)
    shards = {each: Ownership("a shard", each, "me", 1, tenure) for each in range(SHARDS)}
    owned = {0: shards[0]}
    found.follow(lambda: owned)
    assert found.wait_synced(PATIENCE)
    (first,) = found._generations
    wait_synced = first.informer.wait_synced

    def wait_and_get_more(timeout: float | None = None) -> bool:
        found.follow(lambda: owned)
        return wait_synced(timeout)

    owned.update(shards)
    monkeypatch.setattr(first.informer, "wait_synced", wait_and_get_more)
    assert found.wait_synced(PATIENCE)
    assert names(found) == NAMES


def at_once(count: int, work: Callable[[], object]) -> None:
    """Have so many threads do it in the same moment."""
    together = threading.Barrier(count)
    failed: list[BaseException] = []

    def run() -> None:
        together.wait(PATIENCE)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test sees it
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert not failed


def test_a_membership_that_many_threads_start_at_once_is_started_once(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though each has looked before any other has begun."""
    membership = join()
    looked = threading.Barrier(2)
    check = membership._check_going

    def check_together() -> None:
        check()
        with suppress(threading.BrokenBarrierError):
            looked.wait(0.2)  # the other one waits for the lock

    monkeypatch.setattr(membership, "_check_going", check_together)
    at_once(2, membership.start)
    until(lambda: len(membership.shards) == SHARDS, PATIENCE)


def test_informers_that_many_threads_ask_for_at_once_are_all_followed(join: Join) -> None:
    """None is forgotten."""
    membership = join()
    found: list[ShardedInformer] = []
    at_once(8, lambda: found.append(membership.informer("v1/configmaps")))
    assert set(membership._informers) == set(found)
    with membership:
        until(lambda: all(names(each) == NAMES for each in found), PATIENCE)


def test_s53_of_two_threads_that_follow_none_goes_back(join: Join) -> None:
    """What is owned is looked at in turn: else what was begun is stopped, and told again."""
    found = join().informer("v1/configmaps")
    tenure = Tenure(time.monotonic, math.inf)
    shards = {each: Ownership("a shard", each, "me", 1, tenure) for each in range(SHARDS)}
    before, now = {0: shards[0]}, shards
    looking, go_on = threading.Event(), threading.Event()

    def look() -> dict[int, Ownership]:
        looking.set()
        go_on.wait(PATIENCE)
        return before

    slow = threading.Thread(target=found.follow, args=(look,))
    quick = threading.Thread(target=found.follow, args=(lambda: now,))
    slow.start()
    assert looking.wait(PATIENCE)
    quick.start()
    go_on.set()
    slow.join(PATIENCE)
    quick.join(PATIENCE)
    assert found.wait_synced(PATIENCE)
    assert names(found) == NAMES


def waiting_for_one(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> tuple[ShardMembership, Ownership]:
    """A replica that would sleep for an hour, and the shard at work that it has to give away."""
    membership = join(lease_duration=9000, renew_deadline=6000.0, retry_period=3000.0)
    owner = Ownership("a shard", 0, "me", 1, Tenure(time.monotonic, math.inf))
    owner.enter()
    owner.close()
    monkeypatch.setattr(membership._rounds, "awaited", frozenset([owner]))
    return membership, owner


def test_s54_a_shard_at_rest_before_the_sleep_began_is_not_slept_over(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round has found it at work, and its work ended before anybody listened."""
    membership, owner = waiting_for_one(join, monkeypatch)
    owner.leave()
    sleeper = threading.Thread(target=membership._sleep)
    sleeper.start()
    sleeper.join(PATIENCE)
    assert not sleeper.is_alive()


def test_s54_a_shard_that_comes_to_rest_ends_the_sleep(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As does the end of its membership's factory."""
    membership, owner = waiting_for_one(join, monkeypatch)
    sleeper = threading.Thread(target=membership._sleep)
    sleeper.start()
    until(lambda: bool(owner.idle_bell._sleepers), PATIENCE)
    owner.leave()
    sleeper.join(PATIENCE)
    assert not sleeper.is_alive()


def test_a_membership_that_sleeps_ends_with_its_factory(join: Join, server: ApiServer) -> None:
    """At once, and not with its next round."""
    with DynamicSharedInformerFactory(server.client()) as factory:
        membership = join(factory, lease_duration=9000, renew_deadline=6000.0, retry_period=3000.0)
        membership.start()
        until(lambda: len(member_leases(server)) == 1, PATIENCE)
        factory.shutdown(5)
        assert membership.wait(PATIENCE)
        with pytest.raises(StoppedError, match="has ended"):
            membership.informer("v1/pods")


def test_a_name_that_is_no_label_is_refused() -> None:
    """By it a replica's leases are found."""
    with pytest.raises(ValueError, match="63 at most"):
        ShardMembership(name="a" * 64)


def test_s50_a_replica_that_was_away_too_long_joins_under_another_name(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next renewal does not bring back the lease that others have removed."""
    short = {"lease_duration": 2, "renew_deadline": 1.5}
    first, second = join(**short), join(**short)
    answer = first._leases.answer
    away, go_on = threading.Event(), threading.Event()
    heard: list[Any] = []

    def answer_late(ask: Any) -> Any:
        if not isinstance(ask, Put) or not away.is_set():
            return answer(ask)
        go_on.wait(PATIENCE)
        heard.append(answer(ask))
        return heard[-1]

    monkeypatch.setattr(first._leases, "answer", answer_late)
    with first, second:
        until(lambda: len(first.shards) == len(second.shards) == SHARDS // 2, PATIENCE)
        identity = first.identity
        away.set()
        until(lambda: len(second.shards) == SHARDS, PATIENCE)
        go_on.set()
        until(lambda: len(first.shards) == len(second.shards) == SHARDS // 2, PATIENCE)
        assert heard[0] is Failure.CONFLICT
        assert first.identity != identity


def test_s53_reads_leave_out_what_is_not_ours_any_more(join: Join) -> None:
    """At once: before anybody has heard of it."""
    found = join().informer("v1/configmaps")
    tenure = Tenure(time.monotonic, math.inf)
    shards = {each: Ownership("a shard", each, "me", 1, tenure) for each in range(SHARDS)}
    found.follow(lambda: shards)
    assert found.wait_synced(PATIENCE)
    assert names(found) == NAMES
    lost = shard_of(found.list()[0]["metadata"]["uid"], SHARDS)
    ours: list[Any] = []
    theirs: list[Any] = []
    for each in found:
        (theirs if shard_of(each["metadata"]["uid"], SHARDS) == lost else ours).append(each)
    shards[lost].close()
    assert names(found) == names(ours)
    assert len(found) == len(ours) < len(NAMES)
    assert not any(f"default/{name}" in found for name in names(theirs))


def test_a_membership_whose_thread_found_no_room_can_be_started_again(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is told so the first time."""

    def no_room(thread: OwnThread) -> None:
        raise RuntimeError(f"can't start new thread: {thread.name}")

    membership = join()
    with monkeypatch.context() as patch:
        patch.setattr(OwnThread, "start", no_room)
        with pytest.raises(RuntimeError, match="shards"):
            membership.start()
    membership.start()
    assert membership.wait_shared(PATIENCE)


def test_options_that_no_informer_can_have_are_refused_where_they_are_given(join: Join) -> None:
    """And not on the membership's thread, in every round."""
    membership = join()
    with pytest.raises(JSONPathError, match="not closed"):
        membership.informer("v1/configmaps", indexers={"broken": "{.metadata["})
    found = membership.informer("v1/configmaps")
    with membership:
        assert found.wait_synced(PATIENCE)
        assert names(found) == NAMES


def test_an_informer_that_cannot_begin_holds_up_no_other(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again in the next round: there may be room for its threads then."""
    membership = join()
    first, second = (membership.informer("v1/configmaps") for _ in range(2))
    begin = first._begin
    failed, room = threading.Semaphore(0), threading.Event()

    def without_room(owners: Any) -> Any:
        if room.is_set():
            return begin(owners)
        failed.release()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(first, "_begin", without_room)
    with membership:
        assert second.wait_synced(PATIENCE)
        for _ in range(2):
            assert failed.acquire(timeout=PATIENCE)
        assert not first.has_synced()
        room.set()
        assert first.wait_synced(PATIENCE)
        assert names(first) == names(second) == NAMES


@pytest.mark.parametrize("ran", [False, True], ids=["before it began", "when it had begun"])
def test_s23_a_start_that_is_interrupted_leaves_no_replica(
    join: Join, server: ApiServer, monkeypatch: pytest.MonkeyPatch, ran: bool
) -> None:
    """Whoever wanted to enter its block has not, and would not leave it either."""
    start = OwnThread.start
    membership = join(**LONG)

    def interrupted(thread: OwnThread) -> None:
        monkeypatch.setattr(OwnThread, "start", start)
        if ran:
            start(thread)
            assert membership.wait_shared(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(OwnThread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), membership:
        pass
    assert membership.wait(PATIENCE)
    assert not any(each.name.startswith("dyninformer shards") for each in threading.enumerate())
    assert member_leases(server) == []
