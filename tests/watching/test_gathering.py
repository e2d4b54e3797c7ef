"""A read of a body waits for little, and gives at once all that has come; never does it hang."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import trustme

from dyninformer.watching import gathering as gathering_module
from dyninformer.watching.gathering import Gatherer

SECONDS = 5.0
RECORD = 4096

Reading = Callable[[socket.socket], Gatherer]


class Sender:
    """The server's end of a TLS connection, which makes records and says when they go."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    def shake_hands(self, client: ssl.SSLSocket) -> None:
        """Step by step, in this thread."""
        client.settimeout(0)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._answer()
        client.settimeout(SECONDS)
        self._answer()

    def _answer(self) -> None:
        self._in.write(self._socket.recv(65_536))
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self._socket.sendall(self._out.read())

    def send(self, data: bytes) -> None:
        """Have it go over the wire."""
        self._socket.sendall(data)

    def record(self, filled_with: bytes) -> bytes:
        """A record of that, as it goes over the wire."""
        self._tls.write(filled_with * RECORD)
        return self._out.read()


@pytest.fixture
def gathering() -> Iterator[Reading]:
    """Read from a socket; what was opened for that is closed."""
    with ExitStack() as opened:
        yield lambda sock: Gatherer(opened.enter_context(sock.makefile("rb")), sock)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection."""
    ours, theirs = socket.socketpair()
    ours.settimeout(SECONDS)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def tls(pair: tuple[socket.socket, socket.socket]) -> Iterator[tuple[ssl.SSLSocket, Sender]]:
    """A client's socket, and the server's end."""
    authority = trustme.CA()
    serving, asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("example.org").configure_cert(serving)
    authority.configure_trust(asking)
    ours, theirs = pair
    with asking.wrap_socket(
        ours, server_hostname="example.org", do_handshake_on_connect=False
    ) as client:
        sender = Sender(theirs, serving)
        sender.shake_hands(client)
        yield client, sender


def test_all_that_has_come_is_read_at_once(
    pair: tuple[socket.socket, socket.socket], gathering: Reading
) -> None:
    """And nothing is waited for that has not."""
    ours, theirs = pair
    theirs.sendall(b"x" * 50_000)
    assert gathering(ours).read() == b"x" * 50_000
    assert ours.gettimeout() == SECONDS


def test_records_that_came_together_are_read_together(
    tls: tuple[ssl.SSLSocket, Sender], gathering: Reading
) -> None:
    """OpenSSL gives out one at a time."""
    client, sender = tls
    sender.send(b"".join(sender.record(each) for each in (b"a", b"b", b"c")))
    found = gathering(client).read()
    assert found == b"a" * RECORD + b"b" * RECORD + b"c" * RECORD
    assert client.gettimeout() == SECONDS


def test_full_reads_in_a_row_wait_for_the_next_records(
    tls: tuple[ssl.SSLSocket, Sender], gathering: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that arrives during the pause is returned by the same read."""
    client, sender = tls
    records = {each: sender.record(each) for each in (b"a", b"b", b"c")}
    monkeypatch.setattr(gathering_module, "sleep", lambda _: sender.send(records[b"c"]))
    body = gathering(client)
    sender.send(records[b"a"])
    assert body.read() == b"a" * RECORD
    sender.send(records[b"b"])
    assert body.read() == b"b" * RECORD + b"c" * RECORD
    assert client.gettimeout() == SECONDS


def test_single_events_are_not_delayed(
    pair: tuple[socket.socket, socket.socket],
    gathering: Reading,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a small event nor a large one after it waits for more."""
    ours, theirs = pair
    pauses: list[float] = []
    monkeypatch.setattr(gathering_module, "sleep", pauses.append)
    body = gathering(ours)
    for size in (100, 10_000, 100, 10_000):
        theirs.sendall(b"x" * size)
        assert len(body.read()) == size
    assert not pauses


def test_half_a_record_holds_up_none_before_it(
    tls: tuple[ssl.SSLSocket, Sender], gathering: Reading
) -> None:
    """It is read when the rest of it has come."""
    client, sender = tls
    whole, half = sender.record(b"a"), sender.record(b"b")
    sender.send(whole + half[:100])
    body = gathering(client)
    assert body.read() == b"a" * RECORD
    sender.send(half[100:])
    assert body.read() == b"b" * RECORD


def test_what_came_before_a_failure_is_given_before_it(
    tls: tuple[ssl.SSLSocket, Sender], gathering: Reading
) -> None:
    """A record that was changed on its way is refused, and those before it count."""
    client, sender = tls
    good, bad = sender.record(b"a"), bytearray(sender.record(b"b"))
    bad[-1] ^= 1
    sender.send(good + bad)
    body = gathering(client)
    assert body.read() == b"a" * RECORD
    with pytest.raises(ssl.SSLError, match=r"(?i)record"):
        body.read()


def test_the_end_is_found_after_what_came_before_it(
    pair: tuple[socket.socket, socket.socket], gathering: Reading
) -> None:
    """Nothing is read at the end, as often as it is asked for."""
    ours, theirs = pair
    theirs.sendall(b"x" * RECORD)
    theirs.shutdown(socket.SHUT_WR)
    body = gathering(ours)
    assert [body.read(), body.read(), body.read()] == [b"x" * RECORD, b"", b""]


def test_silence_is_told_as_ever(
    pair: tuple[socket.socket, socket.socket], gathering: Reading
) -> None:
    """The socket's own timeout counts, also after much was read."""
    ours, theirs = pair
    ours.settimeout(0.05)
    theirs.sendall(b"x" * 10_000)
    body = gathering(ours)
    assert len(body.read()) == 10_000
    with pytest.raises(TimeoutError):
        body.read()


def test_without_a_socket_what_one_read_gives_is_all(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """TLS inside TLS has none whose timeout could be set for a moment."""
    ours, theirs = pair
    theirs.sendall(b"x" * 10_000)
    with ours.makefile("rb") as file:
        assert Gatherer(file, None).read() == b"x" * RECORD
