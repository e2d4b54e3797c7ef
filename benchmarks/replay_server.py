"""An API server that only replays: bytes made beforehand, in the frames a real one sends.

It runs in a process of its own, and next to what a client does with the bytes it costs
little. It serves one large collection of certificates and, for warming up, empty
collections under every other path: LIST with limit and continue, WatchList up to its end
mark, WATCH from any version, and as much discovery as client-go asks for.

Its arguments are how many objects there are and, if they are to be others than those of
certificates.py, a shape of shapes.py: they are served where certificates are, so that every
client reads them unchanged, and cannot be updated.

Standard output has one JSON object per line: the port, once all certificates are there, and
an answer to each order. Standard input has the orders, JSON as well; its end is the end.

- ``{"updates": 1000, "rate": 0}``: change as many certificates, one after another, so many
  a second, or 0 for all at once.
- ``{"watch_list": false}``: from now on refuse streaming lists, as a server does whose
  feature gate is off.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from urllib.parse import parse_qs, urlsplit

from benchmarks.certificates import NOT_SENT, PATH, certificate
from benchmarks.shapes import SHAPES
from dyninformer.types import Object

Query = dict[str, str]
Data = list[bytes]
Change = tuple[int, bytes]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LIST_CHUNK = 2048
"""A Go server sends a list in chunks of this size, and each watch event in one of its own."""
SEND_SIZE = 1 << 16
BATCH = 500
BOOKMARK_EVERY = 60.0
FIRST_VERSION = 1_000_000
LAST_CHUNK = b"0\r\n\r\n"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Cache-Control: no-cache, private\r\nTransfer-Encoding: chunked\r\n\r\n"
)
NO_STREAMING_LIST = (
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is '
    "forbidden for watch unless the WatchList feature gate is enabled"
)
DISCOVERY: dict[str, Object] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "cert-manager.io",
                "versions": [{"groupVersion": "cert-manager.io/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "cert-manager.io/v1", "version": "v1"},
            }
        ],
    },
    "/apis/cert-manager.io/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "cert-manager.io/v1",
        "resources": [
            {
                "name": plural,
                "singularName": kind.lower(),
                "namespaced": True,
                "kind": kind,
                "verbs": ["get", "list", "watch"],
            }
            for plural, kind in (("certificates", "Certificate"), ("issuers", "Issuer"))
        ],
    },
}


class Collection:
    """Objects in the order of their keys, and all events since ``first``.

    The objects are changed by the thread that takes orders, under ``lock``, which also
    orders that against watches being opened: each hears of every event once.
    """

    def __init__(self, objects: Data, first: int, api_version: str, kind: str) -> None:
        self.objects = objects
        self.first = first
        self.api_version = api_version
        self.kind = kind
        self.events: Data = []
        self.watches: set[socket.socket] = set()
        self.lock = threading.Lock()

    @property
    def version(self) -> int:
        """That of the last change."""
        return self.first + len(self.events)

    def page(self, limit: int, token: str) -> bytes:
        """The body of a list, or of as much of it as was asked for.

        A token is the place where the next page begins, and the version of the first page.
        """
        start, version = map(int, token.split("-")) if token else (0, self.version)
        stop = start + limit if limit else len(self.objects)
        left = len(self.objects) - stop
        meta: Object = {"continue": "", "resourceVersion": str(version)}
        if left > 0:
            meta |= {"continue": f"{stop}-{version}", "remainingItemCount": left}
        head = f'{{"apiVersion":"{self.api_version}","items":['
        tail = f'],"kind":"{self.kind}List","metadata":{_compact(meta)}}}\n'
        items = b",".join(self.objects[start:stop])
        return b"".join((head.encode(), items, tail.encode()))

    def initial(self) -> Iterator[bytes]:
        """The chunks of a streaming list, with its end mark; call it under the lock."""
        for each in self.objects:
            yield _event_chunk(b"ADDED", each)
        mark = {
            "annotations": {"k8s.io/initial-events-end": "true"},
            "resourceVersion": str(self.version),
        }
        yield self._bookmark(mark)

    def bookmark(self) -> bytes:
        """Where the collection has come to; call it under the lock."""
        return self._bookmark({"resourceVersion": str(self.version)})

    def _bookmark(self, metadata: Object) -> bytes:
        obj = {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}
        return _event_chunk(b"BOOKMARK", _compact(obj).encode())

    def change(self, changes: list[Change]) -> None:
        """Take changes, and tell all who watch, stamped with the time."""
        now = b"%d" % time.time_ns()
        with self.lock:
            chunks = []
            for number, changed in changes:
                self.objects[number] = changed
                stamped = changed.replace(NOT_SENT.encode(), now, 1)
                chunks.append(_event_chunk(b"MODIFIED", stamped))
            self.events += chunks
            sent = b"".join(chunks)
            for sock in self.watches:
                with suppress(OSError):  # a client that is gone is seen by who reads from it
                    sock.sendall(sent)


class ReplayServer:
    """Answers on threads, one per connection."""

    def __init__(self, count: int, shape: str = "") -> None:
        self.watch_list = True
        self.renewals = 0
        make = SHAPES[shape] if shape else certificate
        objects = [make(number, 1 + number) for number in range(count)]
        self.certificates = Collection(objects, FIRST_VERSION, "cert-manager.io/v1", "Certificate")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.listener.getsockname()[1]
        return port

    def update(self, count: int, rate: float) -> None:
        """Change so many certificates, in the order of their keys, again from the start."""
        collection = self.certificates
        many, version = len(collection.objects), collection.version
        self.renewals += 1
        changes = [
            (each % many, certificate(each % many, version + 1 + each, self.renewals))
            for each in range(count)
        ]
        if not rate:
            for start in range(0, count, BATCH):
                collection.change(changes[start : start + BATCH])
            return
        begin = time.monotonic()
        for done, each in enumerate(changes):
            time.sleep(max(0.0, begin + done / rate - time.monotonic()))
            collection.change([each])

    def _accept(self) -> None:
        while True:
            sock, _ = self.listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            try:
                while head := _read_head(sock):
                    self._answer(sock, head)
            except OSError:
                return

    def _answer(self, sock: socket.socket, head: str) -> None:
        url = urlsplit(head.split(" ", 2)[1])
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path in DISCOVERY:
            _send_short(sock, "200 OK", DISCOVERY[url.path])
        elif url.path.startswith(f"{CRDS}/"):
            _send_short(sock, "404 Not Found", _status(404, "NotFound", "not found"))
        elif "watch" in query:
            self._watch(sock, self._collection(url.path), query)
        else:
            limit = 0 if query.get("resourceVersion") == "0" else int(query.get("limit", "0"))
            body = self._collection(url.path).page(limit, query.get("continue", ""))
            sock.sendall(CHUNKED)
            for piece in _in_pieces(_chunks(body)):
                sock.sendall(piece)
            sock.sendall(LAST_CHUNK)

    def _collection(self, path: str) -> Collection:
        if path == PATH:
            return self.certificates
        if path == CRDS:
            return Collection([], FIRST_VERSION, "meta.k8s.io/v1", "PartialObjectMetadata")
        return Collection([], FIRST_VERSION, "cert-manager.io/v1", "Issuer")

    def _watch(self, sock: socket.socket, collection: Collection, query: Query) -> None:
        streaming = query.get("sendInitialEvents") == "true"
        if streaming and not self.watch_list:
            refusal = _status(422, "Invalid", NO_STREAMING_LIST)
            _send_short(sock, "422 Unprocessable Entity", refusal)
            return
        seconds = float(query.get("timeoutSeconds", "1800"))
        sock.sendall(CHUNKED)
        with collection.lock:
            since = int(query.get("resourceVersion") or collection.version) - collection.first
            if since < 0:  # what was before is compacted
                expired = _compact(_status(410, "Expired", "too old resource version")).encode()
                sock.sendall(_event_chunk(b"ERROR", expired) + LAST_CHUNK)
                return
            news = collection.initial() if streaming else iter(collection.events[since:])
            for piece in _in_pieces(news):
                sock.sendall(piece)
            collection.watches.add(sock)
        try:
            gone = self._wait(sock, collection, seconds)
        finally:
            with collection.lock:
                collection.watches.discard(sock)
        if not gone:
            sock.sendall(LAST_CHUNK)

    def _wait(self, sock: socket.socket, collection: Collection, seconds: float) -> bool:
        """A watch's time, with bookmarks; whether the client closes the connection before."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if _wait_gone(sock, min(left, BOOKMARK_EVERY)):
                return True
            with collection.lock:
                sock.sendall(collection.bookmark())
        return False


