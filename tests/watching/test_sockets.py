"""Connections end at once, from any thread, wherever they are; proxies and options work as ever."""

from __future__ import annotations

import base64
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from types import FunctionType
from typing import Any

import pytest
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole, EndlessHeaders, Reset, SlowDrip
from dyninformer.transport.keepalive import keep_alive
from dyninformer.watching import sockets as module
from dyninformer.watching.background import BackgroundThreads
from dyninformer.watching.client import Source
from dyninformer.watching.sockets import Call, Plumbing, Wire, Wires, calling, close_idle, tracked
from tests.transport.conftest import Make
from tests.transport.wires import (
    LIST,
    MAPS,
    WATCH,
    Background,
    add_maps,
    client_of,
    config_map,
    connecting,
    eventually,
    full_port,
    listening,
    names,
    open_sockets,
    our_threads,
    serving,
    whole,
)

SOON = 1.0  # what S34 allows; it takes about a millisecond, and a busy machine the rest

Ending = Callable[[Source], None]


def ended(task: Background, act: Callable[[], object]) -> None:
    """Do something that should end the task, and soon."""
    assert task.running
    began = time.monotonic()
    act()
    task.join()
    assert task.ended_at - began < SOON


# Ending what goes on.


@pytest.mark.parametrize("fault", [BlackHole(), EndlessHeaders(), SlowDrip(seconds=0.05)])
@pytest.mark.parametrize("tls", [False, True])
def test_s34_a_request_ends_before_its_headers_have_come(fault: Any, tls: bool, make: Make) -> None:
    """When the server is silent, when it never ends them, when it drips."""
    with ApiServer(tls=tls, http2=False) as server:  # headers without an end are of HTTP/1.1
        source = make(server.client())
        channel = source.channel()
        with server.faults.add(fault) as injected:
            task = Background(lambda: channel.list(LIST))
            assert injected.wait_hit()
            ended(task, channel.close)
        assert isinstance(task.error, StoppedError)
        assert whole(source.list(LIST))


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("silent", [False, True])
def test_s34_a_stream_ends_while_it_is_read(tls: bool, silent: bool, make: Make) -> None:
    """An idle watch, and one in the middle of a slow line."""
    with ApiServer(tls=tls) as server:
        add_maps(server, 1, 10)
        source = make(server.client())
        fault = BlackHole(after_lines=1) if silent else SlowDrip(size=40, seconds=0.05)
        with server.faults.add(fault):
            reply = source.watch(WATCH)
            pieces = reply.chunks()
            next(pieces)
            task = Background(lambda: list(pieces))
            ended(task, reply.close)
        assert task.error is None


def test_s34_a_tls_handshake_ends(make: Make) -> None:
    """The other side took the connection in, and says nothing."""
    with listening() as port:
        source = make(client_of(f"https://127.0.0.1:{port.getsockname()[1]}"))
        task = Background(lambda: source.list(LIST))
        taken, _ = port.accept()
        with taken:
            assert taken.recv(10)  # the client's hello
            ended(task, source.close)
    assert isinstance(task.error, StoppedError)


def test_s34_a_connect_that_hangs_holds_nobody_up(threads: Make) -> None:
    """Its thread is named while it is still there, and what it brings is closed."""
    with full_port() as port:
        source = threads(client_of(f"http://127.0.0.1:{port}"))
        sockets = open_sockets()
        task = Background(lambda: source.list(LIST))
        eventually(lambda: connecting(port) == 2)  # one of them fills the queue
        (told,) = source.under_way()
        assert told.startswith(f"dyninformer connecting to http://127.0.0.1:{port}")
        ended(task, source.close)
        assert isinstance(task.error, StoppedError)
        eventually(lambda: source.under_way() == [] and our_threads() == [])
        eventually(lambda: open_sockets() == sockets)


