"""Single requests for a collection, made as an informer makes them, and timed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from dyninformer.resource import GroupVersionResource
from dyninformer.watching.broken_frames import broken
from dyninformer.watching.effects import AskRevision, StreamState, Want, WatchFrom
from dyninformer.watching.frames import LineCutter, cut_event
from dyninformer.watching.reading import MARK
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.requests import request_for
from dyninformer.watching.source import Source
from dyninformer.watching.states import Scope
from dyninformer.watching.statuses import status_of

Object: TypeAlias = dict[str, Any]

NOTHING: Final = "dyninformer.doctor/probe=nothing"
"""Labels that no object has: the state of a large collection need not be sent for a probe."""
_STREAM_SECONDS: Final = 5  # for the state of nothing, and its end mark


class Line(NamedTuple):
    """A line of a watch."""

    type: str
    object: Object

    @property
    def is_mark(self) -> bool:
        """It ends the initial events."""
        annotations = self.object.get("metadata", {}).get("annotations") or {}
        return self.type == "BOOKMARK" and annotations.get(MARK) == "true"


class Refusal(NamedTuple):
    """An answer other than 200."""

    status: int
    message: str


class Listed(NamedTuple):
    """A list of one item."""

    seconds: float
    size: int
    items: int
    remaining: int | None
    version: str


class Probes:
    """Asks a server for one collection. UnreachableError if no answer comes."""

    def __init__(
        self, source: Source, gvr: GroupVersionResource, namespace: str, patience: float
    ) -> None:
        self._source = source
        self._patience = patience
        self._whole = Scope(gvr=gvr, namespace=namespace)
        self._empty = Scope(gvr=gvr, namespace=namespace, label_selector=NOTHING)

    def list_one(self) -> Listed | Refusal:
        """A page of one item."""
        began = time.monotonic()
        with self._asked(self._whole, AskRevision(), self._patience) as reply:
            if isinstance(reply, Refusal):
                return reply
            body = b"".join(reply.chunks())
        seconds = time.monotonic() - began
        try:
            found = msgspec.json.decode(body)
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, dict) or not isinstance(found.get("items"), list):
            return Refusal(200, "the answer is no list")
        metadata = found.get("metadata") or {}
        return Listed(
            seconds,
            len(body),
            len(found["items"]),
            metadata.get("remainingItemCount"),
            str(metadata.get("resourceVersion") or ""),
        )

    @contextmanager
    def streamed_state(self) -> Iterator[Iterator[Line] | Refusal]:
        """The lines of a streaming list of nothing."""
        want = StreamState(_STREAM_SECONDS)
        with self._asked(self._empty, want, self._patience) as reply:
            if isinstance(reply, Refusal):
                yield reply
                return
            reply.allow_silence(_STREAM_SECONDS + self._patience)  # it ends by itself before
            yield _lines(reply)

    @contextmanager
    def watched(self, version: str, seconds: int) -> Iterator[SocketReply | Refusal]:
        """A watch from a version, for so long."""
        want = WatchFrom(version, seconds)
        with self._asked(self._whole, want, self._patience) as reply:
            yield reply

    @contextmanager
    def _asked(self, scope: Scope, want: Want, patience: float) -> Iterator[SocketReply | Refusal]:
        reply = self._source.list(replace(request_for(scope, want), deadline=patience))
        try:
            if reply.status == 200:
                yield reply
            else:
                status = status_of(reply.body())
                yield Refusal(reply.status, status.message if status is not None else "")
        finally:
            reply.close()


def _lines(reply: SocketReply) -> Iterator[Line]:
    """The lines as they come. UnreachableError if none comes for long; BrokenFrameError."""
    cutter = LineCutter()
    for chunk in reply.chunks():
        for line in cutter.feed(chunk):
            yield read_line(line)


def read_line(line: bytes) -> Line:
    """A line of a watch; what is no object counts as an empty one."""
    kind, data = cut_event(line)
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken("an event", line, str(error)) from None
    return Line(kind, found if isinstance(found, dict) else {})
