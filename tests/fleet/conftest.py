"""Two clusters, new for each test, and a fleet of both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dyninformer import Fleet
from dyninformer.testing import ApiServer


@pytest.fixture(scope="module")
def furnished() -> Iterator[tuple[ApiServer, ApiServer]]:
    """For all tests of a module."""
    with ApiServer() as eu, ApiServer() as us:
        yield eu, us


@pytest.fixture
def eu(furnished: tuple[ApiServer, ApiServer]) -> ApiServer:
    """One, as new."""
    furnished[0].reset()
    return furnished[0]


@pytest.fixture
def us(furnished: tuple[ApiServer, ApiServer]) -> ApiServer:
    """Another one."""
    furnished[1].reset()
    return furnished[1]


@pytest.fixture
def fleet(eu: ApiServer, us: ApiServer) -> Iterator[Fleet]:
    """Both, not yet started."""
    with Fleet({"eu": eu.client(), "us": us.client()}) as fleet:
        yield fleet
