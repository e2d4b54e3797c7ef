"""HTTP/1.1 on one connection, without I/O (RFC 9112): one answer at a time."""

from __future__ import annotations

import re
from enum import Enum, auto
from http.client import HTTPException, RemoteDisconnected
from typing import Final

from dyninformer.transport.chunks import Dechunker
from dyninformer.transport.messages import (
    Data,
    End,
    Head,
    Headers,
    Outgoing,
    Pairs,
    Part,
    ProtocolError,
)

_LONGEST_HEAD: Final = 65_536
_MOST_HEADERS: Final = 100
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SWITCHING: Final = 101
_WITHOUT_BODY: Final = (204, 304)


class _Expected(Enum):
    """What comes next from the server."""

    NOTHING = auto()  # no request is under way
    HEAD = auto()
    CHUNKS = auto()
    LENGTH = auto()  # `_left` bytes more
    UNTIL_CLOSE = auto()


class Http1:
    """See `messages.Engine`. A stream is the number of its request."""

    def __init__(
        self, authority: str, *, through_proxy: bool = False, proxy_headers: Pairs = ()
    ) -> None:
        self._authority = authority
        self._base = f"http://{authority}" if through_proxy else ""
        self._proxy_headers = proxy_headers
        self._out = bytearray()
        self._rest = b""  # the beginning of a head
        self._expected = _Expected.NOTHING
        self._stream = 0
        self._left = 0
        self._chunks = Dechunker()
        self._reusable = True

    @property
    def room(self) -> int:
        """How many more requests can begin now."""
        return int(self._reusable and self._expected is _Expected.NOTHING)

    def send(self, request: Outgoing, *, window: int = 0) -> int:
        """Begin a request and return its stream; TCP alone controls how much the server sends."""
        del window
        target = self._base + request.target
        lines = [f"{request.method} {target} HTTP/1.1", f"Host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in (*self._proxy_headers, *request.headers)]
        if request.body or request.method not in ("GET", "DELETE"):
            lines.append(f"Content-Length: {len(request.body)}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header of a request has a line break")
        self._out += "\r\n".join([*lines, "\r\n"]).encode("latin-1") + request.body
        self._stream += 1
        self._expected = _Expected.HEAD
        return self._stream

    def receive(self, data: bytes) -> list[Part]:
        """Take bytes from the server."""
        parts: list[Part] = []
        while data and self._expected is _Expected.HEAD:
            data = self._read_head(data, parts)
        if not data:
            return parts
        if self._expected is _Expected.NOTHING:
            raise ProtocolError("the server sent an answer that was not asked for")
        if self._expected is _Expected.CHUNKS:
            self._read_chunks(data, parts)
        elif self._expected is _Expected.LENGTH:
            if len(data) > self._left:
                raise ProtocolError("the server sent more than the length that it announced")
            self._left -= len(data)
            parts.append(Data(self._stream, data))
            if not self._left:
                self._end(parts)
        else:
            parts.append(Data(self._stream, data))
        return parts

    def receive_end(self) -> list[Part]:
        """Take the end of the server's bytes."""
        parts: list[Part] = []
        self._reusable = False
        if self._expected is _Expected.UNTIL_CLOSE:
            self._end(parts)
        elif self._expected is _Expected.HEAD and not self._rest:
            raise RemoteDisconnected("the server closed the connection without an answer")
        elif self._expected is not _Expected.NOTHING:
            raise ProtocolError("the server closed the connection in the middle of an answer")
        return parts

    def consumed(self, stream: int, size: int) -> None:
        """Do nothing: TCP controls how much the server sends."""

    def cancel(self, stream: int) -> None:
        """Drop an answer; the rest of it makes the connection useless."""
        if stream == self._stream and self._expected is not _Expected.NOTHING:
            self._reusable = False
            self._expected = _Expected.NOTHING

    def ping(self) -> bool:
        """HTTP/1.1 has no PING."""
        return False

    def output(self) -> bytes:
        """Take the bytes that are to be sent to the server."""
        found = bytes(self._out)
        self._out.clear()
        return found

    # -- inside --------------------------------------------------------------------------

    def _read_head(self, data: bytes, parts: list[Part]) -> bytes:
        """Read a whole head, or keep its beginning. Return the bytes behind it."""
        data = self._rest + data
        end = data.find(b"\r\n\r\n")
        if end < 0 or end > _LONGEST_HEAD:
            if len(data) > _LONGEST_HEAD:
                raise ProtocolError(f"the server sent headers of over {_LONGEST_HEAD:,} bytes")
            self._rest = data
            return b""
        self._rest = b""
        status_line, *lines = data[:end].split(b"\r\n")
        match = _STATUS_LINE.fullmatch(status_line)
        if match is None or len(lines) > _MOST_HEADERS:
            raise ProtocolError("what answers there does not speak HTTP/1.1")
        status = int(match[1])
        if status == _SWITCHING:
            raise ProtocolError("the server wants to switch to another protocol")
        if status >= 200:
            headers = Headers(_field(line) for line in lines)
            parts.append(Head(self._stream, status, headers))
            self._expect_body(status, headers, old=status_line.startswith(b"HTTP/1.0"), parts=parts)
        return data[end + 4 :]

    def _expect_body(self, status: int, headers: Headers, *, old: bool, parts: list[Part]) -> None:
        connection = headers.get("connection", "").lower()
        if "close" in connection or (old and "keep-alive" not in connection):
            self._reusable = False
        encoding = headers.get("transfer-encoding", "").strip().lower()
        lengths = {each.strip() for each in headers.get("content-length", "").split(",")} - {""}
        if status in _WITHOUT_BODY:
            self._end(parts)
        elif encoding:
            if encoding != "chunked" or lengths:
                raise ProtocolError(
                    f"the server sends its answer in a way unknown here: {encoding[:40]!r}"
                )
            self._chunks = Dechunker()
            self._expected = _Expected.CHUNKS
        elif lengths:
            length = lengths.pop()
            if lengths or not (length.isascii() and length.isdigit()) or len(length) > 18:
                raise ProtocolError("the server announces a length that is no number")
            self._left = int(length)
            self._expected = _Expected.LENGTH
            if not self._left:
                self._end(parts)
        else:
            self._expected = _Expected.UNTIL_CLOSE
            self._reusable = False

    def _read_chunks(self, data: bytes, parts: list[Part]) -> None:
        try:
            found = self._chunks.feed(data)
        except HTTPException as error:
            raise ProtocolError(f"the server's answer is not well formed: {error}") from None
        if found:
            parts.append(Data(self._stream, found))
        if self._chunks.done:
            if self._chunks.beyond:
                raise ProtocolError("the server sent an answer that was not asked for")
            self._end(parts)

    def _end(self, parts: list[Part]) -> None:
        self._expected = _Expected.NOTHING
        parts.append(End(self._stream))


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.decode("latin-1").partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise ProtocolError("the server sent a header that is not well formed")
    return name, value.strip(" \t")