def _wait_gone(sock: socket.socket, seconds: float) -> bool:
    """Whether the client closes the connection before the time of its watch is over."""
    sock.settimeout(seconds)
    try:
        sock.recv(1)
    except TimeoutError:
        return False
    finally:
        sock.settimeout(None)
    return True


def _read_head(sock: socket.socket) -> str:
    """The next request, none of which has a body; empty at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = sock.recv(1 << 16)
        if not piece:
            return ""
        head += piece
    return head.decode("latin-1")


def _send_short(sock: socket.socket, status: str, answer: Object) -> None:
    body = f"{_compact(answer)}\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    sock.sendall(f"{head}\r\n\r\n{body}".encode())


def _status(code: int, reason: str, message: str) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": {},
        "code": code,
    }


def _event_chunk(event: bytes, obj: bytes) -> bytes:
    line = b'{"type":"%b","object":%b}\n' % (event, obj)
    return b"%x\r\n%b\r\n" % (len(line), line)


def _chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), LIST_CHUNK):
        piece = body[start : start + LIST_CHUNK]
        yield b"%x\r\n%b\r\n" % (len(piece), piece)


def _in_pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Several chunks in one send, as they lie in the socket buffer of a busy server."""
    while several := [*islice(chunks, SEND_SIZE // LIST_CHUNK)]:
        yield b"".join(several)


def _compact(value: Object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> None:
    """Serve, and take orders."""
    server = ReplayServer(int(sys.argv[1]), *sys.argv[2:])
    _say({"port": server.port})
    for line in sys.stdin:
        order = json.loads(line)
        if "watch_list" in order:
            server.watch_list = order["watch_list"]
        begin, cpu = time.monotonic(), time.process_time()
        if "updates" in order:
            server.update(order["updates"], order.get("rate", 0))
        _say({"seconds": time.monotonic() - begin, "cpu": time.process_time() - cpu})


def _say(answer: Object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
