"""One informer without a server for each test that asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.delivery.harness import Harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    """A store and its dispatcher, of which no thread may be left."""
    made = Harness()
    yield made
    made.close()
