"""Faults of the connection: refused, reset, silent, slow, cut."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat

from dyninformer.testing.exchange import Drip, Ending, Pause, Step, body_of
from dyninformer.testing.faults.strike import Fault, Strike
from dyninformer.testing.messages import Response


@dataclass(frozen=True, slots=True)
class Refuse(Fault):
    """The port is closed: new connections are refused, those that are open go on.

    It begins when it is added, and ends when it is removed or after the ``seconds`` of
    ``add``. It cannot be aimed at some requests only.
    """


@dataclass(frozen=True, slots=True)
class Reset(Fault):
    """The connection is reset (RST): before the request is handled, or in the middle.

    In the middle is ``after_lines`` of a watch, or ``after_bytes`` of any other body.
    """

    after_lines: int | None = None
    after_bytes: int | None = None

    def before(self, strike: Strike) -> None:
        """Instead of handling the request, unless told to wait."""
        if self.after_lines is None and self.after_bytes is None:
            strike.instead((Ending.RESET,))

    def after(self, strike: Strike) -> None:
        """In the middle."""
        if self.after_lines is not None:
            strike.after_lines(self.after_lines, (Ending.RESET,))
        elif self.after_bytes is not None:
            strike.cut(self.after_bytes, Ending.RESET)


@dataclass(frozen=True, slots=True)
class LoseAnswer(Fault):
    """The request is handled, a write takes effect, but the connection is reset: no answer."""

    def after(self, strike: Strike) -> None:
        """Handled it has been."""
        strike.instead((Ending.RESET,))


@dataclass(frozen=True, slots=True)
class BlackHole(Fault):
    """The connection stays open and nothing comes; with ``after_lines``, nothing more comes."""

    after_lines: int | None = None

    def before(self, strike: Strike) -> None:
        """Instead of handling the request, unless told to wait."""
        if self.after_lines is None:
            strike.instead((Ending.SILENCE,))

    def after(self, strike: Strike) -> None:
        """After some lines of a watch."""
        if self.after_lines is not None:
            strike.after_lines(self.after_lines, (Ending.SILENCE,))


@dataclass(frozen=True, slots=True)
class Delay(Fault):
    """Nothing is sent for some seconds: before the answer, or ``after_lines`` of a watch."""

    seconds: float
    after_lines: int | None = None

    def after(self, strike: Strike) -> None:
        """The state is read first, as by a server that is slow to answer."""
        if self.after_lines is not None:
            strike.after_lines(self.after_lines, (Pause(self.seconds),))
        else:
            strike.exchange.delay += self.seconds
            strike.hit()


@dataclass(frozen=True, slots=True)
class SlowDrip(Fault):
    """The answer comes ``size`` bytes at a time, with ``seconds`` after each."""

    size: int = 1
    seconds: float = 0.01

    def after(self, strike: Strike) -> None:
        """Head, body and all."""
        strike.exchange.drip = Drip(self.size, self.seconds)
        strike.hit()


@dataclass(frozen=True, slots=True)
class EndlessHeaders(Fault):
    """A status line, then headers without end, one every ``seconds``."""

    seconds: float = 0.01

    def before(self, strike: Strike) -> None:
        """Nobody handles the request."""
        head: tuple[Step, ...] = (b"HTTP/1.1 200 OK\r\n",)
        more: tuple[Step, ...] = (b"X-More: and more\r\n", Pause(self.seconds))
        strike.instead(chain(head, chain.from_iterable(repeat(more))))


@dataclass(frozen=True, slots=True)
class RawAnswer(Fault):
    """These bytes are all that is sent, whatever they mean, and the connection is closed."""

    data: bytes

    def before(self, strike: Strike) -> None:
        """Nobody handles the request."""
        strike.instead((self.data, Ending.CLOSE))


@dataclass(frozen=True, slots=True)
class Truncate(Fault):
    """The answer stops in the middle, by default with a connection closed too early.

    A watch stops after ``after_lines`` whole lines and half of the next; another body
    after ``after_bytes``, or at half of it. ``ending=Ending.CLEAN`` makes the framing
    of HTTP look complete.
    """

    after_lines: int = 0
    after_bytes: int | None = None
    ending: Ending = Ending.CLOSE

    def after(self, strike: Strike) -> None:
        """Cut what would have been sent."""
        answer = strike.exchange.answer
        if isinstance(answer, Response):
            body = body_of(answer)
            strike.exchange.answer = replace(answer, body=body)
            strike.cut(
                len(body) // 2 if self.after_bytes is None else self.after_bytes, self.ending
            )
            return
        left = self.after_lines

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal left
            if left:
                left -= 1
                yield line
                return
            strike.hit()
            yield line[: len(line) // 2]
            yield self.ending

        strike.edit(edit)


@dataclass(frozen=True, slots=True)
class TruncateGzip(Fault):
    """The body is compressed, whether asked or not, and cut at half, in complete framing."""

    def after(self, strike: Strike) -> None:
        """Only a finished answer is ever compressed."""
        answer = strike.exchange.answer
        if not isinstance(answer, Response):
            return
        body = body_of(answer)
        headers = answer.headers
        if not any(name.lower() == "content-encoding" for name, _ in headers):
            body = gzip.compress(body, 1)
            headers = (*headers, ("Content-Encoding", "gzip"))
        strike.exchange.answer = replace(answer, headers=headers, body=body[: len(body) // 2])
        strike.hit()


@dataclass(frozen=True, slots=True)
class CutChunks(Fault):
    """The body comes in chunks of ``size`` bytes, which cut lines and characters anywhere."""

    size: int = 7

    def after(self, strike: Strike) -> None:
        """The bytes are the same."""
        strike.exchange.frame = self.size
        strike.hit()


@dataclass(frozen=True, slots=True)
class EndEarly(Fault):
    """A watch ends cleanly, long before its time, after some lines."""

    after_lines: int = 0

    def after(self, strike: Strike) -> None:
        """A clean end: the terminating chunk."""
        strike.after_lines(self.after_lines, (Ending.CLEAN,))
