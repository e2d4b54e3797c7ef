"""What the informers of a factory share, and its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyninformer.errors import ConfigError
from dyninformer.shared import Shared
from dyninformer.testing import ApiServer
from tests.conformance.wire import until


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An embedded server."""
    with ApiServer() as server:
        yield server


def test_connecting_asks_nothing_of_the_network(server: ApiServer) -> None:
    """Not even for a kubeconfig's server."""
    shared = Shared.connect(None, kubeconfig=server.kubeconfig())
    shared.close()
    assert shared.wait_closed(5) == []
    assert server.requests == []


def test_no_configuration_is_an_error_that_says_where_it_looked(tmp_path: Path) -> None:
    """A kubeconfig that is not there is named."""
    with pytest.raises(ConfigError, match="nowhere"):
        Shared.connect(None, kubeconfig=tmp_path / "nowhere")


def test_its_threads_end_with_it(server: ApiServer) -> None:
    """The CRD watch and the timers; again is fine."""
    shared = Shared.connect(server.client())
    before = threading.active_count()
    shared.crds.subscribe(lambda: None)
    shared.timers.call_later(1000, lambda: None)
    until(lambda: shared.crds.available)
    assert threading.active_count() == before + 2
    shared.close()
    shared.close()
    assert shared.wait_closed(5) == []
    assert threading.active_count() == before


def test_what_still_runs_is_named(server: ApiServer) -> None:
    """A timer's act that does not come back."""
    shared = Shared.connect(server.client())
    entered, leave = threading.Event(), threading.Event()

    def act() -> None:
        entered.set()
        leave.wait(10)

    shared.timers.call_later(0, act)
    assert entered.wait(10)
    shared.close()
    assert shared.wait_closed(0) == ["dyninformer timers"]
    leave.set()
    assert shared.wait_closed(5) == []
