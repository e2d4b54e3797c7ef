"""`InProcessServer`: the same cluster without sockets or threads, on a clock moved by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from dyninformer.checked import (
    check_function,
    checked,
    checked_number,
    checked_or_none,
    checked_text,
    wrong,
)
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.embedded import EmbeddedServer
from dyninformer.testing.messages import (
    AnswerPlan,
    AnyStream,
    Ending,
    Headers,
    Pause,
    Query,
    Request,
    Response,
    Step,
    body_of,
    is_stream,
)

T = TypeVar("T")


class InProcessServer(EmbeddedServer):
    """A Kubernetes API server as an object: for clients that are simulated.

    Nothing happens except in the calls that are made, in their order, and no time passes
    except what `advance` lets pass: the same calls with the same ``seed`` give the same
    answers. It belongs to one thread.

    >>> server = InProcessServer()
    >>> reply = server.get_path("/api/v1/namespaces", watch="1", timeoutSeconds="5")
    >>> len(reply.take())  # the namespaces that a cluster is born with
    4
    >>> server.advance(5)
    >>> reply.take(), reply.ended
    ([], True)
    """

    def __init__(
        self,
        clock: ManualClock | None = None,
        *,
        settings: ReadSettings | None = None,
        seed: int = 0,
        controllers: bool = True,
        controller_delay: float = 0.0,
    ) -> None:
        if clock is not None and not callable(getattr(clock, "advance", None)):
            raise wrong("clock", clock, "a ManualClock(), or None for one of its own")
        self.clock = clock or ManualClock()
        """What `advance` moves. Others that share it may move it too: see `run_due`."""
        self._open: list[Reply] = []
        super().__init__(
            self.clock,
            settings,
            seed=seed,
            controllers=controllers,
            controller_delay=controller_delay,
        )

    def send(self, request: Request) -> Reply:
        """Make a request; what comes of it, as time passes, is the reply's to tell.

        ConnectionRefusedError while a fault refuses connections.
        """
        checked("a request", request, Request, "Request(method, path)")
        if self.faults.refusing:
            raise ConnectionRefusedError("the server refuses connections")
        reply = Reply(self._plan(request), self)
        self._open.append(reply)
        return reply

    def request(self, request: Request) -> Reply:
        """Make a request, and let time pass until its answer begins.

        A connection that breaks before that raises; TimeoutError if nothing ever comes.
        """
        reply = self.send(request)
        while not reply.arrived:
            reply.take()
            if reply.deadline is None:
                raise TimeoutError(f"{request.method} {request.path} is never answered")
            self.advance_to(reply.deadline)
        return reply

    def get_path(self, path: str, *, token: str | None = None, **query: str) -> Reply:
        """`request` a path by GET, as the user of ``token``, by default one that may do all."""
        checked_text("path", path, "one such as '/version'")
        checked_or_none("token", token, str, "that of a user, or None")
        parameters: Query = tuple(query.items())
        headers = {"authorization": f"Bearer {token or self.token}", "accept": "application/json"}
        return self.request(Request("GET", path, parameters, headers))

    # -- time ----------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When the server, or an open reply, next has something to do by itself."""
        found = [self._next_deadline(), *(reply.deadline for reply in self._open)]
        return min((each for each in found if each is not None), default=None)

    def run_due(self) -> None:
        """Do what is due by the clock, after other code has moved it."""
        self._run_due()

    def advance(self, seconds: float) -> None:
        """Let time pass: all that falls due on the way happens at its own moment."""
        self.advance_to(self.clock.now() + checked_number("what passes", seconds, "seconds"))

    def advance_to(self, moment: float) -> None:
        """Let time pass up to a moment, and all happen that is due by then."""
        checked_number("a moment", moment, "seconds since 1970, as of the clock")
        while (due := self._next_deadline()) is not None and due < moment:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self._run_due()
        self.clock.advance(max(0.0, moment - self.clock.now()))
        self._run_due()

    # -- inside --------------------------------------------------------------------------

    def forget(self, reply: Reply) -> None:
        """A reply is over."""
        if reply in self._open:
            self._open.remove(reply)

    def _call(self, function: Callable[[], T]) -> T:
        return function()

    def _wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = self.clock.now() + timeout
        while not condition():
            due = self._next_deadline()
            if due is None or due > deadline:
                return False
            self.advance_to(due)
        return True

    def _set_refusing(self, refusing: bool) -> None:
        """Without a port there is nothing to close: `send` asks the faults."""

    def _sever(self) -> None:
        for reply in tuple(self._open):
            reply.sever()


class Reply:
    """What a client sees of an answer: at each moment, the bytes that have come by then.

    No time passes except in `read`. A connection that breaks raises: ConnectionResetError
    for a reset, ConnectionAbortedError for one closed too early.

    >>> from dyninformer.testing import InProcessServer
    >>> reply = InProcessServer().get_path("/version")
    >>> reply.status, b"gitVersion" in reply.read()
    (200, True)
    """

    def __init__(self, plan: AnswerPlan, server: InProcessServer) -> None:
        self._server = server
        self._plan = plan
        self._until = server.clock.now() + plan.waits
        self._steps: deque[Step] = deque()
        self._more: Iterator[Step] = iter(())
        self._broken: Exception | None = None
        self._silent = False
        self._ended = False
        self._status: int | None = None
        self._headers: Headers = ()
        if plan.instead is not None:
            self._more = _no_http(plan.instead)
        elif self._stream is not None:
            self._status, self._headers = 200, self._stream.headers
        elif isinstance(plan.answer, Response):
            self._status, self._headers = plan.answer.status, plan.answer.headers
            self._more = _body(plan.answer, plan.cut)

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
        check_function("ready", ready)
        if self._stream is not None:
            self._stream.on_ready = ready

    def take(self) -> list[bytes]:
        """What has come since the last time; whole lines of a watch, unless a fault cuts them."""
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
            elif isinstance(step, Ending):
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

    @property
    def _stream(self) -> AnyStream | None:
        """The watch as it is now: a fault may have replaced it since it was opened."""
        answer = self._plan.answer
        return answer if is_stream(answer) else None

    def _next(self) -> Step | None:
        """The next step, None if there is none yet."""
        if not self._steps and (stream := self._stream) is not None:
            self._steps.extend(stream.take())
            if not self._steps:
                return Ending.CLEAN if stream.ended else None
        return self._steps.popleft() if self._steps else next(self._more, Ending.CLEAN)

    def _dripped(self, data: bytes) -> bytes:
        """As much as comes at once; the rest is put back for later."""
        drip = self._plan.drip
        if drip is None:
            return data
        self._until = self._server.clock.now() + drip.seconds
        if rest := data[drip.size :]:
            self._steps.appendleft(rest)
        return data[: drip.size]

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
    """What comes instead of an answer: bytes that are not HTTP leave a client with nothing."""
    for step in steps:
        yield Ending.CLOSE if isinstance(step, bytes) else step
