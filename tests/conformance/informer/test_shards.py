"""A part of a collection by the hash of the uid (S49), on servers that divide it and on others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer import DynamicSharedInformerFactory, Shard
from dyninformer.shard import shard_of
from dyninformer.testing import ApiServer
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.faults import HttpStatus
from tests.conformance import shapes
from tests.conformance.cluster import Collection
from tests.conformance.informer.conftest import Running
from tests.conformance.informer.recorders import PATIENCE, WIDGETS, Heard
from tests.conformance.wire import until

NAMES = [f"w{number:02d}" for number in range(24)]


def of(shard: Shard, created: list[Any]) -> list[str]:
    """The names of a shard's objects."""
    return sorted(
        each["metadata"]["name"] for each in created if shard.owns(each["metadata"]["uid"])
    )


@pytest.mark.parametrize("watch_list", [True, False])
def test_s49_shards_together_hold_each_object_once(
    widgets: Collection, running: Running, watch_list: bool
) -> None:
    """Whether the state is streamed or listed, in pages of which some may be none of ours."""
    created = widgets.fill(*NAMES)
    for index in range(3):
        shard = Shard(index, 3)
        found = running(shard=shard, watch_list=watch_list, page_size=2)
        keys = found.lister.keys()
        names = [key.rpartition("/")[2] for key in keys]
        assert sorted(names) == of(shard, created)
        assert found.informer.status().attempts == 0


def test_s49_a_shard_hears_of_its_own_objects_alone(widgets: Collection, running: Running) -> None:
    """Of additions, updates and deletions."""
    shard, heard = Shard(0, 2), Heard()
    found = running(shard=shard)
    found.informer.add_event_handler(heard)
    created = widgets.fill(*NAMES)
    for name in NAMES:
        widgets.merge(name, {"metadata": {"labels": {"a": "b"}}})
    for name in NAMES:
        widgets.api.delete(widgets.at(name))
    found.informer.wait_fresh(0, PATIENCE)
    until(lambda: len(heard.told) == 3 * len(of(shard, created)), PATIENCE)
    assert {name for _, name in heard.told} == set(of(shard, created))
    assert len(found.lister) == 0


def test_s49_a_name_that_comes_back_in_another_shard_is_gone(
    widgets: Collection, running: Running
) -> None:
    """And one that comes back in ours is added."""
    shard, heard = Shard(0, 2), Heard()
    found = running(shard=shard)
    found.informer.add_event_handler(heard)
    expected: list[str] = []
    for _ in range(8):
        (made,) = widgets.fill("again")
        if shard.owns(made["metadata"]["uid"]):  # of others a server that divides says nothing
            expected += ["ADDED", "DELETED"]
            found.informer.wait_for_version(made, PATIENCE)
            assert found.lister.find("again") is not None
        widgets.api.delete(widgets.at("again"))
    found.informer.wait_fresh(0, PATIENCE)
    assert len(found.lister) == 0
    until(lambda: [str(type_) for type_, _ in heard.told] == expected, PATIENCE)


def test_s49_an_audit_compares_the_shard(widgets: Collection, running: Running) -> None:
    """What is in another one is neither missing nor compared."""
    created = widgets.fill(*NAMES)
    found = running(shard=Shard(1, 2))
    report = found.informer.audit(PATIENCE)
    assert not report.differs
    assert report.compared == len(of(Shard(1, 2), created))


def test_s49_a_cache_of_a_shard_can_be_fresh(widgets: Collection, running: Running) -> None:
    """As soon as it has seen what the server has, whosoever the change was."""
    found = running(shard=Shard(0, 2))
    widgets.fill(*NAMES[:4])
    found.informer.wait_fresh(0, PATIENCE)


def test_s56_pods_of_a_stateful_set_hold_each_object_once(
    widgets: Collection, running: Running
) -> None:
    """By the numbers at the end of their names."""
    widgets.fill(*NAMES)
    held = [
        key
        for pod in ("certs-0", "certs-1")
        for key in running(shard=Shard.from_ordinal(pod, 2)).lister.keys()  # noqa: SIM118
    ]
    assert len(held) == len(set(held)) == len(NAMES)


@pytest.fixture(params=[False, True], ids=["ignores", "divides"])
def small(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """A server that ignores shards, as most do, and one that obeys."""
    with ApiServer(settings=ReadSettings(sharding=request.param)) as server:
        server.install(shapes.WIDGETS)
        yield server


def test_s49_whatever_the_server_does_the_cache_is_the_shard(small: ApiServer) -> None:
    """At first, and after changes, a lost stream, and history that is gone."""

    def fill(*names: str) -> None:
        for name in names:
            small.create(shapes.widget(name), "default")

    def ours() -> set[str]:
        items = [small.get(f"widgets/{name}", "default") for name in NAMES[: 2 * rounds]]
        return {
            f"default/{each['metadata']['name']}"
            for each in items
            if shard_of(each["metadata"]["uid"], 3) == 1
        }

    rounds = 4
    fill(*NAMES[:8])
    with DynamicSharedInformerFactory(small.client()) as factory:
        found = factory.for_resource(WIDGETS, shard=Shard(1, 3))
        heard = Heard()
        found.informer.add_event_handler(heard)
        factory.sync(PATIENCE)
        assert set(found.lister.keys()) == ours()
        rounds = 8
        fill(*NAMES[8:16])
        until(lambda: set(found.lister.keys()) == ours(), PATIENCE)
        small.restart()
        rounds = 12
        fill(*NAMES[16:24])
        until(lambda: set(found.lister.keys()) == ours(), PATIENCE)
        assert {f"default/{name}" for _, name in heard.told} == ours()
        assert found.informer.status().expected is None


def test_s49_a_server_that_divides_otherwise_is_not_asked_to(small: ApiServer) -> None:
    """It refuses the words once: then what it sends is divided here."""
    words = "invalid shard selector: no such function"
    small.faults.add(HttpStatus(500, words), times=1, resource="widgets")
    with DynamicSharedInformerFactory(small.client()) as factory:
        found = factory.for_resource(WIDGETS, shard=Shard(1, 3))
        factory.sync(PATIENCE)
        assert found.informer.has_synced()
        asked = [each.query for each in small.requests if "widgets" in each.path]
        assert "shardSelector" in str(asked[0])
        assert "shardSelector" not in str(asked[-1])
