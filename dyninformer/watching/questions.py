"""The question whether a cache is fresh, put to the server beside the watch (S35).

A watch that is silent does not say whether there is nothing to say. So the server is asked for a
list of one object, without a version: that is answered by what etcd has, and with its revision.
A cache that has come so far is fresh as of the question. One that has not may still lack nothing,
since revisions count what happens anywhere in the cluster, and a bookmark comes once a minute
only. So a second watch is opened for three seconds, from the version that is held. A server sends
a bookmark before such a watch ends: what it passed before is all that has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.metrics import Metrics
from dyninformer.watching import protocol, reasons, wants
from dyninformer.watching.cutting import BrokenFrameError
from dyninformer.watching.decode import NewsReading, RevisionReading, is_json, refusal
from dyninformer.watching.freshness import Claim, reached
from dyninformer.watching.pulse import ANSWER_WITHIN, HOLDS
from dyninformer.watching.requests import Reply, Request, Transport, short
from dyninformer.watching.states import (
    AskRevision,
    Lost,
    PageEnd,
    Scope,
    State,
    Want,
    WatchFrom,
)

MOST_REQUESTS = 3
"""A question makes at most so many: one more where the credentials have to be read anew."""
BETWEEN = 2.0
"""Seconds from one request to the next, on average: each is paid for by waiting..."""
SAVED = 10.0
"""...and so many seconds can be saved up."""

_WATCH_SECONDS = 3  # a bookmark comes 2 s before the end


class UnansweredError(UnreachableError):
    """The question has no answer; why, in a sentence."""


class Question:
    """One question of one scope; for one thread.

    ``state`` gives the protocol's state, which goes on meanwhile; ``spent`` is called before each
    request (S29), ``now`` is the clock.
    """

    def __init__(
        self,
        scope: Scope,
        transport: Transport,
        metrics: Metrics,
        *,
        state: Callable[[], State],
        spent: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        self._scope = replace(scope, metadata_only=True)  # nobody reads the objects
        self._transport = transport
        self._metrics = metrics
        self._state = state
        self._spent = spent
        self._now = now

    def answered(self) -> Claim:
        """What the server says. Raises `UnreachableError`, or `StoppedError` once it is stopped."""
        as_of = self._now()
        revision = self._revision()
        if reached(self._held, revision):
            return Claim(revision, as_of)
        return Claim(self._last_change_before(revision), as_of)

    # -- inside --------------------------------------------------------------------------

    @property
    def _held(self) -> str:
        return protocol.newest(self._state())

    def _revision(self) -> str:
        """How far the server has come."""
        memory = self._state().memory
        last = memory.position.last_change
        by_name = last is not None and memory.next_read.looks
        want = AskRevision(last.key if last is not None and by_name else "")
        reading, ends = RevisionReading(), []
        with closing(self._asked(want)) as reply, closing(reply.chunks()) as chunks:
            for chunk in chunks:
                ends += list(reading.feed(chunk))
        found = ends[0] if ends else reading.end()
        if isinstance(found, PageEnd) and found.version:
            return found.version
        why = found.complaint if isinstance(found, Lost) else "the answer has no resourceVersion"
        raise UnansweredError(f"cannot ask for {self._scope}: {short(why)}.")

    def _last_change_before(self, revision: str) -> str:
        """The version that must be held for nothing up to ``revision`` to be missed."""
        start = self._held
        reading = NewsReading(start)
        with (
            closing(self._asked(WatchFrom(start, _WATCH_SECONDS))) as reply,
            closing(reply.chunks()) as chunks,
        ):
            try:
                for chunk in chunks:
                    reading.feed(chunk)
                    if reached(reading.passed, revision):
                        return reading.changed
                    if reached(self._held, revision):
                        return revision
            except BrokenFrameError as error:
                why = short(str(error))
                raise UnansweredError(f"cannot ask for {self._scope}: {why}.") from error
        raise UnansweredError(
            f"{self._scope}: the server is at version {revision}, the cache at {start}, and what "
            "is between was not told yet."
        )

    def _asked(self, want: Want) -> Reply:
        """The answer, if it is one; after a 401 it is asked for again, with other credentials."""
        reply = self._sent(want)
        if reply.status == 401:
            reply.close()
            self._transport.reload_credentials()
            reply = self._sent(want)
        if reply.status == 200 and is_json(reply.headers):
            return reply
        refused = refusal(reply.status, reply.headers, reply.body(), self._now())
        raise UnansweredError(reasons.refused(self._scope, wants.verb(want), refused.status).text)

    def _sent(self, want: Want) -> Reply:
        self._spent()
        request = replace(wants.request_for(self._scope, want), deadline=ANSWER_WITHIN)
        verb, code = wants.verb(want), "none"
        send = self._transport.watch if isinstance(want, WatchFrom) else self._transport.list
        try:
            reply = send(request)
            code = str(reply.status)
        except ConfigError as error:
            raise UnansweredError(str(error)) from error
        finally:
            self._metrics.count("requests", self._scope.gvr, verb=verb, code=code)
        return reply


def listen(transport: Transport, request: Request, heard: Callable[[], None]) -> None:
    """Hold a watch to its end; ``heard`` is called at each sign of life.

    Raises `UnreachableError` when one that is due does not come.
    """
    reply = transport.watch(replace(request, deadline=ANSWER_WITHIN))
    heard()
    reply.allow_silence(HOLDS + ANSWER_WITHIN)
    with closing(reply), closing(reply.chunks()) as chunks:
        for _ in chunks:
            heard()
    heard()
