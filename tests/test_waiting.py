"""Waiting until an object meets a condition, or a version is seen."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dyninformer import (
    SharedIndexInformer,
    WaitTimeoutError,
)
from dyninformer.indexer import Store
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus
from dyninformer.waiting import wait_for
from tests.config_maps import PATIENCE, write
from tests.conformance.wire import until


def test_an_object_that_is_there_is_waited_for_no_longer(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It is returned as it is; a timeout of 0 is enough."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    assert synced.wait_for("create", name="a", namespace="default", timeout=0) == made


def test_a_wait_ends_with_the_change_that_meets_its_condition(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """The object need not be there when the wait begins."""
    found: list[dict[str, Any]] = []

    def wait() -> None:
        found.append(
            synced.wait_for("jsonpath={.data.x}=2", name="a", namespace="default", timeout=PATIENCE)
        )

    thread = threading.Thread(target=wait)
    thread.start()
    write(server, "b", x="2")
    write(server, "a", x="1")
    changed = server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
    thread.join(PATIENCE)
    assert found == [changed]


class DeletedAtFirstSight(Store):
    """A cache whose object is deleted from the server as soon as it was looked at."""

    def __init__(self, server: ApiServer, informer: SharedIndexInformer) -> None:
        self._server = server
        self._informer = informer
        self._looked = False

    def get_by_key(self, key: str) -> dict[str, Any] | None:
        """What is held before the deletion, or after it."""
        found = self._informer.store.get_by_key(key)
        if not self._looked:
            self._looked = True
            self._server.delete("configmaps/a", "default")
        return found


class Proxy:
    """An informer with another cache."""

    def __init__(self, informer: SharedIndexInformer, store: Store) -> None:
        self._informer = informer
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._informer, name)


def test_a_wait_for_a_deletion_returns_the_last_state(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """As the wait saw it."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    proxy: Any = Proxy(synced, DeletedAtFirstSight(server, synced))
    gone = wait_for(proxy, "delete", name="a", namespace="default", timeout=PATIENCE)
    assert gone == made


def test_a_deletion_of_what_never_was_is_over(synced: SharedIndexInformer) -> None:
    """There is no last state to return."""
    assert synced.wait_for("delete", name="never", namespace="default", timeout=0) == {}


def test_a_wait_that_is_not_met_holds_the_last_state(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """And says what there is instead; without an object, that there is none."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    with pytest.raises(WaitTimeoutError, match='is "1"') as caught:
        synced.wait_for("jsonpath={.data.x}=2", name="a", namespace="default", timeout=0.05)
    assert caught.value.last == made
    with pytest.raises(WaitTimeoutError, match="no such object") as caught:
        synced.wait_for("create", name="never", namespace="default", timeout=0.05)
    assert caught.value.last is None


def test_changes_of_other_objects_do_not_prolong_a_wait(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It ends while they go on."""
    write(server, "busy")
    over = threading.Event()

    def be_busy() -> None:
        number = 0
        while not over.wait(0.005):
            number += 1
            server.patch("configmaps/busy", {"data": {"n": str(number)}}, "default")

    thread = threading.Thread(target=be_busy)
    thread.start()
    with pytest.raises(WaitTimeoutError):
        synced.wait_for("create", name="never", namespace="default", timeout=0.2)
    assert thread.is_alive()
    over.set()
    thread.join()


def test_a_wait_before_the_sync_says_why_there_is_none(
    server: ApiServer, informer: SharedIndexInformer
) -> None:
    """The reason of the status is in the error."""
    with server.faults.add(HttpStatus(503, "closed for lunch")):
        informer.start()
        until(lambda: informer.status().attempts)
        with pytest.raises(WaitTimeoutError, match="closed for lunch"):
            informer.wait_for("create", name="a", namespace="default", timeout=0.05)


# -- versions ---


def test_a_version_of_ones_own_is_seen(server: ApiServer, synced: SharedIndexInformer) -> None:
    """After it, reads have what was written."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    assert synced.lister.get("a", "default") == made


def test_a_version_that_does_not_come_is_an_error(synced: SharedIndexInformer) -> None:
    """It says where the cache is."""
    with pytest.raises(WaitTimeoutError, match="it is at"):
        synced.wait_for_version("999999999999", 0.05)
