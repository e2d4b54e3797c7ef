"""`Conversation`: one reflector's requests, which end with it and leave the others alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

from dyninformer.errors import StoppedError
from dyninformer.threads import in_forked_child
from dyninformer.watching.answers import Lost
from dyninformer.watching.calls import Call
from dyninformer.watching.reading import DocumentReading
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.transport import BrokenAnswerError, JsonReply, Request

__all__ = ["Conversation", "Exchange"]

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_STOPPED = "nothing is asked any more: what it was for has stopped"


class Exchange(Protocol):
    """What a conversation goes through: the client it belongs to."""

    def open(self, request: Request, call: Call, on_over: Callable[[], None], /) -> SocketReply:
        """Ask, and wait for the head of the answer."""

    def read_credentials(self, call: Call, /) -> None:
        """Have the next requests use credentials read anew."""


class Conversation:
    """See `Transport`. ``close`` reaches what was asked through this object, at any stage."""

    def __init__(
        self, exchange: Exchange, on_closed: Callable[[Conversation], None] = lambda _: None
    ) -> None:
        self._exchange = exchange
        self._on_closed = on_closed
        self._lock = threading.RLock()  # guards _under_way and _closed
        self._under_way: dict[Call, SocketReply | None] = {}
        self._closed = False
        in_forked_child(self, "_lock", _closed=True, _under_way=dict)

    def list(self, request: Request) -> SocketReply:
        """Ask for a collection."""
        return self._ask(request)

    def watch(self, request: Request) -> SocketReply:
        """Ask for a stream of events."""
        return self._ask(request)

    def get_json(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
        deadline: float = 30.0,
    ) -> JsonReply:
        """Ask for something small, and read it whole."""
        return self._whole(Request(path, query, headers, deadline))

    def post_json(self, path: str, body: Mapping[str, object], deadline: float = 30.0) -> JsonReply:
        """Ask by a POST, for what is computed and kept nowhere: a review of access."""
        return self._whole(Request(path, (), _NO_HEADERS, deadline, body))

    def _whole(self, request: Request) -> JsonReply:
        reply = self._ask(request)
        try:
            reading = DocumentReading()
            for chunk in reply.chunks():
                for lost in reading.feed(chunk):
                    raise BrokenAnswerError(f"GET {request.path}: {lost.complaint}")
        finally:
            reply.close()
        if self._closed:
            raise StoppedError(_STOPPED)
        found = reading.value()
        if isinstance(found, Lost):
            raise BrokenAnswerError(f"GET {request.path}: {found.complaint}")
        return JsonReply(reply.status, reply.headers, found)

    def reload_credentials(self) -> None:
        """Have the next requests use credentials read anew."""
        call = self.begin()
        try:
            self._exchange.read_credentials(call)
        finally:
            self.over(call)

    def close(self) -> None:
        """End every request of this conversation at once, and refuse new ones."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            under_way = list(self._under_way.items())
        for call, reply in under_way:
            call.end()
            if reply is not None:
                reply.close()
        self._on_closed(self)

    def begin(self) -> Call:
        """Something that `close` ends."""
        call = Call()
        with self._lock:
            if self._closed:
                raise StoppedError(_STOPPED)
            self._under_way[call] = None
        return call

    def over(self, call: Call) -> None:
        """It has ended."""
        with self._lock:
            self._under_way.pop(call, None)

    # -- inside --------------------------------------------------------------------------

    def _ask(self, request: Request) -> SocketReply:
        call = self.begin()
        try:
            reply = self._exchange.open(request, call, partial(self.over, call))
        except BaseException:
            call.leave()
            self.over(call)
            raise
        with self._lock:
            if call in self._under_way:
                self._under_way[call] = reply
            closed = self._closed
        if closed:  # between the head of the answer and here
            reply.close()
            raise StoppedError(_STOPPED)
        return reply
