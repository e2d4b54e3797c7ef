"""What can stand between a socket and HTTP: TLS, and a proxy's tunnel. No I/O."""

from __future__ import annotations

import re
import ssl
from typing import Final, Protocol

from dyninformer.transport.messages import Pairs, ProtocolError

_PIECE: Final = 65_536  # more than a TLS record, which holds 16 kB at most
_LONGEST_HEAD: Final = 16_384
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2}) ?([^\r\n]*)\r\n")
_LONGEST_REASON: Final = 120


class Layer(Protocol):
    """Bytes of the network on one side, bytes of the next layer on the other."""

    @property
    def established(self) -> bool:
        """The next layer can begin."""

    @property
    def closed(self) -> bool:
        """The other side said that nothing more comes."""

    def begin(self) -> None:
        """Say the first word."""

    def receive(self, data: bytes | memoryview) -> bytes | memoryview:
        """Take bytes from the network, and return those for the next layer."""

    def send(self, data: bytes) -> None:
        """Take bytes from the next layer; empty before it began."""

    def output(self) -> bytes:
        """Take the bytes for the network."""


class TunnelError(OSError):
    """The proxy refused to connect to the server."""


class Tls:
    """TLS, the client's side. Methods raise `ssl.SSLError`.

    asyncio's own TLS keeps 300 kB for each connection; this keeps some 40 kB, as OpenSSL does.
    """

    def __init__(
        self, context: ssl.SSLContext, server_name: str, session: ssl.SSLSession | None = None
    ) -> None:
        self.context = context
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=server_name, session=session
        )
        self.established = False
        """The handshake is complete."""
        self.closed = False
        """The other side said, within TLS, that nothing more comes."""

    @property
    def protocol(self) -> str:
        """The protocol that both sides agreed on by ALPN; "" if there is none."""
        return self._tls.selected_alpn_protocol() or ""

    @property
    def session(self) -> ssl.SSLSession | None:
        """The session, which another connection can resume to save most of its handshake."""
        return self._tls.session

    def begin(self) -> None:
        """Begin the handshake, or continue it with the bytes that came."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        self.established = True

    def receive(self, data: bytes | memoryview) -> bytes:
        """Decrypt bytes from the network."""
        self._incoming.write(data)
        if not self.established:
            self.begin()
            if not self.established:
                return b""
        found: list[bytes] = []
        read = self._tls.read
        try:
            while piece := read(_PIECE):
                found.append(piece)
            self.closed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.closed = True
        return found[0] if len(found) == 1 else b"".join(found)

    def send(self, data: bytes) -> None:
        """Encrypt bytes of the next layer."""
        if data:
            self._tls.write(data)

    def output(self) -> bytes:
        """Take the bytes for the network."""
        return self._outgoing.read()


class Tunnel:
    """A proxy's tunnel to the server, opened by CONNECT. `receive` raises `TunnelError`."""

    closed = False

    def __init__(self, authority: str, headers: Pairs) -> None:
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        lines += [f"{name}: {value}" for name, value in headers]
        self._out = bytearray("\r\n".join([*lines, "\r\n"]).encode("latin-1"))
        self._head = b""
        self._begun = False
        self.established = False

    def begin(self) -> None:
        """Ask for the tunnel."""
        self._begun = True

    def receive(self, data: bytes | memoryview) -> bytes | memoryview:
        """Read the proxy's answer; behind it, pass everything on."""
        if self.established:
            return data
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > _LONGEST_HEAD:
                raise ProtocolError("the proxy's answer to CONNECT does not end")
            return b""
        match = _STATUS_LINE.match(self._head)
        if match is None:
            raise ProtocolError("the proxy does not speak HTTP/1.1")
        if not match[1].startswith(b"2"):
            said = b" ".join(match.groups()).decode("latin-1")[:_LONGEST_REASON]
            raise TunnelError(f"Tunnel connection failed: {said}")
        self.established = True
        return self._head[end + 4 :]

    def send(self, data: bytes) -> None:
        """Pass bytes on."""
        self._out += data

    def output(self) -> bytes:
        """Take the bytes for the proxy."""
        if not self._begun:
            return b""
        found = bytes(self._out)
        self._out.clear()
        return found
