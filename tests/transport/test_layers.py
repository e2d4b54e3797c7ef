"""What stands between a socket and HTTP."""

from __future__ import annotations

import ssl

import pytest
import trustme

from dyninformer.transport.layers import Layer, Tls, Tunnel, TunnelError
from dyninformer.transport.messages import ProtocolError

AUTHORITY = trustme.CA()


def client_context() -> ssl.SSLContext:
    """A context that trusts the server of these tests."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


class Server:
    """The other side of TLS, in memory."""

    def __init__(self, name: str = "server") -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        AUTHORITY.issue_cert(name).configure_cert(context)
        context.set_alpn_protocols(["h2"])
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def exchange(self, client: Layer) -> bytes:
        """Carry bytes both ways until both are silent; what the client reads."""
        found = b""
        while True:
            upwards = client.output()
            self._incoming.write(upwards)
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return found
            downwards = self._outgoing.read()
            if not upwards and not downwards:
                return found
            found += client.receive(downwards)


def test_tls_carries_bytes_both_ways() -> None:
    """After the handshake, in which both sides agree on a protocol."""
    server, client = Server(), Tls(client_context(), "server")
    client.begin()
    assert not client.established
    server.exchange(client)
    assert client.established
    assert client.protocol == "h2"
    client.send(b"ping")
    server.exchange(client)
    assert server.tls.read(100) == b"ping"
    server.tls.write(b"p" * 100_000)
    assert server.exchange(client) == b"p" * 100_000
    assert not client.closed


def test_a_certificate_for_another_name_is_refused() -> None:
    """The error is the one of OpenSSL, which says why."""
    server, client = Server("other"), Tls(client_context(), "server")
    client.begin()
    with pytest.raises(ssl.SSLCertVerificationError):
        server.exchange(client)


def test_the_end_that_the_server_announces_is_told_from_a_cut() -> None:
    """Only a body that ends so is whole."""
    server, client = Server(), Tls(client_context(), "server")
    client.begin()
    server.exchange(client)
    server.tls.write(b"last words")
    with pytest.raises(ssl.SSLWantReadError):
        server.tls.unwrap()
    assert server.exchange(client) == b"last words"
    assert client.closed


def test_bytes_that_are_no_tls_are_an_error() -> None:
    """As from a port that speaks plain HTTP."""
    client = Tls(client_context(), "server")
    client.begin()
    with pytest.raises(ssl.SSLError):
        client.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_tunnel_is_asked_for_and_then_passes_everything_on() -> None:
    """What comes behind the proxy's answer belongs to the next layer."""
    tunnel = Tunnel("server:443", [("Proxy-Authorization", "Basic x")])
    assert tunnel.output() == b""
    tunnel.begin()
    assert tunnel.output() == (
        b"CONNECT server:443 HTTP/1.1\r\nHost: server:443\r\nProxy-Authorization: Basic x\r\n\r\n"
    )
    assert tunnel.receive(b"HTTP/1.1 200 Connection est") == b""
    assert not tunnel.established
    assert tunnel.receive(b"ablished\r\n\r\nhello") == b"hello"
    assert tunnel.established
    assert tunnel.receive(b" again") == b" again"
    tunnel.send(b"hi")
    assert tunnel.output() == b"hi"


def test_a_proxy_that_refuses_is_quoted() -> None:
    """Its status and reason say what to do."""
    tunnel = Tunnel("server:443", [])
    tunnel.begin()
    with pytest.raises(TunnelError, match="407 Proxy Authentication Required"):
        tunnel.receive(b"HTTP/1.1 407 Proxy Authentication Required\r\nX: y\r\n\r\n")


@pytest.mark.parametrize("answer", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000])
def test_what_is_no_answer_of_a_proxy_is_an_error(answer: bytes) -> None:
    """Such as the greeting of another protocol, or headers without an end."""
    tunnel = Tunnel("server:443", [])
    tunnel.begin()
    with pytest.raises(ProtocolError, match="proxy"):
        tunnel.receive(answer)
