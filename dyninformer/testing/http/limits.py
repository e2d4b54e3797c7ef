"""What one connection may cost the server, in bytes and in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The real server's limits, where it has them.

    >>> from dyninformer.testing import ApiServer, Limits
    >>> with ApiServer(limits=Limits(idle_seconds=1)):  # keep-alive connections soon go stale
    ...     pass
    """

    head_bytes: int = (1 << 20) + 4096
    """Request line and headers; more is a 431."""
    body_bytes: int = 3 << 20
    """Request body; more is a 413."""
    head_seconds: float = 32.0
    """From a request's first byte to the end of its headers."""
    body_seconds: float = 60.0
    """From the end of the headers to the end of the body."""
    idle_seconds: float = 90.0
    """A keep-alive connection without a request is closed after this."""
    stall_seconds: float = 60.0
    """A client that takes no byte for so long, while there is something to send, is dropped."""
    linger_seconds: float = 1.0
    """How long a refused client is listened to, so that it can read why."""
