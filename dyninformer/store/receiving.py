"""From an object's bytes as they came to what the store keeps of it."""

from __future__ import annotations

import msgspec


class Received(msgspec.Struct, frozen=True):
    """One object as it came, ready to be stored."""

    key: str
    """``namespace/name``, or the name of a cluster-scoped object."""
    namespace: str
    name: str
    uid: str
    version: str
    """The resourceVersion that the server sent."""
    data: bytes | None
    """Plain JSON, filled in and transformed. None where the transform said DROP, and for what
    is deleted."""
