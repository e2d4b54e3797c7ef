"""Having the operating system notice that the other side of a connection has vanished (S35).

Where a node, a NAT entry or a tunnel is gone, no packet says so: a read would wait for ever. With
keepalive the system asks an idle connection for a sign of life, and with a user timeout it gives
up one whose data nobody acknowledges. What answers is the other side's system, and through a
proxy the proxy's: a process that stands still is not found so.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import Final

_IDLE: Final = 10  # seconds without a packet, then it is asked...
_BETWEEN: Final = 5  # ...every so many seconds...
_TIMES: Final = 3  # ...and gone if it did not answer so often: after 25 s
_UNACKNOWLEDGED: Final = 20  # seconds that data may be under way

_OPTIONS: Final = (
    ("TCP_KEEPIDLE", _IDLE),  # Linux, Windows
    ("TCP_KEEPALIVE", _IDLE),  # the same on macOS
    ("TCP_KEEPINTVL", _BETWEEN),
    ("TCP_KEEPCNT", _TIMES),
    ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED * 1000),  # Linux
)
_UNNAMED: Final = {
    "darwin": (0x80, _UNACKNOWLEDGED),  # TCP_RXT_CONNDROPTIME
    "win32": (5, _UNACKNOWLEDGED),  # TCP_MAXRT
}
"""What stands for the last on systems where Python has no name for it."""


def keep_alive(sock: socket.socket) -> None:
    """Have the system end this connection within 25 s of the other side's last sign of life.

    As far as the system can: an option that it lacks, or refuses, is left out.
    """
    with suppress(OSError, AttributeError):  # it may be no TCP, or TLS inside TLS
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    known = [(getattr(socket, name, None), value) for name, value in _OPTIONS]
    for option, value in (*known, _UNNAMED.get(sys.platform, (None, 0))):
        if option is not None:
            with suppress(OSError, AttributeError):
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
