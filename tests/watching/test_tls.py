"""Connections that are set up alike share what TLS needs, and nothing else changes by it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
import urllib3
from cryptography.hazmat.primitives import serialization
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import create_urllib3_context

from dyninformer.watching import tls as module
from dyninformer.watching.tls import Contexts
from tests.transport.wires import serving

HOST = "127.0.0.1"
AT_ONCE = 20

Authority = trustme.CA
Connect = Callable[..., ssl.SSLSocket]


class Server:
    """Shakes hands, and notes whom the client's certificate names."""

    def __init__(self, authority: Authority, clients: Authority) -> None:
        self.named: list[str] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(HOST).configure_cert(self._context)
        clients.configure_trust(self._context)
        self._context.verify_mode = ssl.CERT_OPTIONAL

    def __call__(self, accepted: socket.socket) -> None:
        """One connection."""
        with suppress(OSError), self._context.wrap_socket(accepted, server_side=True) as sock:
            subject: Any = (sock.getpeercert() or {}).get("subjectAltName", ())
            self.named += [name for _, name in subject]
            sock.sendall(b"x")
            sock.recv(1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """The cluster's."""
    return trustme.CA()


@pytest.fixture(scope="module")
def other() -> Authority:
    """That of another cluster, or of this one after a rotation."""
    return trustme.CA(organization_name="another")


@pytest.fixture
def server(authority: Authority) -> Server:
    """One that takes the authority's clients."""
    return Server(authority, authority)


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Connect by these contexts with these settings; the socket."""
    with ExitStack() as opened:
        port = opened.enter_context(serving(server))

        def connect(contexts: Contexts, **settings: Any) -> ssl.SSLSocket:
            connection = HTTPSConnection(HOST, port, timeout=10, **settings)
            opened.callback(connection.close)
            before = dict(vars(connection))
            with contexts.lent_to(connection):
                connection.connect()
            assert (
                vars(connection).items()
                >= {
                    name: value for name, value in before.items() if "cert" in name or "ssl" in name
                }.items()
            )
            sock = connection.sock
            assert isinstance(sock, ssl.SSLSocket)
            assert sock.recv(1) == b"x"
            return sock

        yield connect


@pytest.fixture
def trusted(authority: Authority, tmp_path: Path) -> Path:
    """A file with the authority."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def client_files(of: Authority, folder: Path, name: str) -> dict[str, str]:
    """A client's certificate and key, in the same two files each time."""
    made = of.issue_cert(name)
    certificate, key = folder / "client.crt", folder / "client.key"
    certificate.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))
    made.private_key_pem.write_to_path(key)
    return {"cert_file": str(certificate), "key_file": str(key)}


def test_connections_that_are_set_up_alike_share_a_context(connect: Connect, trusted: Path) -> None:
    """It is loaded once; those that are set up otherwise have another one."""
    contexts = Contexts()
    first = connect(contexts, ca_certs=str(trusted))
    assert connect(contexts, ca_certs=str(trusted)).context is first.context
    assert connect(contexts, ca_cert_data=trusted.read_text()).context is not first.context
    assert first.context.verify_mode is ssl.CERT_REQUIRED


