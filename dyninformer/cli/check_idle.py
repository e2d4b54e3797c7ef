"""Whether something cuts a watch in which little happens."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from dyninformer.cli.findings import Finding, denied, ok, warn
from dyninformer.cli.probes import Probes, Refusal, read_line
from dyninformer.errors import UnreachableError
from dyninformer.watching.frames import BrokenFrameError, LineCutter
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.transport import SilentError

_CHECK: Final = "idle watch"
_GRACE: Final = 60  # the server shall not end it first
_WHAT_HAPPENS: Final = (
    "dyninformer watches again from the last version at once, and loses no event. Raise the idle "
    "time of the proxy or load balancer on the way above a minute, in which a bookmark comes."
)


def held(probes: Probes, version: str, seconds: float) -> Iterator[Finding]:
    """Hold a watch for so long, and say how it went."""
    began = time.monotonic()
    lines: Counter[str] = Counter()
    try:
        with probes.watched(version, int(seconds) + _GRACE) as reply:
            if isinstance(reply, Refusal):
                yield denied(_CHECK, "it cannot be watched", *reply)
                return
            end = _end_of(reply, began + seconds, lines)
    except (UnreachableError, BrokenFrameError) as error:
        end = str(error)
    after = time.monotonic() - began
    bookmarks = lines["BOOKMARK"]
    told = f"{lines.total() - bookmarks} events and {bookmarks} bookmarks"
    if not end:
        yield ok(_CHECK, f"held for {after:.1f} s, with {told}")
    else:
        yield warn(_CHECK, f"cut after {after:.1f} s, with {told}: {end}", _WHAT_HAPPENS)


def _end_of(reply: SocketReply, until: float, lines: Counter[str]) -> str:
    """What ended it before the time, "" if nothing did."""
    cutter = LineCutter()
    reply.allow_silence(max(0.01, until - time.monotonic()))
    try:
        for chunk in reply.chunks():
            for line in cutter.feed(chunk):
                lines[read_line(line).type] += 1
            left = until - time.monotonic()
            if left <= 0:
                return ""
            reply.allow_silence(left)
    except SilentError:
        return ""  # nothing happened to the end
    return "the stream ended cleanly, before its time"
