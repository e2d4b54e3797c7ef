"""Servers with something to ask for, and sources that are closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dyninformer.testing import ApiServer
from dyninformer.watching.client import Source
from tests.watching.wires import config_map

Make = Callable[..., Source]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with one config map."""
    with ApiServer() as found:
        found.create(config_map("a", colour="blue"))
        yield found


@pytest.fixture
def secure() -> Iterator[ApiServer]:
    """The same with TLS."""
    with ApiServer(tls=True) as found:
        found.create(config_map("a", colour="blue"))
        yield found


@pytest.fixture
def make() -> Iterator[Make]:
    """Sources that are closed afterwards."""
    made = []

    def make(*args: Any, **options: Any) -> Source:
        made.append(Source(*args, **options))
        return made[-1]

    yield make
    for source in made:
        source.close()
