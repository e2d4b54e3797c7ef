"""A client of HTTP/2 made of h2 and a socket: it sends what a test says, and keeps what comes."""

from __future__ import annotations

import select
import socket
import ssl
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes, Settings

from dyninformer.testing.http.listener import authority_pem

_GOAWAY = 7


@dataclass
class Answer:
    """What has come on one stream."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    interim: list[int] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    ended: bool = False
    reset: int | None = None

    @property
    def body(self) -> bytes:
        """The DATA frames together."""
        return b"".join(self.pieces)

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for each, value in self.headers if each == name), None)


class Http2Client:
    """One connection. ``window`` is that of each stream; ``grants`` gives back what was read."""

    def __init__(
        self,
        port: int,
        *,
        token: str = "",
        window: int = 65_535,
        grants: bool = True,
        certificate: Path | None = None,
    ) -> None:
        context = ssl.create_default_context(cadata=authority_pem().decode())
        context.set_alpn_protocols(["h2"])
        if certificate is not None:
            context.load_cert_chain(certificate)
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.sock = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.http.local_settings = Settings(
            client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self.answers: defaultdict[int, Answer] = defaultdict(Answer)
        self.pongs: list[bytes] = []
        self.goaway: tuple[int, int] | None = None
        self.closed = False
        self._token = token
        self._grants = grants
        self._bytes = b""
        self.http.initiate_connection()
        self.flush()

    def flush(self) -> None:
        """Send what h2 has prepared."""
        self.sock.sendall(self.http.data_to_send())

    def begin(
        self,
        path: str,
        method: str = "GET",
        headers: Iterable[tuple[str, str]] = (),
        *,
        end: bool = True,
    ) -> int:
        """Send the head of a request, and return the number of its stream."""
        number = self.http.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", "https"), (":path", path)]
        pseudo.append((":authority", "127.0.0.1"))
        token = [("authorization", f"Bearer {self._token}")] if self._token else []
        self.http.send_headers(number, [*pseudo, *token, *headers], end_stream=end)
        self.flush()
        return number

    def send(self, number: int, body: bytes) -> None:
        """Send a body, as fast as the server's windows allow, and end the request."""
        while body:
            self.until(lambda: self.http.local_flow_control_window(number) > 0)
            size = min(self.http.local_flow_control_window(number), 16_384, len(body))
            self.http.send_data(number, body[:size])
            self.flush()
            body = body[size:]
        self.http.end_stream(number)
        self.flush()

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Answer:
        """One request and its whole answer."""
        number = self.begin(path, method, headers, end=not body)
        if body:
            self.send(number, body)
        return self.finish(number)

    def finish(self, number: int) -> Answer:
        """The whole answer on a stream."""
        answer = self.answers[number]
        self.until(lambda: answer.ended or answer.reset is not None)
        return answer

    def watch(self, path: str) -> int:
        """Open a watch, and return the number of its stream once its head has come."""
        number = self.begin(path)
        self.until(lambda: self.answers[number].status != 0)
        return number

    def lines(self, number: int, count: int) -> list[bytes]:
        """The first lines of a watch."""
        self.until(lambda: self.answers[number].body.count(b"\n") >= count)
        return self.answers[number].body.split(b"\n")[:count]

    def reset(self, number: int, code: int = 8) -> None:
        """Send RST_STREAM."""
        self.http.reset_stream(number, code)
        self.flush()

    def grant(self, amount: int, number: int | None = None) -> None:
        """Widen the window of a stream, or of the connection."""
        self.http.increment_flow_control_window(amount, number)
        self.flush()

    def ping(self, data: bytes = b"12345678") -> None:
        """Send PING, and wait for its answer."""
        before = len(self.pongs)
        self.http.ping(data)
        self.flush()
        self.until(lambda: len(self.pongs) > before)

    def until(self, condition: Callable[[], bool]) -> None:
        """Read until something is so."""
        while not condition():
            assert self.read(), f"the connection ended: {dict(self.answers)}"

    def read(self) -> bool:
        """Read what comes next; false at the end of the connection."""
        data = self.sock.recv(1 << 16)
        self.closed = not data
        self._bytes += data
        while len(self._bytes) >= 9:
            size = 9 + int.from_bytes(self._bytes[:3], "big")
            if len(self._bytes) < size:
                break
            frame, self._bytes = self._bytes[:size], self._bytes[size:]
            if frame[3] == _GOAWAY:  # h2 would take it for the end of the connection
                self.goaway = struct.unpack(">II", frame[9:17])
            else:
                for event in self.http.receive_data(frame):
                    self._note(event)
        if not self.closed:
            self.flush()
        return not self.closed

    def read_to_end(self) -> None:
        """Read until the server closes."""
        while self.read():
            pass

    def nothing_to_read(self) -> bool:
        """Nothing more has come."""
        return not self.sock.pending() and not select.select([self.sock], [], [], 0)[0]

    def _note(self, event: Event) -> None:
        if isinstance(event, InformationalResponseReceived):
            status = {str(name): str(value) for name, value in event.headers}[":status"]
            self.answers[event.stream_id].interim.append(int(status))
        elif isinstance(event, ResponseReceived):
            answer = self.answers[event.stream_id]
            (_, status), *headers = ((str(name), str(value)) for name, value in event.headers)
            answer.status, answer.headers = int(status), headers
        elif isinstance(event, DataReceived):
            self.answers[event.stream_id].pieces.append(event.data)
            if self._grants:
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self.answers[event.stream_id].ended = True
        elif isinstance(event, StreamReset):
            self.answers[event.stream_id].reset = event.error_code
        elif isinstance(event, PingAckReceived):
            self.pongs.append(event.ping_data)


@contextmanager
def connected(
    port: int,
    *,
    token: str = "",
    window: int = 65_535,
    grants: bool = True,
    certificate: Path | None = None,
) -> Iterator[Http2Client]:
    """A connection for the length of a block."""
    client = Http2Client(port, token=token, window=window, grants=grants, certificate=certificate)
    with client.sock:
        yield client
