"""Servers with something to ask for, and sources that are closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dyninformer.testing import ApiServer
from dyninformer.transport.source import Source as LoopSource
from dyninformer.watching.client import Source
from tests.transport.wires import config_map

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
def threads() -> Iterator[Make]:
    """Sources over blocking sockets, for tests of how these work."""
    made = []

    def make(*args: Any, **options: Any) -> Source:
        made.append(Source(*args, **options))
        return made[-1]

    yield make
    for source in made:
        source.close()
    for source in made:
        source.join(5)


@pytest.fixture(params=[Source, LoopSource], ids=["threads", "loop"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Sources that are closed afterwards."""
    made: list[Source] = []

    def make(*args: Any, **options: Any) -> Source:
        made.append(request.param(*args, **options))
        return made[-1]

    yield make
    for source in made:
        source.close()
    for source in made:
        source.join(5)
