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
from http import HTTPStatus

from dyninformer.errors import ConfigError, UnreachableError
from dyninformer.metrics.told import Metrics
from dyninformer.store import versions
from dyninformer.threads import since_boot
from dyninformer.transport.requests import Reply, SilentError, Transport, short
from dyninformer.watching import protocol, reasons, wants
from dyninformer.watching.cutting import BrokenFrameError
from dyninformer.watching.decode import NewsReading, RevisionReading, is_json, refusal
from dyninformer.watching.freshness import Claim, reached
from dyninformer.watching.silence import ANSWER_WITHIN
from dyninformer.watching.states import (
    AskRevision,
    Lost,
    PageEnd,
    Scope,
    State,
    Want,
    WatchFrom,
)
from dyninformer.watching.witness import Way

MOST_REQUESTS = 4
"""A question makes two, and one more each for a dead connection and for refused credentials."""
BETWEEN = 2.0
"""Seconds from one request to the next, on average: each is paid for by waiting..."""
SAVED = 10.0
"""...and so many seconds can be saved up."""

_WATCH_SECONDS = 3  # a bookmark comes 2 s before the end
_FIRST_WITHIN = 2.0  # seconds of silence after which the connection may be dead


class UnansweredError(UnreachableError):
    """The question has no answer; why, in a sentence."""


class Question:
    """One question of one scope; for one thread.

    ``state`` gives the protocol's state, which goes on meanwhile; ``spent`` is called before each
    request (S29), ``now`` is the clock. ``claim`` is told what is known before the end.
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
        claim: Callable[[Claim], None] = lambda _: None,
    ) -> None:
        self._scope = replace(scope, metadata_only=True)  # nobody reads the objects
        self._transport = transport
        self._metrics = metrics
        self._state = state
        self._spent = spent
        self._now = now
        self._claim = claim

    def answered(self) -> Claim:
        """What the server says. Raises `UnreachableError`, or `StoppedError` once it is stopped."""
        as_of = self._now()
        revision = self._revision()
        # The stream may come to it while it is asked what there is between.
        self._claim(Claim(revision, as_of))
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
        reply = self._first(want) if isinstance(want, AskRevision) else self._sent(want)
        if reply.status == 401:
            reply.close()
            self._transport.reload_credentials()
            reply = self._sent(want)
        if reply.status == 200 and is_json(reply.headers):
            return reply
        refused = refusal(reply.status, reply.headers, reply.body(), self._now())
        raise UnansweredError(reasons.refused(self._scope, wants.verb(want), refused.status).text)

    def _first(self, want: Want) -> Reply:
        """Send the first request; if nothing comes, send it again over a new connection.

        The first may go over a connection that died while it was idle. Waiting there to the end
        would use up the caller's timeout, though the server is up.
        """
        try:
            reply = self._sent(want, within=_FIRST_WITHIN)
        except SilentError:
            return self._sent(want, within=ANSWER_WITHIN - _FIRST_WITHIN, anew=True)
        reply.allow_silence(ANSWER_WITHIN)
        return reply

    def _sent(self, want: Want, *, within: float = ANSWER_WITHIN, anew: bool = False) -> Reply:
        self._spent()
        request = wants.request_for(self._scope, want)
        request = replace(request, deadline=within, anew=anew)
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


def listen(
    transport: Transport,
    scope: Scope,
    watch: WatchFrom,
    *,
    heard: Callable[[], None],
    told: Callable[[str, bool], None],
    way: Way,
) -> None:
    """Hold a second watch to its end, over the connection that ``way`` says.

    ``heard`` is called at each sign of life, ``told`` with each newer version that it brings, and
    whether that is of a change.
    Raises `UnreachableError` when a sign of life that is due does not come: the end is one, too.
    """
    request = wants.request_for(replace(scope, metadata_only=True), watch)
    request = replace(request, deadline=way.within, anew=way.anew, kept=way.kept)
    reply = transport.watch(request)
    heard()
    end = since_boot() + watch.timeout + way.within
    reply.allow_silence(end - since_boot())
    reading: NewsReading | None = NewsReading(watch.version)
    with closing(reply), closing(reply.chunks()) as chunks:
        for chunk in chunks:
            heard()
            left = end - since_boot()
            if left <= 0:
                raise SilentError("a second watch was not ended at its time")
            reply.allow_silence(left)
            if reading is None or reply.status != HTTPStatus.OK:
                continue
            passed, changed = reading.passed, reading.changed
            try:
                reading.feed(chunk)
            except BrokenFrameError:
                reading = None  # an error, say: the version is too old; its end is still to come
                continue
            if versions.older(changed, reading.changed):
                told(reading.changed, True)
            elif versions.older(passed, reading.passed):
                told(reading.passed, False)
    heard()
