"""Requests are made by a copy: of all that the caller set up, and nothing of his is changed."""

from __future__ import annotations

import copy
import socket
from typing import Any

from kubernetes import client as official
from kubernetes.dynamic import DynamicClient

from dyninformer.testing import ApiServer
from dyninformer.watching.transport import Request
from tests.watching.conftest import Make
from tests.watching.wires import LIST, MAPS, names, serving, whole


def test_the_callers_client_stays_as_it_is(secure: ApiServer, make: Make) -> None:
    """Its Configuration, its headers, its connections; so it can be used beside ours."""
    dynamic = secure.client()
    api = dynamic.client
    api.configuration.refresh_api_key_hook = lambda configuration: configuration.api_key.update(
        authorization=f"Bearer {secure.token}"
    )
    before = copy.copy(vars(api.configuration)), dict(api.configuration.api_key)
    client_before, manager = dict(vars(api)), api.rest_client.pool_manager
    options = dict(manager.connection_pool_kw)
    source = make(dynamic)
    assert names(whole(source.list(LIST))) == ["a"]
    assert (vars(api.configuration), api.configuration.api_key) == before
    assert vars(api) == client_before
    assert manager.connection_pool_kw == options
    assert len(manager.pools) == 0
    source.close()
    assert dynamic.resources.get(api_version="v1", kind="ConfigMap").get("a", "default")


def test_what_the_callers_client_sends_is_sent(server: ApiServer, make: Make) -> None:
    """Default headers, the user agent, a cookie."""
    seen: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with serving(answer) as port:
        configuration = official.Configuration()
        configuration.host = f"http://127.0.0.1:{port}"
        configuration.api_key = {"authorization": "Bearer sesame"}
        api = official.ApiClient(configuration, cookie="crumb=1")
        api.default_headers["Impersonate-User"] = "jane"
        api.user_agent = "mine/1"
        source = make(api)
        whole(source.list(Request("/apis", [("a", "b c"), ("labelSelector", "x in (y,z)")])))
    head = seen[0].decode().lower()
    assert head.startswith("get /apis?a=b")
    for line in ("impersonate-user: jane", "user-agent: mine/1", "cookie: crumb=1",
                 "authorization: bearer sesame", "accept-encoding: identity"):  # fmt: skip
        assert line in head


def test_a_subclass_of_the_dynamic_client_is_asked_its_own_way(
    server: ApiServer, make: Make
) -> None:
    """What it overrides goes on working."""
    asked = []

    class Mine(DynamicClient):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
            asked.append(path)
            return super().request(method, path, body, **params)

    kind: Any = Mine
    client = kind(server.client().client, discoverer=lambda client, cache: None)
    assert make(client).list(LIST).status == 200
    assert asked == [MAPS]
