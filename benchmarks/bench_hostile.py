"""What answers that must be refused cost: memory at the peak, memory kept, the interpreter held.

Run as ``python -m benchmarks.bench_hostile [name ...]``. A server on a raw socket, in a process
of its own, answers one request of an informer with bytes that make no sense, as fast as they are
taken; the informer is a fresh process for each. What is printed of that:

- ``peak`` and ``kept``: MiB over what it had before it asked, at the worst moment, and after
  several such answers were refused, while it waits to ask again;
- ``held``: the longest time in which another thread, that wants to run every 2 ms, did not;
- ``shutdown``: how long ``factory.shutdown()`` took in the middle of such an answer.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dyninformer import (
    DynamicSharedInformerFactory,
    DynInformerError,
    GroupVersionResource,
    StoppedError,
)

Pieces: TypeAlias = Iterator[bytes]

PIECE = 1 << 16
MIB = 1 << 20
LONG = 160 * MIB  # more than is taken of anything
BOMB = 4096  # MiB
REFUSALS = 2
MOST_SECONDS = 60.0
WITHIN = 0.02
LIST_HEAD = b'{"kind":"WidgetList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":['
EMPTY = LIST_HEAD + b"]}"
EVENT = b'{"type":"ADDED","object":'
OBJECT = (
    b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns",'
    b'"resourceVersion":"6"},"x":'
)
ABSENT = json.dumps(
    {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
).encode()


def filled(unit: bytes, size: int = LONG) -> Pieces:
    """The same over and over."""
    piece = unit * (PIECE // len(unit))
    for _ in range(size // len(piece)):
        yield piece


def around(head: bytes, unit: bytes, size: int, tail: bytes = b"") -> Pieces:
    """The same over and over, in between."""
    yield head
    yield from filled(unit, size)
    yield tail


def nested(head: bytes, opening: bytes, closing: bytes, size: int, tail: bytes) -> Pieces:
    """As many closed as were opened."""
    yield head
    yield from filled(opening, size)
    yield b"1"
    count = size // (PIECE // len(opening) * len(opening)) * (PIECE // len(opening))
    yield from filled(closing, count * len(closing))
    yield closing * (count - count * len(closing) // PIECE * (PIECE // len(closing)))
    yield tail


def bomb(head: bytes = b"") -> Pieces:
    """Gigabytes in four megabytes of gzip, without the end that nobody comes to."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush nothing refers to what was before: the same bytes say the same again.
    block = packer.compress(b"a" * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(BOMB // 64):
        yield block * 64


# What is answered to the watch.
_WATCHES: dict[str, Callable[[], Pieces]] = {
    "line of a": lambda: filled(b"a"),
    "line of quotes": lambda: filled(b'"'),
    "line of backslashes": lambda: around(b'"', b"\\", LONG),
    "line of brackets": lambda: filled(b"["),
    "line of escapes": lambda: around(b'"', b'\\"', LONG),
    "line of blanks": lambda: filled(b" "),
    "lines of nothing": lambda: filled(b"\n"),
    "lines of a": lambda: filled(b"a\n"),
    "event of quotes": lambda: around(EVENT, b'"', 15 * MIB, b"}\n"),
    "event of pairs": lambda: around(EVENT + OBJECT + b"[0", b",{}", 15 * MIB, b"]}}\n"),
    "event of brackets": lambda: nested(EVENT + OBJECT, b"[", b"]", 7 * MIB, b"}}\n"),
    "event of objects": lambda: nested(EVENT + OBJECT, b'{"":', b"}", 12 * MIB, b"}}\n"),
    "event of wide text": lambda: around(
        EVENT + OBJECT + '"\U0001f600'.encode(), b"a", 15 * MIB, b'\xff"}}\n'
    ),
    "event of numbers": lambda: around(EVENT + OBJECT, b"9", 15 * MIB, b"}}\n"),
    "bookmark of pairs": lambda: around(
        b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"":""',
        b',"a":""',
        14 * MIB,
        b"}}}}\n",
    ),
    "status of text": lambda: around(
        b'{"type":"ERROR","object":{"kind":"Status","message":"', b"a", 15 * MIB, b'"}}\n'
    ),
    "unknown type": lambda: around(b'{"type":"', b"a", 15 * MIB, b'","object":{}}\n'),
    "broken at the end": lambda: around(EVENT + OBJECT + b"[0", b',"a"', 15 * MIB, b"}}}}\n"),
    "gzip bomb": bomb,
}
# What is answered to the list.
_LISTS: dict[str, Callable[[], Pieces]] = {
    "list of quotes": lambda: around(LIST_HEAD, b'"', LONG),
    "list of a": lambda: around(LIST_HEAD, b"a", LONG),
    "list of brackets": lambda: around(LIST_HEAD, b"[", LONG),
    "list of pairs": lambda: around(LIST_HEAD + b"{}", b",{}", 64 * MIB, b"]}"),
    "list of numbers": lambda: around(LIST_HEAD + b"0", b",0", 64 * MIB, b"]}"),
    "list of commas": lambda: around(LIST_HEAD, b",", LONG),
    "list of backslashes": lambda: around(LIST_HEAD + b'"', b"\\", LONG),
    "list of markers": lambda: around(
        LIST_HEAD + OBJECT + b"[1", b',{"kind":"ConfigMap","apiVersion":"v1","metadata"', LONG
    ),
    "list of deep markers": lambda: around(
        LIST_HEAD + OBJECT + b"1}", b',{"kind":"ConfigMap","apiVersion":"v1","metadata":[', LONG
    ),
    "item of pairs": lambda: around(LIST_HEAD + OBJECT + b"[0", b",{}", 15 * MIB, b"]}]}"),
    "item of brackets": lambda: nested(LIST_HEAD + OBJECT, b"[", b"]", 7 * MIB, b"}]}"),
    "quotes before the items": lambda: filled(b'"'),
    "many items keys": lambda: around(b"{", b'"items":[', LONG),
    "many items texts": lambda: around(b'{"a":[{"a":0', b',"items":null', LONG),
    "spaces before the items": lambda: filled(b" "),
    "pairs after the items": lambda: around(EMPTY[:-1] + b',"x":[0', b",{}", LONG),
    "list gzip bomb": lambda: bomb(LIST_HEAD + b'"'),
    "refusal gzip bomb": bomb,
}
# What is answered to the GET of a CRD.
_DOCUMENTS: dict[str, Callable[[], Pieces]] = {
    "document of pairs": lambda: around(b'{"a":[0', b",{}", 60 * MIB, b"]}"),
    "document of lists": lambda: around(b'{"a":[0', b",[]", 60 * MIB, b"]}"),
    "document of quotes": lambda: filled(b'"'),
    "document of wide text": lambda: around('{"a":"\U0001f600'.encode(), b"a", 60 * MIB, b'"}'),
    "document of brackets": lambda: around(b'{"a":', b"[", 60 * MIB),
    "document gzip bomb": bomb,
}
# What is answered to a question for all that is served.
_GROUPS = b'{"kind":"APIGroupDiscoveryList","metadata":{},"items":[{}'
_DISCOVERIES: dict[str, Callable[[], Pieces]] = {
    "discovery of pairs": lambda: around(_GROUPS, b",{}", 60 * MIB, b"]}"),
    "discovery of quotes": lambda: filled(b'"'),
    "discovery gzip bomb": bomb,
    "discovery of all that is read": lambda: around(_GROUPS, b",{}", MIB, b"]}"),
}
ATTACKS = {**_WATCHES, **_LISTS, **_DOCUMENTS, **_DISCOVERIES}


class Server:
    """Answers each request by its path, and one kind of them with an attack."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.attacks = 0
        """How many were begun."""
        # Made beforehand: it is the client that is measured. A bomb is some 4 MB.
        pieces = ATTACKS[name]()
        self._gzip = "gzip" in name
        self._body = list(pieces) if self._gzip else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as file:
            while line := file.readline():
                target = line.split()[1].decode()
                while file.readline().strip():
                    pass
                self._answer(connection, target)

    def _answer(self, connection: socket.socket, target: str) -> None:
        path, _, query = target.partition("?")
        if self.name in _DISCOVERIES and path in {"/api", "/apis"}:
            return self._attack(connection)
        watches = "watch=true" in query
        crd = path.startswith("/apis/apiextensions")
        if watches and ("sendInitialEvents" in query or crd):
            return _send(connection, iter([ABSENT]), "400 Bad Request")
        if crd or (path.count("/") <= 3 and not path.endswith("configmaps")):
            if self.name in _DOCUMENTS and not path.endswith("customresourcedefinitions"):
                return self._attack(connection)
            return _send(connection, iter([ABSENT]), "404 Not Found")
        if self.name in _DOCUMENTS:
            return _send(connection, iter([ABSENT]), "404 Not Found")
        if watches:
            if self.name in _WATCHES:
                return self._attack(connection)
            time.sleep(600)
        elif self.name in _LISTS:
            return self._attack(connection)
        return _send(connection, iter([EMPTY]))

    def _attack(self, connection: socket.socket) -> None:
        self.attacks += 1
        body = iter(self._body) if self._body is not None else ATTACKS[self.name]()
        status = "500 Internal Server Error" if "refusal" in self.name else "200 OK"
        _send(connection, body, status, "Content-Encoding: gzip\r\n" if self._gzip else "")


def _send(connection: socket.socket, body: Pieces, status: str = "200 OK", more: str = "") -> None:
    connection.sendall(
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )
    for piece in body:
        if piece:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
    connection.sendall(b"0\r\n\r\n")


def serve(name: str) -> None:
    """Print the port, and for each line of the standard input how many attacks were begun."""
    server = Server(name)
    print(server.port, flush=True)
    for _ in sys.stdin:
        print(server.attacks, flush=True)


def suffer(name: str, kubeconfig: str) -> None:
    """Be the informer; prints what was measured. Standard input answers how many attacks."""
    logging.basicConfig(level=logging.ERROR)
    custom = name in _DOCUMENTS
    gvr = GroupVersionResource(
        "ex.io" if custom else "", "v1", "widgets" if custom else "configmaps"
    )
    ticker = Ticker()

    def started() -> DynamicSharedInformerFactory:
        factory = DynamicSharedInformerFactory(kubeconfig=kubeconfig)
        factory.for_resource(gvr)
        factory.start()
        if name in _DISCOVERIES:
            threading.Thread(target=_look_up, args=(factory,), daemon=True).start()
        return factory

    def attacks() -> int:
        print("?", flush=True)
        return int(sys.stdin.readline())

    warm = started()  # what is loaded once is no cost of an attack
    before_attacks = attacks()
    while attacks() == before_attacks:
        time.sleep(0.005)
    warm.shutdown(60)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    ticker.start()
    factory = started()
    deadline = time.monotonic() + MOST_SECONDS
    first = attacks()
    seen, kept = 0, sys.maxsize
    while seen < REFUSALS + 1 and time.monotonic() < deadline:
        time.sleep(0.005)
        seen = attacks() - first
        if seen >= REFUSALS:  # and mostly, this one is over
            kept = min(kept, memory("VmRSS"))
    within = time.monotonic() + WITHIN
    while time.monotonic() < within:
        time.sleep(0.005)
        kept = min(kept, memory("VmRSS"))
    began, spent = time.monotonic(), time.process_time()
    ended = factory.shutdown(60)
    took, work = time.monotonic() - began, time.process_time() - spent
    ticker.stop()
    peak = memory("VmHWM")
    kept = min(kept, memory("VmRSS"))
    report = {
        "name": name,
        "peak": (peak - before) / MIB,
        "kept": (kept - before) / MIB,
        "held": ticker.longest,
        "shutdown": took,
        "work": work,
        "ended": ended,
        "refused": seen - 1,
    }
    print(json.dumps(report), flush=True)


def _look_up(factory: DynamicSharedInformerFactory) -> None:
    """Ask for a resource by a name that only discovery knows, again and again."""
    while True:
        try:
            factory.for_resource("gadgets")
        except StoppedError:
            return
        except DynInformerError:
            time.sleep(WITHIN)


class Ticker:
    """Wants to run every 2 ms."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            began = time.monotonic()
            time.sleep(0.002)
            self.longest = max(self.longest, time.monotonic() - began - 0.002)


def memory(field: str) -> int:
    """Of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def measured(name: str) -> dict[str, float]:
    """One attack: a server, and an informer, each in a process of its own."""
    this = [sys.executable, "-m", "benchmarks.bench_hostile"]
    pipe = subprocess.PIPE
    with (
        tempfile.NamedTemporaryFile("w", suffix=".yaml") as kubeconfig,
        subprocess.Popen([*this, "--serve", name], stdin=pipe, stdout=pipe, text=True) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
            context = {"name": "c", "context": {"cluster": "c"}}
            json.dump(
                {"clusters": [cluster], "contexts": [context], "current-context": "c"}, kubeconfig
            )
            kubeconfig.flush()
            suffering = [*this, "--suffer", name, kubeconfig.name]
            with subprocess.Popen(suffering, stdin=pipe, stdout=pipe, text=True) as informer:
                assert informer.stdin is not None
                assert informer.stdout is not None
                for line in informer.stdout:
                    if line.startswith("{"):
                        found: dict[str, float] = json.loads(line)
                        return found
                    server.stdin.write("?\n")
                    server.stdin.flush()
                    informer.stdin.write(server.stdout.readline())
                    informer.stdin.flush()
        finally:
            server.kill()
    raise RuntimeError(f"the informer said nothing of {name}")


def main() -> None:
    """Measure all attacks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(ATTACKS))
    parser.add_argument("--serve", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--suffer", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    if given.suffer:
        suffer(*given.suffer)
        return
    print("| attack | peak MiB | kept MiB | held ms | shutdown ms | answers |")
    print("|---|---|---|---|---|---|")
    for name in given.names or ATTACKS:
        found = measured(name)
        print(
            f"| {name} | {found['peak']:.0f} | {found['kept']:.0f} | {found['held'] * 1000:.0f} "
            f"| {found['shutdown'] * 1000:.0f} | {found['refused']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
