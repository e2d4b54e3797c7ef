"""One watch tells its subscribers of CRDs, and says whether it can be relied on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus, Refuse
from dyninformer.watching.client import Source
from dyninformer.watching.crds import CrdWatch
from dyninformer.watching.status import InformerState
from tests.transport.wires import eventually, open_sockets

CRDS = "customresourcedefinitions"


def crd(plural: str, **schema: Any) -> dict[str, Any]:
    """A CRD of the group ex.io."""
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": schema}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [version],
        },
    }


class Told:
    """A subscriber that counts."""

    def __init__(self) -> None:
        self.times = 0
        self.threads: set[str] = set()

    def __call__(self) -> None:
        """Something happened."""
        self.threads.add(threading.current_thread().name)
        self.times += 1


@pytest.fixture
def source(server: ApiServer) -> Iterator[Source]:
    """A source that is closed afterwards."""
    found = Source(server.client())
    yield found
    found.close()


@pytest.fixture
def watch(source: Source) -> Iterator[CrdWatch]:
    """A watch that is stopped afterwards."""
    found = CrdWatch(source, owner=object())
    yield found
    found.stop()
    assert found.join(10)


def started(watch: CrdWatch) -> CrdWatch:
    """The same, once it can be relied on."""
    watch.subscribe(lambda: None)
    eventually(lambda: watch.available)
    return watch


def test_nothing_is_asked_before_somebody_subscribes(server: ApiServer, source: Source) -> None:
    """A factory without custom resources never watches CRDs."""
    watch = CrdWatch(source, owner=object())
    assert not watch.available
    assert watch.seen("widgets.ex.io").generation is None
    assert server.requests == []
    watch.stop()
    assert watch.join(1)
    watch.subscribe(lambda: None)
    assert server.requests == []


def test_a_crd_that_comes_changes_and_goes_is_told(server: ApiServer, watch: CrdWatch) -> None:
    """To those who asked for it; each finds the generation of then."""
    mine, others = Told(), Told()
    watch.subscribe(mine, "widgets.ex.io")
    watch.subscribe(others, "gadgets.ex.io")
    eventually(lambda: watch.available and mine.times == 1)
    assert watch.seen("widgets.ex.io").generation is None
    server.create(crd("widgets"))
    eventually(lambda: watch.seen("widgets.ex.io").generation == 1 and mine.times > 1)
    before = mine.times
    server.patch(f"{CRDS}/widgets.ex.io", {"spec": crd("widgets", a={"type": "string"})["spec"]})
    eventually(lambda: watch.seen("widgets.ex.io").generation == 2 and mine.times > before)
    server.delete(f"{CRDS}/widgets.ex.io")
    eventually(lambda: watch.seen("widgets.ex.io").generation is None and watch.available)
    assert others.times == 1  # that CRDs can be watched
    assert mine.threads == {
        "dyninformer reflector customresourcedefinitions.v1.apiextensions.k8s.io"
    }


def test_who_asked_for_no_crd_in_particular_is_told_of_each(
    server: ApiServer, watch: CrdWatch
) -> None:
    """As a follower of a pattern needs it; and no more after unsubscribing."""
    told = Told()
    unsubscribe = watch.subscribe(told)
    eventually(lambda: watch.available and told.times == 1)
    server.create(crd("widgets"))
    eventually(lambda: told.times > 1)
    unsubscribe()
    unsubscribe()
    witness, before = Told(), told.times
    watch.subscribe(witness, "gadgets.ex.io")
    server.create(crd("gadgets"))
    eventually(lambda: witness.times > 0)
    assert told.times == before


def test_a_subscriber_that_raises_harms_no_other(server: ApiServer, watch: CrdWatch) -> None:
    """It is logged."""
    told = Told()

    def fail() -> None:
        raise ZeroDivisionError

    watch.subscribe(fail)
    watch.subscribe(told)
    eventually(lambda: watch.available)
    server.create(crd("widgets"))
    eventually(lambda: watch.seen("widgets.ex.io").generation == 1 and told.times > 1)


def test_a_subscriber_may_ask_and_stop_from_its_callback(
    server: ApiServer, watch: CrdWatch
) -> None:
    """No lock is held while it is told."""
    seen = []

    def look() -> None:
        other = threading.Thread(target=lambda: seen.append(watch.seen("widgets.ex.io").generation))
        other.start()
        other.join(5)
        assert not other.is_alive()
        if seen[-1] == 1:
            watch.stop()

    watch.subscribe(look)
    eventually(lambda: watch.available)
    server.create(crd("widgets"))
    eventually(lambda: watch.join(0))
    assert 1 in seen


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_without_the_right_to_watch_crds_it_is_not_available(
    server: ApiServer, watch: CrdWatch, verb: str
) -> None:
    """The status says why; once the right is there, it is told."""
    told = Told()
    verbs = ["list", "watch"] if verb == "list" else ["watch"]
    with server.faults.add(HttpStatus(403, message="no CRDs for you"), verb=verbs, resource=CRDS):
        watch.subscribe(told)
        eventually(lambda: watch.status().state == InformerState.BACKING_OFF)
        assert not watch.available
        assert "forbidden" in watch.status().reason.lower()
        assert told.times == 0
    eventually(lambda: watch.available and told.times == 1)


def test_what_was_known_is_not_relied_on_while_the_server_is_away(
    server: ApiServer, watch: CrdWatch
) -> None:
    """And what was missed is told when it is back."""
    server.create(crd("widgets"))
    told = Told()
    watch.subscribe(told, "widgets.ex.io")
    eventually(lambda: watch.available and told.times == 1)
    assert watch.seen("widgets.ex.io").generation == 1
    with server.faults.add(Refuse()):
        server.restart()
        eventually(lambda: not watch.available and told.times == 2)
        assert watch.seen("widgets.ex.io").generation is None
        server.delete(f"{CRDS}/widgets.ex.io")
    eventually(lambda: watch.available and watch.seen("widgets.ex.io").generation is None)
    assert told.times > 2


def test_only_metadata_is_asked_for_and_little_of_it_kept(
    server: ApiServer, watch: CrdWatch
) -> None:
    """A cluster has hundreds of CRDs, of up to a megabyte each."""
    big = crd("widgets", **{f"field{n}": {"type": "string"} for n in range(2000)})
    big["metadata"]["annotations"] = {"last": "x" * 10_000}
    server.create(big)
    started(watch)
    payload = watch._store.get("widgets.ex.io")
    assert payload is not None
    assert len(payload) < 600


def test_after_stop_nothing_is_left(server: ApiServer, source: Source) -> None:
    """It ends at once, and is not available any more."""
    sockets = open_sockets()
    told = Told()
    watch = CrdWatch(source, owner=object())
    watch.subscribe(told)
    eventually(lambda: watch.available)
    watch.stop()
    watch.stop()
    assert watch.join(1)
    assert not watch.available
    eventually(lambda: open_sockets() == sockets)
