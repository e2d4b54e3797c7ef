"""The port that stays the server's own, and TLS on it."""

from __future__ import annotations

import socket
import ssl

import pytest
import urllib3

from dyninformer.testing.http.listener import authority_pem, server_context
from tests.testing.http.conftest import Shell, eventually, read_until, running


def test_a_port_that_refuses_is_kept_and_can_listen_again(shell: Shell) -> None:
    """Connections are refused, nobody else gets the port, and those that are open go on."""
    with shell.connect() as before:
        before.sendall(b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(before, b"/one")
        port = shell.listener.port
        shell.call(shell.listener.refuse)
        with pytest.raises(ConnectionRefusedError):
            shell.connect()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        before.sendall(b"GET /two HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(before, b"/two")
    shell.call(shell.listener.open)
    assert shell.listener.port == port
    shell.connect().close()


def test_dropped_connections_end_without_a_terminating_chunk(shell: Shell) -> None:
    """As when a server is killed: the watch is cut, not ended."""
    with shell.connect() as sock:
        sock.sendall(b"GET /watch HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(sock, b"\r\n\r\n")
        shell.do(shell.listener.drop_connections())
        assert sock.recv(100) == b""
    assert shell.streams[0].closed.is_set()
    assert shell.tasks() == 0


def test_tls_is_spoken_with_a_certificate_that_the_authority_vouches_for() -> None:
    """A client that trusts the authority, and checks the name, is served."""
    context = ssl.create_default_context(cadata=authority_pem().decode())
    with (
        running(tls=server_context()) as shell,
        urllib3.PoolManager(ssl_context=context, retries=False) as pool,
    ):
        for host in ("127.0.0.1", "localhost"):
            url = f"https://{host}:{shell.listener.port}/secret"
            assert pool.request("GET", url).data == b"/secret"


def test_a_client_that_never_shakes_hands_is_let_go_at_the_end() -> None:
    """A connection in the middle of its handshake does not outlive the listener."""
    with running(tls=server_context()) as shell, shell.connect() as sock:
        eventually(lambda: shell.tasks() == 1)
        shell.do(shell.listener.close())
        assert shell.tasks() == 0
        assert sock.recv(1) == b""


def test_a_client_without_tls_is_told_so() -> None:
    """In plain HTTP, as the real server does; the next one is served."""
    context = ssl.create_default_context(cadata=authority_pem().decode())
    with running(tls=server_context()) as shell:
        answer = shell.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", half_close=True)
        assert answer.startswith(b"HTTP/1.0 400 Bad Request")
        assert answer.endswith(b"Client sent an HTTP request to an HTTPS server.\n")
        with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
            assert pool.request("GET", f"{shell.url}/x").status == 200
