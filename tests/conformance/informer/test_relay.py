"""The relay, with which other tests break connections, does what it says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.conformance.informer.relay import Relay

PATIENCE = 10


class Echo:
    """A server that sends back what it is sent."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._echo, args=(connection,)))
            self._threads[-1].start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                return

    def close(self) -> None:
        """End it, after whoever talks with it."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._threads:
            each.join(PATIENCE)


@pytest.fixture
def relay() -> Iterator[Relay]:
    """One in front of an echo."""
    echo = Echo()
    made = Relay(echo.url)
    yield made
    made.close()
    echo.close()


@pytest.fixture
def near(relay: Relay) -> Iterator[socket.socket]:
    """A connection through it."""
    with connected(relay) as made:
        yield made


def connected(relay: Relay) -> socket.socket:
    """A connection through it that works."""
    host, port = relay.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), PATIENCE)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert echoed(made, b"hello") == b"hello"
    except BaseException:
        made.close()
        raise
    return made


def echoed(connection: socket.socket, data: bytes) -> bytes:
    """What comes back."""
    connection.sendall(data)
    return received(connection, len(data))


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer at the end."""
    found = b""
    while len(found) < size and (piece := connection.recv(size - len(found))):
        found += piece
    return found


def is_silent(connection: socket.socket) -> bool:
    """Nothing comes at once, nor the end."""
    connection.settimeout(0.05)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)
    return False


def test_a_reset_ends_what_is_open(relay: Relay, near: socket.socket) -> None:
    """With a reset and not with an end; what is opened afterwards works."""
    relay.reset()
    with pytest.raises(ConnectionResetError):
        near.recv(1)
    connected(relay).close()


def test_what_is_held_back_comes_when_the_silence_is_over(
    relay: Relay, near: socket.socket
) -> None:
    """In both directions, and nothing is lost."""
    with relay.silent():
        near.sendall(b"later")
        assert is_silent(near)
    assert received(near, 5) == b"later"


def test_delayed_bytes_come_late_and_whole(relay: Relay, near: socket.socket) -> None:
    """Or when the delay is over."""
    with relay.delaying(60):
        near.sendall(b"late")
        assert is_silent(near)
    assert received(near, 4) == b"late"


def test_bytes_that_drip_come_one_by_one_and_the_rest_at_the_end(
    relay: Relay, near: socket.socket
) -> None:
    """Only those that the server sends."""
    with relay.dripping(1, 60):
        near.sendall(b"drip")
        assert near.recv(65536) == b"d"
        assert is_silent(near)
    assert received(near, 3) == b"rip"


def test_a_truncated_answer_ends_in_its_midst(relay: Relay, near: socket.socket) -> None:
    """One in the given time; others go on."""
    with connected(relay) as other, relay.truncating(60):
        assert echoed(near, b"12345678") == b"1234"
        assert echoed(other, b"12345678") == b"12345678"


def test_forgotten_connections_are_silent_for_ever_and_new_ones_work(
    relay: Relay, near: socket.socket
) -> None:
    """Nobody is told."""
    relay.forget()
    near.sendall(b"hello?")
    assert is_silent(near)
    connected(relay).close()


def test_absences_nest(relay: Relay) -> None:
    """It is back when the last one is over."""
    with relay.away():
        with relay.away():
            pass
        with pytest.raises((OSError, AssertionError)):
            connected(relay)
    connected(relay).close()
    assert relay.turned_away == 1


def test_a_fault_goes_on_for_its_block_alone(relay: Relay, near: socket.socket) -> None:
    """What an earlier one holds is let go at its own end, though another one has begun."""
    with relay.dripping(1, 60):
        near.sendall(b"abc")
        assert near.recv(65536) == b"a"
    with relay.silent():
        assert received(near, 2) == b"bc"
        near.sendall(b"d")
        assert is_silent(near)
    assert received(near, 1) == b"d"
