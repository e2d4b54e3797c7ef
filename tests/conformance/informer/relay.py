"""A TCP proxy in front of a server, whose connections can be reset or left in silence."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Relay:
    """Passes bytes between clients and one server, until it is told otherwise."""

    def __init__(self, url: str, listener: socket.socket | None = None) -> None:
        self._target = urlsplit(url)
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()  # guards _open and _passing
        self._open: set[socket.socket] = set()
        self._passing = True
        self.turned_away = 0
        """Connections that were reset as soon as they came."""
        self._through = threading.Event()  # connections are passed on, not held
        self._through.set()
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
            for each in self._open:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                try:
                    each.shutdown(socket.SHUT_RD)  # wakes its thread, which closes it
                except OSError:
                    continue

    @contextmanager
    def away(self) -> Iterator[None]:
        """Reset every connection, and each new one as soon as it comes."""
        with self._lock:
            self._passing = False
        self.reset()
        try:
            yield
        finally:
            with self._lock:
                self._passing = True

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Reset every connection, and hold each new one until the block is left."""
        self._through.clear()
        self.reset()
        try:
            yield
        finally:
            self._through.set()

    def close(self) -> None:
        """Let go of all."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _start(self, target: object, *args: socket.socket) -> None:
        thread = threading.Thread(target=target, args=args, name="relay", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._through.wait()
            with self._lock:
                passing = self._passing
            if not passing:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                near.close()
                self.turned_away += 1
                continue
            try:
                far = socket.create_connection((self._target.hostname, self._target.port))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            self._start(self._pump, near, far)
            self._start(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(source)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
            source.close()
