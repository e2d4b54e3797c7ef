"""What the tests of sockets need: a server with something in it, waits, counts of what is open."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client as official

from dyninformer.testing import ApiServer
from dyninformer.transport.requests import Reply, Request

MAPS = "/api/v1/configmaps"
LIST = Request(MAPS, [("limit", "500")])
WATCH = Request(MAPS, [("watch", "true")])


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Something to list."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def whole(reply: Reply) -> bytes:
    """The body."""
    return b"".join(reply.chunks())


def eventually(condition: Callable[[], bool], timeout: float = 10) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.002)


def open_sockets() -> int:
    """How many sockets this process has."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except OSError:
            continue
    return found


def our_threads() -> list[str]:
    """The threads that a source has at work."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith(("dyninformer conn", "dyninformer cred"))]


class Background:
    """A function on a thread of its own: when it ended, and how."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self.ended_at = 0.0
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self.ended_at = time.monotonic()

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self._thread.is_alive()

    def join(self, timeout: float = 10) -> None:
        """Wait for the end."""
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "it never ended"


@contextmanager
def listening(backlog: int = 8) -> Iterator[socket.socket]:
    """A port where connections are taken in, and nobody says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server


@contextmanager
def full_port() -> Iterator[int]:
    """A port that lets every new connection wait for ever: its queue is full."""
    with listening(backlog=0) as server, socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        port: int = server.getsockname()[1]
        yield port


def connecting(port: int) -> int:
    """How many connections to this port of loopback wait for an answer (SYN-SENT)."""
    with open("/proc/self/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows[1:])


def kubeconfig(path: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig with one context."""
    import yaml  # noqa: PLC0415

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "only",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "only", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def add_maps(server: ApiServer, count: int, size: int) -> None:
    """Config maps, each with so many bytes in it."""
    for number in range(count):
        server.create(config_map(f"m{number}", text="x" * size))


def names(body: bytes) -> list[str]:
    """Of a list's items."""
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


def client_of(url: str, **settings: Any) -> official.ApiClient:
    """An ApiClient with these settings of a Configuration."""
    configuration = official.Configuration()
    configuration.host = url
    for name, value in settings.items():
        setattr(configuration, name, value)
    return official.ApiClient(configuration)


class serving:  # noqa: N801 - read as a word
    """A port where each connection is handed to a function, and closed after it."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> int:
        threading.Thread(target=self._accept, daemon=True).start()
        port: int = self._server.getsockname()[1]
        return port

    def __exit__(self, *details: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            self._answer(connection)
