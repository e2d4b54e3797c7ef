"""An exchange played out against a clock, for clients in the same process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dyninformer.testing.exchange import (
    Ending,
    Exchange,
    Pause,
    Step,
    body_of,
    is_stream,
)
from dyninformer.testing.messages import Headers, Response

if TYPE_CHECKING:
    from dyninformer.testing.in_process import InProcessServer


class Reply:
    """What a client sees of an answer: at each moment, the bytes that have come by then.

    No time passes but in `read`. A connection that breaks raises: ConnectionResetError
    for a reset, ConnectionAbortedError for one closed too early.

    >>> from dyninformer.testing import InProcessServer
    >>> reply = InProcessServer().get_path("/version")
    >>> reply.status, b"gitVersion" in reply.read()
    (200, True)
    """

    def __init__(self, exchange: Exchange, server: InProcessServer) -> None:
        self._server = server
        self._drip = exchange.drip
        self._until = server.clock.now() + exchange.waits
        self._steps: deque[Step] = deque()
        self._stream = exchange.answer if is_stream(exchange.answer) else None
        self._more: Iterator[Step] = iter(())
        self._broken: Exception | None = None
        self._silent = False
        self._ended = False
        self._status: int | None = None
        self._headers: Headers = ()
        if exchange.instead is not None:
            self._more = _no_http(exchange.instead)
        elif self._stream is not None:
            self._status, self._headers = 200, self._stream.headers
        elif isinstance(exchange.answer, Response):
            self._status, self._headers = exchange.answer.status, exchange.answer.headers
            self._more = _body(exchange.answer, exchange.cut)

    @property
    def arrived(self) -> bool:
        """Status and headers have come."""
        return self._status is not None and self._server.clock.now() >= self._until

    @property
    def status(self) -> int:
        """The status code, once it has come; a broken connection raises."""
        if not self.arrived:
            self._raise_if_broken()
            raise BlockingIOError("nothing has come yet: let time pass")
        assert self._status is not None  # noqa: S101 - it has arrived
        return self._status

    @property
    def headers(self) -> Headers:
        """The headers, which come with the status."""
        return self._headers

    @property
    def ended(self) -> bool:
        """Everything has been taken, and the end was clean."""
        return self._ended

    @property
    def deadline(self) -> float | None:
        """When there may be more to take, if nothing happens before; None is never."""
        if self._ended or self._silent or self._broken is not None:
            return None
        now = self._server.clock.now()
        if now < self._until:
            return self._until
        return self._stream.deadline if self._stream is not None else None

    def on_ready(self, ready: Callable[[], None]) -> None:
        """Have ``ready`` called when a watch has something to take; perhaps too often."""
        if self._stream is not None:
            self._stream.on_ready = ready

    def take(self) -> list[bytes]:
        """What has come since the last time; of a watch whole lines, unless a fault cuts them."""
        taken: list[bytes] = []
        now = self._server.clock.now()
        while not (self._ended or self._silent or self._broken) and now >= self._until:
            step = self._next()
            if step is None:
                break
            if isinstance(step, bytes):
                taken.append(self._dripped(step))
            elif isinstance(step, Pause):
                self._until = now + step.seconds
            else:
                self._end(step)
        if not taken:
            self._raise_if_broken()
        return taken

    def read(self) -> bytes:
        """All that is still to come, to the end; time passes as it must.

        TimeoutError if nothing more would ever come.
        """
        taken = b""
        while True:
            pieces = self.take()
            taken += b"".join(pieces)
            if self._ended:
                return taken
            if pieces:
                continue
            if self.deadline is None:
                raise TimeoutError(f"nothing more would ever come after {len(taken)} bytes")
            self._server.advance_to(self.deadline)

    def close(self) -> None:
        """The client has read enough. Idempotent."""
        self._ended = True
        self._let_go()

    def sever(self) -> None:
        """The server drops the connection."""
        if not self._ended and self._broken is None:
            self._end(Ending.RESET)

    def _next(self) -> Step | None:
        """The next step, None if there is none yet."""
        if not self._steps and self._stream is not None:
            self._steps.extend(self._stream.take())
            if not self._steps:
                return Ending.CLEAN if self._stream.ended else None
        return self._steps.popleft() if self._steps else next(self._more, Ending.CLEAN)

    def _dripped(self, data: bytes) -> bytes:
        """As much as comes at once; the rest is put back for later."""
        if self._drip is None:
            return data
        self._until = self._server.clock.now() + self._drip.seconds
        if rest := data[self._drip.size :]:
            self._steps.appendleft(rest)
        return data[: self._drip.size]

    def _end(self, ending: Ending) -> None:
        if ending is Ending.CLEAN:
            self._ended = True
        elif ending is Ending.SILENCE:
            self._silent = True
        elif ending is Ending.RESET:
            self._broken = ConnectionResetError("the server reset the connection")
        else:
            self._broken = ConnectionAbortedError("the server closed the connection too early")
        self._let_go()

    def _let_go(self) -> None:
        self._server.forget(self)
        if self._stream is not None:
            self._stream.close()

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise self._broken


def _body(response: Response, cut: tuple[int, Ending] | None) -> Iterator[Step]:
    body = body_of(response)
    if cut is not None:
        length, ending = cut
        body = body[:length]
    if body:
        yield body
    if cut is not None:
        yield ending


def _no_http(steps: Iterable[Step]) -> Iterator[Step]:
    """What comes instead of an answer: bytes that are no answer leave a client with nothing."""
    for step in steps:
        yield Ending.CLOSE if isinstance(step, bytes) else step
