"""`ClientExchange`: one client's requests, its credentials, and the end of both.

It knows the official client only by what it is handed (`Origin`); `source` makes that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import urllib3

from dyninformer.errors import StoppedError
from dyninformer.threads import Deadline, in_forked_child
from dyninformer.watching.calls import Call, Wires
from dyninformer.watching.connections import (
    Plumbing,
    RefusalError,
    calling,
    close_idle,
    current_call,
)
from dyninformer.watching.conversation import Conversation
from dyninformer.watching.errands import Errands
from dyninformer.watching.failures import (
    RefreshError,
    is_stale_connection,
    refresh_failed,
    unanswered,
)
from dyninformer.watching.replies import SocketReply
from dyninformer.watching.transport import Request

__all__ = ["ClientExchange", "Guard", "Hook", "Origin", "PrivateClient"]

_CONNECT_SECONDS = 10.0
_MOST_CONNECTING = 8
"""At a time: an address that never answers must not hold up the connections to others."""

_FRESH_SECONDS = 5.0
_CLOSED = "the factory has been shut down; make a new one"

Hook: TypeAlias = Callable[[Any], None]
Guard: TypeAlias = Callable[[Hook], Hook]


@dataclass(frozen=True, slots=True)
class PrivateClient:
    """A copy of an official client, over connections of ours.

    ``request`` is its DynamicClient's; ``failures`` is what that raises when no answer came.
    """

    request: Callable[..., urllib3.BaseHTTPResponse]
    manager: urllib3.PoolManager
    failures: tuple[type[Exception], ...]

    @property
    def proxy(self) -> str | None:
        """What stands between, if anything."""
        return None if self.manager.proxy is None else self.manager.proxy.url


class Origin(Protocol):
    """Where the settings come from: the environment, or a client of the caller's."""

    @property
    def host(self) -> str:
        """Where the API server is, as messages name it."""

    def load(self) -> None:
        """Read settings and credentials, or read them anew. May run a credential plugin."""

    def private(self, guard: Guard, plumbing: Plumbing) -> PrivateClient:
        """A client with what was read, its refresh hook under ``guard``."""

    def refreshed(self) -> None:
        """Take over what the caller has changed in a client of his."""


class ClientExchange:
    """Asks one API server for all conversations of a `Source`."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._lock = threading.RLock()  # guards _private, _conversations, _closed, _reloaded
        self._closed = False
        self._reloaded = float("-inf")
        self._private: PrivateClient | None = None
        self._conversations: set[Conversation] = set()
        host = origin.host
        self._credentials = Errands(f"dyninformer credentials for {host}", 1)
        self._connecting = Errands(f"dyninformer connecting to {host}", _MOST_CONNECTING)
        self._wires = Wires()
        in_forked_child(self, "_lock", _closed=True)

    def conversation(self) -> Conversation:
        """A conversation through this client."""
        with self._lock:
            if self._closed:
                raise StoppedError(_CLOSED)
            found = Conversation(self, self._forget)
            self._conversations.add(found)
            return found

    def open(self, request: Request, call: Call, on_over: Callable[[], None], /) -> SocketReply:
        """Ask, and wait for the head of the answer; whatever its status, it is a reply."""
        self.prepare(call)
        host = self._origin.host
        while True:
            with self._lock:
                private = self._private
            if private is None or self._closed:
                raise StoppedError(_CLOSED)
            call.begin()
            try:
                response = _ask(private, request, call)
            except RefreshError:
                raise
            except urllib3.exceptions.ClosedPoolError:
                call.leave()
                continue  # nothing was asked: another client has come in this one's place
            except private.failures as error:
                call.leave()
                if call.ended:
                    raise StoppedError(f"asking {host} was ended") from None
                if call.reused and not call.anew and is_stale_connection(error):
                    # It lay idle too long. Whatever else fails, be it in the same words, is
                    # told, so that the next try is one that waits (S29).
                    call.anew = True
                    continue
                deadline = request.deadline
                raise unanswered(error, host, private.proxy, call.stage, deadline) from error
            return SocketReply(response, call, host, request.deadline, on_over)

    @property
    def proxy(self) -> str | None:
        """What stands between, once that is known: after the first request."""
        with self._lock:
            return self._private.proxy if self._private is not None else None

    def prepare(self, call: Call) -> None:
        """Have a client to ask with; the first time this may run a credential plugin."""
        with self._lock:
            loaded = self._private is not None
        if not loaded:
            self._credentials.run("reading credentials", self._load, call, shared=True)
        self._origin.refreshed()

    def read_credentials(self, call: Call, /) -> None:
        """Read them anew, unless that was done a moment ago."""
        self._credentials.run("reading credentials anew", self._reload, call, shared=True)

    def guard(self, hook: Hook) -> Hook:
        """A refresh hook that is never run twice at a time, and that nobody must wait for."""

        def guarded(configuration: Any) -> None:
            ours = current_call()
            call = ours or Call()
            refresh = partial(hook, configuration)
            try:
                self._credentials.run("refreshing credentials", refresh, call, shared=True)
            except StoppedError:
                if call.ended:
                    raise
                refresh()  # the client for writes, which outlives this
            except (Exception, SystemExit) as error:
                if ours is None:
                    raise  # the client for writes: whoever writes sees what the hook said
                raise RefreshError(refresh_failed(error, self._origin.host)) from error

        return guarded

    def join(self, timeout: float) -> None:
        """After `close`: give what nothing can interrupt so long to end."""
        deadline = Deadline(timeout)
        for errands in (self._credentials, self._connecting):
            errands.join(deadline.left)

    def under_way(self) -> list[str]:
        """The threads in something that nothing can interrupt, each with what it does."""
        return [*self._credentials.under_way(), *self._connecting.under_way()]

    def close(self) -> None:
        """End every request at once, refuse new ones, close all connections. Idempotent."""
        with self._lock:
            self._closed = True
            conversations = list(self._conversations)
            private = self._private
        for each in conversations:
            each.close()
        self._credentials.close()
        self._connecting.close()
        self._wires.end()
        if private is not None:
            close_idle(private.manager)

    # -- inside --------------------------------------------------------------------------

    def _load(self) -> None:
        with self._lock:
            if self._private is not None:
                return
        self._renew()

    def _reload(self) -> None:
        with self._lock:
            if time.monotonic() - self._reloaded < _FRESH_SECONDS:
                return
        self._renew()
        with self._lock:
            self._reloaded = time.monotonic()

    def _renew(self) -> None:
        """A new client, since certificates may have changed too. On the credentials' thread."""
        self._origin.load()
        private = self._origin.private(self.guard, Plumbing(self._wires, self._connecting))
        with self._lock:
            before, self._private = self._private, private
        if before is not None:
            close_idle(before.manager)

    def _forget(self, conversation: Conversation) -> None:
        with self._lock:
            self._conversations.discard(conversation)


def _ask(private: PrivateClient, request: Request, call: Call) -> urllib3.BaseHTTPResponse:
    with calling(call):
        try:
            return private.request(
                "get" if request.body is None else "post",
                request.path,
                body=request.body,
                serialize=False,
                # Fresh ones each time: the client changes what it is given.
                query_params=list(request.query),
                header_params=dict(request.headers),
                _request_timeout=(_CONNECT_SECONDS, request.deadline),
            )
        except RefusalError as refusal:
            return refusal.response
