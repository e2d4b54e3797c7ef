"""A watch in a websocket, as fabric8's client asks for one."""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conformance.cluster import Cluster, Collection

Frame = tuple[int, bytes]
Headers = dict[str, str]

HANDSHAKE: Headers = {
    "Upgrade": "websocket",
    "Connection": "keep-alive, Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Origin": "https://example.com",
}
TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
NORMAL = (1000).to_bytes(2, "big")
PROTOCOL_ERROR = (1002).to_bytes(2, "big")


def _masked(kind: int, data: bytes = b"") -> bytes:
    """A frame as a client sends it."""
    mask = os.urandom(4)
    hidden = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
    return bytes([kind, 0x80 | len(data)]) + mask + hidden


class Socket:
    """A connection to a server, and what it sends, byte for byte."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._sock = sock
        self._read = b""

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._sock.sendall(data)

    def head(self) -> tuple[str, Headers]:
        """The status line and the headers, by their lower-case names."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return first, {name.lower(): text for name, text in headers.items()}

    def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        while data := self._sock.recv(65536):
            self._read += data
        return self._read

    def frame(self) -> Frame:
        """The next frame: its first byte, and what it carries."""
        kind, size = self._take(2)
        if size == 126:
            size = int.from_bytes(self._take(2), "big")
        elif size == 127:
            size = int.from_bytes(self._take(8), "big")
        return kind, self._take(size)

    def event(self) -> Any:
        """The next frame as an event."""
        kind, line = self.frame()
        assert kind == TEXT
        assert line.endswith(b"\n")
        return json.loads(line)

    def frames(self) -> list[Frame]:
        """Every frame up to the end of the connection."""
        self.rest()
        found = []
        while self._read:
            found.append(self.frame())
        return found

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            self._more()
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def _more(self) -> None:
        data = self._sock.recv(65536)
        assert data, f"the connection ended after {self._read[:200]!r}"
        self._read += data


Ask = Callable[..., Socket]


@pytest.fixture
def ask(cluster: Cluster) -> Iterator[Ask]:
    """Ask for a path with the headers of a handshake; those that are "" are left out."""
    server, opened = cluster.server, []
    where = urlsplit(server.url)
    assert where.hostname
    context = ssl.create_default_context(cafile=str(server.ca))

    def connect(path: str, method: str = "GET", **headers: str) -> Socket:
        plain = socket.create_connection((where.hostname, where.port), timeout=10)
        sock = context.wrap_socket(plain, server_hostname=where.hostname)
        opened.append(sock)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        sent = {"Host": "x", "Authorization": f"Bearer {server.token}", **HANDSHAKE, **named}
        lines = [f"{name}: {text}" for name, text in sent.items() if text]
        sock.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode())
        return Socket(sock)

    yield connect
    for sock in opened:
        sock.close()


@contextmanager
def _open(ask: Ask, path: str, **headers: str) -> Iterator[Socket]:
    found = ask(path, **headers)
    status, _ = found.head()
    assert status == "HTTP/1.1 101 Switching Protocols"
    yield found


def test_each_event_of_a_watch_is_a_text_frame(ask: Ask, widgets: Collection) -> None:
    """What is there and what comes later; long ones, too."""
    widgets.fill("a", size=1)
    with _open(ask, f"{widgets.path}?watch=1") as watch:
        assert watch.event()["type"] == "ADDED"
        long = "x" * 70_000
        widgets.merge("a", {"metadata": {"annotations": {"long": long}}})
        event = watch.event()
        assert (event["type"], event["object"]["metadata"]["annotations"]) == (
            "MODIFIED",
            {"long": long},
        )
        widgets.api.delete(widgets.at("a"))
        assert watch.event()["type"] == "DELETED"


def test_the_handshake_is_answered_as_rfc_6455_says(ask: Ask, widgets: Collection) -> None:
    """The one protocol that a client names is agreed to."""
    offered = "base64.binary.k8s.io"
    found = ask(f"{widgets.path}?watch=1", Sec_WebSocket_Protocol=offered)
    assert found.head() == (
        "HTTP/1.1 101 Switching Protocols",
        {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            "sec-websocket-protocol": offered,
        },
    )


