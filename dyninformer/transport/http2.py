"""HTTP/2 on one connection, without I/O (RFC 9113).

The state machine of the package ``h2`` does everything except two things:

- Plain DATA frames, which are nearly all bytes, are cut here. They have no flags, and belong to a
  stream whose head announced no length. `h2` alone takes twice the CPU for each of them.
- GOAWAY is read here. `h2` considers the connection closed after it, but the streams that the
  server accepted go on (section 6.8).

Flow control is divided in the same way: `h2` counts the DATA frames that it sees, `_Inbound` the
others. Each side gives credit for the bytes that it counted.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError as BrokenRuleError
from h2.settings import SettingCodes, Settings

from dyninformer.transport.messages import (
    Data,
    End,
    GoingAway,
    Head,
    Headers,
    Outgoing,
    Part,
    Pong,
    ProtocolError,
    Reset,
)

_HEADER: Final = Struct(">HBBBI")  # length in 16 + 8 bits, type, flags, stream
_HEADER_SIZE: Final = 9
_WINDOW_UPDATE: Final = Struct(">HBBBII")
_GOAWAY: Final = Struct(">II")
_HEADERS, _PUSH_PROMISE, _GOAWAY_TYPE, _WINDOW_TYPE, _CONTINUATION = 1, 5, 7, 8, 9
_END_HEADERS: Final = 0x4
_STREAM_BITS: Final = 0x7FFFFFFF

_LARGEST_FRAME: Final = 131_072
_CONNECTION_WINDOW: Final = 16 << 20
_DEFAULT_WINDOW: Final = 65_535  # of a connection, before it is raised
WINDOW: Final = 256 << 10
"""How many bytes of a body a server may send before the reader takes them, if not more is said."""
_HEADER_LIST: Final = 65_536
_MOST_STREAMS: Final = 100  # kube-apiserver allows so many; no more are used of any server
_LAST_STREAM: Final = 1 << 30  # numbers end at 2^31: another connection is used long before
_LONGEST_REASON: Final = 200


class _Inbound:
    """The body of one stream, as far as flow control is concerned."""

    __slots__ = ("half", "seen_by_h2", "ungranted", "window")

    def __init__(self, window: int) -> None:
        self.window = window  # how many bytes more the server may send
        self.half = window >> 1
        self.ungranted = 0  # bytes that the reader took, and the server got no credit for yet
        self.seen_by_h2 = 0  # bytes that `h2` counts, and the reader has not taken yet


class Http2:
    """See `messages.Engine`."""

    def __init__(self, authority: str, scheme: str = "https") -> None:
        self._fixed = [(":scheme", scheme), (":authority", authority)]
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_FRAME_SIZE: _LARGEST_FRAME,
                SettingCodes.MAX_HEADER_LIST_SIZE: _HEADER_LIST,
            },
        )
        self._h2.max_inbound_frame_size = _LARGEST_FRAME
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - _DEFAULT_WINDOW)
        self._out = bytearray()  # frames made here, behind those that `h2` has made
        self._rest = b""  # the beginning of a frame
        self._streams: dict[int, _Inbound] = {}  # the open ones
        self._plain: dict[int, _Inbound] = {}  # those of them whose DATA frames are cut here
        self._unsent: dict[int, bytes] = {}  # what the server has not allowed to be sent yet
        self._ungranted = 0  # bytes of the connection's window without credit
        self._in_headers = False  # HEADERS came, and its last CONTINUATION did not
        self._leaving = False  # GOAWAY came

    @property
    def room(self) -> int:
        """How many more requests can begin now."""
        if self._leaving or self._h2.highest_outbound_stream_id > _LAST_STREAM:
            return 0
        most = min(self._h2.remote_settings.max_concurrent_streams, _MOST_STREAMS)
        return max(0, most - len(self._streams))

    def send(self, request: Outgoing, *, window: int = WINDOW) -> int:
        """Begin a request and return its stream."""
        stream = self._h2.get_next_available_stream_id()
        headers = [
            (":method", request.method),
            *self._fixed,
            (":path", request.target),
            *((name.lower(), value) for name, value in request.headers),
        ]
        self._h2.send_headers(stream, headers, end_stream=not request.body)
        self._streams[stream] = _Inbound(max(window, WINDOW))
        if request.body:
            self._unsent[stream] = request.body
            self._send_bodies()
        if window > WINDOW:
            self._grant(stream, window - WINDOW)
        return stream

    def receive(self, data: bytes) -> list[Part]:
        """Take bytes from the server."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        parts: list[Part] = []
        pieces: list[bytes] = []  # plain DATA frames that follow each other on one stream...
        of = 0  # ...which is this one
        start, end = 0, len(data)
        unpack, plain = _HEADER.unpack_from, self._plain
        while end - start >= _HEADER_SIZE:
            high, low, kind, flags, stream = unpack(data, start)
            body = start + _HEADER_SIZE
            stop = body + (high << 8 | low)
            if stop - body > _LARGEST_FRAME:
                raise ProtocolError(f"the server sent a frame of {stop - body:,} bytes")
            if stop > end:
                break
            is_plain = not kind and not flags and stream in plain and not self._in_headers
            if pieces and not (is_plain and stream == of):
                parts.append(Data(of, b"".join(pieces)))
                pieces.clear()
            if is_plain:
                self._count(plain[stream], stop - body)
                if stop > body:
                    of = stream
                    pieces.append(data[body:stop])
            elif kind == _GOAWAY_TYPE and not self._in_headers:
                parts += self._go_away(stream & _STREAM_BITS, data[body:stop])
            else:
                if kind in (_HEADERS, _PUSH_PROMISE, _CONTINUATION):
                    self._in_headers = not flags & _END_HEADERS
                self._pass_on(data[start:stop], parts)
            start = stop
        if pieces:
            parts.append(Data(of, b"".join(pieces)))
        self._rest = data[start:]
        if self._ungranted >= _CONNECTION_WINDOW >> 1:
            self._grant(0, self._ungranted)
            self._ungranted = 0
        return parts

    def receive_end(self) -> list[Part]:
        """Take the end of the server's bytes."""
        if self._rest or self._streams:
            raise ProtocolError("the server closed the connection in the middle of an answer")
        return []

    def consumed(self, stream: int, size: int) -> None:
        """Let the server send as many bytes more on this stream."""
        inbound = self._streams.get(stream)
        if inbound is None:
            return
        seen = min(size, inbound.seen_by_h2)
        if seen:
            inbound.seen_by_h2 -= seen
            self._h2.acknowledge_received_data(seen, stream)
        inbound.ungranted += size - seen
        if inbound.ungranted >= inbound.half:
            inbound.window += inbound.ungranted
            self._grant(stream, inbound.ungranted)
            inbound.ungranted = 0

    def cancel(self, stream: int) -> None:
        """Drop a stream: nothing more of it is reported."""
        inbound = self._forget(stream)
        if inbound is not None:
            self._h2.reset_stream(stream, ErrorCodes.CANCEL)

    def ping(self) -> bool:
        """Ask for a sign of life."""
        self._h2.ping(b"liveness")
        return True

    def output(self) -> bytes:
        """Take the bytes that are to be sent to the server."""
        self._settle()
        found = bytes(self._out)
        self._out.clear()
        return found

    # -- inside --------------------------------------------------------------------------

    def _count(self, inbound: _Inbound, size: int) -> None:
        inbound.window -= size
        self._ungranted += size
        if inbound.window < 0 or self._ungranted > _CONNECTION_WINDOW:
            raise ProtocolError("the server sent more than it was allowed to (flow control)")

    def _go_away(self, stream: int, body: bytes) -> list[Part]:
        """Refuse the streams that the server has not looked at; the others go on."""
        if stream or len(body) < _GOAWAY.size:
            raise ProtocolError("the server sent a GOAWAY that is not well formed")
        last, code = _GOAWAY.unpack_from(body)
        last &= _STREAM_BITS
        self._leaving = True
        reason = _named(code)
        if text := body[_GOAWAY.size :][:_LONGEST_REASON].decode("ascii", "replace"):
            reason += f": {text}"
        refused: list[Part] = [
            Reset(each, reason, unprocessed=True) for each in self._streams if each > last
        ]
        for each in refused:
            assert isinstance(each, Reset)  # noqa: S101 - for the type checker
            self._forget(each.stream)
        return [GoingAway(last, reason), *refused]

    def _pass_on(self, frame: bytes, parts: list[Part]) -> None:
        """Give one frame to `h2`, and report what it makes of it."""
        try:
            for event in self._h2.receive_data(frame):
                self._take(event, parts)
        except BrokenRuleError as error:
            raise ProtocolError(f"the server breaks the rules of HTTP/2: {error}") from None
        self._settle()

    def _take(self, event: Event, parts: list[Part]) -> None:
        stream = getattr(event, "stream_id", None) or 0
        if isinstance(event, PingAckReceived):
            parts.append(Pong())
        elif isinstance(event, WindowUpdated):
            self._send_bodies()
        elif stream not in self._streams:
            return  # it was cancelled
        elif isinstance(event, ResponseReceived):
            headers = event.headers or []
            pairs = [(str(name), str(value)) for name, value in headers]
            status = next(value for name, value in pairs if name == ":status")
            found = Headers(pair for pair in pairs if not pair[0].startswith(":"))
            if "content-length" not in found:  # else `h2` checks that the body has this length
                self._plain[stream] = self._streams[stream]
            parts.append(Head(stream, int(status), found))
        elif isinstance(event, DataReceived):
            self._streams[stream].seen_by_h2 += event.flow_controlled_length or 0
            if event.data:
                parts.append(Data(stream, bytes(event.data)))
            padding = (event.flow_controlled_length or 0) - len(event.data or b"")
            if padding:
                self.consumed(stream, padding)
        elif isinstance(event, StreamEnded):
            self._forget(stream)
            parts.append(End(stream))
        elif isinstance(event, StreamReset):
            self._forget(stream)
            code = int(event.error_code or 0)
            refused = code == ErrorCodes.REFUSED_STREAM
            parts.append(Reset(stream, _named(code), unprocessed=refused))

    def _forget(self, stream: int) -> _Inbound | None:
        """Stop counting a stream; what `h2` counted of it is credited to the connection."""
        self._plain.pop(stream, None)
        self._unsent.pop(stream, None)
        inbound = self._streams.pop(stream, None)
        if inbound is not None and inbound.seen_by_h2:
            self._h2.acknowledge_received_data(inbound.seen_by_h2, stream)
        return inbound

    def _send_bodies(self) -> None:
        """Send as much of the requests' bodies as the server allows."""
        for stream, body in list(self._unsent.items()):
            rest = body
            while rest:
                size = min(self._h2.local_flow_control_window(stream), len(rest))
                size = min(size, self._h2.max_outbound_frame_size)
                if size <= 0:
                    break
                self._h2.send_data(stream, rest[:size], end_stream=size == len(rest))
                rest = rest[size:]
            if rest:
                self._unsent[stream] = rest
            else:
                del self._unsent[stream]

    def _grant(self, stream: int, size: int) -> None:
        self._settle()  # the HEADERS of a new stream go first
        self._out += _WINDOW_UPDATE.pack(0, 4, _WINDOW_TYPE, 0, stream, size)

    def _settle(self) -> None:
        """Put the frames that `h2` made behind those made here."""
        self._out += self._h2.data_to_send()


def _named(code: int) -> str:
    try:
        return ErrorCodes(code).name
    except ValueError:
        return f"error {code}"
