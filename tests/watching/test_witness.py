"""Whether the connection that is kept has died, and what that shows (S35)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dyninformer.errors import UnreachableError
from dyninformer.transport.requests import BrokenAnswerError, SilentError
from dyninformer.watching import witness as module
from dyninformer.watching.witness import KEPT, KEPT_WITHIN, QUICKLY, RENEWED, Way, Witness


class Line:
    """A server as heartbeats find it, one after the other, and a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.ways: list[Way] = []
        self.heard = self.died = 0
        self.witness = Witness()
        monkeypatch.setattr(module, "since_boot", lambda: self.now)

    def hold(self, *answers: Callable[[Callable[[], None]], None]) -> None:
        """A heartbeat whose watches go so, one after the other."""
        turns = iter(answers)

        def listen(heard: Callable[[], None], way: Way) -> None:
            self.ways.append(way)
            next(turns)(heard)

        self.witness.hold(listen, self._hear, self._die)
        assert next(turns, None) is None

    def _hear(self) -> None:
        self.heard += 1

    def _die(self) -> None:
        self.died += 1


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """One on which nothing was asked yet."""
    return Line(monkeypatch)


def answered(heard: Callable[[], None]) -> None:
    """Head and end come in time."""
    heard()
    heard()


def mute(heard: Callable[[], None]) -> None:
    """Over a connection that has answered before, no head comes."""
    del heard
    error = SilentError("said nothing")
    error.reused = True
    raise error


def mute_when_new(heard: Callable[[], None]) -> None:
    """Over a new connection, no head comes."""
    del heard
    raise SilentError("said nothing")


def endless(heard: Callable[[], None]) -> None:
    """The head comes, and no end."""
    heard()
    raise SilentError("said nothing")


def test_a_heartbeat_that_is_answered_is_one_request_over_the_kept_connection(line: Line) -> None:
    """Head and end are signs of life."""
    line.hold(answered)
    assert line.ways == [KEPT]
    assert (line.heard, line.died) == (2, 0)
    assert (KEPT.kept, KEPT.anew, KEPT.within) == (True, False, KEPT_WITHIN)


@pytest.mark.parametrize("silent", [mute, endless])
def test_old_connections_are_dead_if_the_kept_one_is_silent_and_a_new_one_is_not(
    line: Line, silent: Callable[[Callable[[], None]], None]
) -> None:
    """Whether it owes the head, or the end; it is told once, as soon as the new one answers."""
    died = []

    def renewed(heard: Callable[[], None]) -> None:
        heard()
        died.append(line.died)
        answered(heard)

    line.hold(silent, renewed)
    assert line.ways == [KEPT, RENEWED]
    assert (RENEWED.kept, RENEWED.anew) == (True, True)
    assert died == [1]
    assert line.died == 1


@pytest.mark.parametrize("silent", [mute, mute_when_new, endless])
def test_a_server_that_is_slow_to_a_new_connection_too_shows_nothing(
    line: Line, silent: Callable[[Callable[[], None]], None]
) -> None:
    """It has much to do: that is not the time to have everybody ask again."""

    def slowly(heard: Callable[[], None]) -> None:
        line.now += QUICKLY + 0.1
        answered(heard)

    line.hold(silent, slowly)
    assert line.died == 0
    assert QUICKLY < KEPT_WITHIN


def test_where_no_connection_was_kept_its_silence_shows_nothing(line: Line) -> None:
    """It is as new as the other."""
    line.hold(mute_when_new, answered)
    assert line.died == 0


def test_a_server_that_ends_no_watch_at_its_time_is_believed_once(line: Line) -> None:
    """Until it ends one again."""
    for _ in range(3):
        with pytest.raises(SilentError):
            line.hold(endless, endless)
    assert line.died == 1
    line.hold(answered)
    line.hold(endless, answered)
    assert line.died == 2


def test_what_a_new_connection_fails_with_is_the_heartbeats_end(line: Line) -> None:
    """And so is any failure of the kept one except silence."""

    def refused(heard: Callable[[], None]) -> None:
        del heard
        raise UnreachableError("connection refused")

    def reset(heard: Callable[[], None]) -> None:
        heard()
        raise BrokenAnswerError("reset")

    with pytest.raises(UnreachableError, match="refused"):
        line.hold(mute, refused)
    with pytest.raises(BrokenAnswerError):
        line.hold(reset)
    assert line.died == 0
