"""Why no answer came is said in words that lead to what can be done."""

from __future__ import annotations

import datetime
import errno
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from dyninformer.transport.failures import cut_off, unanswered

_DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EMFILE, r"this process has all the files open that it may have.*ulimit -n"),
        (errno.ENFILE, r"this machine has all the files open"),
    ],
)
def test_a_lack_of_files_is_not_blamed_on_the_network(code: int, said: str) -> None:
    """A thousand connections are more than many shells allow."""
    error = unanswered(OSError(code, os.strerror(code)), "h", None, "connecting", 30.0)
    assert re.search(said, str(error))
    assert "VPN" not in str(error)


@pytest.mark.parametrize(
    ("deadline", "said"), [(60.0, "60 s"), (2.5, "2.5 s"), (1.99996, "2 s"), (0.04, "0.04 s")]
)
def test_a_silence_is_told_in_round_seconds_and_promises_nothing(
    deadline: float, said: str
) -> None:
    """Whether the request is made again is for who makes it to say: a write is not."""
    before = str(unanswered(TimeoutError(), "h", None, "asked", deadline))
    assert before.startswith(f"h took the request and said nothing for {said}. ")
    assert "again" not in before
    assert f"said nothing for {said} in the middle" in str(cut_off(TimeoutError(), "h", deadline))


class Authorities:
    """The one that the server has and trusts, and another one."""

    def __init__(self) -> None:
        self.ours, self.other = trustme.CA(), trustme.CA()

    def server(self) -> ssl.SSLContext:
        """For a server that wants a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ours.issue_cert("127.0.0.1").configure_cert(context)
        self.ours.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(
        self, issuer: trustme.CA | None = None, until: datetime.timedelta = _DAY
    ) -> ssl.SSLContext:
        """For a client; with a certificate of this issuer."""
        context = ssl.create_default_context()
        self.ours.configure_trust(context)
        if issuer is not None:
            end = datetime.datetime.now(datetime.UTC) + until
            issuer.issue_cert("me", not_after=end).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def authorities() -> Authorities:
    """Made once: keys take their time."""
    return Authorities()


def failed(client: ssl.SSLContext, answer: Callable[[socket.socket], object]) -> BaseException:
    """What a client is told by Python of a server that answers so."""
    near, far = socket.socketpair()

    def serve() -> None:
        with far, suppress(OSError):
            answer(far)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with (
            near,
            pytest.raises(ssl.SSLError) as caught,
            client.wrap_socket(near, server_hostname="127.0.0.1") as connection,
        ):
            connection.recv(1)  # TLS 1.3 refuses behind its handshake
    finally:
        thread.join(10)
    return caught.value


def closes(connection: socket.socket) -> None:
    """As a load balancer does that has no server."""
    connection.recv(4096)
    connection.shutdown(socket.SHUT_RDWR)


def speaks_http(connection: socket.socket) -> None:
    """As a server does on its plain port."""
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_what_closes_before_tls_is_no_matter_of_certificates(authorities: Authorities) -> None:
    """A load balancer without a server does that in each outage."""
    error = unanswered(failed(authorities.client(), closes), "h", None, "connecting", 30.0)
    assert "closed the connection before TLS was agreed on" in str(error)
    assert "certificate" not in str(error)


def test_what_speaks_no_tls_is_said_so(authorities: Authorities) -> None:
    """An https address of a plain port."""
    error = unanswered(failed(authorities.client(), speaks_http), "h", None, "connecting", 30.0)
    assert re.search(r"it does not speak TLS \(\w+\)\. Is it http", str(error))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("kind", ["none", "expired", "another authority's"])
def test_a_client_certificate_that_is_refused_is_ours_to_mend(
    authorities: Authorities, kind: str, version: ssl.TLSVersion
) -> None:
    """It is the client's, and not the server's, that the advice is about."""
    if kind == "expired":
        client = authorities.client(authorities.ours, -_DAY)
    else:
        client = authorities.client(None if kind == "none" else authorities.other)
    server = authorities.server()
    server.maximum_version = version

    def answer(connection: socket.socket) -> None:
        with server.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    error = unanswered(failed(client, answer), "h", None, "asked", 30.0)
    assert "it refused this client's TLS" in str(error)
    assert "client-certificate" in str(error)
    assert "certificate-authority" not in str(error)


def test_a_key_of_another_certificate_is_named(authorities: Authorities, tmp_path: Path) -> None:
    """As between the two writes of a rotation."""
    pairs = [authorities.ours.issue_cert("me"), authorities.ours.issue_cert("me")]
    certificate, key = tmp_path / "crt", tmp_path / "key"
    certificate.write_bytes(pairs[0].cert_chain_pems[0].bytes())
    key.write_bytes(pairs[1].private_key_pem.bytes())
    with pytest.raises(ssl.SSLError) as caught:
        ssl.create_default_context().load_cert_chain(certificate, key)
    error = unanswered(caught.value, "h", None, "connecting", 30.0)
    assert "client-key in the kubeconfig is not the key of client-certificate" in str(error)
