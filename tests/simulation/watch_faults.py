"""What etcd and API servers have done to watches, as faults: lists of etcd's own, and replicas.

Each of them happened: https://etcd.io/docs/latest/learning/api_guarantees and the issues behind
its robustness tests. Some lose an event that no client can miss before it lists again.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Final

from dyninformer.testing.faults import Fault
from dyninformer.testing.faults.injection import Handler, Intervention, ServerState
from dyninformer.testing.messages import EditedStream, Ending, Pause, Step, is_stream

MOST_AHEAD: Final = 5
"""How far a bookmark is ahead of its event, at most."""

_EXPIRED = {"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired"}
_CHANGES = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')


def _bookmark(version: str) -> bytes:
    metadata = {"resourceVersion": version, "creationTimestamp": None}
    obj = {"kind": "Widget", "apiVersion": "ex.io/v1", "metadata": metadata}
    return json.dumps({"type": "BOOKMARK", "object": obj}).encode() + b"\n"


def _version(line: bytes) -> str:
    """That of the line's object, "0" if another fault has left none."""
    with suppress(ValueError, KeyError):
        return str(json.loads(line)["object"]["metadata"]["resourceVersion"])
    return "0"


class LossyFault(Fault):
    """What is lost by it nobody can tell from the watch: the next list finds it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BookmarkAhead(LossyFault):
    """A bookmark of an event's version, or a later one, comes before the event."""

    ahead: int = 0
    pause: float = 0.0
    newest: Callable[[], int] = field(default=int, repr=False)
    """The version of the newest event: the bookmark is no older."""

    def after(self, intervention: Intervention) -> None:
        """Of each event of a watch, behind its initial ones."""
        live = bool(_of(intervention, "resourceVersion"))

        def edit(line: bytes) -> Iterator[Step]:
            nonlocal live
            if live and line.startswith(_CHANGES) and _version(line) != "0":
                intervention.hit()
                yield _bookmark(str(max(int(_version(line)) + self.ahead, self.newest())))
                if self.pause:
                    yield Pause(self.pause)
            # A stream that began with a list is open for long, also after the fault has ended: it
            # must not lose anything there.
            live = live or (not (self.ahead or self.pause) and b"initial-events-end" in line)
            yield line

        intervention.edit(edit)


@dataclass(frozen=True, slots=True)
class LostEvents(LossyFault):
    """Events do not come: a DELETED at the revision of a compaction, above all."""

    types: tuple[bytes, ...] = (b'{"type":"DELETED"',)

    def after(self, intervention: Intervention) -> None:
        """Of a watch that began at a version."""
        if _of(intervention, "resourceVersion"):
            intervention.edit(lambda line: self._edit(line, intervention))

    def _edit(self, line: bytes, intervention: Intervention) -> Iterable[Step]:
        if line.startswith(self.types):
            intervention.hit()
            return ()
        return (line,)


@dataclass(frozen=True, slots=True)
class Starved(Fault):
    """A watcher that is slower than others hears nothing for long, and is cut off then."""

    after_lines: int
    seconds: float

    def after(self, intervention: Intervention) -> None:
        """Once so many lines have come."""
        line = json.dumps({"type": "ERROR", "object": _EXPIRED}).encode() + b"\n"
        intervention.after_lines(self.after_lines, (Pause(self.seconds), line, Ending.CLEAN))


@dataclass(frozen=True, slots=True)
class OldEvents(Fault):
    """A watch begins with events from before the version that it was asked to begin at."""

    seen: deque[bytes] = field(repr=False)
    """Lines of streams of before."""

    def after(self, intervention: Intervention) -> None:
        """Of a watch that began at a version."""
        asked, answer = _of(intervention, "resourceVersion"), intervention.plan.answer
        if asked and is_stream(answer):
            old = [line for line in self.seen if int(_version(line)) < int(asked)]
            if old:
                intervention.plan.answer = EditedStream(answer, opening=old)
                intervention.hit()


@dataclass(frozen=True, slots=True)
class Listener(Fault):
    """Not a fault: remembers what streams brought, for `OldEvents`.

    Except where it loses what happens: also of streams that are open, and not of what is listed.
    """

    seen: deque[bytes]
    loses: Callable[[], bool]

    def after(self, intervention: Intervention) -> None:
        """Of every stream."""
        live = bool(_of(intervention, "resourceVersion"))

        def edit(line: bytes) -> Iterable[Step]:
            nonlocal live
            if line.startswith(_CHANGES) and line.endswith(b"}\n"):
                if live and self.loses():
                    return ()
                self.seen.append(line)
            live = live or b"initial-events-end" in line
            return (line,)

        intervention.edit(edit)


@dataclass(frozen=True, slots=True)
class Replicas(Fault):
    """Several API servers behind one address: some requests meet one that lags behind."""

    share: float
    """Of the requests, those that meet a replica."""
    seed: float
    stale: ClassVar[bool] = True

    def armed(self, state: ServerState) -> Fault:
        """One replica is copied now; others that were added before are older."""
        return _Replica(state.replica(), self.share, Random(self.seed))


@dataclass(frozen=True, slots=True)
class _Replica(Fault):
    handle: Handler
    share: float
    chance: Random

    def before(self, intervention: Intervention) -> None:
        """Reads alone."""
        if self.chance.random() < self.share and not intervention.plan.decided:
            intervention.answer(self.handle(intervention.received))


def _of(intervention: Intervention, parameter: str) -> str:
    query = intervention.received.request.query
    return next((value for key, value in query if key == parameter), "")
