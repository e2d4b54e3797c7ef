"""Faults on a real API server for as long as one has patience; ``__main__`` is for runs by hand."""

from __future__ import annotations

import pytest

from tests.real_faults.__main__ import run

SECONDS = 1800


@pytest.mark.real
@pytest.mark.soak
@pytest.mark.timeout(2 * SECONDS)
def test_nothing_is_lost_whatever_happens_to_servers_networks_and_credentials() -> None:
    """Caches, handlers, streams and indexes are as etcd has it after each round of faults."""
    assert run(seed=1, seconds=SECONDS)
