"""Requests are made by a copy: of all that the caller set up, and nothing of his is changed."""

from __future__ import annotations

import copy
import socket
import time
from importlib.metadata import version
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes.dynamic import DynamicClient

from dyninformer.testing import ApiServer
from dyninformer.watching import connections
from dyninformer.watching.transport import Request
from tests.watching.conftest import Make
from tests.watching.wires import LIST, MAPS, WATCH, Background, names, serving, whole


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


# A client that is made in another way than those that are known.


def strange(api: official.ApiClient) -> official.ApiClient:
    """A part of it has another name."""
    vars(api)["_transport"] = vars(api).pop("rest_client")
    return api


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of the package."""
    lines = [each.getMessage() for each in caplog.records]
    return [line for line in lines if line.startswith(f"kubernetes {version('kubernetes')} on")]


@pytest.fixture
def unnoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it was said in this process yet."""
    monkeypatch.setattr(connections, "_noted", set())


@pytest.mark.usefixtures("unnoted")
def test_s34_a_client_that_cannot_be_copied_is_done_without(
    secure: ApiServer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Its Configuration is enough: TLS, the token and its refresh; it ends at once."""
    api = secure.client(token="old").client
    api.configuration.refresh_api_key_hook = lambda configuration: configuration.api_key.update(
        authorization=f"Bearer {secure.token}"
    )
    source = make(strange(api))
    assert names(whole(source.list(LIST))) == ["a"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert (
        source.post_json("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).status == 201
    )
    assert source.list(Request("/nope")).status == 404
    reply = source.watch(WATCH)
    pieces = reply.chunks()
    next(pieces)
    task = Background(lambda: list(pieces))
    began = time.monotonic()
    reply.close()
    task.join()
    assert task.ended_at - began < 1
    assert api.configuration.api_key == {"authorization": "Bearer old"}
    (line,) = told(caplog)
    assert "rest_client" in line
    assert secure.token not in caplog.text


@pytest.mark.usefixtures("unnoted")
def test_what_a_client_that_cannot_be_copied_sends_is_sent(make: Make) -> None:
    """Default headers, a cookie, a name for TLS or a proxy that is there but not for this host."""
    seen: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with serving(answer) as port:
        for no_proxy, proxy in (
            ("x,.0.0.1", "http://127.0.0.1:1"),
            ("", f"http://127.0.0.1:{port}"),
        ):
            configuration = official.Configuration()
            configuration.host = f"http://127.0.0.1:{port}"
            configuration.proxy, configuration.no_proxy = proxy, no_proxy
            configuration.api_key = {"authorization": "sesame"}
            configuration.api_key_prefix = {"authorization": "Bearer"}
            api = official.ApiClient(configuration, cookie="crumb=1")
            api.default_headers["Impersonate-User"] = "jane"
            source = make(strange(api))
            whole(source.list(Request("/apis", [("labelSelector", "x in (y,z)")])))
    direct, proxied = (each.decode().lower() for each in seen)
    assert direct.startswith("get /apis?labelselector=x+in+%28y%2cz%29 ")
    assert proxied.startswith(f"get http://127.0.0.1:{port}/apis?")
    for head in (direct, proxied):
        for line in ("impersonate-user: jane", "cookie: crumb=1", "authorization: bearer sesame"):
            assert line in head


@pytest.mark.usefixtures("unnoted")
def test_a_client_that_wraps_its_answers_is_done_without(
    secure: ApiServer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read as it arrives is asked for again, once."""

    class Wrapped:
        def __init__(self, response: Any) -> None:
            self.response = response

    class Wrapping(DynamicClient):
        def request(self, *args: Any, **params: Any) -> Any:
            return Wrapped(super().request(*args, **params))

    kind: Any = Wrapping
    source = make(kind(secure.client().client, discoverer=lambda client, cache: None))
    for _ in range(3):
        assert names(whole(source.list(LIST))) == ["a"]
    (line,) = told(caplog)
    assert "Wrapped" in line