def test_a_watch_that_ends_says_goodbye(ask: Ask, widgets: Collection) -> None:
    """A close frame with status 1000, then the end of the connection."""
    with _open(ask, f"{widgets.path}?watch=1&timeoutSeconds=1") as watch:
        assert watch.frames() == [(CLOSE, NORMAL)]


def test_a_ping_is_answered_and_other_messages_are_not(ask: Ask, widgets: Collection) -> None:
    """In one piece or in several."""
    with _open(ask, f"{widgets.path}?watch=1") as watch:
        watch.send(_masked(0x81, b"hello") + _masked(0x01, b"he") + _masked(0x80, b"llo"))
        for byte in _masked(0x82, b"\x00" * 9) + _masked(PING, b"are you there"):
            watch.send(bytes([byte]))
        assert watch.frame() == (PONG, b"are you there")


@pytest.mark.parametrize("text", [b"", b"\x03\xe8bye"], ids=["empty", "with a reason"])
def test_a_client_that_closes_is_answered(ask: Ask, widgets: Collection, text: bytes) -> None:
    """With a close of its own, and the end of the connection."""
    with _open(ask, f"{widgets.path}?watch=1") as watch:
        watch.send(_masked(CLOSE, text))
        assert watch.frames() == [(CLOSE, NORMAL)]


def test_a_frame_that_is_not_masked_ends_the_watch(ask: Ask, widgets: Collection) -> None:
    """Status 1002 says why."""
    with _open(ask, f"{widgets.path}?watch=1") as watch:
        watch.send(b"\x81\x05hello")
        assert watch.frames()[0] == (CLOSE, PROTOCOL_ERROR)


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"Origin": ""}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        ({"Origin": "null"}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        ({"Sec_WebSocket_Protocol": "a, b"}, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        (
            {"Sec_WebSocket_Key": ""},
            b"HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response",
        ),
        (
            {"Sec_WebSocket_Version": "8"},
            b"HTTP/1.1 400 Bad Request\r\n%b\r\n\r\n%b"
            % (b"Sec-WebSocket-Version: 13", b"missing or bad WebSocket Version"),
        ),
    ],
    ids=["no origin", "null origin", "two protocols", "no key", "old version"],
)
def test_a_bad_handshake_is_refused_and_finished(
    ask: Ask, widgets: Collection, headers: Headers, answer: bytes
) -> None:
    """So that a client can fall back to HTTP."""
    assert ask(f"{widgets.path}?watch=1", **headers).rest() == answer


@pytest.mark.parametrize(
    ("tail", "status"),
    [("?watch=1&resourceVersion=x", "500 Internal Server Error"), ("", "200 OK")],
)
def test_what_is_no_watch_is_answered_as_ever(
    ask: Ask, widgets: Collection, tail: str, status: str
) -> None:
    """A refusal, and a list."""
    answer, headers = ask(widgets.path + tail).head()
    assert (answer, headers["content-type"]) == (f"HTTP/1.1 {status}", "application/json")


def test_without_connection_upgrade_a_watch_is_plain_http(ask: Ask, widgets: Collection) -> None:
    """As a proxy leaves it that takes hop-by-hop headers away."""
    answer, headers = ask(f"{widgets.path}?watch=1", Connection="").head()
    assert (answer, headers["transfer-encoding"]) == ("HTTP/1.1 200 OK", "chunked")


def test_the_protocol_of_a_websocket_may_be_of_any_bytes(ask: Ask, widgets: Collection) -> None:
    """They come back as they are."""
    found = ask(f"{widgets.path}?watch=1", Sec_WebSocket_Protocol="é")
    status, headers = found.head()
    assert (status, headers["sec-websocket-protocol"]) == (
        "HTTP/1.1 101 Switching Protocols",
        "é",
    )
