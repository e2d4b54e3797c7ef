"""What the system is told so that it notices a peer that has vanished (S35)."""

from __future__ import annotations

import socket
import sys

import pytest

from dyninformer.transport import keepalive
from dyninformer.transport.failures import cut_off, unanswered
from dyninformer.transport.keepalive import keep_alive
from dyninformer.transport.requests import BrokenAnswerError, SilentError


class Noting:
    """A socket that notes its options, and refuses some."""

    def __init__(self, *refused: int) -> None:
        self.options: dict[tuple[int, int], int] = {}
        self._refused = refused

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Note it."""
        if option in self._refused:
            raise OSError(92, "Protocol not available")
        self.options[level, option] = value


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A system whose Python has no name for any of the options."""
    for name, _ in keepalive._OPTIONS:
        monkeypatch.delattr(socket, name, raising=False)
    monkeypatch.setattr(sys, "platform", "elsewhere")
    return monkeypatch


@pytest.mark.skipif(sys.platform != "linux", reason="the options of Linux")
def test_a_peer_that_is_gone_is_given_up_within_25_seconds() -> None:
    """Be the connection idle, or data under way."""
    with socket.socket() as sock:
        keep_alive(sock)
        of_tcp = [
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        idle, between, times = of_tcp
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert idle + between * times <= 25
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 25_000


def test_what_has_no_name_is_left_out(bare: pytest.MonkeyPatch) -> None:
    """Keepalive itself is everywhere."""
    sock = Noting()
    keep_alive(sock)  # type: ignore[arg-type]
    assert sock.options == {(socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1}


@pytest.mark.parametrize(
    ("platform", "idle"), [("darwin", "TCP_KEEPALIVE"), ("win32", "TCP_KEEPIDLE")]
)
def test_other_systems_have_other_options(
    bare: pytest.MonkeyPatch, platform: str, idle: str
) -> None:
    """An idle time by another name, and a user timeout without one."""
    bare.setattr(sys, "platform", platform)
    bare.setattr(socket, idle, 4711, raising=False)
    sock = Noting()
    keep_alive(sock)  # type: ignore[arg-type]
    assert len(sock.options) == 3
    assert sock.options[socket.IPPROTO_TCP, 4711] == 10


def test_what_the_system_refuses_is_left_out() -> None:
    """The others are set all the same; what is no TCP at all is let be."""
    sock = Noting(socket.TCP_KEEPINTVL)
    keep_alive(sock)  # type: ignore[arg-type]
    assert (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) not in sock.options
    assert (socket.IPPROTO_TCP, socket.TCP_KEEPCNT) in sock.options
    keep_alive(object())  # type: ignore[arg-type]
    near, far = socket.socketpair()
    with near, far:
        keep_alive(near)


def test_a_peer_that_the_system_gave_up_is_gone_and_not_silent() -> None:
    """Python calls both a TimeoutError."""
    gone = OSError(110, "Connection timed out")
    assert isinstance(gone, TimeoutError)
    found = cut_off(gone, "h", 230.0)
    assert isinstance(found, BrokenAnswerError)
    assert "Connection timed out" in str(found)
    assert isinstance(cut_off(TimeoutError("timed out"), "h", 230.0), SilentError)
    assert not isinstance(unanswered(gone, "h", None, "asked", 60.0), SilentError)
    assert isinstance(unanswered(TimeoutError("x"), "h", None, "asked", 60.0), SilentError)
