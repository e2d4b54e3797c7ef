"""The websocket in which the server offers a watch: each line is a text frame of its own.

What the client says there, other than pings and its close, is read and dropped.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from dyninformer.testing.messages import Headers, Request

CLOSE: Final = b"\x88\x02\x03\xe8"
"""A close with status 1000: the end of a watch, and the answer to the client's close."""
_PROTOCOL_ERROR: Final = b"\x88\x02\x03\xea"
_KEY_SALT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
_ORIGIN: Final = re.compile(r"/|[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_TEXT, _FINAL, _MASKED, _CONTROL = 0x1, 0x80, 0x80, 0x8
_SHORT, _MEDIUM = 126, 127  # lengths that stand for two, and for eight, bytes of length
_LONGEST_CONTROL = 125


def asked_for(request: Request) -> bool:
    """Whether the client wants a websocket instead of an answer."""
    headers = request.headers
    options = (each.strip() for each in headers.get("connection", "").lower().split(","))
    upgrades = request.method == "GET" and "upgrade" in options
    return upgrades and headers.get("upgrade", "").lower() == "websocket"


def refusal(request: Request) -> bytes:
    """The whole answer to a handshake that is refused, in the server's few words; else empty."""
    headers = request.headers
    if headers.get("sec-websocket-version") != "13":
        head, text = (
            "400 Bad Request\r\nSec-WebSocket-Version: 13",
            "missing or bad WebSocket Version",
        )
    elif not headers.get("sec-websocket-key"):
        head, text = "400 Bad Request", "mismatch challenge/response"
    elif _ORIGIN.match(headers.get("origin", "")) is None:
        head, text = "403 Forbidden", ""
    elif "," in headers.get("sec-websocket-protocol", ""):
        head, text = "400 Bad Request", ""
    else:
        return b""
    return f"HTTP/1.1 {head}\r\n\r\n{text}".encode()


def acceptance(request: Request) -> Headers:
    """The headers of the 101; the one subprotocol that may be named is agreed to unread."""
    key = request.headers["sec-websocket-key"].encode("latin-1")
    digest = hashlib.sha1(key + _KEY_SALT, usedforsecurity=False).digest()
    protocol = request.headers.get("sec-websocket-protocol", "")
    return (
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", base64.b64encode(digest).decode()),
        *((("Sec-WebSocket-Protocol", protocol),) if protocol else ()),
    )


def text_frame(line: bytes) -> bytes:
    """A line as one frame."""
    size = len(line)
    if size < _SHORT:
        length = bytes([size])
    elif size < 1 << 16:
        length = bytes([_SHORT]) + size.to_bytes(2, "big")
    else:
        length = bytes([_MEDIUM]) + size.to_bytes(8, "big")
    return bytes([_FINAL | _TEXT]) + length + line


class Incoming:
    """What the client says, as far as it is to be answered."""

    def __init__(self) -> None:
        self.closed = False
        """The client has said that it is done, or has said what no client may."""
        self._kept = bytearray()
        self._skipped = 0  # of a message that nobody reads, so many bytes are still to come
        self._answers = b""

    def feed(self, data: bytes) -> None:
        """More bytes have come."""
        self._kept += data
        while not self.closed and self._frame():
            pass

    def answers(self) -> bytes:
        """The frames to be sent for what has come, each given once."""
        answers, self._answers = self._answers, b""
        return answers

    def _frame(self) -> bool:
        """Take one frame, or what there is of one; false if more must come first."""
        skipped = min(self._skipped, len(self._kept))
        del self._kept[:skipped]
        self._skipped -= skipped
        kept = self._kept
        if self._skipped or len(kept) < 2:
            return False
        kind, size, start = kept[0] & 0x0F, kept[1] & 0x7F, 2
        control = bool(kind & _CONTROL)
        good = kept[1] & _MASKED and not kept[0] & 0x70 and kind in {0, 1, 2, 8, 9, 10}
        if not good or (control and size > _LONGEST_CONTROL):
            self._close(_PROTOCOL_ERROR)
            return False
        if size >= _SHORT:
            start += 2 if size == _SHORT else 8
            size = int.from_bytes(kept[2:start], "big")
        if len(kept) < start + 4 + (size if control else 0):
            return False
        mask = kept[start : start + 4]
        del kept[: start + 4]
        if not control:
            self._skipped = size
            return True
        said = bytes(byte ^ mask[at % 4] for at, byte in enumerate(kept[:size]))
        del kept[:size]
        if kind == 0x8:
            self._close(CLOSE)
        elif kind == 0x9:
            self._answers += bytes([_FINAL | 0xA, size]) + said
        return True

    def _close(self, answer: bytes) -> None:
        self._answers += answer
        self.closed = True
