"""The clients of bench_server.py: raw sockets, so that they cost as little as can be."""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections.abc import Callable

Connection = socket.socket


def read_lists(port: int, token: str, path: str, rounds: int) -> None:
    """LIST so many times; print the size of the answer."""
    size = 0
    for _ in range(rounds):
        with _connect(port) as sock:
            sock.sendall(_request("GET", path, token, close=True))
            size = 0
            while piece := sock.recv(1 << 20):
                size += len(piece)
    print(size)


def read_watches(port: int, token: str, path: str, watches: int, lines: int) -> None:
    """Open watches, say so, and read until so many lines have come on all of them together."""
    poll = selectors.DefaultSelector()
    for _ in range(watches):
        sock = _connect(port)
        sock.sendall(_request("GET", path, token))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        poll.register(sock, selectors.EVENT_READ, sock)
    print("open", flush=True)
    newlines = 0
    while newlines < 3 * lines:  # that of the line, and those of the frame around it
        for key, _ in poll.select():
            newlines += key.data.recv(1 << 18).count(b"\n")


def load_json(port: int, token: str, path: str, rounds: int) -> None:
    """LIST once; print its size, and the CPU milliseconds that json.loads takes for it."""
    with _connect(port) as sock:
        sock.sendall(_request("GET", path, token, close=True))
        data = b""
        while piece := sock.recv(1 << 20):
            data += piece
    body = bytearray()
    at = data.index(b"\r\n\r\n") + 4
    while at < len(data):
        begin = data.index(b"\r\n", at) + 2
        at, size = begin + int(data[at:begin], 16) + 2, int(data[at:begin], 16)
        body += data[begin : begin + size]
    start = time.process_time()
    for _ in range(rounds):
        json.loads(body)
    print(len(body), (time.process_time() - start) / rounds * 1000)


def write_patches(port: int, token: str, path: str, count: int) -> None:
    """Patch one object so many times, one after another."""
    with _connect(port) as sock:
        for number in range(count):
            body = json.dumps({"spec": {"replicas": 1_000 + number}}).encode()
            sock.sendall(_request("PATCH", path, token, body))
            answer = b""
            while not answer.endswith((b"}\n", b"0\r\n\r\n")):
                answer += sock.recv(1 << 16)


def _connect(port: int) -> Connection:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _request(
    method: str, path: str, token: str, body: bytes = b"", *, close: bool = False
) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        "Accept: application/json",
        f"Content-Length: {len(body)}",
        "Content-Type: application/merge-patch+json",
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join((*lines, "", "")).encode() + body


ROLES: dict[str, Callable[..., None]] = {
    "list": read_lists,
    "load": load_json,
    "watch": read_watches,
    "patch": write_patches,
}

if __name__ == "__main__":
    role, port, token, path, *numbers = sys.argv[1:]
    ROLES[role](int(port), token, path, *map(int, numbers))