def test_s34_a_name_lookup_that_hangs_holds_nobody_up(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It outlives `close` alone, and its late result is not used."""
    go_on = threading.Event()
    resolve = socket.getaddrinfo

    def hang(*args: Any, **options: Any) -> Any:
        assert go_on.wait(10)
        return resolve(*args, **options)

    with listening() as port:
        monkeypatch.setattr(socket, "getaddrinfo", hang)
        source = make(client_of(f"http://localhost:{port.getsockname()[1]}"))
        sockets = open_sockets()
        task = Background(lambda: source.list(LIST))
        eventually(
            lambda: any("looking up" in each or "connecting" in each for each in source.under_way())
        )
        ended(task, source.close)
        assert len(source.under_way()) == 1
        go_on.set()
        eventually(lambda: source.under_way() == [] and our_threads() == [])
        eventually(lambda: open_sockets() == sockets)


def test_ending_reads_from_many_threads_at_once_ends_each_cleanly(secure: ApiServer) -> None:
    """Sixty TLS streams, each ended in the middle of a read; none reports a failure."""
    with_source = Source(secure.client())
    replies = [with_source.watch(WATCH) for _ in range(60)]
    streams = [reply.chunks() for reply in replies]
    for stream in streams:
        next(stream)
    tasks = [Background(lambda stream=stream: list(stream)) for stream in streams]  # type: ignore[misc]
    for reply in replies:
        reply.close()
    for task in tasks:
        task.join()
        assert (task.error, task.result) == (None, [])
    with_source.close()


def test_closing_a_reply_that_is_over_leaves_the_connection_to_the_next(
    server: ApiServer, make: Make
) -> None:
    """It was given back before the body's end was told."""
    source = make(server.client())
    first = source.list(LIST)
    assert whole(first)
    second = source.watch(WATCH)
    pieces = second.chunks()
    next(pieces)
    first.close()
    server.delete("configmaps/a")
    assert b"DELETED" in next(pieces)


def test_connections_that_are_opened_and_ended_at_random_end_no_others(
    server: ApiServer, make: Make
) -> None:
    """Requests that nobody ends all succeed beside others that are ended at any moment."""
    source = make(server.client())
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            channel = source.channel()
            task = Background(lambda: channel.watch(WATCH))  # noqa: B023 - joined below
            channel.close()
            task.join()

    disturbers = [Background(disturb) for _ in range(2)]
    for _ in range(200):
        assert names(whole(source.list(LIST))) == ["a"]
    over.set()
    for each in disturbers:
        each.join()
        assert each.error is None


# Sockets.


def test_naggles_algorithm_is_off_whatever_the_options(
    secure: ApiServer, threads: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it on, TLS pays 40 ms before the first answer."""
    born: list[Wire] = []
    add = Wires.add

    def note(self: Wires, wire: Wire) -> None:
        born.append(wire)
        add(self, wire)

    monkeypatch.setattr(Wires, "add", note)
    api = secure.client().client
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    api.rest_client.pool_manager.connection_pool_kw["socket_options"] = options
    source = threads(api)
    reply = source.watch(WATCH)
    (wire,) = born
    sock = wire._socket
    assert isinstance(sock, ssl.SSLSocket)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    reply.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has it")
@pytest.mark.parametrize("way", ["direct", "connect", "proxy", "elsewhere"])
def test_s35_every_connection_is_asked_whether_it_is_alive(
    server: ApiServer,
    secure: ApiServer,
    threads: Make,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """With TLS and without, through a proxy of either kind, and however urllib3 opens it."""
    kept: list[int] = []

    def note(sock: socket.socket) -> None:
        keep_alive(sock)
        kept.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(module, "keep_alive", note)
    if way == "elsewhere":
        monkeypatch.setattr(module, "_opens_as_known", lambda: False)
    target, ca = (server, None) if way == "proxy" else (secure, secure.ca)
    with serving(Proxy()) as port:
        proxy = f"http://127.0.0.1:{port}" if way in ("connect", "proxy") else None
        source = threads(client_of(target.url, proxy=proxy, ssl_ca_cert=ca))
        reply = source.list(LIST)
        assert reply.status in (200, 401, 403)
        reply.close()
    assert kept == [20_000]


def test_one_descriptor_is_held_per_connection(server: ApiServer, threads: Make) -> None:
    """And one by the server, which is in this process here."""
    source = threads(server.client())
    sockets = open_sockets()
    streams = [source.watch(WATCH) for _ in range(5)]
    assert open_sockets() == sockets + 10
    for stream in streams:
        stream.close()


def test_a_connection_that_is_reset_before_tls_leaves_no_socket() -> None:
    """Python itself loses it, and closes it with the traceback at the earliest."""
    manager = tracked(
        urllib3.PoolManager(cert_reqs="CERT_NONE"), Plumbing(Wires(), BackgroundThreads("x", 1))
    )
    with listening() as port:

        class Resetting(Call):
            """TCP is there, and TLS comes next."""

            def use(self, wire: Wire) -> None:
                super().use(wire)
                taken, _ = port.accept()
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                taken.close()

        call, sockets = Resetting(Wires()), open_sockets()
        with calling(call), pytest.raises(urllib3.exceptions.ProtocolError) as caught:
            manager.request("GET", f"https://127.0.0.1:{port.getsockname()[1]}")
        call.leave()
        assert open_sockets() == sockets
        assert isinstance(caught.value.args[1], ConnectionResetError)


def test_a_wire_that_is_let_go_cannot_end_what_has_its_number_now() -> None:
    """Descriptors are used again at once."""
    wires = Wires()
    ours, theirs = socket.socketpair()
    wire = Wire(ours, wires)
    wire.settle(ours)
    number = ours.fileno()
    ours.close()
    with socket.socket() as other:
        assert other.fileno() != number  # the wire still has it
    wire.let_go()
    fresh, peer = socket.socketpair()
    wire.end()
    fresh.sendall(b"still open")
    assert peer.recv(20) == b"still open"
    assert len(wires) == 0
    for each in (theirs, fresh, peer):
        each.close()


def test_the_managers_own_pools_stay_its_own(server: ApiServer) -> None:
    """What is tracked is a copy, with the same settings."""
    plumbing = Plumbing(Wires(), BackgroundThreads("test", 1))
    original = urllib3.PoolManager(cert_reqs="CERT_NONE", timeout=3, num_pools=2)
    copy, call = tracked(original, plumbing), Call(Wires())
    with calling(call):
        response = copy.request("GET", f"{server.url}/version", preload_content=False)
        assert response.status == 200
        assert len(plumbing.wires) == 1
        response.drain_conn()
    call.leave()
    assert (len(copy.pools), len(original.pools)) == (1, 0)
    assert copy.connection_pool_kw["cert_reqs"] == "CERT_NONE"
    close_idle(copy)
    assert len(plumbing.wires) == 0
    assert original.request("GET", f"{server.url}/version").status == 200
    original.clear()


# Proxies.


class Proxy:
    """A proxy that knows CONNECT and absolute URLs, and notes what it was asked."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self._answer = answer
        self.heads: list[str] = []

    def __call__(self, client: socket.socket) -> None:
        """One connection."""
        head = client.recv(65_536).decode()
        self.heads.append(head)
        method, target, _ = head.split(" ", 2)
        if b" 200 " not in self._answer:
            client.sendall(self._answer)
            return
        host = target if method == "CONNECT" else target.split("/")[2]
        name, _, port = host.partition(":")
        with socket.create_connection((name, int(port))) as upstream:
            if method == "CONNECT":
                client.sendall(self._answer)
            else:
                upstream.sendall(head.replace(f"http://{host}", "", 1).encode())
            back = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
            back.start()
            _pump(client, upstream)
            back.join(10)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_https_goes_through_a_proxy_by_connect(secure: ApiServer, make: Make) -> None:
    """With the proxy's own headers; and it can be ended like any other."""
    proxy = Proxy()
    with serving(proxy) as port:
        headers = urllib3.make_headers(proxy_basic_auth="user:pass")
        source = make(
            client_of(
                secure.url,
                ssl_ca_cert=str(secure.ca),
                proxy=f"http://127.0.0.1:{port}",
                proxy_headers=headers,
                api_key={"authorization": f"Bearer {secure.token}"},
            )
        )
        assert names(whole(source.list(LIST))) == ["a"]
        reply = source.watch(WATCH)
        pieces = reply.chunks()
        next(pieces)
        ended(Background(lambda: list(pieces)), reply.close)
        source.close()
    host = secure.url.removeprefix("https://")
    assert all(head.startswith(f"CONNECT {host} ") for head in proxy.heads)
    assert base64.b64encode(b"user:pass").decode() in proxy.heads[0]


def test_a_connection_through_a_proxy_is_used_again_from_the_second_request_on(
    secure: ApiServer, threads: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is connected, to the proxy, before the first."""
    reused: list[bool] = []
    request = module._TrackedConnection.request

    def noted(connection: Any, *args: Any, **options: Any) -> None:
        request(connection, *args, **options)
        reused.append(connection._call.reused)

    monkeypatch.setattr(module._TrackedConnection, "request", noted)
    with serving(Proxy()) as port:
        proxy, token = f"http://127.0.0.1:{port}", {"authorization": f"Bearer {secure.token}"}
        source = threads(
            client_of(secure.url, ssl_ca_cert=str(secure.ca), proxy=proxy, api_key=token)
        )
        for _ in range(2):
            assert names(whole(source.list(LIST))) == ["a"]
        source.close()
    assert reused == [False, True]


def test_http_goes_through_a_proxy_with_the_whole_url(server: ApiServer, make: Make) -> None:
    """As proxies want it."""
    proxy = Proxy()
    with serving(proxy) as port:
        source = make(client_of(server.url, proxy=f"http://127.0.0.1:{port}"))
        assert names(whole(source.list(LIST))) == ["a"]
        source.close()
    assert proxy.heads[0].startswith(f"GET {server.url}{MAPS}?limit=500 ")


def test_a_proxy_that_refuses_is_told_without_its_password(make: Make) -> None:
    """The host, the proxy, and what it said."""
    refusal = Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    with serving(refusal) as port:
        proxy = f"http://user:hunter2@127.0.0.1:{port}"
        source = make(client_of("https://cluster.example:6443", proxy=proxy))
        with pytest.raises(UnreachableError) as caught:
            source.list(LIST)
    message = str(caught.value)
    assert f"https://cluster.example:6443 through the proxy http://127.0.0.1:{port}" in message
    assert "407 Proxy Authentication Required" in message
    assert "hunter2" not in message


def test_a_proxy_that_is_not_there_is_told_as_such(make: Make) -> None:
    """It is the proxy that refused the connection."""
    with listening() as free:
        port = free.getsockname()[1]
    source = make(client_of("https://cluster.example", proxy=f"http://127.0.0.1:{port}"))
    with pytest.raises(UnreachableError, match=rf"proxy http://127.0.0.1:{port}.*refused"):
        source.list(LIST)


def test_a_proxy_that_says_nothing_can_be_ended(make: Make) -> None:
    """In the middle of the CONNECT."""
    asked = threading.Event()
    over = threading.Event()

    def answer(client: socket.socket) -> None:
        assert client.recv(100)
        asked.set()
        over.wait(10)

    with serving(answer) as port:
        source = make(client_of("https://cluster.example", proxy=f"http://127.0.0.1:{port}"))
        task = Background(lambda: source.list(LIST))
        assert asked.wait(10)
        ended(task, source.close)
        over.set()
    assert isinstance(task.error, StoppedError)


# urllib3, http.client and ssl as they may be one day.


@pytest.fixture
def strange_urllib3(monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens its sockets by a method of another name."""
    for kind in (HTTPConnection, HTTPSConnection):
        connect: Any = kind.connect
        code = connect.__code__
        names_in_it = ["_dial" if name == "_new_conn" else name for name in code.co_names]
        assert "_dial" in names_in_it
        other = FunctionType(
            code.replace(co_names=tuple(names_in_it)),
            connect.__globals__,
            closure=connect.__closure__,
        )
        monkeypatch.setattr(kind, "connect", other)
    monkeypatch.setattr(HTTPConnection, "_dial", HTTPConnection._new_conn, raising=False)
    monkeypatch.delattr(HTTPConnection, "_new_conn")
    monkeypatch.setattr(module, "_noted", set())


STRANGE_SOCKETS = "opens its sockets in a way of its own"


@pytest.mark.usefixtures("strange_urllib3")
@pytest.mark.parametrize("tls", [False, True])
def test_s34_streams_end_at_once_where_urllib3_opens_sockets_by_itself(
    tls: bool, threads: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """One descriptor is held per connection, which is kept for the next request; one log line."""
    with ApiServer(tls=tls) as server:
        add_maps(server, 1, 10)
        sockets = open_sockets()
        source = threads(server.client())
        for _ in range(3):
            assert names(whole(source.list(LIST))) == ["m0"]
        assert open_sockets() == sockets + 2
        with server.faults.add(Reset(), times=1):  # of the connection that lies idle
            assert names(whole(source.list(LIST))) == ["m0"]
        reply = source.watch(WATCH)
        pieces = reply.chunks()
        next(pieces)
        ended(Background(lambda: list(pieces)), reply.close)
        source.close()
        eventually(lambda: open_sockets() == sockets)
    told = [each.getMessage() for each in caplog.records if STRANGE_SOCKETS in each.message]
    assert len(told) == 1
    assert told[0].startswith(f"urllib3 {version('urllib3')} on Python 3.")


@pytest.mark.usefixtures("strange_urllib3")
def test_s34_a_tls_handshake_is_left_where_urllib3_opens_sockets_by_itself(threads: Make) -> None:
    """It goes on by itself, is named, and ends with the connect's timeout or the other side."""
    with listening() as port:
        source = threads(client_of(f"https://127.0.0.1:{port.getsockname()[1]}"))
        sockets = open_sockets()
        task = Background(lambda: source.list(LIST))
        taken, _ = port.accept()
        with taken:
            assert taken.recv(10)  # the client's hello
            ended(task, source.close)
            assert len(source.under_way()) == 1
        eventually(lambda: source.under_way() == [] and our_threads() == [])
        eventually(lambda: open_sockets() == sockets)
    assert isinstance(task.error, StoppedError)


@pytest.mark.usefixtures("strange_urllib3")
def test_a_proxy_is_gone_through_where_urllib3_opens_sockets_by_itself(
    secure: ApiServer, threads: Make
) -> None:
    """By CONNECT, and TLS in that."""
    with serving(Proxy()) as port:
        proxy = f"http://127.0.0.1:{port}"
        key = {"authorization": f"Bearer {secure.token}"}
        source = threads(
            client_of(secure.url, ssl_ca_cert=str(secure.ca), proxy=proxy, api_key=key)
        )
        assert names(whole(source.list(LIST))) == ["a"]
        source.close()


def test_a_connection_with_a_way_of_its_own_is_ended_like_any_other(
    server: ApiServer, threads: Make
) -> None:
    """A class of the caller's that connects without asking for a socket, to a path perhaps."""

    class Own(HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.create_connection((self.host, self.port), self.timeout)

    class OwnPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Own

    api = server.client().client
    api.rest_client.pool_manager.pool_classes_by_scheme = {"http": OwnPool}
    source = threads(api)
    reply = source.watch(WATCH)
    pieces = reply.chunks()
    next(pieces)
    ended(Background(lambda: list(pieces)), reply.close)


def test_s34_answers_are_read_and_ended_where_http_client_makes_them_unseen(
    secure: ApiServer,
    threads: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """urllib3 cuts the chunks then: events come as they happen; it is logged once."""
    said = "reads answers in a way of its own"
    add_maps(secure, 30, 5000)
    sockets = open_sockets()
    source = threads(secure.client())
    whole(source.list(LIST))
    assert said not in caplog.text
    monkeypatch.delattr(module._TrackedConnection, "response_class")
    monkeypatch.setattr(module, "_noted", set())
    for _ in range(3):
        assert len(names(whole(source.list(LIST)))) == 31
    assert open_sockets() == sockets + 2
    reply = source.watch(WATCH)
    pieces = reply.chunks()
    next(pieces)
    secure.create(config_map("late"))
    while b'"name":"late"' not in next(pieces):
        pass
    ended(Background(lambda: list(pieces)), reply.close)
    assert sum(said in each.getMessage() for each in caplog.records) == 1


def test_a_name_is_looked_up_as_it_was_given(
    server: ApiServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the dot that ends it; and by IPv4 alone where the user had urllib3 keep to that."""
    asked = []
    resolve = socket.getaddrinfo

    def note(host: str, port: int, family: int, *args: Any) -> Any:
        asked.append((host, family))
        return resolve("127.0.0.1", port, family, *args)

    monkeypatch.setattr(socket, "getaddrinfo", note)
    url = server.url.replace("127.0.0.1", "localhost.")
    key = {"authorization": f"Bearer {server.token}"}
    monkeypatch.setattr(urllib3.util.connection, "allowed_gai_family", lambda: socket.AF_INET)
    assert make(client_of(url, api_key=key)).list(LIST).status == 200
    monkeypatch.delattr(urllib3.util.connection, "allowed_gai_family")
    assert make(client_of(url, api_key=key)).list(LIST).status == 200
    assert asked == [("localhost.", socket.AF_INET), ("localhost.", socket.AF_UNSPEC)]
