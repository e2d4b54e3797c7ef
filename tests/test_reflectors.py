"""The reflectors of an informer, together: one beginning, one status, one end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dyninformer import (
    InformerState,
    ListOptions,
    ResourceOptions,
    SharedIndexInformer,
    StoppedError,
)
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus
from tests.config_maps import MAPS, PATIENCE
from tests.conformance.wire import until


@pytest.fixture
def informer(server: ApiServer) -> Iterator[SharedIndexInformer]:
    """An informer of the config maps in two namespaces, not started."""
    options = ResourceOptions(namespaces=["default", "kube-system"])
    found = SharedIndexInformer(server.client(), MAPS, options)
    yield found
    assert found.stop(5)


def test_it_is_synced_when_every_namespace_is(
    server: ApiServer, informer: SharedIndexInformer
) -> None:
    """Until then it says of which one it has trouble, and that no version is seen."""
    with server.faults.add(HttpStatus(500, "out of order"), namespace="kube-system"):
        informer.start()
        until(lambda: "kube-system" in informer.status().reason)
        assert not informer.wait_synced(0)
        assert informer.status().state is InformerState.BACKING_OFF
        assert informer.last_sync_resource_version() == ""
    assert informer.wait_synced(PATIENCE)
    until(lambda: informer.status().state is InformerState.WATCHING)
    assert informer.status().reason == ""
    assert informer.last_sync_resource_version() != ""


def test_the_tweak_runs_once_however_many_namespaces_there_are(server: ApiServer) -> None:
    """When it starts, and not before."""
    asked: list[ListOptions] = []
    options = ResourceOptions(namespaces=["default", "kube-system"])
    informer = SharedIndexInformer(server.client(), MAPS, options, tweak_list_options=asked.append)
    assert asked == []
    informer.start()
    informer.start()
    assert len(asked) == 1
    assert informer.stop(5)


def test_a_watch_error_handler_comes_before_the_start(informer: SharedIndexInformer) -> None:
    """Later is an error that says so; after the end, too."""
    informer.start()
    with pytest.raises(RuntimeError, match=r"set_watch_error_handler: .* is started"):
        informer.set_watch_error_handler(print)
    assert informer.stop(5)
    with pytest.raises(StoppedError, match=r"set_watch_error_handler: .* has stopped"):
        informer.set_watch_error_handler(print)
