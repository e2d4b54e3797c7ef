"""A server of its own for each test, with one CRD installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import urllib3

from dyninformer.testing import ApiServer
from dyninformer.types import Object
from tests.conformance.shapes import WIDGETS

WIDGETS_PATH = "/apis/ex.io/v1/namespaces/default/widgets"


def widget(name: str, **spec: object) -> Object:
    """A widget to create."""
    return {
        "apiVersion": "ex.io/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


class Client:
    """urllib3, as bare as it comes: no retries, and the token of the administrator."""

    def __init__(self, server: ApiServer, timeout: float = 10) -> None:
        self._server = server
        ca = str(server.ca) if server.ca else None
        self.pool = urllib3.PoolManager(retries=False, timeout=timeout, ca_certs=ca)

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """One request."""
        return self.pool.request(
            method,
            self._server.url + path,
            headers={"Authorization": f"Bearer {token or self._server.token}", **(headers or {})},
            body=None if body is None else json.dumps(body).encode(),
            preload_content=not stream,
        )

    def list(self, query: str = "") -> urllib3.BaseHTTPResponse:
        """LIST the widgets."""
        return self.ask("GET", WIDGETS_PATH + query)

    def watch(self, query: str = "") -> urllib3.BaseHTTPResponse:
        """WATCH the widgets from the beginning; the lines are not read yet."""
        return self.ask("GET", f"{WIDGETS_PATH}?watch=1{query}", stream=True)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server that serves widgets."""
    with ApiServer() as found:
        found.install(WIDGETS)
        yield found


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Makes clients, which are closed at the end."""
    made: list[Client] = []

    def connect(server: ApiServer, timeout: float = 10) -> Client:
        made.append(Client(server, timeout))
        return made[-1]

    yield connect
    for client in made:
        client.pool.clear()


@pytest.fixture
def client(server: ApiServer, connect: Callable[..., Client]) -> Client:
    """A client of ``server``."""
    return connect(server)
