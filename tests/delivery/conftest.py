"""One informer without a server for each test that asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.delivery.room import Room


@pytest.fixture
def room() -> Iterator[Room]:
    """A store and its dispatcher, of which no thread may be left."""
    made = Room()
    yield made
    made.close()
