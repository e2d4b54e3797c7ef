"""A collection whose cache is not filled yet answers 429, and says when to come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dyninformer.testing import ApiServer, ControlPlane, ReadSettings
from tests.conformance.cluster import Cluster
from tests.conformance.shapes import ANYTHING, CRDS, crd
from tests.conformance.wire import Answer, Wire

STORAGE = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    '"message":"storage is (re)initializing","reason":"TooManyRequests",'
    '"details":{"retryAfterSeconds":1},"code":429}\n'
)


@pytest.fixture(scope="module")
def slow() -> Iterator[ApiServer]:
    """An embedded server whose caches take their time."""
    with ApiServer(tls=True, settings=ReadSettings(warm_up=0.2)) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def api(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Each server in turn, as an administrator sees it."""
    server: ApiServer | ControlPlane
    if request.param == "embedded":
        server = request.getfixturevalue("slow")
    else:
        cluster: Cluster = request.getfixturevalue("real")
        server = cluster.server
    wire = Wire(server.url, server.token, str(server.ca))
    yield wire
    wire.close()


def _first_answer(api: Wire, group: str, params: dict[str, str]) -> Answer:
    """Create a CRD, and ask for its objects until there is anything but a 404."""
    assert api.post(CRDS, crd(group, "rows", "Row", ANYTHING)).status == 201
    while (answer := api.get(f"/apis/{group}/v1/rows", params)).status == 404:
        continue
    return answer


@pytest.mark.parametrize(
    "params",
    [{}, {"watch": "1", "timeoutSeconds": "1"}, {"labelSelector": "a=b", "limit": "5"}],
    ids=["list", "watch", "selected page"],
)
def test_a_new_collection_asks_to_be_asked_again(
    api: Wire, group: str, params: dict[str, str]
) -> None:
    """Lists and watches that need the cache get a 429 with Retry-After until it is filled."""
    for attempt in range(20):  # a real cache can be filled before the first question
        name = f"{attempt}.{group}"
        first = _first_answer(api, name, params)
        if first.status == 429:
            break
    assert (first.status, first.text) == (429, STORAGE)
    assert first.headers["Retry-After"] == "1"
    while (later := api.get(f"/apis/{name}/v1/rows")).status == 429:
        continue
    assert (later.status, later.names) == (200, [])


def test_a_page_without_selectors_needs_no_cache(api: Wire, group: str) -> None:
    """A limited list goes past the cache, and succeeds at once."""
    assert _first_answer(api, group, {"limit": "5"}).status == 200