def test_many_that_begin_at_once_wait_for_one_context(
    connect: Connect, trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And do not make one each: none comes to it while the first is at it."""
    contexts, begin, meet = Contexts(), threading.Barrier(AT_ONCE), threading.Barrier(2)

    def make(**settings: Any) -> ssl.SSLContext:
        with suppress(threading.BrokenBarrierError):
            meet.wait(0.5)
        return create_urllib3_context(**settings)

    monkeypatch.setattr(module, "create_urllib3_context", make)

    def connected(_: int) -> ssl.SSLContext:
        begin.wait(10)
        return connect(contexts, ca_certs=str(trusted)).context

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert len(set(threads.map(connected, range(AT_ONCE)))) == 1
    assert meet.broken


def test_one_that_verifies_nothing_lends_nothing_to_one_that_does(
    connect: Connect, other: Authority, tmp_path: Path
) -> None:
    """Nor does it take anything away from the verification of those that come later."""
    contexts = Contexts()
    wrong = tmp_path / "wrong.pem"
    other.cert_pem.write_to_path(wrong)
    doubted = connect(contexts, ca_certs=str(wrong), cert_reqs="CERT_NONE")
    for _ in range(2):
        with pytest.raises(ssl.SSLError, match="certificate verify failed"):
            connect(contexts, ca_certs=str(wrong))
    assert doubted.context.verify_mode is ssl.CERT_NONE


def test_a_wrong_host_is_refused_with_a_context_that_others_use(
    connect: Connect, trusted: Path
) -> None:
    """The name is asked for by each connection."""
    contexts = Contexts()
    connect(contexts, ca_certs=str(trusted))
    with pytest.raises(ssl.SSLError, match="certificate"):
        connect(contexts, ca_certs=str(trusted), server_hostname="elsewhere.example")


def test_an_authority_that_is_rotated_is_loaded_by_the_next_connection(
    connect: Connect, authority: Authority, other: Authority, trusted: Path
) -> None:
    """In place, as a kubelet does it, or by another file of the same name."""
    contexts = Contexts()
    other.cert_pem.write_to_path(trusted)
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        connect(contexts, ca_certs=str(trusted))
    fresh = trusted.with_name("fresh.pem")
    authority.cert_pem.write_to_path(fresh)
    fresh.rename(trusted)
    connect(contexts, ca_certs=str(trusted))


def test_a_clients_certificate_that_is_rotated_is_loaded_by_the_next_connection(
    connect: Connect, server: Server, authority: Authority, trusted: Path, tmp_path: Path
) -> None:
    """The server sees the new one."""
    contexts = Contexts()
    for name in ("before.example", "after.example"):
        files = client_files(authority, tmp_path, name)
        connect(contexts, ca_certs=str(trusted), **files)
        connect(contexts, ca_certs=str(trusted), **files)
    assert server.named == ["before.example"] * 2 + ["after.example"] * 2


def test_a_key_that_is_encrypted_is_asked_for_at_no_terminal(
    connect: Connect, authority: Authority, trusted: Path, tmp_path: Path, server: Server
) -> None:
    """Without a password that is an error in urllib3's words; with it, it is used."""
    files = client_files(authority, tmp_path, "locked.example")
    key = Path(files["key_file"])
    plain = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        plain.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    contexts = Contexts()
    with pytest.raises(urllib3.exceptions.SSLError, match="password is required"):
        connect(contexts, ca_certs=str(trusted), **files)
    connect(contexts, ca_certs=str(trusted), key_password="secret", **files)
    assert server.named == ["locked.example"]


def test_what_cannot_be_loaded_is_said_by_urllib3(connect: Connect, tmp_path: Path) -> None:
    """As without this."""
    with pytest.raises(urllib3.exceptions.SSLError, match="No such file"):
        connect(Contexts(), ca_certs=str(tmp_path / "missing.pem"))


def test_a_context_that_was_given_is_used_as_it_is(connect: Connect, trusted: Path) -> None:
    """It may have anything in it."""
    given = ssl.create_default_context(cafile=str(trusted))
    assert connect(Contexts(), ssl_context=given).context is given


def test_a_class_that_connects_in_its_own_way_keeps_its_settings(trusted: Path) -> None:
    """It may look at them; so may a proxy's connection, and plain HTTP has none."""
    seen: list[str | None] = []

    class Own(HTTPSConnection):
        """A user's."""

        def connect(self) -> None:
            """See what is there."""
            seen.append(self.ca_certs)

    contexts, ca = Contexts(), str(trusted)
    proxy = urllib3.util.parse_url("http://proxy.example:8080")
    for each in (Own(HOST, ca_certs=ca), HTTPSConnection(HOST, proxy=proxy, ca_certs=ca)):
        with contexts.lent_to(each):
            if isinstance(each, Own):
                each.connect()
            assert (each.ca_certs, each.ssl_context) == (ca, None)
    assert seen == [ca]
    with contexts.lent_to(HTTPConnection(HOST)):
        pass
