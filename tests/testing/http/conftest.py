"""A listener on a loop of its own, whose answers the test declares."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
import urllib3

from dyninformer.testing.http.listener import Listener
from dyninformer.testing.http.wire import Limits
from dyninformer.testing.messages import AnswerPlan, Headers, Request, Response

T = TypeVar("T")
JSON: Headers = (("Content-Type", "application/json"),)


class ScriptedStream:
    """A watch whose lines the test pushes."""

    def __init__(self, shell: Shell, deadline: float | None = None) -> None:
        self.headers = JSON
        self.on_ready: Callable[[], None] = lambda: None
        self.deadline = deadline
        self.ended = False
        self.closed = threading.Event()
        self.taken = 0
        self._shell = shell
        self._lines: list[bytes] = []

    def push(self, *lines: bytes, end: bool = False) -> None:
        """Have lines to take, and perhaps no more after them."""

        def act() -> None:
            self._lines += lines
            self.ended = end
            self.on_ready()

        self._shell.call(act)

    def take(self, limit: int = 1 << 18) -> list[bytes]:
        """What was pushed."""
        self.taken += 1
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.ended = True
        lines, self._lines = self._lines, []
        return lines

    def close(self) -> None:
        """Note that the reader has gone."""
        self.closed.set()


class Shell:
    """A listener and its loop's thread."""

    def __init__(self, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Callable[[Request], AnswerPlan]] = {}
        self.requests: list[Request] = []
        self._scheme = "http" if tls is None else "https"
        self.streams: list[ScriptedStream] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.listener = Listener(self.loop, self._handle, time.monotonic, limits=limits, tls=tls)
        self.call(self.listener.open)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self.listener.port}"

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function on the loop's thread."""

        async def run() -> T:
            return function()

        return self.do(run())

    def tasks(self) -> int:
        """How many tasks run on the loop."""
        return self.call(lambda: len(asyncio.all_tasks(self.loop))) - 1

    def respond(self, path: str, body: bytes, status: int = 200) -> None:
        """Answer a path with a body."""
        self.answers[path] = lambda request: AnswerPlan(request, Response(status, JSON, body))

    def connect(self) -> socket.socket:
        """A connection without TLS or HTTP."""
        return socket.create_connection(("127.0.0.1", self.listener.port), timeout=10)

    def say(self, data: bytes, *, half_close: bool = False) -> bytes:
        """Send bytes, and return all that comes until the server closes."""
        with self.connect() as sock:
            sock.sendall(data)
            if half_close:
                sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def close(self) -> None:
        """End the loop and all on it."""
        self.do(self.listener.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def _handle(self, request: Request) -> AnswerPlan:
        self.requests.append(request)
        if request.path == "/watch":
            self.streams.append(ScriptedStream(self))
            return AnswerPlan(request, self.streams[-1])
        if request.path in self.answers:
            return self.answers[request.path](request)
        return AnswerPlan(request, Response(200, JSON, request.path.encode()))


def read_all(sock: socket.socket) -> bytes:
    """All that comes until the server closes."""
    data = b""
    while piece := sock.recv(1 << 16):
        data += piece
    return data


def read_until(sock: socket.socket, end: bytes) -> bytes:
    """All that comes up to some bytes, and what came with them."""
    data = b""
    while end not in data:
        piece = sock.recv(1 << 16)
        assert piece, f"closed before {end!r}: {data!r}"
        data += piece
    return data


def eventually(condition: Callable[[], bool], timeout: float = 10) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.002)


@contextmanager
def running(limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Shell]:
    """A shell for the length of a block."""
    shell = Shell(limits, tls)
    try:
        yield shell
    finally:
        shell.close()


@pytest.fixture
def shell() -> Iterator[Shell]:
    """A listener with the usual limits."""
    with running() as found:
        yield found


@pytest.fixture
def pool() -> Iterator[urllib3.PoolManager]:
    """A client that does not try again."""
    manager = urllib3.PoolManager(retries=False, timeout=10)
    yield manager
    manager.clear()
