"""A TCP proxy in front of a server, which does to connections what networks do to them.

It passes bytes on, of TLS as well, and knows nothing of what they say.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias
from urllib.parse import urlsplit

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Deliver: TypeAlias = Callable[[bytes, socket.socket, bool], None]
"""Passes a piece on to a socket; whether it is one that the server sent."""


class _CutError(OSError):
    """The connection ends here."""


class Relay:
    """Passes bytes between clients and one server, until it is told otherwise.

    Each fault is a block, and over when that is left. Blocks of `away` may nest; of the faults
    that do something to what is passed on (`silent`, `delaying`, `dripping`, `truncating`) one
    goes on at a time.
    """

    def __init__(self, url: str, listener: socket.socket | None = None) -> None:
        self._target = urlsplit(url)
        self._listener = listener or socket.create_server(("127.0.0.1", 0), backlog=256)
        self._lock = threading.Lock()  # guards the three sets, _away, _threads
        self._open: set[socket.socket] = set()
        self._forgotten: set[socket.socket] = set()
        self._resetting: set[socket.socket] = set()
        self._away = 0
        self.turned_away = 0
        """Connections that were reset as soon as they came."""
        self._through = threading.Event()  # connections are passed on, not held
        self._through.set()
        self._deliver: Deliver = _at_once
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def url(self) -> str:
        """Where it listens, with the server's scheme."""
        host, port = self._listener.getsockname()
        return f"{self._target.scheme}://{host}:{port}"

    def reset(self) -> None:
        """Reset every open connection, on both sides."""
        with self._lock:
            self._resetting |= self._open
            for each in self._open:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                try:
                    each.shutdown(socket.SHUT_RD)  # wakes its thread, which closes it
                except OSError:
                    continue

    def forget(self) -> None:
        """Pass nothing on any more on connections that are open now; new ones work.

        As something on the way that has forgotten them: nobody is told, and whoever asks on one
        gets no answer.
        """
        with self._lock:
            self._forgotten |= self._open

    @contextmanager
    def away(self) -> Iterator[None]:
        """Reset every connection, and each new one as soon as it comes."""
        with self._lock:
            self._away += 1
        self.reset()
        try:
            yield
        finally:
            with self._lock:
                self._away -= 1

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Reset every connection, and hold each new one until the block is left."""
        self._through.clear()
        self.reset()
        try:
            yield
        finally:
            self._through.set()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Pass nothing on, and close nothing: what came meanwhile goes on after the block."""
        mended = threading.Event()

        def hold(piece: bytes, sink: socket.socket, _: bool) -> None:
            mended.wait()
            sink.sendall(piece)

        with self._delivering(hold, mended):
            yield

    @contextmanager
    def delaying(self, seconds: float) -> Iterator[None]:
        """Pass each piece on so much later, in both directions."""
        mended = threading.Event()

        def late(piece: bytes, sink: socket.socket, _: bool) -> None:
            mended.wait(seconds)
            sink.sendall(piece)

        with self._delivering(late, mended):
            yield

    @contextmanager
    def dripping(self, size: int, seconds: float) -> Iterator[None]:
        """Pass on what the server sends in drops of so many bytes, with a pause after each."""
        mended = threading.Event()

        def drip(piece: bytes, sink: socket.socket, from_server: bool) -> None:
            while from_server and len(piece) > size and not mended.is_set():
                sink.sendall(piece[:size])
                piece = piece[size:]
                mended.wait(seconds)
            sink.sendall(piece)

        with self._delivering(drip, mended):
            yield

    @contextmanager
    def truncating(self, seconds: float) -> Iterator[None]:
        """End connections in the midst of what the server sends, one each so many seconds."""
        lock = threading.Lock()
        due = time.monotonic()

        def cut(piece: bytes, sink: socket.socket, from_server: bool) -> None:
            nonlocal due
            with lock:
                cuts = from_server and len(piece) > 1 and time.monotonic() >= due
                if cuts:
                    due = time.monotonic() + seconds
            if cuts:
                sink.sendall(piece[: len(piece) // 2])
                raise _CutError
            sink.sendall(piece)

        with self._delivering(cut, threading.Event()):
            yield

    def close(self) -> None:
        """Let go of all."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    @contextmanager
    def _delivering(self, deliver: Deliver, mended: threading.Event) -> Iterator[None]:
        assert self._deliver is _at_once, "one such fault goes on already"
        self._deliver = deliver
        try:
            yield
        finally:
            self._deliver = _at_once
            mended.set()

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="relay", daemon=True)  # type: ignore[arg-type]
        with self._lock:
            self._threads = [each for each in self._threads if each.is_alive()]
            thread.start()
            self._threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._through.wait()
            with self._lock:
                away = self._away
            if away:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                near.close()
                self.turned_away += 1
                continue
            try:
                far = socket.create_connection((self._target.hostname, self._target.port))
            except OSError:
                near.close()
                continue
            for each in near, far:
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {near, far}
            self._start(self._pump, near, far, False)
            self._start(self._pump, far, near, True)

    def _pump(self, source: socket.socket, sink: socket.socket, from_server: bool) -> None:
        try:
            while piece := source.recv(65536):
                if source not in self._forgotten:
                    self._deliver(piece, sink, from_server)
        except _CutError:
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)  # its own thread ends, too
        except OSError:
            pass
        finally:
            with self._lock:
                ends = source not in self._resetting
                for each in self._open, self._forgotten, self._resetting:
                    each.discard(source)
            with suppress(OSError):
                if ends:  # else an orderly end would come before the reset
                    sink.shutdown(socket.SHUT_WR)
            source.close()


def _at_once(piece: bytes, sink: socket.socket, _: bool) -> None:
    sink.sendall(piece)
