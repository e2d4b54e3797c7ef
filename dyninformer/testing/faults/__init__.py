"""What can go wrong between a client and an API server, as declared data.

A fault says what happens; where and how often is said when it is added:

>>> from dyninformer.testing import ApiServer
>>> from dyninformer.testing.faults import HttpStatus, Reset
>>> with ApiServer() as server:
...     overload = server.faults.add(HttpStatus(429, retry_after=2), verb="list", times=1)
...     with server.faults.add(Reset(after_lines=3), verb="watch", resource="widgets"):
...         pass  # the client under test, watching widgets
...     overload.hits
0

Faults that speak of lines (``after_lines``) shape watches, and leave other requests
alone. Those that change the state do so ``when="before"`` the request is handled, or
``"after"``: when the answer is made, and not yet sent.
"""

from dyninformer.testing.faults.http2 import FreezeConnection, GoAway, IgnorePings, ResetStream
from dyninformer.testing.faults.injection import Fault, Faults, Injection
from dyninformer.testing.faults.kinds import (
    BlackHole,
    Call,
    Compact,
    ContentType,
    CutChunks,
    Delay,
    DuplicateLines,
    EndEarly,
    EndlessHeaders,
    HttpStatus,
    InjectLine,
    LoseAnswer,
    LoseEvents,
    OversizedLine,
    RawAnswer,
    Refuse,
    Reset,
    RestoreBackup,
    SlowDrip,
    Stale,
    StreamError,
    Truncate,
    TruncateGzip,
    WithholdBookmarks,
)
from dyninformer.testing.messages import Ending

__all__ = [
    "BlackHole",
    "Call",
    "Compact",
    "ContentType",
    "CutChunks",
    "Delay",
    "DuplicateLines",
    "EndEarly",
    "Ending",
    "EndlessHeaders",
    "Fault",
    "Faults",
    "FreezeConnection",
    "GoAway",
    "HttpStatus",
    "IgnorePings",
    "InjectLine",
    "Injection",
    "LoseAnswer",
    "LoseEvents",
    "OversizedLine",
    "RawAnswer",
    "Refuse",
    "Reset",
    "ResetStream",
    "RestoreBackup",
    "SlowDrip",
    "Stale",
    "StreamError",
    "Truncate",
    "TruncateGzip",
    "WithholdBookmarks",
]
